"""Purge: permanently delete a note, a session or a text.

Everything we own is scrubbed and every byte is read back before the answer; digests of the text, recorded before the first
deletion, keep it from being stored again.
"""

from __future__ import annotations

from holdfast.base import dates
from holdfast.errors import UsageError
from holdfast.models import Receipt
from holdfast.safety import validate
from holdfast.verbs import review

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from holdfast.context.caller import Context
    from holdfast.models import Problem


def purge(
    context: Context, *, key: str | None = None, scope: str | None = None, transcripts: bool = False,
    session: str | None = None, client: str | None = None, text: str | bytes | None = None, files: bool = False,
) -> Receipt:  # fmt: skip
    """Implement `Memory.purge`: purge a note, a session, or a text wherever it occurs. One purge per home at a time."""
    if sum([given is not None for given in (key, session, text)]) != 1:
        raise UsageError("no note, session or text to purge", "Give exactly one of a key, a session and a text")
    from holdfast.verbs.purge import notes, resume
    from holdfast.verbs.purge import text as text_purge
    from holdfast.verbs.purge import transcripts as transcript_purge

    name = validate.check_existing_key(key) if key is not None else ""
    scopes = (
        context.scopes_with_key(name, scope, lambda place, name: notes.has_files(context.store, place, name)) if name else []
    )
    if text is not None:
        review.require_person(context, "purge a text everywhere")
    checked_text = text_purge.check_text(text) if text is not None else ""
    if not context.store.exists():
        return _empty_receipt(context, name)
    if name and not scopes:
        return _receipt_of_missing_note(context, name, scope)
    resume.require_disk_space(context)
    resume.finish(context)
    with resume.report_full_disk(context), context.sync.use_primary(), context.store.named_lock(resume.LOCK):
        if name:
            return notes.purge_note(context, scopes, name, transcripts=transcripts)
        if session is not None:
            return transcript_purge.purge_session(context, session, client) or _empty_receipt(context, "")
        return text_purge.purge_text(context, checked_text, files=files)


def _receipt_of_missing_note(context: Context, key: str, scope: str | None) -> Receipt:
    """Return the receipt of an unfinished purge of this note, if there is one; else say that nothing was removed."""
    from holdfast.verbs.purge import resume
    from holdfast.verbs.purge.job import render_files_again
    from holdfast.verbs.purge.receipts import receipt_from_dict

    if resume.finish(context):  # perhaps of this very note
        resume.require_disk_space(context)
    checks, beyond_reach = render_files_again(context)  # an interrupted purge may not have reached the rendered files
    unfinished = resume.find_unfinished(context, context.visible_scopes(scope), key, checks, beyond_reach)
    return receipt_from_dict(unfinished) if unfinished else _empty_receipt(context, key, checks, beyond_reach)


def _empty_receipt(context: Context, key: str, checks: Iterable[str] = (), beyond_reach: Iterable[str] = ()) -> Receipt:
    """Return a receipt that says nothing was removed, after scrubbing what a file deleted by hand left in the index."""
    if context.store.exists():
        context.refresh(context.visible_folders(None), archived=True)
        context.query(context.index.scrub)
    return Receipt(
        key=key, scope=None, deleted=False, removed=(), index_rows=0, usage_rows=0, checks=tuple(checks),
        beyond_reach=tuple(beyond_reach), time=dates.now(),
    )  # fmt: skip


def finish(context: Context) -> None:
    """Finish purges that were interrupted or had to wait."""
    from holdfast.verbs.purge import resume

    if context.store.exists():
        resume.finish(context)


def problems(context: Context) -> list[Problem]:
    """Return the purges that are not finished, each with what to do."""
    from holdfast.verbs.purge import resume

    return resume.problems(context)
