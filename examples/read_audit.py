"""Read an exported audit log: verify its hash chain, then count the decisions of each agent.

Export:  holdfast audit export --output audit.jsonl
Run:     python examples/read_audit.py audit.jsonl
"""

import json
import subprocess
import sys
from collections import Counter


def main(path: str) -> int:
    verified = subprocess.run(["holdfast", "audit", "verify", "--file", path], capture_output=True, text=True)
    print((verified.stdout or verified.stderr).strip())
    if verified.returncode:
        return 1
    counts: Counter[tuple[str, str, str]] = Counter()
    with open(path, encoding="utf-8") as rows:
        for line in rows:
            row = json.loads(line)
            counts[row["agent"], row["action"], row["outcome"]] += 1
    for (agent, action, outcome), count in sorted(counts.items()):
        print(f"{count:6} {agent:20} {action:24} {outcome}")
    return 0


if len(sys.argv) != 2:
    sys.exit("usage: python examples/read_audit.py FILE")
sys.exit(main(sys.argv[1]))
