"""The data of the context benchmark: one JSON file per corpus, with a user's past in a project and the prompts that follow."""

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
USER_TYPES = ("user", "feedback")  # types of notes that are about the user, not about the project
STALE = "stale"  # the kind of prompts whose answer replaced an old value
_FIX = "See the format in docs/benchmarks.md"


class Note(Record):
    """One version of a note. A later version with the same key supersedes it."""

    key: str
    text: str
    scope: str = "project"
    type: str | None = None
    tags: tuple[str, ...] = ()
    valid_from: str | None = None


class Fact(Record):
    """A value of a subject from a day on. A later value with the same subject and label supersedes it."""

    subject: str
    label: str
    value: str
    on: str


class Turn(Record):
    """A turn of an earlier session."""

    role: str
    text: str
    time: str


class Prompt(Record):
    """A prompt, the accepted answers (each is sufficient), and old values that must not be shown as current."""

    text: str
    answer: tuple[str, ...]
    keys: tuple[str, ...]
    kind: str
    outdated: tuple[str, ...] = ()


class Corpus(Record):
    """The contents of one file."""

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
        """Return the current version of each note by its key."""
        return {note.key: note for note in self.notes}

    @property
    def project_notes(self) -> tuple[Note, ...]:
        """Return the notes about the project: no global notes, and no rules and preferences of the user."""
        return tuple([note for note in self.notes if note.scope == "project" and note.type not in USER_TYPES])


def read_corpus(path: Path) -> Corpus:
    """Read and check a file; raise NotFound, or UsageError that names the file and the wrong entry."""
    try:
        data = json.loads(path.read_bytes().decode())
    except FileNotFoundError:
        raise NotFound(f"{path} does not exist", "Give the path of a corpus, a JSON file") from None
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read: {error}", _FIX) from None
    except (json.JSONDecodeError, RecursionError) as error:
        raise UsageError(f"{path} is not JSON: {error}", _FIX) from None
    try:
        return _parse_corpus(str(path), data)
    except ValueError as error:
        raise UsageError(f"{path}: {error}", _FIX) from None


def _parse_corpus(path: str, data: object) -> Corpus:
    """Return the corpus in a JSON value; raise ValueError with the place of a mistake."""
    if not isinstance(data, dict):
        raise ValueError("the file must hold one JSON object")
    corpus = Corpus(
        path=path, notes=_parse_list(data, "notes", _parse_note), facts=_parse_list(data, "facts", _parse_fact),
        other_project=_parse_list(data, "other_project", _parse_note), turns=_parse_list(data, "turns", _parse_turn),
        prompts=_parse_list(data, "prompts", _parse_prompt), unrelated=_parse_list(data, "unrelated", _parse_text),
        always=_parse_list(data, "always", _parse_text),
    )  # fmt: skip
    for required in ("prompts", "unrelated", "always"):
        if not getattr(corpus, required):
            raise ValueError(f"`{required}` is empty")
    _check_keys(corpus)
    return corpus


def _check_keys(corpus: Corpus) -> None:
    """Reject a prompt or an `always` entry with a key that the file does not have."""
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


def _parse_list(data: dict[str, Any], name: str, parse_entry: Callable[[Any], Any]) -> tuple[Any, ...]:
    """Parse the entries of one list; the error names the place of a wrong entry."""
    values = data.get(name)
    if not isinstance(values, list):
        raise ValueError(f"`{name}` is missing" if values is None else f"`{name}` must be a list")
    entries = []
    for place, value in enumerate(values):
        try:
            entries.append(parse_entry(value))
        except ValueError as error:
            raise ValueError(f"{name}[{place}]: {error}") from None
    return tuple(entries)


def _parse_note(data: object) -> Note:
    key, text = _get_text(data, "key"), _get_text(data, "text")
    if not KEY_PATTERN.match(key):
        raise ValueError(f"`{key}` is not a valid key: use lower-case letters, digits and hyphens, at most 60")
    scope, type = _get_optional_text(data, "scope") or "project", _get_optional_text(data, "type")
    if scope not in SCOPES:
        raise ValueError(f"scope `{scope}` is unknown: use {' or '.join(SCOPES)}")
    if type is not None and type not in TYPES:
        raise ValueError(f"type `{type}` is unknown: use {', '.join(TYPES)}")
    valid_from = _get_optional_text(data, "valid_from")
    if valid_from is not None:
        _check_date(valid_from, "valid_from")
    tags = _get_texts(data, "tags", required=False)
    return Note(key=key, text=text, scope=scope, type=type, tags=tags, valid_from=valid_from)


def _parse_fact(data: object) -> Fact:
    on = _check_date(_get_text(data, "on"), "on")
    return Fact(_get_text(data, "subject"), _get_text(data, "label"), _get_text(data, "value"), on)


def _parse_turn(data: object) -> Turn:
    role = _get_text(data, "role")
    if role not in ROLES:
        raise ValueError(f"role `{role}` is unknown: use {', '.join(ROLES)}")
    return Turn(role, _get_text(data, "text"), _check_date(_get_text(data, "time"), "time"))


def _parse_prompt(data: object) -> Prompt:
    text, answer, kind = _get_text(data, "text"), _get_texts(data, "answer"), _get_text(data, "kind")
    outdated = _get_texts(data, "not", required=kind == STALE)
    return Prompt(text=text, answer=answer, keys=_get_texts(data, "keys"), kind=kind, outdated=outdated)


def _parse_text(data: object) -> str:
    if not isinstance(data, str) or not data.strip():
        raise ValueError("must be a text that is not empty")
    return data


def _get_text(data: object, name: str) -> str:
    """Return a required text field."""
    value = _get_optional_text(data, name)
    if value is None:
        raise ValueError(f"`{name}` is missing")
    return value


def _get_optional_text(data: object, name: str) -> str | None:
    """Return a text field, or None if it is missing or null."""
    if not isinstance(data, dict):
        raise ValueError("must be an object")
    value = data.get(name)
    if value is not None and (not isinstance(value, str) or not value.strip()):
        raise ValueError(f"`{name}` must be a text that is not empty")
    return value


def _get_texts(data: Any, name: str, required: bool = True) -> tuple[str, ...]:
    """Return a field that is a list of texts; one that is not required may be missing or empty."""
    values = data.get(name)
    if values is None and not required:
        return ()
    if values is None:
        raise ValueError(f"`{name}` is missing")
    if (
        not isinstance(values, list)
        or (required and not values)
        or not all(isinstance(one, str) and one.strip() for one in values)
    ):
        raise ValueError(f"`{name}` must be a list of texts that are not empty")
    return tuple(values)


def _check_date(text: str, name: str) -> str:
    """Return the text if it is a date."""
    if not dates.is_moment(text):
        raise ValueError(f"`{name}` must be a date, not `{text}`")
    return text
