"""Secrets that stand on the shelf, pasted in by hand, kept on purpose or captured before there was a gate: which files, which
rule, which line (S2, D1). Of transcripts the newest, as many bytes as take a moment."""

from __future__ import annotations

import os

from holdfast.errors import HoldfastError, TooLarge
from holdfast.formats import transcript
from holdfast.formats.note_file import replace_invalid
from holdfast.models import Problem, Scope
from holdfast.safety import secrets
from holdfast.safety.hidden_chars import remove_hidden
from holdfast.safety.secrets.prefilter import is_surely_clean
from holdfast.verbs.doctor.fixes import mending as mending_of
from holdfast.verbs.doctor.fixes import told

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Protocol

    from holdfast.config import Config
    from holdfast.context.caller import Context
    from holdfast.store.atomic import FileContent
    from holdfast.verbs.doctor.fixes import Fix

    class Opened(Protocol):
        """A memory, which stands above."""

        config: Config
        _context: Context


_SHOWN = 50  # that are listed one by one
_TRANSCRIPTS = 32 * 1024 * 1024  # bytes of what was said that are looked through


def problems(context: Context) -> list[Problem]:
    """Each note and file that seems to hold a secret, with the command that mends it; not those that a person allowed."""
    if not context.config.enabled or not context.store.exists():
        return []
    mending = mending_of(context.config)
    found: list[Problem] = []
    more = 0
    try:
        for path, fix, rules in (*_exposed(context, mending), *_said(context, mending)):
            if len(found) < _SHOWN:
                found.append(Problem("secret", f"{path} seems to hold a secret, which is never briefed: {rules}", fix, path))
            else:
                more += 1
    except HoldfastError:
        pass  # something stands in the way, which is told elsewhere
    if more:
        found.append(Problem("secret", f"and {more} more files that seem to hold a secret", mending.holdfast("doctor")))
    return found


def _exposed(context: Context, mending: Fix) -> Iterator[tuple[str, str, str]]:
    """Where, what to do, and which rules on which lines: one look at each file."""
    places = [(scope, part, name) for scope in context.store.scopes() for part, name in _files(context, scope)]
    context.progress.start("looking for secrets", len(places))
    try:
        for scope, part, name in places:
            context.progress.step()
            text = _text(context, scope, part, name)
            if not text or is_surely_clean(text):
                continue
            try:
                hits = secrets.find_secrets(text)
            except TooLarge:
                yield told(f"{scope}/{part}/{name}"), _fix(mending, context, scope, part, name), "it is too long to tell"
                continue
            if hits and not (part == "notes" and _allowed(context, scope, name, {hit.rule for hit in hits})):
                line = text.count("\n", 0, hits[0].start) + 1
                where = told(f"{scope}/{part}/{name}")
                yield f"{where}:{line}", _fix(mending, context, scope, part, name), secrets.describe(text, hits)
    finally:
        context.progress.end()


def looked_at(memory: Opened) -> tuple[int, int]:
    """How many bytes of transcripts are looked through, and how many there are; of those that a gateway has none."""
    context = memory._context
    if memory.config.url or not context.config.enabled or not context.store.exists():
        return 0, 0
    try:
        total = sum([size for _, size, _, _ in _rolls(context)])
    except HoldfastError:
        return 0, 0  # told elsewhere
    return min(total, _TRANSCRIPTS), total


def _rolls(context: Context) -> list[tuple[int, int, str, str]]:
    """Every session's file, the last written first: when, how long, scope and name."""
    every = [
        (scope, entry)
        for scope in context.store.scopes()
        for entry in context.store.transcript_files(scope, 0).census()
        if entry.regular
    ]
    return sorted([(entry.stamp[1], entry.stamp[2], scope, entry.name) for scope, entry in every], reverse=True)


def _said(context: Context, mending: Fix) -> Iterator[tuple[str, str, str]]:
    """The same for what was said in sessions: each file once, by the first of its turns that holds one."""
    transcript_files, left = _rolls(context), _TRANSCRIPTS
    context.progress.start("looking for secrets in transcripts", len(transcript_files))
    try:
        for _, size, scope, name in transcript_files:
            if left <= 0:
                break
            context.progress.step()
            found = _first_said(context, scope, name, left)
            left -= size
            if found:
                line, rules = found
                yield f"{told(f'{scope}/transcripts/{name}')}:{line}", _fix(mending, context, scope, "transcripts", name), rules
    finally:
        context.progress.end()


def _first_said(context: Context, scope: str, name: str, most: int) -> tuple[int, str] | None:
    """The line of the first turn that seems to hold a secret, within so many bytes, and the rules."""
    try:
        for line in context.store.transcript_files(scope, 0).transcript_file(name).lines():
            most -= len(line.data)
            said = transcript.parse(line.data) if most >= 0 else None
            rules = _rules_in(remove_hidden(replace_invalid(said.text))) if said else ()
            if rules:
                return line.number, ", ".join(rules)
            if most < 0:
                break
    except HoldfastError:
        pass  # told elsewhere
    return None


def _rules_in(text: str) -> tuple[str, ...]:
    if is_surely_clean(text):
        return ()
    try:
        return tuple(dict.fromkeys([hit.rule for hit in secrets.find_secrets(text)]))
    except TooLarge:
        return ("it is too long to tell",)


def _files(context: Context, scope: str) -> Iterator[tuple[str, str]]:
    for entry in context.store.entries(scope, "notes"):
        if entry.regular and entry.name.endswith(".md"):
            yield "notes", entry.name
    for entry in context.store.tree(scope, 0).census():
        if entry.regular:
            yield "files", entry.name


def _text(context: Context, scope: str, part: str, name: str) -> str:
    """A file as eyes see it: what nobody sees must not hide a secret, as it does not from the gate."""
    try:
        content: FileContent | None
        if part == "notes":
            content = context.store.read_name(scope, part, name)
        else:
            content = context.store.tree(scope, 0).read(tuple(name.split("/")))
    except HoldfastError:
        return ""  # told elsewhere
    return remove_hidden(replace_invalid(content.data.decode("utf-8", "surrogateescape"))) if content is not None else ""


def _allowed(context: Context, scope: str, name: str, rules: set[str]) -> bool:
    """Whether a person said that this note may keep such a secret."""
    from holdfast.formats import versions

    content = context.store.read_name(scope, "notes", name)
    if content is None:
        return True
    id = versions.to_note(Scope.of_folder(scope), name[:-3], versions.parse_note(content.data, content.modified)).id
    wishes = [detail for action, detail, _ in context.ledger.decisions(id) if action == "secret-allowed"] if id else []
    return rules <= {rule for detail in wishes for rule in detail.get("rules", "").split(", ")}


def _fix(mending: Fix, context: Context, scope: str, part: str, name: str) -> str:
    """A person takes it out of the file itself: a new version of a note would leave it in the history."""
    return mending.edited(os.path.join(context.config.home, "shelf", scope, part, name))
