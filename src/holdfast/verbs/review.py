"""Review: a person reads the notes in quarantine, and approves or rejects them."""

from __future__ import annotations

from holdfast.base import dates
from holdfast.context.usage import note_usage_id
from holdfast.errors import Busy, Conflict, NotFound, Refused, Template, command, phrase
from holdfast.formats import versions
from holdfast.models import SCOPES, Scope
from holdfast.safety import validate
from holdfast.store.interface import Changed
from holdfast.verbs import forget, quarantine

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    from holdfast.context.caller import Context
    from holdfast.models import Note

    class Caller(Protocol):
        """A context, or the memory that has it."""

        @property
        def origin(self) -> str: ...


_ATTEMPTS = 100  # to change a note that other processes keep changing
_QUARANTINED = 1  # the filter of the index


def list_quarantined(context: Context, kind: str | None, everywhere: bool = False) -> list[Note]:
    """Return the quarantined notes that this caller may read, newest first; with `everywhere` those of all scopes."""
    folders = all_folders(context, kind) if everywhere else context.visible_folders(kind)
    context.refresh(folders)
    return context.query(lambda: context.index.list_notes(folders, only=_QUARANTINED))


def all_folders(context: Context, kind: str | None = None) -> tuple[str, ...]:
    """Return the folders of every agent, project and session, as far as the caller's kinds of scope go; for a person only."""
    require_person(context, "read the scopes of other callers")
    wanted = (validate.check_choice(kind, SCOPES, "scope"),) if kind else SCOPES
    kinds = [kind for kind in wanted if kind in context.config.allowed_scopes]
    return tuple([folder for folder in context.store.list_scopes() if Scope.of_folder(folder).kind in kinds])


def require_person(caller: Caller, what: str) -> None:
    """Raise `Refused` for an agent: it may not decide about its own notes."""
    if caller.origin != quarantine.PERSON:
        does = phrase("review as a person", '`holdfast review` in your own terminal, or Memory(origin="user")')
        fix = Template("As a person, use ", does)
        raise Refused(f"only a person may {what}", fix)


def approve(context: Context, key: str, where: str | Scope | None, expected: str | None) -> Note:
    """Write into the note that a person approved its text."""
    require_person(context, "approve a note")
    scope = _find_scope(context, key, where)
    context.sync.prepare_scope(scope.folder)
    recorded = False
    for _ in range(_ATTEMPTS):
        content = context.store.read_note(scope, key)
        if content is None:
            raise NotFound(f"no note {key!r}", Template(command("review"), " lists the notes in quarantine"))
        old = versions.parse_note(content.data, content.modified)
        if expected is not None and old.digest != expected:
            raise _changed_since(key)
        if old.trust not in context.config.quarantine:
            return versions.to_note(scope, key, old, context.config.quarantine)
        new = versions.mark_approved(old, dates.now())
        if not recorded:  # before it is written: no approval is in a note without its record
            record_decision(context, "approved", scope, key, old.header.id)
            recorded = True
        try:
            context.store.write_note(scope, key, new.data, content.file_id)
        except Changed:
            continue
        context.ledger.purges.unreject(_find_rejecting_folders(context, scope, new), new.text)
        context.update_index(lambda: context.sync.refresh_folder(scope.folder, "notes"))
        context.sync.write_listing(scope)
        return versions.to_note(scope, key, new, context.config.quarantine)
    raise Busy(f"other processes keep changing the note {key!r}", "Try again")


def put_in_quarantine(context: Context, key: str, where: str | Scope | None, expected: str | None) -> Note:
    """Take back a person's approval, or distrust any other note: it waits for review again."""
    require_person(context, "put a note in quarantine")
    trusts = context.config.quarantine
    if not trusts:
        raise Refused(
            "trust.quarantine is empty, so no note can be put in quarantine", "Set trust.quarantine to a list of origins"
        )
    scope = _find_scope(context, key, where)
    context.sync.prepare_scope(scope.folder)
    content = context.store.read_note(scope, key)
    old = versions.parse_note(content.data, content.modified) if content else None
    if content is None or old is None:
        raise NotFound(f"no note {key!r}", Template(command("list"), " shows the notes there are"))
    if expected not in (None, old.digest):
        raise _changed_since(key)
    if old.trust in trusts:
        return versions.to_note(scope, key, old, trusts)
    written = old.header.source.trusted
    new = versions.lower_trust(old, written if written in trusts else quarantine.quarantined_trust(trusts))
    record_decision(context, "quarantined", scope, key, old.header.id)
    try:
        context.store.write_note(scope, key, new.data, content.file_id)
    except Changed:
        raise _changed_since(key) from None
    context.update_index(lambda: context.sync.refresh_folder(scope.folder, "notes"))
    context.sync.write_listing(scope)
    return versions.to_note(scope, key, new, trusts)


def _changed_since(key: str) -> Conflict:
    return Conflict(f"the note {key!r} has changed since you read it", "Read it again, and decide about its current text")


def _find_rejecting_folders(context: Context, scope: Scope, note: versions.ParsedNote) -> set[str]:
    """Return the folders whose rejections could contain a note: those of its writer, and of the person who approves it."""
    source = note.header.source
    writers = [Scope(kind, id).folder for kind, id in (("agent", source.agent), ("session", source.session)) if id]
    return {scope.folder, *writers, *context.visible_folders(None)}


def record_decision(context: Context, action: str, scope: Scope, key: str, id: str, **details: str) -> str:
    """Record in the ledger what a person decided about a note; return the note's usage id."""
    subject = note_usage_id(scope, key, id)
    context.ledger.decisions.record(action, subject, {"scope": str(scope), "key": key, **details}, int(dates.clock()))
    return subject


def reject(context: Context, key: str, where: str | Scope | None, expected: str | None) -> list[Scope]:
    """Forget a note that a person does not want; return the scopes that had it."""
    require_person(context, "reject a note")
    scope = _find_scope(context, key, where)
    content = context.store.read_note(scope, key)
    note = versions.parse_note(content.data, content.modified) if content else None
    if note is None or expected not in (None, note.digest):
        return forget.forget(context, [scope], key, expected)
    subject = record_decision(context, "rejected", scope, key, note.header.id)
    context.ledger.purges.reject(scope.folder, [note.text], subject)
    untrusted = mark_untrusted(context, scope, "notes", f"{key}.md", note.digest)
    return forget.forget(context, [scope], key, (untrusted or note).digest)


def mark_untrusted(
    context: Context, scope: Scope, part: str, name: str, expected: str | None = None
) -> versions.ParsedNote | None:
    """Write into a note that a person took it away: restored from the trash, it is in quarantine.

    Return the note after that; None if its file changed or was deleted meanwhile.
    """
    trusts = context.config.quarantine
    for _ in range(_ATTEMPTS):
        content = context.store.read_file(scope.folder, part, name)
        note = versions.parse_note(content.data, content.modified) if content else None
        if content is None or note is None or expected not in (None, note.digest):
            return None
        if not trusts or note.trust in trusts:
            return note
        untrusted = versions.lower_trust(note, quarantine.quarantined_trust(trusts))
        try:
            context.store.replace_file(scope, part, name, untrusted.data, content.file_id)
        except Changed:
            continue
        return untrusted
    raise Busy(f"other processes keep changing the note {name.removesuffix('.md')!r}", "Try again")


def _find_scope(context: Context, key: str, where: str | Scope | None) -> Scope:
    """Return the scope of the note that a person means: one of their own, or the very scope that is named."""
    validate.check_existing_key(key)
    if isinstance(where, Scope):
        scopes = [where] if where.folder in all_folders(context) else []
    else:
        scopes = context.scopes_with_key(key, where)
    if not scopes:
        raise NotFound(f"no note {key!r}", Template(command("review"), " lists the notes in quarantine"))
    return scopes[0]
