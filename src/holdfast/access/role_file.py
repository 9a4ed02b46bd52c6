"""A role's file: YAML with a name, skills, actions and scopes, and nothing else. What is wrong is told with its line.

A file that is wrong anywhere is no role at all: half of one might allow what the other half was to take away.
"""

from __future__ import annotations

import os
import stat

from holdfast.access.policy import ACTIONS, EVERYTHING, OPERATOR, Role
from holdfast.base.ids import KEY_PATTERN
from holdfast.errors import ConfigError, from_os
from holdfast.models import SCOPES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

FIELDS = ("name", "skills", "allowed_actions", "scopes")
SUFFIX = ".yaml"
_MOST_BYTES, _MOST_BRACKETS, _MOST_WORDS = 16 * 1024, 100, 200
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK


def read(path: str) -> Role:
    """The role in a file; its name is the file's."""
    name = os.path.basename(path).removesuffix(SUFFIX)
    role = parse(_text(path), path)
    if role.name != name:
        raise _wrong(path, 1, f"the file is called {name!r} and the role {role.name!r}", "Give both the same name")
    return role


def parse(text: str, path: str = "role") -> Role:
    """The role in a text; the path is only told."""
    fields = _fields(_composed(text, path), path)
    name_line, name = _scalar(fields.get("name"), path, "name")
    if not KEY_PATTERN.match(name):
        fix = "A name is 1 to 60 of a-z, 0-9 and '-', starting with a letter or digit"
        raise _wrong(path, name_line, f"not a name for a role: {name[:60]!r}", fix)
    skills = _words(fields.get("skills"), path, "skills")
    for line, word in skills:
        if not KEY_PATTERN.match(word):
            raise _wrong(path, line, f"not a name of a skill: {word[:60]!r}", "Write its folder's name, such as update-memory")
    actions = _words(fields.get("allowed_actions"), path, "allowed_actions")
    for line, word in actions:
        _check_action(path, line, word, name)
    scopes = _words(fields["scopes"], path, "scopes") if "scopes" in fields else [(0, "agent")]
    for line, word in scopes:
        if word not in SCOPES:
            raise _wrong(path, line, f"there is no scope {word[:60]!r}", f"One of: {', '.join(SCOPES)}")
    return Role(name, *[tuple(dict.fromkeys([word for _, word in words])) for words in (skills, actions, scopes)])


def _check_action(path: str, line: int, word: str, name: str) -> None:
    if word == EVERYTHING and name != OPERATOR:
        raise _wrong(path, line, f"{EVERYTHING!r} is the operator's alone", "Name each action")
    if word != EVERYTHING and word not in ACTIONS:
        import difflib

        near = difflib.get_close_matches(word, ACTIONS, 1)
        fix = f"Did you mean {near[0]}?" if near else f"One of: {', '.join(ACTIONS)}"
        raise _wrong(path, line, f"there is no action {word[:60]!r}", fix)


def _text(path: str) -> str:
    try:
        fd = os.open(path, _FLAGS)
        with open(fd, "rb") as file:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                raise _wrong(path, 1, "not a regular file", "Put the file itself there")
            data = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise from_os(error, f"cannot read the role {path}") from error
    if len(data) > _MOST_BYTES:
        raise _wrong(path, 1, f"larger than {_MOST_BYTES // 1024} KiB", "A role is a few lines")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _wrong(path, data[: error.start].count(b"\n") + 1, "not UTF-8", "Save it as UTF-8") from None


def _composed(text: str, path: str) -> Any:
    """The nodes of the text with their lines; nothing in it is made into objects."""
    import yaml

    if text.count("[") + text.count("{") > _MOST_BRACKETS or text.count("\n") > _MOST_WORDS * len(FIELDS):
        raise _wrong(path, 1, "too much for a role", "A role is a few lines")
    try:
        return yaml.compose(text, Loader=yaml.BaseLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        said = getattr(error, "problem", None) or "cannot be read"
        raise _wrong(path, mark.line + 1 if mark else 1, f"not YAML: {said}", "Correct the line") from None
    except RecursionError:
        raise _wrong(path, 1, "lists in lists without end", "A role is a few lines") from None


def _fields(node: Any, path: str) -> dict[str, Any]:
    if node is None or node.id != "mapping":
        line = node.start_mark.line + 1 if node is not None else 1
        raise _wrong(path, line, "not a role", f"A role has the fields {', '.join(FIELDS)}")
    fields: dict[str, Any] = {}
    for key, value in node.value:
        line, name = _scalar(key, path, "a field")
        if name not in FIELDS:
            raise _wrong(path, line, f"unknown field {name[:60]!r}", f"A role has the fields {', '.join(FIELDS)}")
        if name in fields:
            raise _wrong(path, line, f"the field {name} stands there twice", "Keep one of them")
        fields[name] = value
    missing = [name for name in ("name", "allowed_actions") if name not in fields]
    if missing:
        raise _wrong(path, 1, f"the field {missing[0]} is missing", "An empty list, `[]`, means nothing")
    return fields


def _scalar(node: Any, path: str, what: str) -> tuple[int, str]:
    line = node.start_mark.line + 1
    if node.id != "scalar":
        raise _wrong(path, line, f"{what} must be one word", "Write it on one line")
    return line, str(node.value)


def _words(node: Any, path: str, what: str) -> list[tuple[int, str]]:
    """The words of a list with their lines; a field that is not there is an empty list."""
    if node is None:
        return []
    if node.id != "sequence" or len(node.value) > _MOST_WORDS:
        raise _wrong(path, node.start_mark.line + 1, f"{what} must be a list", f"Write `{what}: []` for none")
    return [_scalar(one, path, f"each of {what}") for one in node.value]


def _wrong(path: str, line: int, what: str, fix: str) -> ConfigError:
    return ConfigError(f"{path}:{line}: {what}", fix)
