"""How far an answer shows what was kept. The API is a machine's door whose reader may be a model.

| Answer | Hidden characters | Secrets |
|---|---|---|
| made for a model: briefing, dispatch, `/gateway/memory` | as marks | by the names of their rules |
| any other; `hidden` names the kinds | as they are | by the names of their rules, unless the role may export |
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from holdfast.access import Role
from holdfast.access.policy import OF_SCOPES, why_not
from holdfast.mcp.handlers import sound
from holdfast.mcp.markdown import escaped
from holdfast.safety.secrets.prefilter import is_surely_clean
from holdfast.safety.validate import redact_or_withhold, with_context
from holdfast.server.route import Reply, Route


def shown(route: Route, reply: Reply, role: Role) -> Reply:
    """The answer as this role may see it."""
    if route.for_model and reply.body is not None:
        told = escaped(json.dumps(sound(reply.body), ensure_ascii=False))  # no stored text in it can read as a tag or a fence
        return reply.replace(body=told.encode("utf-8", "replace"))
    if route.action not in OF_SCOPES or not isinstance(reply.body, dict) or not why_not(role, "memory.export", None):
        return reply
    every = "\n".join(_texts(reply.body))
    if every.isascii() and "\x1b" not in every and "\b" not in every and is_surely_clean(every):  # often: one look is enough
        return reply
    return reply.replace(body=_without_secrets(reply.body))


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield with_context(value)
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _texts(one)
    elif isinstance(value, dict):
        for one in value.values():
            yield from _texts(one)


def _without_secrets(value: Any) -> Any:
    if isinstance(value, str):
        return redact_or_withhold(value)[0]
    if isinstance(value, list | tuple):
        return [_without_secrets(one) for one in value]
    if isinstance(value, dict):
        return {name: _without_secrets(one) for name, one in value.items()}
    return value
