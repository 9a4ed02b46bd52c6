"""Looking after the home as a whole, which is no single agent's matter: what is wrong with it, the catalogue, what expired."""

from __future__ import annotations

from typing import Any

from holdfast.access import health
from holdfast.access.policy import denial_reason
from holdfast.models import Note
from holdfast.server.idempotency import ALL, Replay
from holdfast.server.route import NOWHERE, Asked, Route
from holdfast.server.schema import answer, fields, flag, ref, rows, text
from holdfast.verbs.doctor.checks import merge_problems
from holdfast.verbs.doctor.fixes import with_fixes
from holdfast.verbs.status import Reindexed

_CARE = "home.care"
_PROBLEM = answer(
    code={"type": "string"}, message={"type": "string"}, fix=text("The command that mends it, on the gateway's machine."),
    path={"type": "string"},
)  # fmt: skip
_COUNTS = {"type": "object", "additionalProperties": {"type": "integer"}}
_REASONS = {"type": "object", "additionalProperties": {"type": "string"}}


def check(asked: Asked) -> dict[str, Any]:
    """Where the home stands on the server's disk is nobody's business; roles, agents and the audit are told to those
    who may see them."""
    home, settings = asked.gateway.home, asked.gateway.config_of(asked.caller)
    whole = settings == asked.gateway.config()
    role = asked.gate.role(asked.caller.role)
    gateway = health.find_gate_problems(asked.gate, whole, lambda action: not denial_reason(role, action, None))
    found = [one.as_dict() for one in merge_problems(asked.memory.check(), with_fixes(settings.home, gateway))]
    return {"problems": [{name: said.replace(home, "HOME") for name, said in one.items()} for one in found]}


def reindex(asked: Asked) -> dict[str, Any]:
    return asked.memory.reindex().as_dict()


def embed(asked: Asked) -> dict[str, Any]:
    left = asked.memory.embed()
    return {"left": dict(left), "failed": left.failed}


def retain(asked: Asked) -> dict[str, Any]:
    """It reaches every scope; of notes that are not the caller's own, a person alone is shown the words."""
    found = asked.memory.retain(**asked.only("dry_run"))
    own = asked.memory._context.visible_scopes(None)
    shown = [one.as_dict() if asked.caller.is_person or one.scope in own else _wordless(one.as_dict()) for one in found]
    return {"archived": shown}


def _wordless(note: dict[str, Any]) -> dict[str, Any]:
    """A note by its names alone."""
    return {**note, "text": "", "tags": [], "source": {**note["source"], "made_from": []}}


_RETAINED = Replay(lambda body: {"archived": [_wordless(one) for one in body["archived"]]}, lambda asked, kept: kept)

ROUTES = (
    Route(
        "GET", "/v1/check", _CARE, check, "what is wrong with the home, its roles and its audit, and what mends it", NOWHERE,
        answers=answer(problems=rows(_PROBLEM)), shows={"problems": []}, does=("check",),
    ),
    Route(
        "POST", "/v1/reindex", _CARE, reindex, "throw the catalogue away and build it from the shelf", NOWHERE,
        takes=fields({}), example={}, answers=ref(Reindexed), again=ALL, does=("reindex",),
    ),
    Route(
        "POST", "/v1/embed", _CARE, embed, "give every passage its vectors now, instead of a few with each recall", NOWHERE,
        takes=fields({}), example={}, answers=answer(left=_COUNTS, failed=_REASONS), again=ALL, does=("embed",),
        shows={"left": {"search": 0}, "failed": {}},
    ),
    Route(
        "POST", "/v1/retain", _CARE, retain, "archive notes not updated or used for long, and empty old trash", NOWHERE,
        takes=fields({"dry_run": flag("Only say what would be archived.")}), example={"dry_run": True},
        answers=answer(archived=rows(ref(Note))), again=_RETAINED, does=("retain",),
    ),
)  # fmt: skip
