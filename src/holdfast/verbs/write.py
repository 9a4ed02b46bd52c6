"""Many notes at once: each passes the gate, then all of a scope are flushed together."""

from __future__ import annotations

import gc
import os

from holdfast.base.record import Record
from holdfast.errors import Busy, Conflict, HoldfastError, Refused, UsageError
from holdfast.formats import versions
from holdfast.models import SCOPES, Stored
from holdfast.safety import validate
from holdfast.safety.trust import parse_made_from
from holdfast.store.atomic import must_stay_readable
from holdfast.store.files import Changed
from holdfast.verbs import projects

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from holdfast.base.ids import FileId
    from holdfast.context.caller import Context
    from holdfast.formats.versions import Draft
    from holdfast.models import Scope

_ATTEMPTS = 1000  # at notes that others keep changing, before we say Busy
_FIELDS = dict.fromkeys(
    ("text", "key", "scope", "type", "tags", "valid_from", "valid_to", "pinned", "origin", "expected", "made_from")
)
_SUCH = 'Such as [{"text": "..."}]'
_EXPORTED = ("name", "id", "created", "updated", "source", "quarantined", "versions", "redacted")  # told by an export only


class One(Record):
    """One of many notes, through the gate: the scope it goes to, and what it was made from as its writer says."""

    number: int
    scope: Scope
    draft: Draft
    made_from: tuple[str, ...]


class Gate:
    """The gate for many notes of one call. All go to its `scope`; where it names none, each to its own, or to the project."""

    def __init__(self, context: Context, scope: str | None, origin: str | None, redact: bool, weighs: bool = True) -> None:
        if scope is not None:
            context.scope(scope)  # or nobody is let in
        if origin is not None:
            validate.origin(origin)
        self._context, self._scope, self._origin, self._redact = context, scope, origin, redact
        self._weighs = weighs  # what they were made from; else that is weighed where it stands
        self._scopes: dict[str, Scope] = {}
        self._drafts: dict[tuple[str, str], Draft] = {}
        self.passed: list[One] = []

    def let_in(self, notes: Iterable[Mapping[str, Any]]) -> list[One]:
        """All of them, in the order they come; an error says which it is about, and `passed` are those before it."""
        if hasattr(notes, "keys") or not hasattr(notes, "__iter__"):
            raise UsageError(f"notes are a list of mappings, not {type(notes).__name__}", _SUCH)
        for number, note in enumerate(notes, 1):
            try:
                self.passed.append(self._looked_at(note, number))
            except HoldfastError as error:
                error.about("note", number)
                raise
        return self.passed

    def _looked_at(self, note: Mapping[str, Any], number: int) -> One:
        said = _fields(note)
        named, made, origin = said.pop("scope", None), parse_made_from(said.pop("made_from", None)), said.pop("origin", None)
        own = kind_of(named) if named is not None else "project"
        scope = self._scope_of(self._scope or own)
        said["origin"], said["made_from"] = self._origin if origin is None else origin, made if self._weighs else None
        draft = self._context.make_draft(**{"key": None, **said}, redact=self._redact)
        if self._drafts.setdefault((scope.kind, draft.key), draft) != draft:
            raise UsageError(f"the key {draft.key!r} comes twice with different texts", "Give each its own key")
        return One(number, scope, draft, made)

    def _scope_of(self, kind: str) -> Scope:
        if kind not in self._scopes:
            self._scopes[kind] = self._context.scope(kind)
        return self._scopes[kind]


def kind_of(scope: object) -> str:
    """The kind of the scope that a note names: `agent`, or as an export has it `agent:NAME`. Whose it is, says the caller."""
    kind = scope.partition(":")[0] if isinstance(scope, str) else ""
    if kind not in SCOPES:
        raise Refused("there is no such scope", f"One of: {', '.join(SCOPES)}")
    return kind


def _fields(note: Mapping[str, Any]) -> dict[str, Any]:
    """What a note says, without what only an export tells."""
    if not hasattr(note, "keys"):
        raise UsageError(f"a note is a mapping, not {type(note).__name__}", _SUCH)
    said = dict(note)
    if not said.keys() <= _FIELDS.keys() or "text" not in said:
        said = {name: value for name, value in said.items() if name not in _EXPORTED}
        unknown = [name for name in said if name not in _FIELDS]
        if unknown or "text" not in said:
            what = ", ".join(map(str, unknown)) or "text"
            raise UsageError(f"unknown or missing field: {what}", f"Known: {', '.join(_FIELDS)}")
    return said


def store_many(
    context: Context, notes: Iterable[Mapping[str, Any]], scope: str | None, origin: str | None, redact: bool = False
) -> list[Stored]:
    """The steps of `Memory.store_many`."""
    gate = Gate(context, scope, origin, redact)
    if not gc.isenabled():
        return _store_all(context, gate, notes)
    _paused.append(True)
    gc.disable()  # nothing here is litter before the end, and to look for some among so many objects takes a fifth of the time
    try:
        return _store_all(context, gate, notes)
    finally:
        _resume()


def _resume() -> None:
    """Look for litter again, if we said not to; in a child too, where whoever was storing many did not come along."""
    if _paused:
        _paused.clear()
        gc.enable()


def _store_all(context: Context, gate: Gate, notes: Iterable[Mapping[str, Any]]) -> list[Stored]:
    """All through the gate, then scope by scope; whatever goes wrong, the first note that something speaks against is named."""
    try:
        given = gate.let_in(notes)
    except HoldfastError:
        if context.store.exists():
            _must_fit(context, _by_place(context, gate.passed))
        raise
    places = _by_place(context, given)
    if len(places) > 1:  # nothing is written to one if something speaks against what goes to another
        _must_fit(context, places)
    stored: dict[tuple[str, str], Stored] = {}
    for place, some in places.items():
        try:
            written = write_notes([context] * len(some), place, [one.draft for one in some])
        except HoldfastError as error:
            if _is_of_one(error) and not stored:
                _must_fit(context, {place: some})
            error.done_before = len(stored)
            raise error from None
        stored.update({(one.scope.kind, one.draft.key): kept for one, kept in zip(some, written, strict=True)})
    return each([(one.scope.kind, one.draft.key) for one in given], stored)


def each(names: list[tuple[str, str]], stored: Mapping[tuple[str, str], Stored]) -> list[Stored]:
    """What became of every note, by scope and key; of one that came twice, as if they had come one after the other."""
    first = {name: place for place, name in reversed([*enumerate(names)])}
    return [
        stored[name] if first[name] == place else stored[name].replace(action="unchanged") for place, name in enumerate(names)
    ]


def _by_place(context: Context, given: list[One]) -> dict[Scope, list[One]]:
    """Each note once, under the place where its key lives."""
    places: dict[Scope, dict[str, One]] = {}
    for one in given:
        places.setdefault(projects.place_to_write(context, one.scope, one.draft.key), {}).setdefault(one.draft.key, one)
    return {place: list(some.values()) for place, some in places.items()}


def _must_fit(context: Context, places: dict[Scope, list[One]]) -> None:
    """Raise what speaks against the first of these notes that cannot be kept, as far as can be told before they are written."""
    found = [wrong for place, some in places.items() if (wrong := _first_wrong(context, place, some))]
    if found:
        raise min(found, key=lambda wrong: wrong.number)


def _first_wrong(context: Context, place: Scope, some: list[One]) -> HoldfastError | None:
    """All at once; and if something is wrong, in the first half of them or else in the second."""
    try:
        _, new, says = _prepared([context] * len(some), place, [one.draft for one in some], {})
        for name, page_, _ in new:
            must_stay_readable(page_.data, name)
        context.refuse_purged(says)
    except HoldfastError as error:
        if not _is_of_one(error):
            return None
        if len(some) == 1:
            return error.about("note", some[0].number)
        half = len(some) // 2
        return _first_wrong(context, place, some[:half]) or _first_wrong(context, place, some[half:])
    return None


def _is_of_one(error: HoldfastError) -> bool:
    """Whether it is about one of many notes, and not about the place where they go."""
    return isinstance(error, Refused | Conflict) and not error.may_be_done


def write_notes(contexts: list[Context], place: Scope, drafts: list[Draft]) -> list[Stored]:
    """Put the next version of many notes of one scope, flushed together. Each is composed at the desk of who says it:
    how far it may be trusted depends on that; the first one's takes all of them to the shelf."""
    context = contexts[0]
    context.sync.prepare_scope(place.folder)
    doubts: dict[str, str] = {}
    context.unarchive(place, [draft.key for draft in drafts])
    for _ in range(_ATTEMPTS):
        made, new, says = _prepared(contexts, place, drafts, doubts)
        whose = list(zip(contexts, drafts, strict=True))
        if not context.config.store:  # a store asks once, when nobody else can write
            context.refuse_purged(says)
        try:
            written_as = [(name, page_.data, seen) for name, page_, seen in new]
            stamps = context.store.write_many(place, written_as, lambda: context.refuse(says, doubts, whose))  # noqa: B023
        except Changed:
            continue
        except versions.RejectedText as error:
            doubts = error.rejected
            continue
        written = [(name, page_, stamp, seen) for (name, page_, seen), stamp in zip(new, stamps, strict=True)]
        context.update_index(lambda: context.sync.index_notes(place.folder, written))  # noqa: B023
        context.sync.listing(place)
        return [
            Stored(action, versions.to_note(place, draft.key, page_, context.config.quarantine), draft.redacted)
            for draft, (action, page_) in zip(drafts, made, strict=True)
        ]
    raise Busy("these notes are changed by others all the time", "Try again")


def _prepared(
    contexts: list[Context], place: Scope, drafts: list[Draft], doubts: Mapping[str, str]
) -> tuple[list[tuple[str, versions.ParsedNote]], list[tuple[str, versions.ParsedNote, FileId | None]], list[tuple[str, str]]]:
    """What becomes of each note; the new pages with their names and the stamps of those they follow; and all that they say."""
    contents = contexts[0].store.read_many(place, [draft.key for draft in drafts])
    made = _composed(
        contexts, drafts, [versions.parse_note(old.data, old.modified) if old else None for old in contents], doubts
    )
    new = [
        (f"{draft.key}.md", page_, old.stamp if old else None)
        for draft, old, (action, page_) in zip(drafts, contents, made, strict=True)
        if action != "unchanged"
    ]
    says = [(f"{place.folder}/notes/{draft.key}", draft.text) for draft in drafts]
    return made, new, says + [("", tag) for draft in drafts for tag in draft.tags or ()]


def _composed(
    contexts: list[Context], drafts: list[Draft], olds: list[versions.ParsedNote | None], doubts: Mapping[str, str]
) -> list[tuple[str, versions.ParsedNote]]:
    """The next version of each note, all of one desk at once."""
    made: dict[int, tuple[str, versions.ParsedNote]] = {}
    for context in dict.fromkeys(contexts):
        places = [place for place, one in enumerate(contexts) if one is context]
        some = context.compose_versions([drafts[place] for place in places], [olds[place] for place in places], doubts)
        made.update(zip(places, some, strict=True))
    return [made[place] for place in range(len(drafts))]


_paused: list[bool] = []  # while nobody looks for litter, because we said so
os.register_at_fork(after_in_child=_resume)
