"""How far a text that was made from others can be trusted, and what quarantine contains (S3): nothing gets out of it by being
forgotten or copied, and nothing in it takes the place of what is trusted. Only a person decides otherwise."""

from __future__ import annotations

import os

from holdfast.base.ids import KEY_PATTERN
from holdfast.errors import HoldfastError, Refused, Template, command
from holdfast.formats import versions
from holdfast.formats.note_file import replace_invalid
from holdfast.models import ORIGINS, Source, least_trusted
from holdfast.safety import validate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import TypeVar

    from holdfast.context.caller import Context
    from holdfast.formats.versions import Draft, ParsedNote
    from holdfast.models import Scope

    T = TypeVar("T")
    Made = tuple[str, ParsedNote]  # what happens to a note, and its file after it


_SHOWN = 3
TAKEN_AWAY = ("rejected", "forgotten-by-source")  # decisions of a person about what a note says


def source_of(
    context: Context, origin: str, made_from: object, known: dict[tuple[str, tuple[str, ...]], Source], cwd: str
) -> Source:
    """Who speaks, of what was made from something: it is trusted no more than that. What is `known` was asked for before."""
    from holdfast.safety import trust
    from holdfast.verbs import read

    given = trust.parse_made_from(made_from)
    if (origin, given) in known:
        return known[origin, given]
    for one in given:
        validate.reject_secrets(one, "made_from", fix="Name the source without it")
    kept, least = trust.resolve_made_from(
        given, lambda note: _trust_of(context, note),
        lambda what: read.turn_trust(context.store, what, context.visible_folders(None)),
        lambda path: os.path.exists(os.path.join(cwd, path)),
    )  # fmt: skip
    least = least_trusted(origin, least)
    source = Source(origin, context.agent, context.client, context.session, kept, least if least != origin else None)
    if kept == given and not any(one.startswith("note:") for one in given):  # a note may be trusted otherwise soon
        known[origin, given] = source
    return source


def _trust_of(context: Context, note: str) -> tuple[str, str] | None:
    """What a note that this caller may see is kept as, and how far it can be trusted; by its key or its id."""
    for place in context.visible_scopes(None) if KEY_PATTERN.match(note) else ():
        content = context.store.read(place, note)
        if content is not None:
            there = versions.parse_note(content.data, content.modified)
            context.refuse_returned(f"{place.folder}/notes/{note}", [one.text for one in versions.list_versions(there)])
            return f"note:{there.header.id or note}", there.trust
    context.refresh(context.visible_folders(None))
    found = context.query(lambda: context.index.note_of_id(context.visible_folders(None), note))
    return (f"note:{note}", found[2]) if found else None


def contained(
    context: Context, drafts: list[Draft], olds: list[ParsedNote | None], made: list[Made],
    compose: Callable[[Draft, ParsedNote | None], Made], doubts: Mapping[str, str],
) -> list[Made]:  # fmt: skip
    """The next versions of notes as they may be written: a copy of what is in quarantine is in quarantine too, and so is what
    a person rejected before; and what is may not replace what is not."""
    held = context.config.quarantine
    copies = _copies(context, drafts, made)
    found = []
    for draft, old, (action, new) in zip(drafts, olds, made, strict=True):
        if draft.source.origin != ORIGINS[0] and action != "unchanged":
            copied = (_rejected(context, draft, old) if draft.text in doubts else None) or copies.get(draft.text)
            if copied:
                action, new = compose(_as_little_trusted(draft, *copied), old)
        if action == "updated" and context.origin != ORIGINS[0] and old and old.trust not in held and new.trust in held:
            what = f"{draft.key!r} says what is trusted, and this came from {new.trust}: the note would not be told any more"
            raise Refused(what, "Store it under another key")
        found.append((action, new))
    return found


def _copies(context: Context, drafts: list[Draft], made: list[Made]) -> dict[str, tuple[str, str]]:
    """Which of these texts stand in a note in quarantine: how far that one is trusted, and its id."""
    texts = {
        replace_invalid(draft.text): draft.text
        for draft, (action, new) in zip(drafts, made, strict=True)
        if action != "unchanged" and new.trust not in context.config.quarantine and draft.source.origin != ORIGINS[0]
    }
    if not texts:
        return {}
    folders = context.visible_folders(None)
    rows = context.query(lambda: context.index.held_saying(folders, texts))
    return {texts[text]: (trust, id) for text, trust, id in rows if trust in context.config.quarantine}


def _rejected(context: Context, draft: Draft, old: ParsedNote | None) -> tuple[str, str] | None:
    """How far a text is trusted that says what a person rejected where this caller may look, and the id of the note that said
    it. What the note says already, and is trusted, is not held against its next version."""
    held = context.config.quarantine
    before = old.text if old and old.trust not in held else ""
    known = context.ledger.purges.rejected(context.visible_folders(None), draft.text, before)
    return (least(held), next(iter(known.values()))) if known else None


def _as_little_trusted(draft: Draft, trust: str, id: str) -> Draft:
    """Whoever says the very words of a note has them from there, and `forget --source` finds them by that."""
    source = draft.source
    made_from = tuple(dict.fromkeys((*source.made_from, f"note:{id}"))) if id else source.made_from
    least = least_trusted(source.trusted, trust)
    return draft.replace(source=source.replace(made_from=made_from, trust=least if least != source.origin else None))


def least(held: tuple[str, ...]) -> str:
    """The trust of what waits because a person took it away: as little as anything that waits."""
    return least_trusted(ORIGINS[0], *held)


def refuse_rejected(context: Context, doubts: Mapping[str, str], drafts: Sequence[tuple[Context, Draft]]) -> None:
    """Raise `Rejected` if any of these, each with the desk of who says it, says what a person rejected there and would be
    trusted, and is not in doubt for just that already."""
    held, purges = context.config.quarantine, context.ledger.purges
    found = dict(doubts)
    for whose, draft in drafts if held else ():
        if draft.source.origin != ORIGINS[0] and draft.source.trusted not in held:
            before = found.get(draft.text, "").split()
            known = dict.fromkeys([*before, *purges.rejected(whose.visible_folders(None), draft.text)])
            if len(known) > len(before):
                found[draft.text] = " ".join(known)
    if found != doubts:
        raise versions.RejectedText(found)


def must_not_restore(context: Context, id: str, key: str) -> None:
    """Refuse to an agent to bring back what a person took away because of what it says or where it came from."""
    last = next(iter(context.ledger.decisions(id)), None) if context.origin != ORIGINS[0] else None
    if last and last[0] in TAKEN_AWAY:
        what = f"a person took {key!r} away, and it is not an agent's to bring back"
        raise Refused(what, Template("A person does: ", command("restore {}", key)))


def must_not_forget(context: Context, place: Scope, keys: list[str]) -> None:
    """Refuse to an agent to take away what waits for a person: said again, it would be trusted as the agent."""
    held = [key for key in keys if _is_held(context, place, key)] if context.origin != ORIGINS[0] else []
    if held:
        names = ", ".join([repr(key) for key in held[:_SHOWN]]) + (", ..." if held[_SHOWN:] else "")
        fix = Template("A person decides: ", command("review"))
        raise Refused(f"in quarantine, and not an agent's to forget: {names}", fix)


def _is_held(context: Context, place: Scope, key: str) -> bool:
    try:
        content = context.store.read(place, key)
        if content is None and (one := context.store.archived(place, [key]).get(key)):
            content = context.store.read_name(place.folder, one.part, one.name)
    except HoldfastError:
        return False  # no file that could be read as a note
    return content is not None and versions.parse_note(content.data, content.modified).trust in context.config.quarantine
