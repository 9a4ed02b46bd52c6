"""Purges that could not end: finished as soon as whoever stood in the way is gone, and until then told by `doctor`."""

from __future__ import annotations

import os
import stat
from contextlib import contextmanager
from functools import cache

from holdfast.base import dates
from holdfast.errors import Busy, DiskTrouble, HoldfastError, no_space
from holdfast.formats.versions import list_versions, parse_note
from holdfast.index import purge_check
from holdfast.ledger import integrity
from holdfast.models import Problem, Scope
from holdfast.verbs.doctor.fixes import lacks_room
from holdfast.verbs.doctor.fixes import mending as mending_of
from holdfast.verbs.purge import verify_files
from holdfast.verbs.purge.job import rendered_anew

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from holdfast.context.caller import Context
    from holdfast.verbs.doctor.fixes import Fix

LOCK = "purge"
_SCRUBBED = ("index.db", "index.db-wal", "ledger.db", "ledger.db-wal")
_SHOWN = 20  # receipts that are named
_AGAIN = "Put ledger.db back from a backup; where there is none, purge again what must not come back"
_UNSIGNED = ", or delete the file ledger.purged if nothing is"
_SECONDS = 1.0  # that somebody who only looks waits for a reader
_UNMADE = "it could not be made anew"
_CUT_SHORT = "it was cut short; `holdfast doctor` says what ends it"


def must_have_room(context: Context) -> None:
    """Nothing is begun that surely could not be ended: what was purged is gone from the index when that is written anew."""
    if not context.config.store and lacks_room(context.config.home):
        raise no_space("the disk is too full for a purge, which writes the index anew", context.config.home)


@contextmanager
def cut_short(context: Context) -> Iterator[None]:
    """Where the disk is full before the end all the same, say so: what was begun is ended by the next purge, or by `doctor`."""
    try:
        yield
    except DiskTrouble as error:
        if error.full and _begun(context):
            error.context = "the purge was begun and is not complete"
        raise


def _begun(context: Context) -> bool:
    try:
        return bool(context.ledger.purges.unfinished())
    except HoldfastError:
        return True  # for all that anybody knows


def finish(context: Context, told_of: Callable[[str], str]) -> list[dict[str, Any]]:
    """Do what is left of purges that were held up or cut short; the receipts of those that must wait on. Whoever purges now
    looks after their own."""
    if not context.ledger.purges.any():
        return []
    left = context.ledger.purges.unfinished()
    if not left:
        return []
    lock = context.store.named_lock(LOCK, 0)
    if not lock.acquire(0):
        return []
    try:
        with context.sync.use_primary():
            carried = [_carried_on(context, told, told_of) for told in context.ledger.purges.unfinished()]
            return [told for told in carried if told["state"] != "done"]
    finally:
        lock.release()


def _carried_on(context: Context, told: dict[str, Any], told_of: Callable[[str], str]) -> dict[str, Any]:
    """The receipt as it stands when all was done that can be done now. Its text is not known any more: rows are compared by
    digest. What was cut short before every place was looked at can only be purged again."""
    says = cache(lambda text: context.ledger.purges.is_of(told["id"], text))
    kind = told.get("kind")
    if told["state"] == "begun" and (kind != "note" or still_there(context, told)):
        return told
    if not all(_is_gone(context, told["id"], path) for path, _ in told.get("left", [("", "")])):
        return told
    try:
        context.refresh(tuple(context.store.scopes()), archived=True)
        told = _unsaid(context, told, context.ledger.done.unsay(says))
        context.query(lambda: context.index.scrub(_SECONDS, rewrite=True))
        context.ledger.scrub(_SECONDS)
    except (Busy, DiskTrouble):
        return told
    if any(says(text) for text in context.query(lambda: list(purge_check.texts(context.index, kind == "text")))):
        return told
    unmade = _unmade(context, told)
    return _kept(context, told, unmade, *rendered_anew(context, told_of))


def _kept(
    context: Context, told: dict[str, Any], unmade: list[list[str]], written: list[str], failed: list[str]
) -> dict[str, Any]:
    """The receipt, complete, or with the lists that are left to be made."""
    how = f"finished {dates.now()}: the logs were emptied, and no row of the index says it (compared by digest)"
    now = {"state": "pending" if unmade else "done", "pending": [f"{path}: {why}" for path, why in unmade], "left": unmade}
    added = _added(told, written if unmade else [*written, how], failed)
    kept = {name: value for name, value in {**told, **now, **added}.items() if unmade or name != "named"}
    if kept != told:
        context.ledger.purges.put(told["id"], kept)
    return kept


def _added(told: dict[str, Any], checks: list[str], beyond: list[str]) -> dict[str, list[str]]:
    """What a receipt says with these, each once."""
    more = {"checks": checks, "beyond_reach": beyond}
    return {name: list(dict.fromkeys([*told[name], *lines])) for name, lines in more.items()}


def _unmade(context: Context, told: dict[str, Any]) -> list[list[str]]:
    """The lists that may say it and could not be made anew, each with why: all that there are, where a purge was cut short
    before it came to them."""
    before = dict(told["left"])
    every = [f"shelf/{folder}/index.md" for folder in context.store.scopes()] if told["state"] == "begun" else list(before)
    wanted = [path for path in every if _is_listing(path)]
    unmade = [path for path in wanted if not context.sync.listing(Scope.of_folder(path[6:-9]))]
    return [[path, _in_the_way(context, path) or before.get(path, _UNMADE)] for path in unmade]


def _in_the_way(context: Context, path: str) -> str:
    """What keeps a list from being made, as far as can be seen from outside."""
    full = os.path.join(context.config.home, path)
    try:
        if stat.S_ISDIR(os.lstat(full).st_mode):
            return "a folder stands in its place"
    except OSError:
        pass  # nothing is there, or nobody may see it
    return "" if os.access(os.path.dirname(full), os.W_OK | os.X_OK) else "its folder cannot be written to"


def _unsaid(context: Context, told: dict[str, Any], rows: int) -> dict[str, Any]:
    """The receipt with so many rows more, on record before anything can fail."""
    if rows:
        told = {**told, "usage_rows": told["usage_rows"] + rows}
        context.ledger.purges.put(told["id"], told)
    return told


def _is_gone(context: Context, receipt: str, path: str) -> bool:
    """Whether nothing is left to do about a file but to empty logs and to make lists anew. What people and agents keep is
    looked at by a purge only."""
    if path in _SCRUBBED or _is_listing(path):
        return True
    if path.startswith(verify_files.TABLE):
        from holdfast.verbs.purge.verify_postgres import strings

        return not any(context.ledger.purges.is_of(receipt, text) for text in strings(context, path))
    ours = verify_files.kind_of(path) in ("ours", "temp")
    return ours and not os.path.lexists(os.path.join(context.config.home, path))


def _is_listing(path: str) -> bool:
    return path.startswith("shelf/") and path.endswith("/index.md") and verify_files.kind_of(path) == "ours"


def still_there(context: Context, told: dict[str, Any]) -> list[tuple[Scope, str]]:
    """The notes that a purge was cut short over: scope and key. They are known by their digests, since a receipt does not keep
    a key that was made from the text."""
    found = []
    for folder in context.store.scopes():
        place = Scope.of_folder(folder)
        notes = [("notes", entry.name, entry.name[:-3]) for entry in context.store.entries(folder, "notes") if entry.regular]
        for part, name, key in [*notes, *[(one.part, one.name, one.key) for one in context.store.list_trash(place)]]:
            content = context.store.read_name(folder, part, name)
            texts = [version.text for version in list_versions(parse_note(content.data, content.modified))] if content else []
            path = f"{folder}/notes/{key}"
            if any(context.ledger.purges.is_of(told["id"], text, path) for text in texts):
                found.append((place, key))
    return found


def told_of_note(
    context: Context, places: list[Scope], key: str, written: list[str], failed: list[str]
) -> dict[str, Any] | None:
    """The receipt of a purge of this very note that is not over, with what was rendered anew by now: whoever asks for the
    note to be purged hears of that, and not that there is nothing to purge."""
    unfinished = context.ledger.purges.unfinished()
    named = {named_as(context, place, key) for place in places} if unfinished else set()
    for told in unfinished:
        scope = Scope(**told["scope"]) if told.get("scope") else None
        if named.intersection(told.get("named", ())) or (told.get("key") == key and scope in places):
            now = {"key": key, "state": "pending", "pending": told["pending"] or [_CUT_SHORT]}
            return {**told, **now, **_added(told, written, failed)}
    return None


def named_as(context: Context, place: Scope, key: str) -> str:
    """What stands for a note in the receipt of its purge until that is over: its key may be made of what is purged."""
    return context.ledger.purges.mark(f"{place.folder}/notes/{key}")


def problems(context: Context, told_of: Callable[[str], str]) -> list[Problem]:
    """Purges that are not over, each with what to do."""
    if not context.config.enabled or not context.store.exists():
        return []
    mending, found = mending_of(context.config), []
    try:
        if context.ledger.purges.receipts() or context.ledger.purges.counts():
            context.ledger.purges.show_sign()  # somebody may have taken it for a leftover
        found += _lost(context)
        for told in finish(context, told_of):
            found.append(_problem(context, mending, told))
    except HoldfastError as error:
        found.append(Problem("purge", f"whether every purge is complete cannot be seen: {error.message}", error.fix))
    return found


def _lost(context: Context) -> list[Problem]:
    """What the ledger does not know any more of what was purged: nothing of it can be found out again."""
    lost, damaged = integrity.losses(context.ledger.purges), integrity.damaged(context.ledger.purges)
    found = [Problem("purges_lost", "; ".join(lost), f"{_AGAIN}{_UNSIGNED if integrity.UNKNOWN in lost else ''}", "ledger.db")]
    more = f" and {len(damaged) - _SHOWN} more" if len(damaged) > _SHOWN else ""
    what = f"receipts of purges are damaged: {', '.join(damaged[:_SHOWN])}{more}; what they are about is still refused"
    return (found if lost else []) + ([Problem("receipt", what, _AGAIN, "ledger.db")] if damaged else [])


def _problem(context: Context, mending: Fix, told: dict[str, Any]) -> Problem:
    """What is left of one, and the command that ends it."""
    retry = mending.holdfast(told["retry"]) if told.get("retry") else "Purge it again"
    if room := mending.room():  # nothing can be ended before
        return Problem("purge", f"the purge of {told['what']} is not complete (receipt {told['id']}): the disk is full", room)
    close = f"Close what holds it, then {mending.holdfast('doctor')}"
    if told["state"] == "begun":
        there = still_there(context, told) if told.get("kind") in ("note", "turns") else []
        if told.get("kind") == "note" and not there:  # nothing of it can be purged again
            return Problem("purge", f"the purge of {told['what']} was cut short and is not over (receipt {told['id']})", close)
        if there:
            retry = mending.holdfast(mending.purge(*there[0]) + (" --transcripts" if told["kind"] == "turns" else ""))
        return Problem("purge", f"the purge of {told['what']} was cut short; purge it again (receipt {told['id']})", retry)
    what = f"the purge of {told['what']} is not complete (receipt {told['id']}): {'; '.join(told['pending'])}"
    paths = [path for path, _ in told.get("left", [("", "")])]
    if any(_is_listing(path) and _in_the_way(context, path) for path in paths):
        close = f"Clear the way for index.md, then {mending.holdfast('doctor')}"
    waits = all(path and verify_files.kind_of(path) in ("ours", "temp") for path in paths)
    return Problem("purge", what, close if waits else retry)
