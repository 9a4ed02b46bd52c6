"""Quarantine: how far a text can be trusted, and what keeps untrusted text contained.

An untrusted note does not get out of quarantine by being copied or forgotten, and does not replace a trusted one. Only a person
decides otherwise (see `review`).
"""

from __future__ import annotations

import os

from holdfast.base.ids import KEY_PATTERN
from holdfast.errors import Busy, DiskTrouble, HoldfastError, Refused, Template, command
from holdfast.formats import versions
from holdfast.formats.note_file import replace_invalid
from holdfast.index.queries import IndexReset
from holdfast.models import ORIGINS, Source, least_trusted
from holdfast.safety import validate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from holdfast.context.caller import Context
    from holdfast.formats.versions import Draft, ParsedNote
    from holdfast.models import Scope

    Composed = tuple[str, ParsedNote]  # the action (created, updated, unchanged), and the note after it
    Origin = tuple[str, str]  # the trust of the note that a text was copied from, and its id


_SHOWN = 3  # keys that a message names
PERSON = ORIGINS[0]
TAKEN_AWAY = ("rejected", "forgotten-by-source")  # decisions of a person about what a note says


# --- trust of sources -------------------------------------------------------------------------------------------------


def find_source(context: Context, origin: str, made_from: object) -> Source:
    """Return the source of a text that was made from something: it is trusted no more than that."""
    from holdfast.safety import trust

    names = trust.parse_made_from(made_from)
    cached = context.source_cache.get((origin, names))
    if cached is not None:
        return cached
    for name in names:
        validate.reject_secrets(name, "made_from", fix="Remove the secret from the source")
    kept, least = trust.resolve_made_from(
        names,
        lambda note: _find_note_trust(context, note),
        lambda citation: _find_turn_trust(context, citation),
        lambda path: _is_local_file(context, path),
    )
    least = least_trusted(origin, least)
    source = Source(
        origin=origin,
        agent=context.agent,
        client=context.client,
        session=context.session,
        made_from=kept,
        trust=least if least != origin else None,
    )
    if kept == names and not any(name.startswith("note:") for name in names):  # the trust of a note may change
        context.source_cache[origin, names] = source
    return source


def _is_local_file(context: Context, path: str) -> bool:
    """Return whether a source is a file below the caller's folder. A caller with a token has no folder on this machine, and
    must not learn which files there are."""
    return not context.config.by_token and os.path.exists(os.path.join(context.working_folder, path))


def _find_note_trust(context: Context, note: str) -> tuple[str, str] | None:
    """Return how a visible note is named as a source, and how far it is trusted; `note` is its key or id."""
    for scope in context.visible_scopes(None) if KEY_PATTERN.match(note) else ():
        content = context.store.read_note(scope, note)
        if content is not None:
            parsed = versions.parse_note(content.data, content.modified)
            texts = [version.text for version in versions.list_versions(parsed)]
            context.purge_filter.refuse_returned(f"{scope.folder}/notes/{note}", texts)
            return f"note:{parsed.header.id or note}", parsed.trust
    folders = context.visible_folders(None)
    context.refresh(folders)
    found = context.query(lambda: context.index.find_note_by_id(folders, note))
    return (f"note:{note}", found.trust) if found else None


def _find_turn_trust(context: Context, citation: str) -> tuple[str, str] | None:
    """Return how a visible turn is named as a source, and how far its speaker is trusted."""
    from holdfast.formats import transcript

    path, _, lines = citation.rpartition(":")
    scope, _, name = path.partition("/transcripts/")
    first = lines.partition("-")[0]
    if scope not in context.visible_folders(None) or not name or not first.isdecimal():
        return None
    header = None
    for line in context.store.transcripts(scope, 0).open(name).read_lines():
        if line.number == 1:
            header = transcript.parse_header(line.data)
        elif line.number == int(first):
            turn = transcript.parse_line(line.data)
            return (f"turn:{citation}", transcript.origin_of(turn, header)) if turn else None
    return None


def quarantined_trust(quarantine: tuple[str, ...]) -> str:
    """Return the lowest trust of quarantined text, which a text that a person rejected gets."""
    return least_trusted(PERSON, *quarantine)


# --- containment of writes --------------------------------------------------------------------------------------------


def contain(
    context: Context,
    *,
    drafts: list[Draft],
    current: list[ParsedNote | None],
    composed: list[Composed],
    compose: Callable[[Draft, ParsedNote | None], Composed],
    rejected: Mapping[str, str],
    may_copy: bool,
) -> list[Composed]:
    """Return the next versions of notes as they may be written.

    A copy of a quarantined text is quarantined too, and so is a text that a person rejected. Raises `Refused` if a quarantined
    text would replace a trusted one. `may_copy` says whether a text may be such a copy.
    """
    quarantine = context.config.quarantine
    if not (rejected or any(note.trust in quarantine for _, note in composed) or may_copy):
        return composed
    copies = _find_copies(context, drafts, composed)
    contained = []
    for draft, old, (action, new) in zip(drafts, current, composed, strict=True):
        if draft.source.origin != PERSON and action != "unchanged":
            origin = _find_rejected(context, draft, old) if draft.text in rejected else None
            origin = origin or copies.get(draft.text)
            if origin:
                action, new = compose(_lower_trust(draft, *origin), old)
        replaces_trusted = action == "updated" and old and old.trust not in quarantine and new.trust in quarantine
        if replaces_trusted and context.origin != PERSON:
            what = f"the note {draft.key!r} is trusted, and text with the origin {new.trust} cannot replace it"
            raise Refused(what, "Store it under another key")
        contained.append((action, new))
    return contained


def may_copy(context: Context, drafts: list[Draft]) -> bool:
    """Return whether one of these texts could be a copy: something is in quarantine, and the writer is not a person."""
    if not context.config.quarantine or all(draft.source.origin == PERSON for draft in drafts):
        return False
    try:
        return context.index.has_quarantined()
    except (IndexReset, Busy, DiskTrouble):
        return True  # `_find_copies` asks again when the index is rebuilt


def _find_copies(context: Context, drafts: list[Draft], composed: list[Composed]) -> dict[str, Origin]:
    """Return the quarantined notes that say these texts, by text."""
    quarantine = context.config.quarantine
    texts = {
        replace_invalid(draft.text): draft.text
        for draft, (action, new) in zip(drafts, composed, strict=True)
        if action != "unchanged" and new.trust not in quarantine and draft.source.origin != PERSON
    }
    if not texts:
        return {}
    folders = context.visible_folders(None)
    rows = context.query(lambda: context.index.find_quarantined_texts(folders, texts))
    return {texts[row.text]: (row.trust, row.note_id) for row in rows if row.trust in quarantine}


def _find_rejected(context: Context, draft: Draft, old: ParsedNote | None) -> Origin | None:
    """Return the note with this text that a person rejected in a visible scope.

    What the note says already, and is trusted, does not count against its next version.
    """
    quarantine = context.config.quarantine
    before = old.text if old and old.trust not in quarantine else ""
    known = context.ledger.purges.find_rejections(context.visible_folders(None), draft.text, before)
    return (quarantined_trust(quarantine), next(iter(known.values()))) if known else None


def _lower_trust(draft: Draft, trust: str, id: str) -> Draft:
    """Name the note that a text was copied from as its source, so that `forget --source` finds the copy."""
    source = draft.source
    made_from = tuple(dict.fromkeys((*source.made_from, f"note:{id}"))) if id else source.made_from
    least = least_trusted(source.trusted, trust)
    return draft.replace(source=source.replace(made_from=made_from, trust=least if least != source.origin else None))


def refuse_rejected(context: Context, known: Mapping[str, str], drafts: Sequence[tuple[Context, Draft]]) -> None:
    """Raise `RejectedText` if a draft would be trusted and says what a person rejected, unless that is `known` already.

    Each draft comes with the context of its writer.
    """
    quarantine = context.config.quarantine
    if not quarantine or not context.purge_filter.any_rejected():
        return
    found = dict(known)
    for writer, draft in drafts:
        if draft.source.origin != PERSON and draft.source.trusted not in quarantine:
            before = found.get(draft.text, "").split()
            digests = context.ledger.purges.find_rejections(writer.visible_folders(None), draft.text)
            after = dict.fromkeys([*before, *digests])
            if len(after) > len(before):
                found[draft.text] = " ".join(after)
    if found != known:
        raise versions.RejectedText(found)


# --- what agents may not do -------------------------------------------------------------------------------------------


def refuse_restore(context: Context, usage_id: str, key: str) -> None:
    """Raise `Refused` if an agent restores a note that a person removed because of its text or its source."""
    last = next(iter(context.ledger.decisions.list(usage_id)), None) if context.origin != PERSON else None
    if last and last.action in TAKEN_AWAY:
        what = f"a person removed {key!r}, and agents cannot restore it"
        raise Refused(what, Template("A person can use ", command("restore {}", key)))


def refuse_forget(context: Context, scope: Scope, keys: list[str]) -> None:
    """Raise `Refused` if an agent forgets a quarantined note: stored again, its text would be trusted as the agent's."""
    if context.origin == PERSON or not context.config.quarantine:
        return
    quarantined = [key for key in keys if _is_quarantined(context, scope, key)]
    if quarantined:
        names = ", ".join([repr(key) for key in quarantined[:_SHOWN]]) + (", ..." if quarantined[_SHOWN:] else "")
        fix = Template("A person can use ", command("review"))
        raise Refused(f"agents cannot forget notes in quarantine: {names}", fix)


def _is_quarantined(context: Context, scope: Scope, key: str) -> bool:
    try:
        content = context.store.read_note(scope, key)
        if content is None and (archived := context.store.find_archived([(scope, key)]).get((scope, key))):
            content = context.store.read_file(scope.folder, archived.part, archived.name)
    except HoldfastError:
        return False  # not a file that can be read as a note
    return content is not None and versions.parse_note(content.data, content.modified).trust in context.config.quarantine
