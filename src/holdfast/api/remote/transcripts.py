"""Transcripts of other programs on their way to a gateway: read here, cleaned of secrets here, and sent some at a time."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from holdfast.api.remote.connection import encode
from holdfast.api.remote.records import many
from holdfast.context.caller import Context
from holdfast.errors import HoldfastError
from holdfast.formats import transcript
from holdfast.formats.importers import chat
from holdfast.formats.importers.detect import folder
from holdfast.formats.importers.json_source import Source
from holdfast.formats.transcript import CompactMap, TranscriptLine
from holdfast.models import Logged
from holdfast.safety import validate
from holdfast.verbs import history

if TYPE_CHECKING:
    from holdfast.formats.importers.detect import Dialect

_TURNS, _BYTES = 1000, 4 * 1024 * 1024  # that are sent at once
Request = Callable[..., Any]


def imported(context: Context, path: str, client: str | None, kind: str, request: Request) -> list[Logged]:
    """The turns of a file, or of every transcript in a folder."""
    if not os.path.isdir(path):
        return _imported(context, path, client, kind, request, True)
    files = history.files_in(path, context.config.home)
    return [one for file in files for one in _imported(context, file, client, kind, request, False)]


def _imported(context: Context, path: str, client: str | None, kind: str, request: Request, must: bool) -> list[Logged]:
    with Source(path) as source:
        reader = history.reader_of(source, client, must)
        if reader is None:
            return []
        sending = _Sending(request, client or reader.CLIENT, kind, _project(context, source, reader, kind))
        source.progress = context.progress
        context.progress.start(f"reading {source.name}", source.size)
        cut = list[HoldfastError]()
        try:
            for batch in _batches(source, reader, context.config.tool_turns, cut):
                sending.send(batch)
        finally:
            context.progress.end()
        if cut and must:
            raise cut[0]
        return sending.all(source.stem, source.broken + len(cut))  # the others of its folder are read all the same


def _project(context: Context, source: Source, reader: Dialect, kind: str) -> str | None:
    """Whose sessions these are: of the folder that the transcript names, unless the caller named a project."""
    where = folder(source, reader) if kind == "project" else ""
    return history.of_folder(context, where).project_ids()[0] if where else None


def _batches(source: Source, reader: Dialect, tools: bool, cut: list[HoldfastError]) -> Iterator[bytes]:
    """Some lines at a time."""
    lines, size = list[bytes](), 0
    for line in _lines(source, reader, tools, cut):
        lines.append(line)
        size += len(line)
        if len(lines) >= _TURNS or size >= _BYTES:
            yield b"".join(lines)
            lines, size = [], 0
    if lines:
        yield b"".join(lines)


def _lines(source: Source, reader: Dialect, tools: bool, cut: list[HoldfastError]) -> Iterator[bytes]:
    """Lines as the plain chat has them, each turn with the id that it has here too, up to where the file `cut` short."""
    seen = CompactMap()
    try:
        for session, said in history.said_in(source, reader, tools):
            named = validate.redact_or_withhold(session)[0]
            yield _line(named, transcript.assign_id(history.without_secrets(said), named, seen))
    except HoldfastError as error:
        cut.append(error)


def _line(session: str, said: TranscriptLine) -> bytes:
    fields = {"session": session, "id": said.id, "role": said.role, "speaker": said.speaker, "time": said.time,
              "content": said.text}  # fmt: skip
    return encode({name: value for name, value in fields.items() if value is not None}) + b"\n"


class _Sending:
    """One transcript on its way, and what became of each of its sessions."""

    def __init__(self, request: Request, client: str, kind: str, project: str | None) -> None:
        self._request, self._client = request, client
        self._query = {"client": client, "scope": kind, "written": chat.CLIENT, "project": project}
        self.told: dict[str, Logged] = {}

    def send(self, batch: bytes) -> None:
        said = self._request("POST", "/v1/history/import", batch, query=self._query, keyed=True)
        for one in many(Logged, said, "sessions"):
            before = self.told.get(one.session)
            self.told[one.session] = one if before is None else _sum(before, one)

    def all(self, otherwise: str, broken: int) -> list[Logged]:
        """What happened to each; what could not be read is counted with the first."""
        found = list(self.told.values()) or ([Logged(otherwise, self._client, 0, 0, "")] if broken else [])
        return [one if number else one.replace(broken=broken) for number, one in enumerate(found)]


def _sum(before: Logged, one: Logged) -> Logged:
    counts = ("added", "known", "purged", "redacted")
    return one.replace(**{name: getattr(before, name) + getattr(one, name) for name in counts})
