"""Find secrets in notes, files and transcripts: which file, which rule, which line."""

from __future__ import annotations

import os
from typing import NamedTuple

from holdfast.errors import HoldfastError, TooLarge
from holdfast.formats import transcript, versions
from holdfast.formats.history_file import parse_history_id
from holdfast.formats.note_file import replace_invalid
from holdfast.models import Problem
from holdfast.safety import secrets
from holdfast.safety.hidden_chars import remove_hidden
from holdfast.safety.secrets.prefilter import is_surely_clean
from holdfast.store import note_history
from holdfast.verbs.doctor.fixes import fixes_for, hide_secrets

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.context.caller import Context

_MAX_LISTED = 50
_MAX_TRANSCRIPT_BYTES = 32 * 1024 * 1024  # the newest transcripts are searched, up to this many bytes: a few seconds
_TOO_LONG = "it is too long to search"


class _File(NamedTuple):
    scope: str
    part: str  # notes, history, files, transcripts
    name: str

    @property
    def path(self) -> str:
        return f"{self.scope}/{self.part}/{self.name}"


class _Finding(NamedTuple):
    file: _File
    line: int  # 0: unknown
    rules: str

    @property
    def shown_path(self) -> str:
        return hide_secrets(self.file.path) + (f":{self.line}" if self.line else "")


class _Transcript(NamedTuple):
    """Ordered by time of the last write, in nanoseconds."""

    modified: int
    size: int
    scope: str
    name: str


def problems(context: Context) -> list[Problem]:
    """Return each file that seems to contain a secret which no person allowed, with the command that removes it."""
    if not context.config.enabled or not context.store.exists():
        return []
    fixes = fixes_for(context.config)
    found: list[Problem] = []
    more = 0
    try:
        for finding in (*_search_files(context), *_search_transcripts(context)):
            if len(found) == _MAX_LISTED:
                more += 1
                continue
            path = finding.shown_path
            what = f"{path} seems to contain a secret and is not briefed: {finding.rules}"
            # in the file itself: a new version of a note would leave the secret in the history
            fix = fixes.edit(os.path.join(context.config.home, "shelf", finding.file.path))
            found.append(Problem("secret", what, fix, path))
    except HoldfastError:
        pass  # an obstacle that other checks report
    if more:
        found.append(Problem("secret", f"and {more} more files that seem to contain a secret", fixes.holdfast("doctor")))
    return found


# --- notes and files --------------------------------------------------------------------------------------------------


def _search_files(context: Context) -> Iterator[_Finding]:
    files = [file for scope in context.store.list_scopes() for file in _list_files(context, scope)]
    context.progress.start("searching for secrets", len(files))
    try:
        for file in files:
            context.progress.step()
            finding = _search_file(context, file)
            if finding:
                yield finding
    finally:
        context.progress.end()


def _search_file(context: Context, file: _File) -> _Finding | None:
    text = _visible_text(context, file)
    if not text or is_surely_clean(text):
        return None
    try:
        hits = secrets.find_secrets(text)
    except TooLarge:
        return _Finding(file, 0, _TOO_LONG)
    if not hits or (file.part in ("notes", note_history.PART) and _is_allowed(context, file, {hit.rule for hit in hits})):
        return None
    return _Finding(file, text.count("\n", 0, hits[0].start) + 1, secrets.describe(text, hits))


def _list_files(context: Context, scope: str) -> Iterator[_File]:
    for entry in context.store.entries(scope, "notes"):
        if entry.regular and entry.name.endswith(".md"):
            yield _File(scope, "notes", entry.name)
    for entry in context.store.entries(scope, note_history.PART):
        if entry.regular:
            yield _File(scope, note_history.PART, entry.name)
    for entry in context.store.tree(scope, 0).entries():
        if entry.regular:
            yield _File(scope, "files", entry.name)


def _visible_text(context: Context, file: _File) -> str:
    """Return a file's text without hidden characters, which must not hide a secret; "" if it cannot be read."""
    try:
        if file.part in ("notes", note_history.PART):
            content = context.store.read_file(file.scope, file.part, file.name)
        else:
            content = context.store.tree(file.scope, 0).read(tuple(file.name.split("/")))
    except HoldfastError:
        return ""  # other checks report it
    return remove_hidden(replace_invalid(content.data.decode("utf-8", "surrogateescape"))) if content is not None else ""


def _is_allowed(context: Context, file: _File, rules: set[str]) -> bool:
    """Return whether a person allowed this note to keep secrets of these rules."""
    content = context.store.read_file(file.scope, file.part, file.name)
    if content is None:
        return True
    if file.part == note_history.PART:
        id = parse_history_id(file.name).partition("~")[0]
    else:
        id = versions.parse_note(content.data, content.modified).header.id
    decisions = context.ledger.decisions.list(id) if id else []
    allowed = [one.detail.get("rules", "") for one in decisions if one.action == "secret-allowed"]
    return rules <= {rule for names in allowed for rule in names.split(", ")}


# --- transcripts ------------------------------------------------------------------------------------------------------


def count_transcript_bytes(context: Context) -> tuple[int, int]:
    """Return how many bytes of transcripts are searched, and how many there are."""
    if not context.config.enabled or not context.store.exists():
        return 0, 0
    try:
        total = sum([one.size for one in _list_transcripts(context)])
    except HoldfastError:
        return 0, 0  # other checks report it
    return min(total, _MAX_TRANSCRIPT_BYTES), total


def _list_transcripts(context: Context) -> list[_Transcript]:
    """Return every transcript, the last written first."""
    found = [
        _Transcript(entry.file_id.changed, entry.file_id.size, scope, entry.name)
        for scope in context.store.list_scopes()
        for entry in context.store.transcripts(scope, 0).entries()
        if entry.regular
    ]
    return sorted(found, reverse=True)


def _search_transcripts(context: Context) -> Iterator[_Finding]:
    """Yield each transcript once, with its first turn that seems to contain a secret."""
    transcripts, bytes_left = _list_transcripts(context), _MAX_TRANSCRIPT_BYTES
    context.progress.start("searching transcripts for secrets", len(transcripts))
    try:
        for one in transcripts:
            if bytes_left <= 0:
                break
            context.progress.step()
            finding = _search_transcript(context, _File(one.scope, "transcripts", one.name), bytes_left)
            bytes_left -= one.size
            if finding:
                yield finding
    finally:
        context.progress.end()


def _search_transcript(context: Context, file: _File, max_bytes: int) -> _Finding | None:
    bytes_left = max_bytes
    try:
        for line in context.store.transcripts(file.scope, 0).open(file.name).read_lines():
            bytes_left -= len(line.data)
            if bytes_left < 0:
                break
            turn = transcript.parse_line(line.data)
            rules = _find_rules(remove_hidden(replace_invalid(turn.text))) if turn else ()
            if rules:
                return _Finding(file, line.number, ", ".join(rules))
    except HoldfastError:
        pass  # other checks report it
    return None


def _find_rules(text: str) -> tuple[str, ...]:
    if is_surely_clean(text):
        return ()
    try:
        return tuple(dict.fromkeys([hit.rule for hit in secrets.find_secrets(text)]))
    except TooLarge:
        return (_TOO_LONG,)
