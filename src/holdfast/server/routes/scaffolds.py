"""Template trees for an agent's own files, and what an agent that keeps continuity reads when it starts."""

from __future__ import annotations

from typing import Any

from holdfast.models import SCOPES
from holdfast.server.idempotency import ALL
from holdfast.server.route import EVERYWHERE, READ, SCOPED, WRITE, Asked, Route
from holdfast.server.schema import fields, number, ref, rows, text
from holdfast.verbs.scaffold import Scaffolded
from holdfast.verbs.scaffold.boot import Boot

_NAME = text("Which one, such as `wiki` or `continuity`.", minLength=1, maxLength=60)


def scaffold(asked: Asked) -> dict[str, Any]:
    return asked.memory.scaffold(asked["name"], scope=asked.given.get("scope", "agent")).as_dict()


def boot(asked: Asked) -> dict[str, Any]:
    """To read is one thing; who wants files made first must be allowed to write, which is a decision of its own."""
    if asked.given.get("scaffolds"):
        scope = asked.given.get("scope", "agent")
        asked.gateway.gate.allow(asked.caller, WRITE, scope, route=asked.route.name, request=asked.id)
        asked.whose.must_name(scope)
    return asked.memory.boot(**asked.only("scope", "cap", "scaffolds")).as_dict()


ROUTES = (
    Route(
        "POST", "/v1/scaffold", WRITE, scaffold, "put a tree of template files where they are missing; nothing is written over",
        "agent", takes=fields({"name": _NAME, "scope": text("Whose tree; otherwise the agent's own.", *SCOPES)}, "name"),
        example={"name": "wiki", "scope": "agent"}, answers=ref(Scaffolded), again=ALL, does=("scaffold",),
    ),
    Route(
        "POST", "/v1/boot", READ, boot, "what an agent that keeps continuity reads when it starts", EVERYWHERE,
        takes=fields({
            "scope": SCOPED, "cap": number("At most so many characters; otherwise 6000.", 1500, 9000),
            "scaffolds": rows(_NAME, "Made first where they are missing; takes `agent.memory.write` too.", maxItems=16),
        }),
        example={"cap": 3000}, answers=ref(Boot), for_model=True, does=("boot",),
    ),
)  # fmt: skip
