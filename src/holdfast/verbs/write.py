"""Store notes: validate the drafts, compose the next versions, write them to the store, then update the index and index.md.

One note and many notes take the same path, `write_notes`.
"""

from __future__ import annotations

from holdfast.base import dates
from holdfast.base.ids import derive_key, new_id
from holdfast.base.platform_keys import is_name_of
from holdfast.base.record import Record
from holdfast.context.sync import WrittenNote
from holdfast.errors import Busy, Conflict, HoldfastError, Refused, Template, UsageError, command, field
from holdfast.formats import versions
from holdfast.formats.versions import Draft, ParsedNote
from holdfast.models import SCOPES, Source, Stored, least_trusted, parse_tags
from holdfast.safety import validate
from holdfast.store.interface import Changed, NoteWrite
from holdfast.verbs import archive, quarantine

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from concurrent.futures import Future
    from typing import Any

    from holdfast.context.caller import Context, Tags, When
    from holdfast.models import Note, Scope
    from holdfast.store.interface import FileContent
    from holdfast.store.note_history import HistoryWrite
    from holdfast.verbs.quarantine import Composed

_ATTEMPTS = 1000  # to write notes that other processes keep changing
_FIELDS = dict.fromkeys(
    ("text", "key", "scope", "type", "tags", "valid_from", "valid_to", "pinned", "origin", "expected", "made_from")
)
_EXAMPLE = 'Such as [{"text": "..."}]'
_EXPORT_FIELDS = (  # ignored on import
    "name", "relations", "id", "created", "updated", "source", "quarantined", "versions", "redacted",
)  # fmt: skip


# --- drafts -----------------------------------------------------------------------------------------------------------


def make_draft(
    context: Context,
    text: object,
    *,
    key: str | None = None,
    type: str | None = None,
    tags: Tags = None,
    valid_from: When = None,
    valid_to: When = None,
    pinned: bool | None = None,
    origin: str | None = None,
    expected: str | None = None,
    made_from: object = None,
    redact: bool = False,
    allow_secret: str | None = None,
    amends: bool | None = None,
    before: str = "",
    name: str | None = None,
) -> Draft:
    """Validate what a caller wants to store. `before` is the text of the note that the draft edits, and `name` the platform
    key that its key was derived from."""
    validate.check_note_properties(type, origin, expected)
    return check_draft(
        _find_source(context, origin, made_from), text, note_bytes=context.config.note_bytes, key=key, type=type, tags=tags,
        valid_from=valid_from, valid_to=valid_to, pinned=pinned, expected=expected, redact=redact, allow_secret=allow_secret,
        amends=amends, before=before, name=name,
    )  # fmt: skip


def check_draft(
    source: Source,
    text: object,
    *,
    note_bytes: int,
    key: str | None,
    type: str | None,
    tags: Tags,
    valid_from: When,
    valid_to: When,
    pinned: bool | None,
    expected: str | None,
    redact: bool,
    allow_secret: str | None,
    amends: bool | None = None,
    before: str = "",
    name: str | None = None,
) -> Draft:
    """Check a text before it is stored here or sent to a gateway; raise the error of the first rule that it breaks."""
    text, redacted = validate.redact(validate.decode_text(text)) if redact else (text, ())
    body = validate.check_text(text, note_bytes, before=before, allowed=allow_secret is not None)
    allowed = validate.allow_secret(body, source.origin, allow_secret) if allow_secret is not None else None
    note_key = validate.check_key(key) if key is not None else derive_key(allowed[1] if allowed else body)
    name = validate.check_platform_key(name) if name is not None else None
    if key is not None:
        validate.reject_secrets(name or note_key, "a key", fix="Give it another name")
    start, end = _validity(valid_from, valid_to)
    if not isinstance(pinned, bool | None):
        raise UsageError(
            Template(field("pinned"), f" must be True or False, not {pinned!r}"), "Use one of them, or leave it out"
        )
    return Draft(
        key=note_key,
        text=body,
        source=source,
        type=type,
        tags=validate.check_tags(parse_tags(tags)) if tags is not None else None,
        valid_from=start,
        valid_to=end,
        pinned=pinned,
        expected=expected,
        name=name,
        amends=amends,
        redacted=redacted,
        allowed=allowed[0] if allowed else "",
        is_checked=allow_secret is None and not before,
    )


def _validity(valid_from: When, valid_to: When) -> tuple[str | None, str | None]:
    start = dates.parse_moment(valid_from, "valid_from") if valid_from is not None else None
    end = dates.parse_moment(valid_to, "valid_to") if valid_to is not None else None
    if end and end <= (start or dates.now()):
        fix = Template("Give a later end, or an earlier ", field("valid_from"))
        what = Template(field("valid_to"), f" {end} is not after ", field("valid_from"), f" {start or 'now'}")
        raise UsageError(what, fix)
    return start, end


def _find_source(context: Context, origin: str | None, made_from: object) -> Source:
    """Return the source of a text: its writer, and what it was made from."""
    name = validate.check_origin(context.origin if origin is None else origin)
    if context.config.by_token:
        name = least_trusted(context.origin, name)
    context.check_caller_names()
    if made_from is not None and made_from != ():
        return quarantine.find_source(context, name, made_from)
    return Source(name, context.agent, context.client, context.session)


# --- one note ---------------------------------------------------------------------------------------------------------


def begin_store(context: Context, draft: Draft, scope: Scope, *, allow_purged: bool = False) -> Stored | Future[Stored]:
    """Store one note; where the caller has a write queue, queue it and return its future result."""
    if allow_purged and draft.source.origin != "user":
        fix = Template("As a person, use ", command("store TEXT --again"))
        raise Refused("only a person may store a purged text again", fix)
    request = WriteRequest(context, find_target_scope(context, scope, draft.key), draft.key, draft)
    if context.write_queue is not None and not allow_purged and not draft.allowed:
        return context.write_queue.submit(request)
    return write_notes([request], allow_purged=allow_purged)[0]


def write_note(
    context: Context, scope: Scope, key: str, draft: Draft | Callable[[Note | None], Draft], mentions: tuple[str, ...] = ()
) -> Stored:
    """Write the next version of one note; see `write_notes`."""
    return write_notes([WriteRequest(context, scope, key, draft)], mentions=mentions)[0]


def find_target_scope(context: Context, scope: Scope, key: str) -> Scope:
    """Return the scope that a note with this key is written to: an older id of the project may have the note already."""
    if scope.kind != "project" or not context.project_ids()[1:]:
        return scope
    from holdfast.verbs import projects

    return projects.find_target_scope(context, scope, key)


# --- the write path ---------------------------------------------------------------------------------------------------


class WriteRequest(Record):
    """One note to write, and its caller: how far a text is trusted depends on the caller.

    A draft that edits the note is a function of it, so that it is made again when another process changed the note.
    """

    context: Context
    scope: Scope
    key: str
    draft: Draft | Callable[[Note | None], Draft]

    @property
    def path(self) -> str:
        """The path of the note, as digests of purged texts know it."""
        return f"{self.scope.folder}/notes/{self.key}"


class _Prepared(Record):
    """The next version of one note."""

    request: WriteRequest
    draft: Draft
    content: FileContent | None  # the file as it is now
    action: str
    note: ParsedNote
    current: ParsedNote | None  # the note as it is now
    history: list[HistoryWrite]  # history files to write before the note

    @property
    def changes(self) -> bool:
        """Whether there is anything to write."""
        return self.action != "unchanged"

    @property
    def name(self) -> str:
        """The name of the file."""
        return f"{self.draft.key}.md"

    def texts(self) -> list[tuple[str, str]]:
        """Return the texts that must not have been purged, each with the path of its note or the folder of its scope."""
        texts = [(self.request.path, self.draft.text), *[(self.request.scope.folder, tag) for tag in self.draft.tags or ()]]
        related = self.request.context.purge_filter.with_related  # what a purge covers depends on the caller's project
        return [(each, text) for place, text in texts for each in related(place)]


def write_notes(
    requests: list[WriteRequest],
    *,
    context: Context | None = None,
    unlisted: set[Scope] | None = None,
    allow_purged: bool = False,
    mentions: tuple[str, ...] = (),
) -> list[Stored]:
    """Write the next version of each note, flushed together: none is stored if one is rejected.

    The notes may be of several scopes. `context` has the store and the index to write to; without one, those of the first
    caller are used. The scopes that changed are added to `unlisted`, or their index.md is written. Notes that another process
    changed meanwhile are composed again. `mentions` are further texts that must not have been purged. Raises `Busy` if other
    processes change the notes all the time.
    """
    context = context or requests[0].context
    for folder in dict.fromkeys([request.scope.folder for request in requests]):
        context.sync.prepare_scope(folder)
    rejected: Mapping[str, str] = {}
    for _ in range(_ATTEMPTS):
        contents = _read_contents(context, requests)
        if contents is None:
            continue  # the new text is the next version of a note that was archived
        prepared = _prepare(requests, contents, rejected)
        _check_quota(prepared)
        try:
            written = _store_files(context, prepared, rejected=rejected, allow_purged=allow_purged, mentions=mentions)
        except Changed:
            continue
        except versions.RejectedText as error:
            rejected = error.rejected
            continue
        if allow_purged:
            written += _allow_again(context, prepared)
        if written:
            context.update_index(lambda: context.sync.index_notes(written))  # noqa: B023
            changed = dict.fromkeys([note.scope for note in written])
            if unlisted is not None:
                unlisted.update(changed)
            else:
                for scope in changed:
                    context.sync.write_listing(scope)
        return [_stored(one, context.config.quarantine) for one in prepared]
    what = f"the note {requests[0].key!r}" if len(requests) == 1 else "these notes"
    raise Busy(f"other processes keep changing {what}", "Try again")


def _stored(one: _Prepared, quarantine: tuple[str, ...]) -> Stored:
    return Stored(one.action, versions.to_note(one.request.scope, one.draft.key, one.note, quarantine), one.draft.redacted)


def _read_contents(context: Context, requests: list[WriteRequest]) -> list[FileContent | None] | None:
    """Return what the notes say now; None if some were in the archive and have just come back."""
    wanted = [(request.scope, request.key) for request in requests]
    contents = context.store.read_notes(wanted)
    missing = [key for key, content in zip(wanted, contents, strict=True) if content is None]
    return None if missing and archive.unarchive(context, missing) else contents


def _prepare(requests: list[WriteRequest], files: list[FileContent | None], rejected: Mapping[str, str]) -> list[_Prepared]:
    """Compose the next version of each note from the current content of its file."""
    current = [versions.parse_note(content.data, content.modified) if content else None for content in files]
    drafts = [_make_current_draft(request, note) for request, note in zip(requests, current, strict=True)]
    composed = _compose(requests, drafts, current, rejected)
    return [
        _with_history(
            _Prepared(request=request, draft=draft, content=content, action=action, note=note, current=old, history=[])
        )
        for request, draft, content, old, (action, note) in zip(requests, drafts, files, current, composed, strict=True)
    ]


def _check_quota(prepared: list[_Prepared]) -> None:
    """Check the quota of each agent that has one, for all notes that its requests write at once."""
    contexts = [one.request.context for one in prepared]
    limited = {one.agent: one for one in contexts if one.config.most_notes or one.config.most_bytes}
    for agent, context in limited.items():
        from holdfast.verbs import quota

        added = [
            quota.count_added(context, one.request.scope, one.current, one.note)
            for one in prepared
            if one.request.context.agent == agent and one.changes
        ]
        quota.check(context, notes=sum([notes for notes, _ in added]), bytes=sum([size for _, size in added]))


def _with_history(one: _Prepared) -> _Prepared:
    """Return the note without the versions that no longer belong into its file, and the history files that get them."""
    config, note = one.request.context.config, one.note
    if not one.changes or (note.past_count <= config.inline_versions and len(note.data) <= config.inline_bytes):
        return one
    from holdfast.store import note_history

    shortened, writes = note_history.split_off(
        one.request.context.store, one.request.scope.folder, one.draft.key, note,
        most_versions=config.inline_versions, most_bytes=config.inline_bytes,
    )  # fmt: skip
    return one.replace(note=shortened, history=writes)


def _make_current_draft(request: WriteRequest, note: ParsedNote | None) -> Draft:
    if isinstance(request.draft, Draft):
        return request.draft
    quarantined = request.context.config.quarantine
    return request.draft(versions.to_note(request.scope, request.key, note, quarantined) if note else None)


def _compose(
    requests: list[WriteRequest], drafts: list[Draft], current: list[ParsedNote | None], rejected: Mapping[str, str]
) -> list[Composed]:
    """Compose the next version of each note; what a caller may not replace or copy is contained (see quarantine)."""
    now, milliseconds = dates.now(), int(dates.clock() * 1000)

    def compose(draft: Draft, note: ParsedNote | None) -> Composed:
        return versions.compose(draft, note, now, new_id(milliseconds))

    composed = list(map(compose, drafts, current))
    may_copy = quarantine.may_copy(requests[0].context, drafts)
    for context in dict.fromkeys([request.context for request in requests]):
        own = [number for number, request in enumerate(requests) if request.context is context]
        contained = quarantine.contain(
            context,
            drafts=[drafts[number] for number in own],
            current=[current[number] for number in own],
            composed=[composed[number] for number in own],
            compose=compose,
            rejected=rejected,
            may_copy=may_copy,
        )
        for number, result in zip(own, contained, strict=True):
            composed[number] = result
    return composed


def _store_files(
    context: Context, prepared: list[_Prepared], *, rejected: Mapping[str, str], allow_purged: bool, mentions: tuple[str, ...]
) -> list[WrittenNote]:
    """Store the files that change, durably; return them with their new identities."""
    changed = [one for one in prepared if one.changes]
    if not changed:
        return []
    texts = (
        []
        if allow_purged
        else [
            *[text for one in changed for text in one.texts()],
            *[(changed[0].request.scope.folder, text) for text in mentions],
        ]
    )
    allowed = [one for one in prepared if one.draft.allowed]
    if allowed or not context.config.store:  # PostgreSQL asks once, in the transaction that writes
        context.purge_filter.refuse_purged(texts)
    for one in allowed:  # recorded before it is stored
        _record_allowed_secret(context, one)

    def check() -> None:
        """Run under the store's lock: no purge and no rejection is missed."""
        context.purge_filter.refuse_purged(texts)
        quarantine.refuse_rejected(context, rejected, [(one.request.context, one.draft) for one in prepared])

    replaced = [one.content.file_id if one.content else None for one in changed]
    for one, old in zip(changed, replaced, strict=True):
        if one.history:
            from holdfast.store import note_history

            note_history.write(context.store, one.request.scope, one.name, old, one.history)
    if len(changed) == 1:
        first = changed[0]
        file_ids = [context.store.write_note(first.request.scope, first.draft.key, first.note.data, replaced[0], check=check)]
    else:
        pairs = zip(changed, replaced, strict=True)
        writes = [NoteWrite(one.request.scope, one.name, one.note.data, old) for one, old in pairs]
        file_ids = context.store.write_notes(writes, check=check)
    return [
        WrittenNote(scope=one.request.scope, name=one.name, note=one.note, file_id=file_id, replaced=old)
        for one, file_id, old in zip(changed, file_ids, replaced, strict=True)
    ]


def _record_allowed_secret(context: Context, one: _Prepared) -> None:
    rules, reason = one.draft.allowed.split(": ", 1)
    details = {"scope": str(one.request.scope), "key": one.draft.key, "rules": rules, "why": reason}
    context.ledger.decisions.record("secret-allowed", one.note.header.id, details, int(dates.clock()))


def _allow_again(context: Context, prepared: list[_Prepared]) -> list[WrittenNote]:
    """Let the texts be stored again; return the unchanged notes, which the index has left out until now."""
    for one in prepared:
        context.purge_filter.allow_again(one.request.path, one.draft.text)
    return [
        WrittenNote(scope=one.request.scope, name=one.name, note=one.note, file_id=one.content.file_id, replaced=None)
        for one in prepared
        if not one.changes and one.content
    ]


# --- many notes -------------------------------------------------------------------------------------------------------


class BulkDraft(Record):
    """One of many notes, validated: its position from 1, its scope, and the sources that its writer named."""

    number: int
    scope: Scope
    draft: Draft
    made_from: tuple[str, ...]


class BulkReader:
    """Validates the notes of one bulk call. All go to `scope`; without one, each goes to its own, or to the project.

    `find_scope` returns the caller's scope of a kind, and `make_draft` a checked draft.
    """

    def __init__(
        self, find_scope: Callable[[str], Scope], make_draft: Callable[..., Draft], *, scope: str | None, origin: str | None,
        redact: bool,
    ) -> None:  # fmt: skip
        if scope is not None:
            find_scope(scope)  # raises before the first note is read
        if origin is not None:
            validate.check_origin(origin)
        self._find_scope, self._make_draft = find_scope, make_draft
        self._scope, self._origin, self._redact = scope, origin, redact
        self._scopes: dict[str, Scope] = {}
        self._drafts: dict[tuple[str, str], Draft] = {}
        self.valid: list[BulkDraft] = []

    def read(self, notes: Iterable[Mapping[str, Any]]) -> list[BulkDraft]:
        """Return the validated notes; an error names the note it is about, and `valid` are those before it."""
        if hasattr(notes, "keys") or not hasattr(notes, "__iter__"):
            raise UsageError(f"notes must be a list of mappings, not {type(notes).__name__}", _EXAMPLE)
        for number, note in enumerate(notes, 1):
            try:
                self.valid.append(self._read_note(note, number))
            except HoldfastError as error:
                error.about("note", number)
                raise
        return self.valid

    def _read_note(self, note: Mapping[str, Any], number: int) -> BulkDraft:
        from holdfast.safety.trust import parse_made_from

        fields = _read_fields(note)
        named, made_from = fields.pop("scope", None), parse_made_from(fields.pop("made_from", None))
        own = kind_of(named) if named is not None else "project"
        scope = self._target_scope(self._scope or own)
        origin = fields.pop("origin", None)
        fields["origin"] = self._origin if origin is None else origin
        draft = self._make_draft(fields.pop("text"), **fields, made_from=made_from, redact=self._redact)
        if isinstance(name := note.get("name"), str) and is_name_of(name, draft.key):  # exports have other names as well
            validate.reject_secrets(validate.check_platform_key(name), "a key", fix="Give it another name")
            draft = draft.replace(name=name)
        if self._drafts.setdefault((scope.kind, draft.key), draft) != draft:
            raise UsageError(f"the key {draft.key!r} occurs twice with different texts", "Give each note its own key")
        return BulkDraft(number, scope, draft, made_from)

    def _target_scope(self, kind: str) -> Scope:
        if kind not in self._scopes:
            self._scopes[kind] = self._find_scope(kind)
        return self._scopes[kind]


def kind_of(scope: object) -> str:
    """Return the kind of the scope that a note names: `agent`, or as an export has it `agent:NAME`."""
    kind = scope.partition(":")[0] if isinstance(scope, str) else ""
    if kind not in SCOPES:
        raise Refused("unknown scope", f"Use one of: {', '.join(SCOPES)}")
    return kind


def _read_fields(note: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a note, without those that only an export has."""
    if not hasattr(note, "keys"):
        raise UsageError(f"a note must be a mapping, not {type(note).__name__}", _EXAMPLE)
    fields = {name: value for name, value in dict(note).items() if name in _FIELDS or name not in _EXPORT_FIELDS}
    unknown = [name for name in fields if name not in _FIELDS]
    if unknown:
        raise UsageError(f"unknown field: {', '.join(map(str, unknown))}", f"Use: {', '.join(_FIELDS)}")
    if "text" not in fields:
        raise UsageError("the field text is missing", f"Add it; the fields are: {', '.join(_FIELDS)}")
    return fields


def store_many(
    context: Context, notes: Iterable[Mapping[str, Any]], scope: str | None, origin: str | None, redact: bool = False
) -> list[Stored]:
    """Validate all notes, then store them scope by scope; an error names the first note that cannot be stored."""

    def draft(text: object, **fields: Any) -> Draft:
        return make_draft(context, text, **fields)

    reader = BulkReader(context.scope, draft, scope=scope, origin=origin, redact=redact)
    try:
        drafts = reader.read(notes)
    except HoldfastError:
        if context.store.exists():
            _check_storable(context, _group_by_scope(context, reader.valid))
        raise
    groups = _group_by_scope(context, drafts)
    if len(groups) > 1:  # write to no scope if a note of another scope cannot be stored
        _check_storable(context, groups)
    stored: dict[tuple[str, str], Stored] = {}
    for target, group in groups.items():
        try:
            written = write_notes(_as_requests(context, target, group))
        except HoldfastError as error:
            if _is_about_one_note(error) and not stored:
                _check_storable(context, {target: group})
            error.done_before = len(stored)
            raise error from None
        stored.update({(one.scope.kind, one.draft.key): kept for one, kept in zip(group, written, strict=True)})
    return results_in_order([(one.scope.kind, one.draft.key) for one in drafts], stored)


def results_in_order(names: list[tuple[str, str]], stored: Mapping[tuple[str, str], Stored]) -> list[Stored]:
    """Return the result of every note by scope and key; a note that came twice is unchanged the second time."""
    seen: set[tuple[str, str]] = set()
    results = []
    for name in names:
        results.append(stored[name].replace(action="unchanged") if name in seen else stored[name])
        seen.add(name)
    return results


def _group_by_scope(context: Context, drafts: list[BulkDraft]) -> dict[Scope, list[BulkDraft]]:
    """Return each note once, by the scope that it is written to."""
    groups: dict[Scope, dict[str, BulkDraft]] = {}
    for one in drafts:
        target = find_target_scope(context, one.scope, one.draft.key)
        groups.setdefault(target, {}).setdefault(one.draft.key, one)
    return {target: list(group.values()) for target, group in groups.items()}


def _as_requests(context: Context, scope: Scope, group: list[BulkDraft]) -> list[WriteRequest]:
    return [WriteRequest(context, scope, one.draft.key, one.draft) for one in group]


def _check_storable(context: Context, groups: dict[Scope, list[BulkDraft]]) -> None:
    """Raise the error of the first note that cannot be stored, as far as that is known before anything is written."""
    errors = [error for target, group in groups.items() if (error := _find_first_error(context, target, group))]
    if errors:
        raise min(errors, key=lambda error: error.number)


def _find_first_error(context: Context, scope: Scope, group: list[BulkDraft]) -> HoldfastError | None:
    """Check all notes at once; if one is wrong, search the first half for it, and then the second."""
    from holdfast.store.layout import check_note_size

    try:
        contents = context.store.read_notes([(scope, one.draft.key) for one in group])
        prepared = _prepare(_as_requests(context, scope, group), contents, {})
        changed = [one for one in prepared if one.changes]
        for one in changed:
            check_note_size(one.note.data, one.name)
        context.purge_filter.refuse_purged([text for one in changed for text in one.texts()])
    except HoldfastError as error:
        if not _is_about_one_note(error):
            return None
        if len(group) == 1:
            return error.about("note", group[0].number)
        half = len(group) // 2
        return _find_first_error(context, scope, group[:half]) or _find_first_error(context, scope, group[half:])
    return None


def _is_about_one_note(error: HoldfastError) -> bool:
    """Return whether an error is about one of many notes, and not about the scope they go to."""
    return isinstance(error, Refused | Conflict) and not error.may_be_done
