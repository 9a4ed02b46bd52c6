"""A note's file without some of its versions. Pure."""

from __future__ import annotations

from itertools import pairwise

from holdfast.formats import note_file
from holdfast.formats.versions import ParsedNote, list_versions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.formats.note_file import NoteHeader
    from holdfast.models import Version


def without(parsed: ParsedNote, kept: list[int]) -> bytes:
    """The bytes of the file when only these versions are left, counted from the newest; the newest of them is current."""
    versions = list_versions(parsed)
    chain = [versions[place] for place in reversed(kept)]
    made = note_file.create(_head(parsed.header, chain[0]), chain[0].text)
    for older, newer in pairwise(chain):
        closed = older.closed or older.valid_to or newer.valid_from
        made = note_file.add_version(made, older.replace(closed=closed), _head(parsed.header, newer), newer.text)
    head = parsed.header if kept[0] == 0 else _head(parsed.header, chain[-1])
    content = note_file.replace_header(parsed.file.replace(body=made.body, past=made.past), head)
    return note_file.render(content).encode("utf-8", "surrogateescape")


def _head(head: NoteHeader, version: Version) -> NoteHeader:
    return head.replace(
        type=version.type, tags=version.tags, source=version.source, updated=version.recorded,
        valid_from=version.valid_from, valid_to=version.valid_to, approved=None,
    )  # fmt: skip
