"""Arguments of mem0's methods and its filters, checked as mem0 checks them."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, date, datetime
from typing import Any

from holdfast import UsageError

_ENTITIES = ("user_id", "agent_id", "run_id")
_IDENTITY = {*_ENTITIES, "actor_id"}  # metadata cannot set these
COMPUTED = {"data", "hash", "updated_at", "id", "text_lemmatized"}  # neither these
_LOGICAL = {"$and": "AND", "$or": "OR", "$not": "NOT"}
_MAX_PREFIX = 40
_TIME = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d.*)?")
OTHERS_SCORE = 0.1  # of memories that the search did not find: mem0's default threshold
_log = logging.getLogger(__name__)

Json = dict[str, Any]


class InvalidArgument(UsageError, ValueError):
    """An argument is invalid: a `ValueError`, as in mem0."""

    error_code = "VALIDATION"

    @property
    def suggestion(self) -> str:
        return self.fix


class ValidationError(InvalidArgument):
    """What mem0 raises for missing ids, and for messages of another type."""

    def __init__(self, message: str, fix: str, error_code: str) -> None:
        super().__init__(message, fix)
        self.error_code = error_code


def read_options(config: Any) -> Mapping[str, Any]:
    """Return the entry `holdfast` of a configuration: a mapping, or an object such as mem0's `MemoryConfig`."""
    if config is None:
        return {}
    options = config.get("holdfast") if isinstance(config, Mapping) else getattr(config, "holdfast", None)
    if not isinstance(config, Mapping) and not hasattr(config, "model_dump"):
        raise InvalidArgument(f"config must be a dict, not {type(config).__name__}", "Use Memory.from_config({...})")
    options = {} if options is None else options
    if not isinstance(options, Mapping) or set(options) - {"home", "token", "project", "redact"}:
        raise InvalidArgument("the entry holdfast of the configuration is not valid", "Give home, token, project or redact")
    project = options.get("project", "mem0")
    if not isinstance(project, str) or not re.fullmatch(rf"[a-z0-9][a-z0-9-]{{0,{_MAX_PREFIX - 1}}}", project):
        raise InvalidArgument("project is not a valid prefix", f"Use 1 to {_MAX_PREFIX} of a-z, 0-9 and '-'")
    return options


def read_messages(messages: Any) -> Iterator[Json]:
    """Yield role, name and text of each message that has text. Instructions and images are not memories."""
    if isinstance(messages, str):
        messages = [{"role": "user", "content": messages}]
    elif isinstance(messages, Mapping):
        messages = [messages]
    elif not isinstance(messages, list):
        raise ValidationError(
            "messages must be str, dict, or list[dict]",
            "Pass a text or a list of messages with role and content",
            "VALIDATION_003",
        )
    for message in messages:
        role, content = (message.get("role"), message.get("content")) if isinstance(message, Mapping) else (None, None)
        text = content if isinstance(content, str) else _join_parts(content)
        if not isinstance(role, str) or not text.strip():
            _log.warning("a message without a role or without text is not stored")
        elif role != "system":
            name = message.get("name")
            yield {"role": role, "name": name if isinstance(name, str) and name else None, "text": text}


def _join_parts(content: object) -> str:
    """Return the text of a message in parts."""
    parts = content if isinstance(content, list) else []
    texts = [part.get("text") for part in parts if isinstance(part, Mapping) and part.get("type") == "text"]
    return " ".join(text for text in texts if isinstance(text, str))


def spoken_by(message: Json) -> Json:
    """Return the fields of a message that is stored as it is."""
    return {"role": message["role"], **({"actor_id": message["name"]} if message["name"] else {})}


def check_ids(given: Mapping[str, Any]) -> dict[str, str]:
    """Return the ids that were given, as mem0 reads them: numbers become text, and spaces around them are removed."""
    ids = {}
    for name, value in given.items():
        if value is None:
            continue
        text = str(value).strip()
        if not text or any(character.isspace() for character in text):
            raise InvalidArgument(
                f"Invalid {name}: cannot be empty or contain whitespace", "Provide an identifier without spaces"
            )
        ids[name] = text
    return ids


def check_filters(filters: Any) -> tuple[dict[str, str], Json]:
    """Return the ids among the filters, and the other filters."""
    if filters is not None and not isinstance(filters, Mapping):
        raise InvalidArgument(f"filters must be a dict, not {type(filters).__name__}", "Example: filters={'user_id': 'u1'}")
    given = dict(filters or {})
    ids = check_ids({name: given.pop(name, None) for name in _ENTITIES})
    if not ids:
        raise InvalidArgument(
            "filters must contain at least one of: user_id, agent_id, run_id", "Example: filters={'user_id': 'u1'}"
        )
    matches({}, given)  # raises for an unknown operator, whatever is stored
    return ids, given


def check_metadata(metadata: Any) -> Json:
    """Return the metadata without what callers cannot set."""
    if metadata is not None and not isinstance(metadata, Mapping):
        raise InvalidArgument(
            f"metadata must be a dict, not {type(metadata).__name__}", "Example: metadata={'category': 'food'}"
        )
    given = dict(metadata or {})
    for name in sorted(_IDENTITY & set(given)):
        _log.warning("metadata[%r] is ignored: ids cannot be set through metadata", name)
    created = given.get("created_at")
    if created is not None and (not isinstance(created, str) or not _TIME.fullmatch(created)):
        raise InvalidArgument("created_at must be a time such as 2026-05-02T09:00:00+00:00", "Pass time.isoformat()")
    return {str(name): value for name, value in given.items() if name not in _IDENTITY | COMPUTED}


def check_expiration(value: Any) -> str | None:
    """Return a day as YYYY-MM-DD."""
    try:
        if value is None:
            return None
        if isinstance(value, datetime):
            return value.date().isoformat()
        return value.isoformat() if isinstance(value, date) else date.fromisoformat(value).isoformat()
    except (TypeError, ValueError):
        raise InvalidArgument("expiration_date must be a valid date", "Use the format YYYY-MM-DD") from None


def check_limit(top_k: Any, options: Json, method: str) -> int:
    """Return the number of results; `limit` is an alias. Ids must be in `filters`; other options do nothing, as in mem0."""
    wrong = sorted(set(_ENTITIES) & set(options))
    if wrong:
        raise InvalidArgument(
            f"Top-level entity parameters {', '.join(wrong)} are not supported in {method}()", "Use filters={'user_id': '...'}"
        )
    top_k = options.pop("limit", top_k)
    if options:
        _log.warning("%s() ignores %s", method, ", ".join(sorted(options)))
    if not isinstance(top_k, int) or isinstance(top_k, bool) or top_k < 0:
        raise InvalidArgument(f"Invalid top_k: {top_k!r}", "Must be a non-negative integer")
    return top_k


def check_threshold(threshold: Any) -> float:
    if threshold is None:
        return OTHERS_SCORE
    if not isinstance(threshold, int | float) or not 0 <= threshold <= 1:
        raise InvalidArgument(f"Invalid threshold: {threshold!r}", "Must be between 0 and 1 (inclusive)")
    return threshold


def reject_hosted(name: str, value: Any) -> None:
    if value is not None:
        raise InvalidArgument(f"{name} is not supported: it belongs to mem0's hosted service", "Leave it out")


# --- filters ----------------------------------------------------------------------------------------------------------


def matches(payload: Mapping[str, Any], filters: Mapping[str, Any]) -> bool:
    """Return whether a memory matches every filter. Every filter is checked, also after one that does not match."""
    found = [_matches_one(payload, _LOGICAL.get(name, name), wanted) for name, wanted in filters.items()]
    return all(found)


def _matches_one(payload: Mapping[str, Any], name: str, wanted: Any) -> bool:
    if name in ("AND", "OR", "NOT"):
        if not isinstance(wanted, list) or not wanted or not all(isinstance(one, Mapping) for one in wanted):
            raise InvalidArgument(f"{name} operator requires a non-empty list of conditions", "Pass a list of dicts")
        parts = [matches(payload, one) for one in wanted]
        return all(parts) if name == "AND" else any(parts) == (name == "OR")
    value = payload.get(name)
    if isinstance(wanted, Mapping):
        found = [_compare(value, operator, operand) for operator, operand in wanted.items()]
        return all(found)
    if isinstance(wanted, list):
        return _is_in(value, wanted)
    return wanted == "*" or _is_in(value, [wanted])


def _compare(value: Any, operator: str, operand: Any) -> bool:
    if operator in ("eq", "ne"):
        return _is_in(value, [operand]) == (operator == "eq")
    if operator in ("in", "nin"):
        if not isinstance(operand, list):
            raise InvalidArgument(f"{operator} requires a list", "Pass the values in a list")
        return _is_in(value, operand) == (operator == "in")
    if operator in ("contains", "icontains"):
        return _contains(value, operand, fold=operator == "icontains")
    if operator not in ("gt", "gte", "lt", "lte"):
        raise InvalidArgument(
            f"Unsupported metadata filter operator: {operator}", "Use eq, ne, in, nin, gt, gte, lt, lte, contains or icontains"
        )
    return _is_ordered(value, operator, operand)


def _is_in(value: Any, wanted: Iterable[Any]) -> bool:
    """Return whether a value, or an element of a list, equals one of some others; true is not the number 1."""
    values = value if isinstance(value, list) else [value]
    return any(one == other and isinstance(one, bool) == isinstance(other, bool) for one in values for other in wanted)


def _contains(value: Any, operand: Any, *, fold: bool) -> bool:
    if not isinstance(operand, str):
        raise InvalidArgument("contains requires a text", "Pass a string")
    texts = [one for one in (value if isinstance(value, list) else [value]) if isinstance(one, str)]
    return any(operand.casefold() in text.casefold() if fold else operand in text for text in texts)


def _is_ordered(value: Any, operator: str, operand: Any) -> bool:
    """Return the result of an operator; numbers are ordered with numbers, times with times."""
    left, right = _to_number(value), _to_number(operand)
    if right is None:
        raise InvalidArgument(f"{operator} requires a number or a time, not {operand!r}", "Example: 2026-05-02T09:00:00Z")
    if left is None or left[0] != right[0]:
        return False
    if left == right:
        return operator in ("gte", "lte")
    return (left > right) == operator.startswith("g")


def _to_number(value: Any) -> tuple[str, float] | None:
    """Return a number or a time, with its kind."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return "number", value
    if not isinstance(value, str) or not _TIME.fullmatch(value):
        return None
    try:
        time = datetime.fromisoformat(value)
    except ValueError:
        return None
    return "time", (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()
