"""Everything that a poisoned source touched: found through what was made from what, and forgotten or taken back at once."""

from __future__ import annotations

import os

from holdfast.base import dates
from holdfast.base.record import Record
from holdfast.context import archive
from holdfast.errors import NotFound, Refused, Template, command
from holdfast.formats import versions
from holdfast.models import Scope
from holdfast.safety import trust, validate
from holdfast.verbs import quarantine, review, trace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.context.caller import Context
    from holdfast.formats.versions import ParsedNote
    from holdfast.models import Version

    Place = tuple[str, str, str]  # scope, part and name
    Known = dict[Place, "_Found"]


class Touched(Record):
    """A note that a source touched, by what, and since when an older text stands that it did not touch."""

    scope: Scope
    key: str
    path: str
    via: str
    clean: str | None = None


class Swept(Record):
    """What came from a source, and what became of it."""

    source: str
    forgotten: tuple[Touched, ...] = ()
    reverted: tuple[Touched, ...] = ()  # the last text that the source did not touch is the current one again
    older: tuple[Touched, ...] = ()  # only an older version came from it: nothing was done
    binned: tuple[Touched, ...] = ()  # in the trash or the archive already, from where it could be restored
    transcripts: tuple[str, ...] = ()  # of that session: what it said still stands there
    dry_run: bool = False
    restorable_until: str | None = None
    beyond_reach: tuple[str, ...] = ()
    refused: str = ""  # of a dry run: why this caller may do nothing of it


class _Found:
    """One note under suspicion: its versions, newest first, and which of them came from the source."""

    def __init__(self, place: Place, there: ParsedNote) -> None:
        self.place, self.parsed = place, there
        self.versions = versions.list_versions(there)
        self.bad: dict[int, str] = {}  # which, and by what

    def mark(self, came: Callable[[Version], str]) -> bool:
        """Note the versions that came from it; whether any is new."""
        fresh = {place: via for place, one in enumerate(self.versions) if place not in self.bad and (via := came(one))}
        self.bad |= fresh
        return bool(fresh)

    def poisoned_at(self, moment: str) -> bool:
        """Whether what the note said then came from the source."""
        for place in self.bad:
            end = self.versions[place - 1].recorded if place else None
            if self.versions[place].recorded <= moment and (end is None or moment <= end):
                return True
        return False

    @property
    def clean(self) -> Version | None:
        """The last version that did not come from it."""
        return next((one for place, one in enumerate(self.versions) if place not in self.bad), None)

    @property
    def touched(self) -> Touched:
        folder, part, name = self.place
        via = self.bad[min(self.bad)]
        clean = self.clean.recorded if self.clean else None
        return Touched(Scope.of_folder(folder), self.key, f"{folder}/{part}/{name}", via, clean)

    @property
    def key(self) -> str:
        """The key; in the trash and the archive a time stands behind it."""
        _, part, name = self.place
        return name.removesuffix(".md") if part == "notes" else name.rpartition("--")[0]

    @property
    def stands(self) -> bool:
        return self.place[1] == "notes"


def touched(context: Context, source: str, folders: tuple[str, ...]) -> tuple[list[_Found], list[_Found], list[_Found]]:
    """The notes whose current text came from a source, those of which only an older one did, and what lies in the trash or the
    archive and did."""
    kind, name = trust.parse_source_query(source)
    context.refresh(folders)
    known = _binned(context, folders)
    fresh = _direct(context, folders, kind, name, source, known)
    while fresh:
        fresh = [one for found in fresh for one in _derived(context, folders, found, known)]
    found = [one for one in known.values() if one.bad and one.stands]
    gone = [one for one in known.values() if one.bad and not one.stands]
    return [one for one in found if 0 in one.bad], [one for one in found if 0 not in one.bad], gone


def _binned(context: Context, folders: tuple[str, ...]) -> Known:
    """What lies in trash and archive: it can come back, and notes that stand may have been made from it."""
    every = [(folder, one.part, one.name) for folder in folders for one in context.store.list_trash(Scope.of_folder(folder))]
    return {place: _Found(place, there) for place in every if (there := _read(context, place))}


def paths(context: Context, source: str, folders: tuple[str, ...]) -> set[str]:
    """The paths of the notes whose current text came from a source."""
    return {one.touched.path for one in touched(context, source, folders)[0]}


def sweep(context: Context, source: str, revert: bool, dry_run: bool, everywhere: bool) -> Swept:
    """The steps of `Memory.forget_source`."""
    folders = review.everywhere(context) if everywhere else context.visible_folders(None)
    current, older, binned = touched(context, source, folders)
    back = [one for one in current if revert and one.clean]
    gone = [one for one in current if one not in back]
    refused = _refused(context, current)
    if not dry_run:
        if refused:
            raise refused
        _take_back(context, back, source)
        _forget(context, gone, source)
        _keep_away(context, [one for one in binned if 0 in one.bad], source)
        _discard(context, [one for one in binned if 0 in one.bad])
    until = dates.timestamp(dates.clock() + context.config.trash_days * 86400) if gone and not dry_run else None
    forgotten, reverted, only_older, away = [tuple([one.touched for one in some]) for some in (gone, back, older, binned)]
    said, why = _transcripts(context, folders, source), str(refused or "")
    return Swept(source, forgotten, reverted, only_older, away, said, dry_run, until, refused=why)


def _refused(context: Context, current: list[_Found]) -> Refused | None:
    """Why this caller may take nothing of it away, if so; asked before anything is done."""
    try:
        for one in current:
            quarantine.must_not_forget(context, Scope.of_folder(one.place[0]), [one.key])
    except Refused as error:
        return error
    return None


def _direct(context: Context, folders: tuple[str, ...], kind: str, name: str, source: str, known: Known) -> list[_Found]:
    """The notes that name the source themselves."""
    if kind == "note":
        return _note(context, folders, name, known)
    names = (name, os.path.abspath(name)) if kind == "made" and "/" in name and "://" not in name else (name,)
    if kind == "made":
        places = context.query(lambda: context.index.made_from_any(folders, lambda what: _is_meant(what, names)))
    else:
        places = context.query(lambda: context.index.said_by(folders, name))
    found = [*_gone(known), *[_of(context, place, known) for place in dict.fromkeys(places)]]

    def came(version: Version) -> str:
        return source if trust.source_matches(version.source, kind, names) else ""

    return [one for one in found if one and one.mark(came)]


def _is_meant(what: str, names: tuple[str, ...]) -> bool:
    return any(trust.is_within(what, name) for name in names)


def _note(context: Context, folders: tuple[str, ...], name: str, known: Known) -> list[_Found]:
    """A note that is itself the source: all it ever said."""
    by_id = context.query(lambda: context.index.note_of_id(folders, name))
    places = (
        [by_id[:2]] if by_id else [(one, f"{name}.md") for one in folders if context.store.stamp(one, "notes", f"{name}.md")]
    )
    gone = [one for one in _gone(known) if name in (one.key, one.parsed.header.id)]
    found = [*gone, *[_of(context, place, known) for place in places]]
    marked = [one for one in found if one and one.mark(lambda _: f"note:{name}")]
    if not marked:
        raise NotFound(f"no note {validate.without_secrets(name)[:80]!r}", Template(command("list"), " shows what there is"))
    return marked


def _derived(context: Context, folders: tuple[str, ...], found: _Found, known: Known) -> list[_Found]:
    """The notes that were made from one while it said what came from the source."""
    folder, id, key = found.place[0], found.parsed.header.id, found.key
    every = [*_gone(known), *[_of(context, place, known) for place in trace.made_of(context, folders, id, key)]]
    others = [one for one in every if one is not found]

    def came_to(other: _Found) -> Callable[[Version], str]:
        near = folder in ("global", other.place[0])

        def came(version: Version) -> str:
            made = trace.refers(version.source, id, key, near) and found.poisoned_at(version.recorded)
            return f"note:{key}" if made else ""

        return came

    return [other for other in others if other and other.mark(came_to(other))]


def _of(context: Context, note: tuple[str, str], known: Known) -> _Found | None:
    """A note that stands, by its scope and name."""
    place = note[0], "notes", note[1]
    if place not in known and (there := _read(context, place)):
        known[place] = _Found(place, there)
    return known.get(place)


def _gone(known: Known) -> list[_Found]:
    return [one for one in known.values() if not one.stands]


def _read(context: Context, place: Place) -> ParsedNote | None:
    content = context.store.read_name(*place)
    return versions.parse_note(content.data, content.modified) if content else None


def _forget(context: Context, gone: list[_Found], source: str) -> None:
    _keep_away(context, gone, source)
    for folder in dict.fromkeys([one.place[0] for one in gone]):
        keys = [one.key for one in gone if one.place[0] == folder]
        context.move_notes(Scope.of_folder(folder), keys, "trash")


def _discard(context: Context, gone: list[_Found]) -> None:
    """Archived notes go to the trash like the others: recall would find them."""
    for place, key in dict.fromkeys([(one.place[0], one.key) for one in gone if one.place[1] == "archive"]):
        archive.discard(context, Scope.of_folder(place), key)


def _keep_away(context: Context, gone: list[_Found], source: str) -> None:
    """What a person takes away with its source is in quarantine if it is ever brought back."""
    _decided(context, "forgotten-by-source", gone, source)
    for folder, part, name in [one.place for one in gone] if context.origin == "user" else ():
        review.put_in_doubt(context, Scope.of_folder(folder), part, name)


def _take_back(context: Context, back: list[_Found], source: str) -> None:
    """Store the last clean text of each again, as whoever wrote it."""
    _decided(context, "reverted-by-source", back, source)
    for one in back:
        clean, where = one.clean, one.touched
        assert clean is not None  # or it would not be here
        draft = versions.Draft(
            where.key, clean.text, clean.source, clean.type, clean.tags, valid_to=clean.valid_to, amends=False,
            expected=one.parsed.digest,
        )  # fmt: skip
        context.write(where.scope, where.key, lambda _, draft=draft: draft)  # type: ignore[misc]


def _decided(context: Context, action: str, found: list[_Found], source: str) -> None:
    """A person's decision is kept, before it is done, and what came from the source is known again; an agent's tidying is
    none."""
    if context.origin == "user":
        for one in found:
            scope = Scope.of_folder(one.place[0])
            shown_source = validate.without_secrets(source)
            subject = review.decided(context, action, scope, one.key, one.parsed.header.id, source=shown_source)
            context.ledger.purges.reject(scope.folder, [one.versions[place].text for place in one.bad], subject)


def _transcripts(context: Context, folders: tuple[str, ...], source: str) -> tuple[str, ...]:
    """The transcripts of a session that is the source."""
    from holdfast.formats import transcript

    kind, name = trust.parse_source_query(source)
    if kind != "session":
        return ()
    wanted = f"/{transcript.file_name(name)}.jsonl"
    transcript_files = [
        (folder, entry.name) for folder in folders for entry in context.store.transcript_files(folder, 0).census()
    ]
    return tuple([f"{folder}/transcripts/{name}" for folder, name in transcript_files if f"/{name}".endswith(wanted)])
