"""List the kept transcripts of sessions, the one that changed last first."""

from __future__ import annotations

from holdfast.base import dates
from holdfast.base.record import Record
from holdfast.context.transcript_entries import ReadPosition
from holdfast.formats import transcript
from holdfast.models import Scope

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.context.caller import Context
    from holdfast.store.interface import Entry


class SessionSummary(Record):
    """A kept transcript: which session it is of, where it is, when it changed last, and how many turns it has."""

    session: str
    client: str
    scope: Scope
    path: str  # from the shelf: a citation is this path with a line
    started: str
    changed: str
    turns: int


def list_sessions(
    context: Context, folders: tuple[str, ...], *, match: str, after: tuple[int, str] | None, most: int
) -> list[tuple[int, SessionSummary]]:
    """Return at most `most` sessions of these scopes with the number that orders them, the last changed first.

    `match` is a part of the scope's, the client's or the session's name; `after` is the place where the page before ended.
    """
    wanted = match.casefold()
    found = [
        (entry.file_id.changed, folder, entry)
        for folder in folders
        for entry in context.store.transcripts(folder).entries()
        if entry.regular and wanted in f"{folder}/{entry.name}".casefold()
    ]
    found.sort(key=lambda one: (-one[0], one[1], one[2].name))
    if after is not None:
        found = [one for one in found if (-one[0], f"{one[1]}/{one[2].name}") > (-after[0], after[1])]
    page = found[:most]
    context.refresh(tuple(dict.fromkeys([folder for _, folder, _ in page])))
    return [(changed, _summarize(context, folder, entry)) for changed, folder, entry in page]


def order_name(session: SessionSummary) -> str:
    """Return the name by which sessions that changed at the same moment are ordered."""
    return session.path.replace("/transcripts/", "/", 1)


def _summarize(context: Context, folder: str, entry: Entry) -> SessionSummary:
    file = context.store.transcripts(folder).open(entry.name)
    first = next(iter(file.read_lines()), None)
    header = transcript.parse_header(first.data) if first else None
    client, _, name = entry.name.partition("/")
    known = context.query(lambda: context.index.file_digest(folder, "transcripts", entry.name))
    return SessionSummary(
        session=header.session if header else name.removesuffix(".jsonl"), client=header.client if header else client,
        scope=Scope.of_folder(folder), path=file.path, started=header.started if header else "",
        changed=dates.format_timestamp(entry.file_id.changed / 1e9), turns=ReadPosition(known[1]).turns if known else 0,
    )  # fmt: skip
