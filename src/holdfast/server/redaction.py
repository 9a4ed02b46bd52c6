"""Redact stored text in responses, because a model may read the responses of the API; and the home's path in our messages.

| Answer | Hidden characters | Secrets |
|---|---|---|
| made for a model: briefing, dispatch, `/gateway/memory` | as marks | by the names of their rules |
| any other; `hidden` names the kinds | as they are | by the names of their rules, unless the role may export |
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from holdfast.access import Role
from holdfast.access.policy import SCOPED_ACTIONS, denial_reason
from holdfast.models import MODES
from holdfast.safety.model_text import escape_markup, show_hidden
from holdfast.safety.secrets.prefilter import is_surely_clean
from holdfast.safety.validate import join_context, redact_or_withhold
from holdfast.server.problem import hide_home
from holdfast.server.route import Reply, Route

_MESSAGES = (  # members that Holdfast itself writes: reasons of a degraded answer, and the lines of a receipt
    "degraded", "reason", "unusable", "reranker_unusable", "failed", "checks", "beyond_reach", "pending", "removed",
    "also_said_by", "told", "what",
)  # fmt: skip
_CONTAINERS = (dict, list, tuple)  # a union would be made for each of the many values of an answer


def redact(route: Route, reply: Reply, role: Role, home: str) -> Reply:
    """Return the reply as this role may see it."""
    if isinstance(reply.body, dict):
        reply = replace(reply, body=_without_home(reply.body, home))
    if route.for_model and reply.body is not None:
        text = escape_markup(json.dumps(show_hidden(reply.body), ensure_ascii=False))  # no stored text reads as a tag or fence
        return replace(reply, body=text.encode("utf-8", "replace"))
    if route.action not in SCOPED_ACTIONS or not isinstance(reply.body, dict) or not denial_reason(role, "memory.export", None):
        return reply
    return reply if _is_clean(reply.body) else replace(reply, body=_without_secrets(reply.body))


def _without_home(body: dict[str, Any], home: str) -> dict[str, Any]:
    """Return an answer without the path of the home in its messages, nor in those of the receipts in it."""
    messages = {name: _hide_home(value, home) for name, value in body.items() if value and name in _MESSAGES}
    if isinstance(receipts := body.get("receipts"), list):
        messages["receipts"] = [_without_home(one, home) if isinstance(one, dict) else one for one in receipts]
    return {**body, **messages} if messages else body


def _hide_home(value: Any, home: str) -> Any:
    if isinstance(value, str):
        return hide_home(value, home)
    if isinstance(value, list | tuple):
        return [_hide_home(item, home) for item in value]
    return {name: _hide_home(item, home) for name, item in value.items()} if isinstance(value, dict) else value


def _is_clean(value: dict[str, Any] | list[Any] | tuple[Any, ...]) -> bool:
    """Return whether no string inside a value can contain a secret: one check for all of them."""
    joined = "\n".join(_collect_texts(value, []))
    return joined.isascii() and "\x1b" not in joined and "\b" not in joined and is_surely_clean(joined)


def _collect_texts(value: dict[str, Any] | list[Any] | tuple[Any, ...], texts: list[str]) -> list[str]:
    """Append all strings inside a value to `texts`, with the text around excerpts, and return it.

    The name of a search mode is left out: in "keyword" a secret might begin.
    """
    for item in value.values() if isinstance(value, dict) else value:
        if isinstance(item, str):
            if item not in MODES:
                texts.append(join_context(item))
        elif isinstance(item, _CONTAINERS):
            _collect_texts(item, texts)
    return texts


def _without_secrets(value: Any) -> Any:
    if isinstance(value, str):
        return redact_or_withhold(value)[0]
    if isinstance(value, _CONTAINERS) and _is_clean(value):  # of ten notes usually all but one
        return value
    if isinstance(value, list | tuple):
        return [_without_secrets(item) for item in value]
    if isinstance(value, dict):
        return {name: _without_secrets(item) for name, item in value.items()}
    return value
