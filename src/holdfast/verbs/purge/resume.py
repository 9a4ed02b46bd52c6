"""Unfinished purges: finish them as soon as nothing blocks them, and report them to `doctor` until then."""

from __future__ import annotations

import os
import stat
from contextlib import contextmanager
from functools import cache

from holdfast.base import dates
from holdfast.errors import Busy, DiskTrouble, HoldfastError, no_space
from holdfast.formats.versions import parse_note
from holdfast.ledger.receipts import UNKNOWN, find_losses, list_damaged_ids
from holdfast.models import Problem, Scope
from holdfast.store import note_history
from holdfast.verbs.doctor.fixes import fixes_for, is_disk_full
from holdfast.verbs.purge.job import render_files_again
from holdfast.verbs.purge.verify_files import TABLE_PREFIX, kind_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from holdfast.context.caller import Context
    from holdfast.verbs.doctor.fixes import Fixes

    Stored = dict[str, Any]  # a receipt as the ledger keeps it

LOCK = "purge"
_DATABASES = ("index.db", "index.db-wal", "ledger.db", "ledger.db-wal")
_MAX_RECEIPTS_NAMED = 20
_RESTORE_LEDGER = "Restore ledger.db from a backup; without one, purge again what must not come back"
_OR_DELETE_SIGN = ", or delete the file ledger.purged if there is nothing to purge"
_BUSY_SECONDS = 1.0  # to wait for a reader
_LISTING_FAILED = "it could not be written again"
_INTERRUPTED = "it was interrupted; `holdfast doctor` shows how to finish it"


def require_disk_space(context: Context) -> None:
    """Raise DiskTrouble if the disk is too full to finish a purge, which rewrites the index."""
    if not context.config.store and is_disk_full(context.config.home):
        raise no_space("the disk is too full for a purge, which rewrites the index", context.config.home)


@contextmanager
def report_full_disk(context: Context) -> Iterator[None]:
    """Say in the error of a full disk that the purge has begun: the next purge or `doctor` finishes it."""
    try:
        yield
    except DiskTrouble as error:
        if error.full and _has_unfinished(context):
            error.context = "the purge was started and is not complete"
        raise


def _has_unfinished(context: Context) -> bool:
    try:
        return bool(context.ledger.purges.list_unfinished())
    except HoldfastError:
        return True  # unknown: assume the worse


# --- finishing --------------------------------------------------------------------------------------------------------


def finish(context: Context) -> list[Stored]:
    """Finish interrupted and waiting purges; return the receipts of those that must wait on.

    Does nothing while another process purges: that process finishes its own.
    """
    if not context.ledger.purges.has_purges() or not context.ledger.purges.list_unfinished():
        return []
    lock = context.store.named_lock(LOCK, 0)
    if not lock.acquire(0):
        return []
    try:
        with context.sync.use_primary():
            receipts = [_continue(context, receipt) for receipt in context.ledger.purges.list_unfinished()]
            return [receipt for receipt in receipts if receipt["state"] != "done"]
    finally:
        lock.release()


def _continue(context: Context, receipt: Stored) -> Stored:
    """Do what can be done now and return the updated receipt.

    The text is not known any more, so rows are compared by digest. A purge that was interrupted before it had looked
    everywhere can only be run again.
    """
    folders = receipt.get("folders")  # of the scopes where the text is refused; None: everywhere
    is_purged = cache(lambda text: context.ledger.purges.is_purged_by(receipt["id"], text, folders or ("",)))
    kind = receipt.get("kind")
    if receipt["state"] == "begun" and (kind != "note" or _find_remaining_notes(context, receipt)):
        return receipt
    if not all(_is_gone(context, path, is_purged, folders) for path, _ in receipt.get("left", [("", "")])):
        return receipt
    try:
        context.refresh(tuple(context.store.list_scopes()), archived=True)
        receipt = _count_masked(context, receipt, context.ledger.done.mask(is_purged, receipt.get("agent")))
        context.query(lambda: context.index.scrub(_BUSY_SECONDS, rewrite=True))
        context.ledger.scrub(_BUSY_SECONDS)
    except (Busy, DiskTrouble):
        return receipt
    indexed = context.query(lambda: context.index.list_texts(transcripts=kind == "text", scopes=folders))
    if any(is_purged(text) for text in indexed):
        return receipt
    failed_listings = _write_listings(context, receipt)
    return _store_continued(context, receipt, failed_listings, *render_files_again(context))


def _store_continued(
    context: Context, receipt: Stored, failed_listings: list[list[str]], checks: list[str], beyond_reach: list[str]
) -> Stored:
    """Store the receipt: done, or pending with the listings that could not be written."""
    how = f"finished {dates.now()}: the logs were emptied, and no row of the index contains it (compared by digest)"
    state = {
        "state": "pending" if failed_listings else "done",
        "pending": [f"{path}: {why}" for path, why in failed_listings],
        "left": failed_listings,
    }
    lines = _add_lines(receipt, checks if failed_listings else [*checks, how], beyond_reach)
    updated = {**receipt, **state, **lines}
    if not failed_listings:
        updated.pop("named", None)
    if updated != receipt:
        context.ledger.purges.save_receipt(receipt["id"], updated)
    return updated


def _add_lines(receipt: Stored, checks: list[str], beyond_reach: list[str]) -> dict[str, list[str]]:
    """Return the receipt's two lists with these lines added, each once."""
    added = {"checks": checks, "beyond_reach": beyond_reach}
    return {name: list(dict.fromkeys([*receipt[name], *lines])) for name, lines in added.items()}


def _count_masked(context: Context, receipt: Stored, rows: int) -> Stored:
    """Add masked rows to the receipt, stored before anything can fail."""
    if rows:
        receipt = {**receipt, "usage_rows": receipt["usage_rows"] + rows}
        context.ledger.purges.save_receipt(receipt["id"], receipt)
    return receipt


def _write_listings(context: Context, receipt: Stored) -> list[list[str]]:
    """Write the index.md files that may contain the text; return those that failed, each with why.

    An interrupted purge may not have reached them: then all of them are written.
    """
    reasons = dict(receipt["left"])
    if receipt["state"] == "begun":
        paths = [f"shelf/{folder}/index.md" for folder in context.store.list_scopes()]
    else:
        paths = [path for path in reasons if _is_listing(path)]
    failed = [path for path in paths if not context.sync.write_listing(_scope_of_listing(path))]
    return [[path, _find_obstacle(context, path) or reasons.get(path, _LISTING_FAILED)] for path in failed]


def _scope_of_listing(path: str) -> Scope:
    return Scope.of_folder(path.removeprefix("shelf/").removesuffix("/index.md"))


def _find_obstacle(context: Context, path: str) -> str:
    """Return what keeps a listing from being written, as far as that can be seen; "" if nothing is visible."""
    full = os.path.join(context.config.home, path)
    try:
        if stat.S_ISDIR(os.lstat(full).st_mode):
            return "a folder is in its place"
    except OSError:
        pass  # missing, or not visible
    return "" if os.access(os.path.dirname(full), os.W_OK | os.X_OK) else "its folder cannot be written to"


def _is_gone(context: Context, path: str, is_purged: Callable[[str], bool], folders: list[str] | None) -> bool:
    """Return whether nothing is left to do about a path except emptying logs and writing listings.

    Files that people and agents keep are only handled by another purge.
    """
    if path in _DATABASES or _is_listing(path):
        return True
    if path.startswith(TABLE_PREFIX):
        from holdfast.verbs.purge.verify_postgres import strings_in_table

        allowed = set(context.query(lambda: context.index.list_texts(transcripts=True))) if folders else set()
        allowed -= set(context.query(lambda: context.index.list_texts(transcripts=True, scopes=folders))) if folders else set()
        return not any(is_purged(text) for text in strings_in_table(context, path) if text not in allowed)
    return kind_of(path) in ("ours", "temporary") and not os.path.lexists(os.path.join(context.config.home, path))


def _is_listing(path: str) -> bool:
    return path.startswith("shelf/") and path.endswith("/index.md") and kind_of(path) == "ours"


def _find_remaining_notes(context: Context, receipt: Stored) -> list[tuple[Scope, str]]:
    """Return the scope and key of each note that an interrupted purge left, found by digest: the receipt may not keep keys."""
    found = []
    for folder in context.store.list_scopes():
        scope = Scope.of_folder(folder)
        files = [("notes", entry.name, entry.name[:-3]) for entry in context.store.entries(folder, "notes") if entry.regular]
        files += [(trashed.part, trashed.name, trashed.key) for trashed in context.store.list_trash(scope)]
        for part, name, key in files:
            content = context.store.read_file(folder, part, name)
            note = parse_note(content.data, content.modified) if content else None
            texts = [one.text for one in note_history.list_versions(context.store, folder, note)] if note else []
            path = f"{folder}/notes/{key}"
            if any(context.ledger.purges.is_purged_by(receipt["id"], text, [path]) for text in texts):
                found.append((scope, key))
    return found


def find_unfinished(
    context: Context, scopes: list[Scope], key: str, checks: list[str], beyond_reach: list[str]
) -> Stored | None:
    """Return the receipt of an unfinished purge of this very note, with these lines added; None if there is none."""
    unfinished = context.ledger.purges.list_unfinished()
    marks = {mark_of_note(context, scope, key) for scope in scopes} if unfinished else set()
    for receipt in unfinished:
        scope = Scope(**receipt["scope"]) if receipt.get("scope") else None
        if marks.intersection(receipt.get("named", ())) or (receipt.get("key") == key and scope in scopes):
            state = {"key": key, "state": "pending", "pending": receipt["pending"] or [_INTERRUPTED]}
            return {**receipt, **state, **_add_lines(receipt, checks, beyond_reach)}
    return None


def mark_of_note(context: Context, scope: Scope, key: str) -> str:
    """Return the digest that represents a note in an unfinished receipt: its key may be made of the purged text."""
    return context.ledger.purges.digest_target(f"{scope.folder}/notes/{key}")


# --- problems ---------------------------------------------------------------------------------------------------------


def problems(context: Context) -> list[Problem]:
    """Finish what can be finished; return the purges that are not done, and lost receipts, each with what to do."""
    if not context.config.enabled or not context.store.exists():
        return []
    fixes, found = fixes_for(context.config), []
    try:
        if context.ledger.purges.list_receipts() or context.ledger.purges.count_digests():
            context.ledger.purges.set_flag()  # a person may have deleted it as a leftover
        found += _lost_receipts(context)
        found += [_unfinished_problem(context, fixes, receipt) for receipt in finish(context)]
    except HoldfastError as error:
        found.append(Problem("purge", f"cannot check whether every purge is complete: {error.message}", error.fix))
    return found


def _lost_receipts(context: Context) -> list[Problem]:
    """Return what the ledger lost of earlier purges; it cannot be recovered."""
    lost, damaged = find_losses(context.ledger.purges), list_damaged_ids(context.ledger.purges)
    found = []
    if lost:
        fix = f"{_RESTORE_LEDGER}{_OR_DELETE_SIGN if UNKNOWN in lost else ''}"
        found.append(Problem("purges_lost", "; ".join(lost), fix, "ledger.db"))
    if damaged:
        names, more = ", ".join(damaged[:_MAX_RECEIPTS_NAMED]), len(damaged) - _MAX_RECEIPTS_NAMED
        names += f" and {more} more" if more > 0 else ""
        what = f"receipts of purges are damaged: {names}; the purged texts are still rejected"
        found.append(Problem("receipt", what, _RESTORE_LEDGER, "ledger.db"))
    return found


def _unfinished_problem(context: Context, fixes: Fixes, receipt: Stored) -> Problem:
    """Return the remaining steps of a purge, and the command that finishes it."""
    subject, id = f"the purge of {receipt['what']}", receipt["id"]
    retry = fixes.holdfast(receipt["retry"]) if receipt.get("retry") else "Purge it again"
    if free_space := fixes.free_space_first():  # nothing can be finished before
        return Problem("purge", f"{subject} is not complete (receipt {id}): the disk is full", free_space)
    close = f"Stop the programs that use these files, then run `{fixes.holdfast('doctor')}`"
    if receipt["state"] == "begun":
        remaining = _find_remaining_notes(context, receipt) if receipt.get("kind") in ("note", "turns") else []
        if receipt.get("kind") == "note" and not remaining:  # nothing of it is left to purge again
            return Problem("purge", f"{subject} was interrupted and is not complete (receipt {id})", close)
        if remaining:
            transcripts = " --transcripts" if receipt["kind"] == "turns" else ""
            retry = fixes.holdfast(fixes.purge_words(*remaining[0]) + transcripts)
        return Problem("purge", f"{subject} was interrupted (receipt {id}); purge it again", retry)
    paths = [path for path, _ in receipt.get("left", [("", "")])]
    if any(_is_listing(path) and _find_obstacle(context, path) for path in paths):
        close = f"Remove what blocks index.md, then run `{fixes.holdfast('doctor')}`"
    only_waits = all(path and kind_of(path) in ("ours", "temporary") for path in paths)
    what = f"{subject} is not complete (receipt {id}): {'; '.join(receipt['pending'])}"
    return Problem("purge", what, close if only_waits else retry)
