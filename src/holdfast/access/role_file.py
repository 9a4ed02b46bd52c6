"""Parse a role file: YAML with a name, skills, actions, scopes and grants, and nothing else. Errors name the line.

A file with any error is not a role at all: half of a role might allow what the other half forbids.
"""

from __future__ import annotations

import os
import stat

from holdfast.access.grants import PROJECT, REPOSITORY, SESSION, make_grant
from holdfast.access.policy import ACTIONS, EVERYTHING, OPERATOR, Quota, Role
from holdfast.base.ids import KEY_PATTERN
from holdfast.errors import ConfigError, UsageError, from_os
from holdfast.models import SCOPES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_GRANTS = {"projects": PROJECT, "sessions": SESSION, "repositories": REPOSITORY}  # the fields that name patterns
FIELDS = ("name", "skills", "allowed_actions", "scopes", *_GRANTS, "quota")
_QUOTA_FIELDS = ("notes", "bytes", "requests")
_MAX_QUOTA = 10**15
SUFFIX = ".yaml"
_MAX_BYTES, _MAX_BRACKETS, _MAX_VALUES = 16 * 1024, 100, 200
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK


def read(path: str) -> Role:
    """Read the role in a file, whose name must be that of the file; raises ConfigError."""
    name = os.path.basename(path).removesuffix(SUFFIX)
    role = parse(_read_text(path), path)
    if role.name != name:
        raise _make_error(
            path, 1, f"the file is named {name!r}, but its field name is {role.name!r}", "Give both the same name"
        )
    return role


def parse(text: str, path: str = "role") -> Role:
    """Parse a role; `path` is only used in messages."""
    fields = _check_fields(_parse_yaml(text, path), path)
    name_line, name = _read_scalar(fields.get("name"), path, "name")
    if not KEY_PATTERN.match(name):
        fix = "A name is 1 to 60 of a-z, 0-9 and '-', starting with a letter or digit"
        raise _make_error(path, name_line, f"not a name for a role: {name[:60]!r}", fix)
    skills = _read_list(fields.get("skills"), path, "skills")
    for line, word in skills:
        if not KEY_PATTERN.match(word):
            raise _make_error(
                path, line, f"not a name of a skill: {word[:60]!r}", "Write its folder's name, such as update-memory"
            )
    actions = _read_list(fields.get("allowed_actions"), path, "allowed_actions")
    for line, word in actions:
        _check_action(path, line, word, name)
    scopes = _read_list(fields["scopes"], path, "scopes") if "scopes" in fields else [(0, "agent")]
    for line, word in scopes:
        if word not in SCOPES:
            raise _make_error(path, line, f"there is no scope {word[:60]!r}", f"One of: {', '.join(SCOPES)}")
    grants = {field: _read_patterns(fields.get(field), path, field) for field in _GRANTS}
    lists = [tuple(dict.fromkeys([word for _, word in words])) for words in (skills, actions, scopes)]
    return Role(name, lists[0], lists[1], lists[2], quota=_read_quota(fields.get("quota"), path), **grants)


def _read_patterns(node: Any, path: str, field: str) -> tuple[str, ...]:
    """Return the patterns of a field, each once."""
    patterns: dict[str, None] = {}
    for line, word in _read_list(node, path, field):
        try:
            patterns[make_grant(_GRANTS[field], word).pattern] = None
        except UsageError as error:
            raise _make_error(path, line, error.message, error.fix) from None
    return tuple(patterns)


def _read_quota(node: Any, path: str) -> Quota:
    """Return the quota of a role; a limit that it does not name is that of the settings."""
    if node is None:
        return Quota()
    fix = "Such as `quota: {notes: 1000, bytes: 10000000, requests: 50000}`; 0 means no limit"
    if node.id != "mapping":
        raise _make_error(path, node.start_mark.line + 1, "quota must be a mapping", fix)
    limits: dict[str, int] = {}
    for key, value in node.value:
        line, name = _read_scalar(key, path, "a limit")
        _, text = _read_scalar(value, path, name)
        if name not in _QUOTA_FIELDS or name in limits:
            raise _make_error(path, line, f"unknown or repeated limit: {name[:60]!r}", fix)
        if not (text.isascii() and text.isdecimal()) or int(text[:20]) > _MAX_QUOTA:
            raise _make_error(path, line, f"{name} must be a whole number, not {text[:60]!r}", fix)
        limits[name] = int(text)
    return Quota(**limits)


def _check_action(path: str, line: int, word: str, name: str) -> None:
    if word == EVERYTHING and name != OPERATOR:
        raise _make_error(path, line, f"{EVERYTHING!r} is reserved for the operator", "Name each action")
    if word != EVERYTHING and word not in ACTIONS:
        import difflib

        near = difflib.get_close_matches(word, ACTIONS, 1)
        fix = f"Did you mean {near[0]}?" if near else f"One of: {', '.join(ACTIONS)}"
        raise _make_error(path, line, f"there is no action {word[:60]!r}", fix)


def _read_text(path: str) -> str:
    try:
        fd = os.open(path, _FLAGS)
        with open(fd, "rb") as file:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                raise _make_error(path, 1, "not a regular file", "Put the file itself there")
            data = file.read(_MAX_BYTES + 1)
    except OSError as error:
        raise from_os(error, f"cannot read the role {path}") from error
    if len(data) > _MAX_BYTES:
        raise _make_error(path, 1, f"larger than {_MAX_BYTES // 1024} KiB", "A role file has a few lines; see docs/gateway.md")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _make_error(path, data[: error.start].count(b"\n") + 1, "not UTF-8", "Save it as UTF-8") from None


def _parse_yaml(text: str, path: str) -> Any:
    """Return the nodes of the text with their lines; no Python objects are made from them."""
    import yaml

    if text.count("[") + text.count("{") > _MAX_BRACKETS or text.count("\n") > _MAX_VALUES * len(FIELDS):
        raise _make_error(path, 1, "too large for a role", "A role file has a few lines; see docs/gateway.md")
    try:
        return yaml.compose(text, Loader=yaml.BaseLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = getattr(error, "problem", None) or "cannot be read"
        raise _make_error(path, mark.line + 1 if mark else 1, f"not YAML: {problem}", "Correct the line") from None
    except RecursionError:
        raise _make_error(path, 1, "lists are nested too deeply", "A role file has a few lines; see docs/gateway.md") from None


def _check_fields(node: Any, path: str) -> dict[str, Any]:
    if node is None or node.id != "mapping":
        line = node.start_mark.line + 1 if node is not None else 1
        raise _make_error(path, line, "not a role", f"A role has the fields {', '.join(FIELDS)}")
    fields: dict[str, Any] = {}
    for key, value in node.value:
        line, name = _read_scalar(key, path, "a field")
        if name not in FIELDS:
            raise _make_error(path, line, f"unknown field {name[:60]!r}", f"A role has the fields {', '.join(FIELDS)}")
        if name in fields:
            raise _make_error(path, line, f"the field {name} appears twice", "Keep one of them")
        fields[name] = value
    missing = [name for name in ("name", "allowed_actions") if name not in fields]
    if missing:
        raise _make_error(path, 1, f"the field {missing[0]} is missing", "Write `[]` for an empty list")
    return fields


def _read_scalar(node: Any, path: str, field: str) -> tuple[int, str]:
    line = node.start_mark.line + 1
    if node.id != "scalar":
        raise _make_error(path, line, f"{field} must be one word", "Write it on one line")
    return line, str(node.value)


def _read_list(node: Any, path: str, field: str) -> list[tuple[int, str]]:
    """Return the values of a list with their lines; a missing field is an empty list."""
    if node is None:
        return []
    if node.id != "sequence" or len(node.value) > _MAX_VALUES:
        raise _make_error(path, node.start_mark.line + 1, f"{field} must be a list", f"Write `{field}: []` for none")
    return [_read_scalar(item, path, f"each of {field}") for item in node.value]


def _make_error(path: str, line: int, problem: str, fix: str) -> ConfigError:
    return ConfigError(f"{path}:{line}: {problem}", fix)
