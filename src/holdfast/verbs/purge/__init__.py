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

    from holdfast.context.caller import Desk
    from holdfast.models import Problem


def purge(
    desk: Desk, key: str | None, scope: str | None, transcripts: bool, session: str | None, client: str | None,
    text: str | bytes | None, files: bool, told_of: Callable[[str], str],
) -> Receipt:  # fmt: skip
    """The steps of `Memory.purge`: of a note, of a session, or of a text wherever it stands. One at a time in a home."""
    if sum([one is not None for one in (key, session, text)]) != 1:
        raise UsageError("what should be purged?", "Give a key, a session, or a text: one of them")
    from holdfast.verbs.purge import job, notes, resume
    from holdfast.verbs.purge import text as text_purge
    from holdfast.verbs.purge import transcripts as transcripts_module

    name = validate.key_of_note(key) if key is not None else ""
    places = desk.places_of(name, scope, lambda place, name: notes.are_there(desk.shelf, place, name)) if name else []
    if text is not None:
        review.must_be_person(desk, "purge a text wherever it stands")
    wanted = text_purge.purgeable(text) if text is not None else ""
    if not desk.shelf.there():
        return _nothing(desk, name)
    if name and not places:
        if resume.finish(desk, told_of):  # perhaps of this very note
            resume.must_have_room(desk)
        shown = job.rendered_anew(desk, told_of)  # what was cut short may not have come to that
        told = resume.told_of_note(desk, desk.places(scope), name, *shown)
        return _receipt(told) if told else _nothing(desk, name, *shown)
    resume.must_have_room(desk)
    resume.finish(desk, told_of)
    with resume.cut_short(desk), desk.sync.of_primary(), desk.shelf.alone(resume.LOCK):
        if name:
            return notes.purge(desk, places, name, transcripts, told_of)
        if session is not None:
            return transcripts_module.purge_session(desk, session, client, told_of) or _nothing(desk, "")
        return text_purge.purge_text(desk, wanted, files, told_of)


def _nothing(desk: Desk, key: str, checks: Iterable[str] = (), beyond: Iterable[str] = ()) -> Receipt:
    """There was nothing to remove; what a file that was deleted by hand left behind goes all the same."""
    if desk.shelf.there():
        desk.look(desk.folders(None), archived=True)
        desk.ask(desk.index.scrub)
    return Receipt(key, None, False, (), 0, 0, tuple(checks), tuple(beyond), dates.now())


def receipts(desk: Desk, id: str | None) -> list[Receipt]:
    """What was purged in the scopes of this caller's, newest first, or the one receipt of that id; a person sees all."""
    if not desk.config.enabled or not desk.shelf.there():
        return []
    rows = desk.ledger.purges.receipts(id)
    if not rows and id is None:
        _must_be_none(desk)
    found = _shown(desk, rows)
    if id is not None and not found:
        raise NotFound(f"no receipt {id[:40]!r}", Template(command("receipts"), " shows them all"))
    return found


def receipts_behind(desk: Desk, last: str | None, most: int) -> list[Receipt]:
    """The same, but only so many, from behind the one of that id on."""
    found: list[Receipt] = []
    while desk.config.enabled and desk.shelf.there():
        rows = desk.ledger.purges.receipts(last=last, most=most)
        if not rows and last is None:
            _must_be_none(desk)
        found += _shown(desk, rows)
        if len(rows) < most or len(found) >= most:
            break
        last = rows[-1]["id"]
    return found[:most]


def _must_be_none(desk: Desk) -> None:
    """No receipt is not the same as no purge, where something else says that there was one."""
    if desk.ledger.purges.any() or desk.ledger.purges.counts():
        raise Damaged("something was purged here, and the ledger has no receipt of it", Template("Run ", DOCTOR))


def _shown(desk: Desk, told: list[dict[str, Any]]) -> list[Receipt]:
    found = [_receipt(one) for one in told]
    mine = desk.places(None) if found and desk.origin != "user" else None
    return found if mine is None else [receipt for receipt in found if receipt.scope in mine]


def _receipt(told: dict[str, Any]) -> Receipt:
    """A receipt from its plain form; fields of a later version are passed over."""
    known = {name: value for name, value in told.items() if name in Receipt._names}
    plain: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in known.items()}
    scope = plain.get("scope")
    return Receipt(**{**plain, "scope": Scope(**scope) if isinstance(scope, dict) else None})


def finish(desk: Desk, told_of: Callable[[str], str]) -> None:
    """Do what is left of purges that were held up."""
    from holdfast.verbs.purge import resume

    if desk.shelf.there():
        resume.finish(desk, told_of)


def problems(desk: Desk, told_of: Callable[[str], str]) -> list[Problem]:
    """Purges that are not over, each with what to do."""
    from holdfast.verbs.purge import resume

    return resume.problems(desk, told_of)
