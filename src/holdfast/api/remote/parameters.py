"""How what a verb is given is spelled in a request, and what a request cannot say."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any

from holdfast.errors import UsageError
from holdfast.formats.versions import Draft
from holdfast.models import Answer

NOBODY = "of-the-token"  # stands for the agent, whose name only the gateway knows
NOT_OFFERED = {  # each verb of Memory that has no route, and why; docs/gateway.md says the same
    "render": "it writes into a file of the machine that the home is on, and keeps it true from there",
    "projects": "the folders it names are those of the machine that the home is on",
    "adopt": "it joins projects of the home, which is for whoever runs the gateway to do there",
    "mark": "it writes a marker into a folder of this machine, for the home that is here",
}
_KINDS = {"note": ("note", "past"), "file": ("file",), "turn": ("turn",), "fact": ("fact",)}


def of_draft(draft: Draft, key: str | None) -> dict[str, Any]:
    """A text that has passed the gate, with what was said about it. Without a key the gateway makes the same one."""
    return {
        "text": draft.text, "key": None if key is None else draft.key, "type": draft.type,
        "tags": None if draft.tags is None else list(draft.tags), "valid_from": draft.valid_from, "valid_to": draft.valid_to,
        "pinned": draft.pinned, "expected": draft.expected, "origin": origin(draft.source.origin),
    }  # fmt: skip


def origin(of_caller: str, given: str | None = None) -> str | None:
    """Who said it. That a person did only the token can say; whoever speaks for less says so, whatever the token."""
    named = given or of_caller
    return None if named == "user" else named


def sources(made_from: str | Iterable[str] | None) -> list[str] | None:
    if made_from is None:
        return None
    return [made_from] if isinstance(made_from, str) else list(made_from)


def only(answer: Answer, kinds: list[str], limit: int) -> Answer:
    """The first hits that are of these kinds."""
    wanted = [name for kind in kinds for name in _KINDS[kind]]
    return answer.replace(hits=tuple([hit for hit in answer.hits if hit.kind in wanted][:limit]))


def refuse_the_rest(remote: type, local: type) -> None:
    """A verb that is not asked over HTTP must not be done on this machine instead."""
    for name in dir(local):
        own = any(name in one.__dict__ for one in remote.__mro__ if one.__module__.startswith(remote.__module__))
        if not name.startswith("_") and not own and callable(getattr(local, name)):
            setattr(remote, name, _refusing(getattr(local, name)))


def _refusing(verb: Any) -> Any:
    @functools.wraps(verb)
    def refuse(self: Any, *args: Any, **given: Any) -> Any:
        why = NOT_OFFERED.get(verb.__name__, "this version does not know how")
        raise UsageError(f"`{verb.__name__}` is not offered over HTTP: {why}", "Do it on a machine with a home of its own")

    return refuse
