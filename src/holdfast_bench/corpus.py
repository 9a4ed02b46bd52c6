"""The data of the context benchmark: one JSON file is one person's past with one project, and the prompts that follow."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from holdfast.base import dates
from holdfast.base.ids import KEY_PATTERN
from holdfast.base.record import Record
from holdfast.errors import NotFound, UsageError
from holdfast.formats.facts import normalize_name
from holdfast.formats.transcript import ROLES
from holdfast.models import TYPES

SCOPES = ("project", "global")
STANDING = ("user", "feedback")  # types of notes that are about the person, not about the project
STALE = "stale"  # the kind of prompts whose answer replaced another one
_FORMAT = "See the format in docs/benchmarks.md"


class Note(Record):
    """One version of a note. A later one with the same key supersedes it."""

    key: str
    text: str
    scope: str = "project"
    type: str | None = None
    tags: tuple[str, ...] = ()
    valid_from: str | None = None


class Fact(Record):
    """A value of a subject from a day on. A later one with the same subject and label supersedes it."""

    subject: str
    label: str
    value: str
    on: str


class Turn(Record):
    """What was said in an earlier session."""

    role: str
    text: str
    time: str


class Prompt(Record):
    """What the person asks, the strings any one of which is the answer, and old values that must not be shown as current."""

    text: str
    answer: tuple[str, ...]
    keys: tuple[str, ...]
    kind: str
    outdated: tuple[str, ...] = ()


class Corpus(Record):
    """One file."""

    path: str
    notes: tuple[Note, ...]
    facts: tuple[Fact, ...]
    other_project: tuple[Note, ...]
    turns: tuple[Turn, ...]
    prompts: tuple[Prompt, ...]
    unrelated: tuple[str, ...]
    always: tuple[str, ...]

    @property
    def current(self) -> dict[str, Note]:
        """The current version of each note by its key."""
        return {note.key: note for note in self.notes}

    @property
    def project_notes(self) -> tuple[Note, ...]:
        """The notes about the project: not global ones, nor rules and preferences of the person."""
        return tuple([note for note in self.notes if note.scope == "project" and note.type not in STANDING])


def read(path: Path) -> Corpus:
    """Read and check a file. An error names the file, and the entry where there is one."""
    try:
        given = json.loads(path.read_bytes().decode())
    except FileNotFoundError:
        raise NotFound(f"{path} does not exist", "Give the path of a corpus, a JSON file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read: {error}", _FORMAT) from None
    except (json.JSONDecodeError, RecursionError) as error:
        raise UsageError(f"{path} is not JSON: {error}", _FORMAT) from None
    try:
        return _corpus(str(path), given)
    except ValueError as error:
        raise UsageError(f"{path}: {error}", _FORMAT) from None


def _corpus(path: str, given: object) -> Corpus:
    if not isinstance(given, dict):
        raise ValueError("the file must hold one JSON object")
    corpus = Corpus(
        path, _entries(given, "notes", _note), _entries(given, "facts", _fact), _entries(given, "other_project", _note),
        _entries(given, "turns", _turn), _entries(given, "prompts", _prompt), _entries(given, "unrelated", _plain),
        _entries(given, "always", _plain),
    )  # fmt: skip
    for needed in ("prompts", "unrelated", "always"):
        if not getattr(corpus, needed):
            raise ValueError(f"`{needed}` is empty")
    _check_keys(corpus)
    return corpus


def _check_keys(corpus: Corpus) -> None:
    """Reject a prompt or an `always` entry that names something the file does not have."""
    scopes: dict[str, str] = {}
    for place, note in enumerate(corpus.notes):
        if scopes.setdefault(note.key, note.scope) != note.scope:  # they would be two notes, both of them current
            raise ValueError(f"notes[{place}]: an earlier version of `{note.key}` has another scope")
    known = {*scopes, *[f"turn:{number}" for number in range(len(corpus.turns))]}
    known |= {normalize_name(f"fact:{fact.subject}|{fact.label}") for fact in corpus.facts}
    for place, prompt in enumerate(corpus.prompts):
        for key in prompt.keys:
            if (normalize_name(key) if key.startswith("fact:") else key) not in known:
                raise ValueError(f"prompts[{place}]: key `{key}` is not a note, fact or turn of this file")
    for place, key in enumerate(corpus.always):
        if key not in scopes:
            raise ValueError(f"always[{place}]: key `{key}` is not a note of this file")


def _entries(given: dict[str, Any], name: str, entry: Callable[[Any], Any]) -> tuple[Any, ...]:
    """The entries of one list; an error says which one is wrong."""
    found = given.get(name)
    if not isinstance(found, list):
        raise ValueError(f"`{name}` is missing" if found is None else f"`{name}` must be a list")
    made = []
    for place, one in enumerate(found):
        try:
            made.append(entry(one))
        except ValueError as error:
            raise ValueError(f"{name}[{place}]: {error}") from None
    return tuple(made)


def _note(given: object) -> Note:
    key, text = _text(given, "key"), _text(given, "text")
    if not KEY_PATTERN.match(key):
        raise ValueError(f"`{key}` is not a valid key: use lower-case letters, digits and hyphens, at most 60")
    scope, type = _optional(given, "scope") or "project", _optional(given, "type")
    if scope not in SCOPES:
        raise ValueError(f"scope `{scope}` is unknown: use {' or '.join(SCOPES)}")
    if type is not None and type not in TYPES:
        raise ValueError(f"type `{type}` is unknown: use {', '.join(TYPES)}")
    valid_from = _date(_optional(given, "valid_from"), "valid_from")
    return Note(key, text, scope, type, _texts(given, "tags", needed=False), valid_from)


def _fact(given: object) -> Fact:
    on = _date(_text(given, "on"), "on")
    return Fact(_text(given, "subject"), _text(given, "label"), _text(given, "value"), on)


def _turn(given: object) -> Turn:
    role = _text(given, "role")
    if role not in ROLES:
        raise ValueError(f"role `{role}` is unknown: use {', '.join(ROLES)}")
    return Turn(role, _text(given, "text"), _date(_text(given, "time"), "time"))


def _prompt(given: object) -> Prompt:
    text, answer, kind = _text(given, "text"), _texts(given, "answer"), _text(given, "kind")
    outdated = _texts(given, "not", needed=kind == STALE)
    return Prompt(text, answer, _texts(given, "keys"), kind, outdated)


def _plain(given: object) -> str:
    if not isinstance(given, str) or not given.strip():
        raise ValueError("must be a text that is not empty")
    return given


def _text(given: object, name: str) -> str:
    found = _optional(given, name)
    if found is None:
        raise ValueError(f"`{name}` is missing")
    return found


def _optional(given: object, name: str) -> str | None:
    if not isinstance(given, dict):
        raise ValueError("must be an object")
    found = given.get(name)
    if found is not None and (not isinstance(found, str) or not found.strip()):
        raise ValueError(f"`{name}` must be a text that is not empty")
    return found


def _texts(given: Any, name: str, needed: bool = True) -> tuple[str, ...]:
    found = given.get(name)
    if found is None and not needed:
        return ()
    if found is None:
        raise ValueError(f"`{name}` is missing")
    if not isinstance(found, list) or (needed and not found) or not all(isinstance(one, str) and one.strip() for one in found):
        raise ValueError(f"`{name}` must be a list of texts that are not empty")
    return tuple(found)


def _date(given: str | None, name: str) -> Any:
    if given is not None and not dates.is_moment(given):
        raise ValueError(f"`{name}` must be a date, not `{given}`")
    return given
