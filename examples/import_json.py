"""Import memories from another program's JSON export: map its fields, store all or nothing, run again safely.

Run:  python examples/import_json.py [FILE]
Without FILE the sample next to this program is imported.
"""

import json
import re
import sys
from pathlib import Path

from holdfast import HoldfastError, Memory


def to_note(record: dict[str, str]) -> dict[str, object]:
    """Map a record of the export to the arguments of `Memory.store`."""
    slug = re.sub(r"[^a-z0-9]+", "-", record["title"].lower()).strip("-")
    return {
        "key": slug,
        "text": record["memory"],
        "tags": record.get("categories", []),
        "valid_from": record["created_at"],
    }


def main() -> None:
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_name("export.json")
    records = json.loads(path.read_text(encoding="utf-8"))["memories"]
    with Memory(project="demo", origin="import") as memory:
        try:
            stored = memory.store_many([to_note(record) for record in records])
        except HoldfastError as error:
            sys.exit(f"Nothing was imported: {error}")
        for result in stored:
            print(f"{result.action} {result.note.key}")
        waiting = memory.review()
        print(f"{len(waiting)} of them wait for your approval: holdfast review")


main()
