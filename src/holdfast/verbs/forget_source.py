"""Forget everything that came from a source, including notes derived from it: find it, then forget or revert it at once."""

from __future__ import annotations

import os
from functools import partial
from typing import NamedTuple

from holdfast.base import dates
from holdfast.base.record import Record
from holdfast.errors import NotFound, Refused, Template, command
from holdfast.formats import transcript, versions
from holdfast.models import Scope
from holdfast.safety import trust, validate
from holdfast.store import note_history
from holdfast.verbs import archive, quarantine, review, trace, write

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.context.caller import Context
    from holdfast.formats.versions import ParsedNote
    from holdfast.models import Version

    Suspects = dict["_File", "_Suspect"]


class Touched(Record):
    """A note that a source affected, through what, and the time of its last text that the source did not affect."""

    scope: Scope
    key: str
    path: str
    via: str
    clean: str | None = None


class Swept(Record):
    """The notes that came from a source, and what was done with them."""

    source: str
    forgotten: tuple[Touched, ...] = ()
    reverted: tuple[Touched, ...] = ()  # the last text that the source did not affect is the current one again
    older: tuple[Touched, ...] = ()  # only an older version came from it: nothing was done
    binned: tuple[Touched, ...] = ()  # in the trash or the archive already, from where it could be restored
    transcripts: tuple[str, ...] = ()  # of that session: its turns are still there
    dry_run: bool = False
    restorable_until: str | None = None
    beyond_reach: tuple[str, ...] = ()
    refused: str = ""  # of a dry run: why this caller may not do it


class _File(NamedTuple):
    folder: str  # of the scope
    part: str  # notes, trash, archive
    name: str


class _Affected(NamedTuple):
    current: list[_Suspect]  # notes whose current text came from the source
    older: list[_Suspect]  # notes of which only an older text did
    trashed: list[_Suspect]  # in the trash or the archive


class _Suspect:
    """A note that may come from the source: its versions, newest first, and which of them did."""

    def __init__(self, file: _File, parsed: ParsedNote, every: list[Version]) -> None:
        self.file, self.parsed = file, parsed
        self.versions = every
        self.tainted: dict[int, str] = {}  # number of the version, and by what it came from the source

    def taint(self, find_reason: Callable[[Version], str]) -> bool:
        """Mark the versions for which there is a reason; return whether any is new."""
        new = {
            number: reason
            for number, version in enumerate(self.versions)
            if number not in self.tainted and (reason := find_reason(version))
        }
        self.tainted |= new
        return bool(new)

    def was_tainted_at(self, time: str) -> bool:
        """Return whether the text that was current at that time came from the source."""
        for number in self.tainted:
            end = self.versions[number - 1].recorded if number else None
            if self.versions[number].recorded <= time and (end is None or time <= end):
                return True
        return False

    @property
    def is_current(self) -> bool:
        return 0 in self.tainted

    @property
    def last_clean(self) -> Version | None:
        """Return the last version that did not come from the source."""
        return next((version for number, version in enumerate(self.versions) if number not in self.tainted), None)

    @property
    def touched(self) -> Touched:
        """Return the record of this note for the answer."""
        folder, part, name = self.file
        via = self.tainted[min(self.tainted)]
        clean = self.last_clean.recorded if self.last_clean else None
        return Touched(scope=self.scope, key=self.key, path=f"{folder}/{part}/{name}", via=via, clean=clean)

    @property
    def scope(self) -> Scope:
        return Scope.of_folder(self.file.folder)

    @property
    def key(self) -> str:
        """Return the key; in the trash and the archive a time follows it."""
        name = self.file.name
        return name.removesuffix(".md") if self.is_note else name.rpartition("--")[0]

    @property
    def is_note(self) -> bool:
        return self.file.part == "notes"


def forget_by_source(context: Context, source: str, *, revert: bool, dry_run: bool, everywhere: bool) -> Swept:
    """Implement `Memory.forget_source`; raise Refused before anything is done if this caller may not."""
    folders = review.all_folders(context) if everywhere else context.visible_folders(None)
    affected = _find_affected(context, source, folders)
    to_revert = [suspect for suspect in affected.current if revert and suspect.last_clean]
    to_forget = [suspect for suspect in affected.current if suspect not in to_revert]
    refused = _find_refusal(context, affected.current)
    if not dry_run:
        if refused:
            raise refused
        tainted_trash = [suspect for suspect in affected.trashed if suspect.is_current]
        _revert(context, to_revert, source)
        _forget(context, to_forget, source)
        _distrust(context, tainted_trash, source)
        _trash_archived(context, tainted_trash)
    is_restorable = to_forget and not dry_run
    return Swept(
        source=source,
        forgotten=_touched(to_forget),
        reverted=_touched(to_revert),
        older=_touched(affected.older),
        binned=_touched(affected.trashed),
        transcripts=_list_transcripts(context, folders, source),
        dry_run=dry_run,
        restorable_until=dates.format_timestamp(dates.clock() + context.config.trash_days * 86400) if is_restorable else None,
        refused=str(refused or ""),
    )


def find_paths(context: Context, source: str, folders: tuple[str, ...]) -> set[str]:
    """Return the paths of the notes whose current text came from a source."""
    return {suspect.touched.path for suspect in _find_affected(context, source, folders).current}


def _touched(suspects: list[_Suspect]) -> tuple[Touched, ...]:
    return tuple([suspect.touched for suspect in suspects])


def _find_refusal(context: Context, suspects: list[_Suspect]) -> Refused | None:
    """Return why this caller may not forget these notes; None if it may."""
    try:
        for suspect in suspects:
            quarantine.refuse_forget(context, suspect.scope, [suspect.key])
    except Refused as error:
        return error
    return None


# --- finding ----------------------------------------------------------------------------------------------------------


def _find_affected(context: Context, source: str, folders: tuple[str, ...]) -> _Affected:
    """Find the notes that name the source, then those made from them, until there are no more."""
    kind, name = trust.parse_source_query(source)
    context.refresh(folders)
    suspects = _read_trash(context, folders)
    found = _find_direct(context, folders, kind=kind, name=name, source=source, suspects=suspects)
    while found:
        found = [derived for suspect in found for derived in _find_derived(context, folders, suspect, suspects)]
    tainted = [suspect for suspect in suspects.values() if suspect.tainted]
    return _Affected(
        current=[suspect for suspect in tainted if suspect.is_note and suspect.is_current],
        older=[suspect for suspect in tainted if suspect.is_note and not suspect.is_current],
        trashed=[suspect for suspect in tainted if not suspect.is_note],
    )


def _read_trash(context: Context, folders: tuple[str, ...]) -> Suspects:
    """Read the notes in trash and archive: they can be restored, and other notes may have been made from them."""
    files = [
        _File(folder, trashed.part, trashed.name)
        for folder in folders
        for trashed in context.store.list_trash(Scope.of_folder(folder))
    ]
    return {file: _make_suspect(context, file, parsed) for file in files if (parsed := _read(context, file))}


def _find_direct(
    context: Context, folders: tuple[str, ...], *, kind: str, name: str, source: str, suspects: Suspects
) -> list[_Suspect]:
    """Return the notes that name the source themselves."""
    if kind == "note":
        return _find_note(context, folders, name, suspects)
    names = (name, os.path.abspath(name)) if kind == "made" and "/" in name and "://" not in name else (name,)
    if kind == "made":
        notes = context.query(
            lambda: context.index.find_notes_made_from_any(
                folders, lambda what: any(trust.is_within(what, name) for name in names)
            )
        )
    else:
        notes = context.query(lambda: context.index.find_notes_by_source(folders, name))
    found = [*_trashed(suspects), *[_suspect(context, *note, suspects) for note in dict.fromkeys(notes)]]

    def find_reason(version: Version) -> str:
        return source if trust.source_matches(version.source, kind, names) else ""

    return [suspect for suspect in found if suspect and suspect.taint(find_reason)]


def _find_note(context: Context, folders: tuple[str, ...], name: str, suspects: Suspects) -> list[_Suspect]:
    """Return a note that is itself the source, all versions tainted; raise NotFound if there is none."""
    by_id = context.query(lambda: context.index.find_note_by_id(folders, name))
    if by_id:
        notes = [(by_id.scope, by_id.name)]
    else:
        notes = [(folder, f"{name}.md") for folder in folders if context.store.file_id(folder, "notes", f"{name}.md")]
    trashed = [suspect for suspect in _trashed(suspects) if name in (suspect.key, suspect.parsed.header.id)]
    found = [*trashed, *[_suspect(context, *note, suspects) for note in notes]]
    tainted = [suspect for suspect in found if suspect and suspect.taint(lambda _: f"note:{name}")]
    if not tainted:
        raise NotFound(f"no note {validate.hide_secrets(name)[:80]!r}", Template(command("list"), " shows the notes there are"))
    return tainted


def _find_derived(context: Context, folders: tuple[str, ...], origin: _Suspect, suspects: Suspects) -> list[_Suspect]:
    """Return the notes that were made from a note while its text came from the source."""
    notes = trace.list_derived(context, folders, origin.parsed.header.id, origin.key)
    found = [*_trashed(suspects), *[_suspect(context, *note, suspects) for note in notes]]
    return [
        suspect
        for suspect in found
        if suspect and suspect is not origin and suspect.taint(partial(_derivation, origin, suspect.file.folder))
    ]


def _derivation(origin: _Suspect, folder: str, version: Version) -> str:
    """Return `note:KEY` if a version of a note in this folder was made from a tainted text of `origin`; else ""."""
    nearby = origin.file.folder in ("global", folder)
    is_derived = trace.is_made_from(version.source, origin.parsed.header.id, origin.key, nearby)
    return f"note:{origin.key}" if is_derived and origin.was_tainted_at(version.recorded) else ""


def _suspect(context: Context, folder: str, name: str, suspects: Suspects) -> _Suspect | None:
    """Return a note that is not in the trash as a suspect, read once."""
    file = _File(folder, "notes", name)
    if file not in suspects and (parsed := _read(context, file)):
        suspects[file] = _make_suspect(context, file, parsed)
    return suspects.get(file)


def _make_suspect(context: Context, file: _File, parsed: ParsedNote) -> _Suspect:
    return _Suspect(file, parsed, note_history.list_versions(context.store, file.folder, parsed))


def _trashed(suspects: Suspects) -> list[_Suspect]:
    return [suspect for suspect in suspects.values() if not suspect.is_note]


def _read(context: Context, file: _File) -> ParsedNote | None:
    content = context.store.read_file(file.folder, file.part, file.name)
    return versions.parse_note(content.data, content.modified) if content else None


def _list_transcripts(context: Context, folders: tuple[str, ...], source: str) -> tuple[str, ...]:
    """Return the paths of the transcripts of a session that is the source."""
    kind, session = trust.parse_source_query(source)
    if kind != "session":
        return ()
    wanted = f"/{transcript.make_file_name(session)}.jsonl"
    return tuple(
        [
            f"{folder}/transcripts/{entry.name}"
            for folder in folders
            for entry in context.store.transcripts(folder, 0).entries()
            if f"/{entry.name}".endswith(wanted)
        ]
    )


# --- forgetting -------------------------------------------------------------------------------------------------------


def _forget(context: Context, suspects: list[_Suspect], source: str) -> None:
    _distrust(context, suspects, source)
    for scope in dict.fromkeys([suspect.scope for suspect in suspects]):
        archive.move_notes(context, scope, [suspect.key for suspect in suspects if suspect.scope == scope], "trash")


def _trash_archived(context: Context, suspects: list[_Suspect]) -> None:
    """Move archived notes to the trash, since recall finds those in the archive."""
    for scope, key in dict.fromkeys([(one.scope, one.key) for one in suspects if one.file.part == "archive"]):
        archive.trash_archived(context, scope, key)


def _distrust(context: Context, suspects: list[_Suspect], source: str) -> None:
    """Put notes that a person forgets with their source into quarantine, should they ever be restored."""
    _record_decision(context, "forgotten-by-source", suspects, source)
    for suspect in suspects if context.origin == "user" else ():
        review.mark_untrusted(context, suspect.scope, suspect.file.part, suspect.file.name)


def _revert(context: Context, suspects: list[_Suspect], source: str) -> None:
    """Store the last clean text of each note again, with the source it had."""
    _record_decision(context, "reverted-by-source", suspects, source)
    for suspect in suspects:
        clean = suspect.last_clean
        assert clean is not None  # only such notes are reverted
        draft = versions.Draft(
            suspect.key, clean.text, clean.source, clean.type, clean.tags, valid_to=clean.valid_to, amends=False,
            expected=suspect.parsed.digest,
        )  # fmt: skip
        write.write_note(context, suspect.scope, suspect.key, draft)


def _record_decision(context: Context, action: str, suspects: list[_Suspect], source: str) -> None:
    """Record a person's decision before it is carried out, and reject the tainted texts; an agent's is not recorded."""
    for suspect in suspects if context.origin == "user" else ():
        subject = review.record_decision(
            context, action, suspect.scope, suspect.key, suspect.parsed.header.id, source=validate.hide_secrets(source)
        )
        texts = [suspect.versions[number].text for number in suspect.tainted]
        context.ledger.purges.reject(suspect.scope.folder, texts, subject)
