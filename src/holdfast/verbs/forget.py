"""What was forgotten comes back: a note from the trash or the archive, a session's transcript from the trash; and how a
transcript gets there."""

from __future__ import annotations

from holdfast.base import dates
from holdfast.context import archive
from holdfast.context.caller import nameless_id
from holdfast.errors import Conflict, NotFound, Template, command
from holdfast.formats import transcript
from holdfast.formats.versions import opened, versions_of
from holdfast.models import Forgotten, Logged, Scope
from holdfast.safety import validate
from holdfast.store.files import Changed
from holdfast.verbs import quarantine

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.context.caller import Desk
    from holdfast.formats.versions import Stamp
    from holdfast.store.transcripts import Roll


def restore(desk: Desk, key: str, scope: str | None, under: str | None) -> tuple[str, Scope]:
    """The steps of `Memory.restore`: the key under which it is back, and where."""
    otherwise = Template("bring it back under one: ", command("restore {} --as {}", "NAME", "KEY"))
    name = validate.key(under if under is not None else key, otherwise)
    for place in desk.places(scope):
        binned = desk.shelf.binned(place, key)
        if not binned:
            continue
        sheet = desk.shelf.read_name(place.folder, binned[0].part, binned[0].name)
        there = opened(sheet.data, sheet.modified) if sheet else None
        quarantine.must_not_restore(desk, (there and there.head.id) or nameless_id(place.folder, "notes", f"{key}.md"), key)
        versions = versions_of(there) if there else []
        desk.refuse_purged([(f"{place.folder}/notes/{name}", version.text) for version in versions])
        try:
            desk.shelf.unbin(place, binned[0], name)
        except Changed:
            fix = Template("Bring it back under another: ", command("restore {} --as {}", key, "OTHER"))
            raise Conflict(f"another note has the key {name!r} by now", fix) from None
        if binned[0].part == "archive":
            gone = place.folder, "archive", [binned[0].name]
            desk.catalogue(lambda gone=gone: desk.sync.gone(*gone))  # type: ignore[misc]
        archive.returned(desk, place, name, touched=binned[0].part == "archive")
        return name, place
    fix = Template(command("list --trash"), " shows what can be restored")
    raise NotFound(f"nothing forgotten or archived under {key!r}", fix)


def forget(desk: Desk, places: list[Scope], key: str, expected: str | None) -> list[Scope]:
    """Put a note in the trash; the places that had it. Where a caller says which version it saw, only that one."""
    if expected is None:
        return [place for place in places if _trashed(desk, place, key)]
    for place in places:
        sheet = desk.shelf.read(place, key)
        if sheet and opened(sheet.data, sheet.modified).digest == expected and _trashed(desk, place, key, {key: sheet.stamp}):
            return [place]
        one = desk.shelf.archived(place, [key]).get(key) if sheet is None else None
        lies = desk.shelf.read_name(place.folder, one.part, one.name) if one else None
        if lies and opened(lies.data, lies.modified).digest == expected and _trashed(desk, place, key):
            return [place]
    raise Conflict(f"the note {key!r} is another version by now, or gone", "Read it again")


def _trashed(desk: Desk, place: Scope, key: str, seen: dict[str, Stamp] | None = None) -> bool:
    """Move a note to the trash, and with it archived copies of its key: else recall would find those. They are moved first, so
    that `restore` brings back the note that stood."""
    if desk.shelf.has(place.folder, "archive") and desk.origin != "user" and desk.config.quarantine:
        quarantine.must_not_forget(desk, place, [key])
    stood = seen is None or desk.shelf.stamp(place.folder, "notes", f"{key}.md") == seen[key]
    gone = archive.discard(desk, place, key) if stood else 0
    return bool(desk.bin(place, [key], "trash", seen)) or bool(gone and seen is None)


def forget_session(desk: Desk, session: str, client: str | None) -> Forgotten:
    """Put the transcript of a session of this caller's in the trash."""
    time = dates.now().replace("-", "").replace(":", "")
    for folder in desk.folders(None):
        rolls = desk.shelf.rolls(folder)
        moved = [roll for entry in rolls.census() if _is_of(roll := rolls.roll(entry.name), session, client) and roll.bin(time)]
        if moved:
            desk.catalogue(lambda folder=folder: desk.sync.refresh(folder, "transcripts"))  # type: ignore[misc]
            until = dates.stamp(dates.clock() + desk.config.trash_days * 86400)
            return Forgotten(True, session, Scope.of_folder(folder), until)
    return Forgotten(False, session)


def restore_session(desk: Desk, session: str, client: str | None) -> Logged:
    """Bring it back from the trash, unless the session has gone on since."""
    for folder in desk.folders(None):
        rolls = desk.shelf.rolls(folder)
        for one in rolls.trashed():
            who, _, name = one.name.partition("/")
            roll = rolls.roll(f"{who}/{name.rpartition('--')[0]}.jsonl")
            if not _is_of(roll, session, client):
                continue
            if not roll.unbin(name):
                raise Conflict(f"the session {session} has a transcript again", "Forget that one first")
            desk.catalogue(lambda folder=folder: desk.sync.refresh(folder, "transcripts"))  # type: ignore[misc]
            return Logged(session, who, sum([transcript.parse(line.data) is not None for line in roll.lines()]), 0, roll.path)
    raise NotFound(f"no transcript of session {session!r} in the trash", "Sessions stay there for as long as notes do")


def clear(desk: Desk, scope: object) -> int:
    """Every note of a scope into the trash; how many there were."""
    count = 0
    for place in desk.places(scope if isinstance(scope, str) else ""):
        names = [entry.name for entry in desk.shelf.census(place.folder, "notes")]
        here = {name[:-3] for name in names}
        count += len({one.key for one in desk.shelf.binned(place) if one.part == "archive"} - here)
        archive.discard(desk, place)
        count += len(desk.bin(place, [name[:-3] for name in names if name.endswith(".md")], "trash"))
    return count


def _is_of(roll: Roll, session: str, client: str | None) -> bool:
    who, _, name = roll.name.partition("/")
    return name == f"{transcript.file_name(session)}.jsonl" and (client is None or who == transcript.file_name(client))
