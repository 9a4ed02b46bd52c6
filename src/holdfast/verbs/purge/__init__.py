"""Purge: what must be gone for good goes from everything we own, is looked for in every byte, and cannot come back unseen."""

from __future__ import annotations

from holdfast.base import dates
from holdfast.errors import DOCTOR, Damaged, NotFound, Template, UsageError, command
from holdfast.models import Receipt, Scope
from holdfast.safety import validate
from holdfast.verbs import review

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from holdfast.context.caller import Context
    from holdfast.models import Problem


def purge(
    context: Context, key: str | None, scope: str | None, transcripts: bool, session: str | None, client: str | None,
    text: str | bytes | None, files: bool, told_of: Callable[[str], str],
) -> Receipt:  # fmt: skip
    """The steps of `Memory.purge`: of a note, of a session, or of a text wherever it stands. One at a time in a home."""
    if sum([one is not None for one in (key, session, text)]) != 1:
        raise UsageError("what should be purged?", "Give a key, a session, or a text: one of them")
    from holdfast.verbs.purge import job, notes, resume
    from holdfast.verbs.purge import text as text_purge
    from holdfast.verbs.purge import transcripts as transcripts_module

    name = validate.existing_key(key) if key is not None else ""
    places = (
        context.scopes_holding(name, scope, lambda place, name: notes.are_there(context.store, place, name)) if name else []
    )
    if text is not None:
        review.must_be_person(context, "purge a text wherever it stands")
    wanted = text_purge.purgeable(text) if text is not None else ""
    if not context.store.exists():
        return _nothing(context, name)
    if name and not places:
        if resume.finish(context, told_of):  # perhaps of this very note
            resume.must_have_room(context)
        shown = job.rendered_anew(context, told_of)  # what was cut short may not have come to that
        told = resume.told_of_note(context, context.visible_scopes(scope), name, *shown)
        return _receipt(told) if told else _nothing(context, name, *shown)
    resume.must_have_room(context)
    resume.finish(context, told_of)
    with resume.cut_short(context), context.sync.use_primary(), context.store.named_lock(resume.LOCK):
        if name:
            return notes.purge(context, places, name, transcripts, told_of)
        if session is not None:
            return transcripts_module.purge_session(context, session, client, told_of) or _nothing(context, "")
        return text_purge.purge_text(context, wanted, files, told_of)


def _nothing(context: Context, key: str, checks: Iterable[str] = (), beyond: Iterable[str] = ()) -> Receipt:
    """There was nothing to remove; what a file that was deleted by hand left behind goes all the same."""
    if context.store.exists():
        context.refresh(context.visible_folders(None), archived=True)
        context.query(context.index.scrub)
    return Receipt(key, None, False, (), 0, 0, tuple(checks), tuple(beyond), dates.now())


def receipts(context: Context, id: str | None) -> list[Receipt]:
    """What was purged in the scopes of this caller's, newest first, or the one receipt of that id; a person sees all."""
    if not context.config.enabled or not context.store.exists():
        return []
    rows = context.ledger.purges.receipts(id)
    if not rows and id is None:
        _must_be_none(context)
    found = _shown(context, rows)
    if id is not None and not found:
        raise NotFound(f"no receipt {id[:40]!r}", Template(command("receipts"), " shows them all"))
    return found


def receipts_behind(context: Context, last: str | None, most: int) -> list[Receipt]:
    """The same, but only so many, from behind the one of that id on."""
    found: list[Receipt] = []
    while context.config.enabled and context.store.exists():
        rows = context.ledger.purges.receipts(last=last, most=most)
        if not rows and last is None:
            _must_be_none(context)
        found += _shown(context, rows)
        if len(rows) < most or len(found) >= most:
            break
        last = rows[-1]["id"]
    return found[:most]


def _must_be_none(context: Context) -> None:
    """No receipt is not the same as no purge, where something else says that there was one."""
    if context.ledger.purges.any() or context.ledger.purges.counts():
        raise Damaged("something was purged here, and the ledger has no receipt of it", Template("Run ", DOCTOR))


def _shown(context: Context, told: list[dict[str, Any]]) -> list[Receipt]:
    found = [_receipt(one) for one in told]
    mine = context.visible_scopes(None) if found and context.origin != "user" else None
    return found if mine is None else [receipt for receipt in found if receipt.scope in mine]


def _receipt(told: dict[str, Any]) -> Receipt:
    """A receipt from its plain form; fields of a later version are passed over."""
    known = {name: value for name, value in told.items() if name in Receipt._names}
    plain: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in known.items()}
    scope = plain.get("scope")
    return Receipt(**{**plain, "scope": Scope(**scope) if isinstance(scope, dict) else None})


def finish(context: Context, told_of: Callable[[str], str]) -> None:
    """Do what is left of purges that were held up."""
    from holdfast.verbs.purge import resume

    if context.store.exists():
        resume.finish(context, told_of)


def problems(context: Context, told_of: Callable[[str], str]) -> list[Problem]:
    """Purges that are not over, each with what to do."""
    from holdfast.verbs.purge import resume

    return resume.problems(context, told_of)
