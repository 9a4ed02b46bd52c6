"""What was purged at either end of a copy, and must not come back with it."""

from __future__ import annotations

from holdfast.formats import transcript
from holdfast.formats.versions import list_versions, parse_note

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.store.atomic import FileContent
    from holdfast.verbs.copy.endpoints import End

_AT_ONCE = 500  # lines that are asked about together


class Purged:
    """The purges of both: what one brings, the other knows afterwards, so that a copy which is run again decides the same."""

    def __init__(self, old: End, new: End) -> None:
        self._every = [end.ledger.purges for end in (old, new) if end.ledger.purges.any()]

    def __bool__(self) -> bool:
        return bool(self._every)

    def receipt_of(self, scope: str, part: str, name: str, content: FileContent) -> str:
        """The receipt of the purge that took such a document away, if any."""
        if not self._every or (part == "files" and b"\0" in content.data):
            return ""
        path, texts = "", [content.data.decode("utf-8", "replace")]
        if part != "files":
            key = name.removesuffix(".md")
            path = f"{scope}/notes/{key if part == 'notes' else key.rpartition('--')[0]}"
            texts = [version.text for version in list_versions(parse_note(content.data, content.modified))]
        found = [purges.receipt_for(text, ended=True, path=path) for purges in self._every for text in texts]
        return next(filter(None, found), "")

    def without(self, lines: Iterator[bytes]) -> Iterator[tuple[bytes, str]]:
        """The lines of a transcript, where a purged turn stood what a purge leaves there; each with its receipt, if any."""
        session, batch = None, []
        for line in lines:
            if session is None:
                header = transcript.parse_header(line)
                session = header.session if header else ""
            batch.append(line)
            if len(batch) == _AT_ONCE:
                yield from self._without(session, batch)
                batch = []
        yield from self._without(session or "", batch)

    def _without(self, session: str, lines: list[bytes]) -> list[tuple[bytes, str]]:
        places = {place: said for place, line in enumerate(lines) if (said := transcript.parse(line)) is not None}
        asked = [(session, said.id or "", said.text) for said in places.values()]
        gone: dict[int, str] = {}
        for purges in self._every:
            found = purges.turn_receipts(asked, standing=True)
            gone |= {place: found[number] for number, place in enumerate(places) if number in found}
        return [
            (transcript.purged_line(gone[place]), gone[place]) if place in gone else (line, "")
            for place, line in enumerate(lines)
        ]
