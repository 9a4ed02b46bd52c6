"""Purged text at either end of a copy, which must not come back with the copy."""

from __future__ import annotations

from holdfast.formats import history_file, transcript
from holdfast.formats.note_file import replace_invalid
from holdfast.formats.versions import list_versions, parse_note

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.store.interface import FileContent
    from holdfast.verbs.copy.endpoints import Endpoint

_BATCH = 500  # lines looked up together


class PurgedContent:
    """The purges of both ledgers: a copy that is run again decides the same as the first time."""

    def __init__(self, old: Endpoint, new: Endpoint) -> None:
        self._ledgers = [end.ledger.purges for end in (old, new) if end.ledger.purges.has_purges()]

    def __bool__(self) -> bool:
        return bool(self._ledgers)

    def receipt_of(self, scope: str, part: str, name: str, content: FileContent) -> str:
        """Return the id of the receipt of the purge that removed this document; "" if it was not purged."""
        if not self._ledgers or (part == "files" and b"\0" in content.data):
            return ""
        place, texts = scope, [content.data.decode("utf-8", "replace")]
        if part == "history":
            place = f"{scope}/notes/{history_file.parse(content.data, name).note}"
            texts = [replace_invalid(older.version.text) for older in history_file.older_versions(content.data, name)]
        elif part != "files":
            key = name.removesuffix(".md")
            place = f"{scope}/notes/{key if part == 'notes' else key.rpartition('--')[0]}"
            texts = [version.text for version in list_versions(parse_note(content.data, content.modified))]
        found = [purges.find_receipt(text, ended=True, place=place) for purges in self._ledgers for text in texts]
        return next(filter(None, found), "")

    def replace_turns(self, lines: Iterator[bytes]) -> Iterator[tuple[bytes, str]]:
        """Yield the lines of a transcript, purged turns replaced as a purge does; each with the id of its receipt or ""."""
        session, batch = None, []
        for line in lines:
            if session is None:
                header = transcript.parse_header(line)
                session = header.session if header else ""
            batch.append(line)
            if len(batch) == _BATCH:
                yield from self._replace_turns(session, batch)
                batch = []
        yield from self._replace_turns(session or "", batch)

    def _replace_turns(self, session: str, lines: list[bytes]) -> list[tuple[bytes, str]]:
        turns = {number: turn for number, line in enumerate(lines) if (turn := transcript.parse_line(line)) is not None}
        asked = [(session, turn.id or "", turn.text) for turn in turns.values()]
        receipts: dict[int, str] = {}  # by number of the line
        for purges in self._ledgers:
            found = purges.find_purged_turns(asked, stored=True)
            receipts |= {number: found[order] for order, number in enumerate(turns) if order in found}
        return [
            (transcript.render_purged_line(receipts[number]), receipts[number]) if number in receipts else (line, "")
            for number, line in enumerate(lines)
        ]
