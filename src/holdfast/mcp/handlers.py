"""One handler per tool: it calls one verb of Memory and returns plain data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.base.invisible import find_kinds
from holdfast.base.record import Record, computed_names, field_names
from holdfast.errors import HoldfastError, UsageError
from holdfast.formats.relations import MAX_RELATIONS
from holdfast.models import RELATION_KINDS
from holdfast.safety import validate
from holdfast.safety.validate import hide_secrets

if TYPE_CHECKING:
    from holdfast.api.memory import Memory
    from holdfast.models import Fact, Hit, Note

    Arguments = dict[str, Any]

COMMANDS = ("view", "create", "str_replace", "insert", "delete", "rename")
_TEXT_COMMANDS = ("create", "str_replace", "insert")
_DEFAULT_TO_PROJECT = ("memory_store", "memory_file")  # whose default scope is the project


def scope_of(tool: str, given: Arguments) -> str | None:
    """Return the scope of a call; None if it reads every scope that the caller may read."""
    own = tool in _DEFAULT_TO_PROJECT or (tool == "memory_fact" and "value" in given)
    scope: str | None = given.get("scope", "project" if own else None)
    return scope


def writes(tool: str, given: Arguments) -> bool:
    """Return whether a call changes anything."""
    if tool == "memory_file":
        return given.get("command") != "view"
    return tool in ("memory_store", "memory_forget") or (tool == "memory_fact" and "value" in given)


def store(memory: Memory, given: Arguments) -> Arguments:
    relations = _read_relations(given.pop("relations", ()))
    stored = memory.store(given.pop("text"), **given)
    related = [_relate(memory, stored.note, kind, target) for kind, target in relations]
    return to_plain_data(stored) | ({"relations": related} if related else {})


def _read_relations(texts: str | list[str]) -> list[tuple[str, str]]:
    """Return kind and key of each relation, each once."""
    listed = [texts] if isinstance(texts, str) else texts
    if len(listed) > MAX_RELATIONS:
        raise UsageError(f"{len(listed):,} relations are too many", f"Give at most {MAX_RELATIONS}")
    return list(dict.fromkeys([_read_relation(text) for text in listed]))


def _read_relation(text: str) -> tuple[str, str]:
    """Return kind and key of `KIND KEY`, before anything is stored."""
    kind, _, target = text.strip().partition(" ")
    if kind not in RELATION_KINDS or not target.strip():
        raise UsageError(f"not a relation: {text!r}", f"Write `KIND KEY`; KIND is one of {', '.join(RELATION_KINDS)}")
    return kind, validate.check_existing_key(target.strip())


def _relate(memory: Memory, note: Note, kind: str, target: str) -> Arguments:
    """State a relation of a note that was just stored; a refusal is part of the answer, because the note is stored."""
    about = {"kind": kind, "target": target}
    try:
        return {**about, "status": memory.relate(note.key, kind, target, scope=note.scope.kind).relation.status}
    except HoldfastError as error:
        return {**about, "problem": error.message}


def recall(memory: Memory, given: Arguments) -> Arguments:
    answer = memory.recall(given.pop("query", ""), **given)
    properties = {"mode": answer.mode, "degraded": answer.degraded, "reason": answer.reason, "disabled": answer.disabled}
    hits = [to_plain_data(_redact_hit(hit)) for hit in answer]
    return {"hits": hits, **{name: one for name, one in properties.items() if one != ""}}


def forget(memory: Memory, given: Arguments) -> Arguments:
    return to_plain_data(memory.forget(given.pop("key"), **given))


def search(memory: Memory, given: Arguments) -> Arguments:
    from holdfast.verbs.read import SEARCHED, snippet

    answer = memory.recall(given["query"], limit=given.get("limit", 10), kind=SEARCHED)
    properties = {"mode": answer.mode, "degraded": answer.degraded, "reason": answer.reason, "disabled": answer.disabled}
    results = [to_plain_data(snippet(_redact_hit(hit))) for hit in answer]
    return {"results": results, **{name: one for name, one in properties.items() if one != ""}}


def get(memory: Memory, given: Arguments) -> Arguments:
    _require_one_of(given, "key", "path")
    if "path" in given:
        path, colon, lines = given["path"].rpartition(":")
        first, dash, last = lines.partition("-")
        if not (colon and dash and first.isdecimal() and last.isdecimal()):
            path, first, last = given["path"], "", ""
        start = given.get("from", int(first or 1))
        piece = memory.read(path, start, given.get("lines", int(last) - start + 1 if last and "from" not in given else None))
        hidden = {"hidden": list(piece.hidden)} if piece.hidden else {}
        return {"text": piece.text, "exists": piece.exists, "path": piece.path, "from": piece.start, **hidden}
    note = memory.get(given["key"], **{name: given[name] for name in ("scope", "as_of") if name in given})
    about = to_plain_data(note)
    hidden = {"hidden": about["hidden"]} if note.hidden else {}
    related = [] if note.archived or "as_of" in given else memory.relations(note.key, scope=note.scope.kind)
    relations = {"relations": [to_plain_data(one) for one in related]} if related else {}
    return {"text": about.pop("text"), "exists": True, "path": note.path, **hidden, "note": about, **relations}


def history(memory: Memory, given: Arguments) -> Arguments:
    _require_one_of(given, "key", "turn")
    if "turn" in given:
        around = {name: given[name] for name in ("before", "after") if name in given}
        return {"turns": [to_plain_data(turn) for turn in memory.expand(given["turn"], **around)]}
    return {"versions": [to_plain_data(version) for version in memory.history(given["key"], scope=given.get("scope"))]}


def fact(memory: Memory, given: Arguments) -> Arguments:
    if "value" not in given:
        _reject_arguments("asking", given, "on", "many", "origin", "made_from", "redact")
        asked = {name: given[name] for name in ("label", "as_of", "scope", "history") if name in given}
        return {"facts": [to_plain_data(_redact_fact(one)) for one in memory.facts(given["subject"], **asked)]}
    _reject_arguments("stating", given, "as_of", "history")
    if "label" not in given:
        raise UsageError("missing: label", "Add the property of the subject that has this value")
    stated = memory.fact(given.pop("subject"), given.pop("label"), given.pop("value"), **given)
    retired = [to_plain_data(_redact_fact(one)) for one in stated.retired]
    left_out = {"redacted": list(stated.redacted)} if stated.redacted else {}
    return {"action": stated.action, "fact": to_plain_data(_redact_fact(stated.fact)), "retired": retired, **left_out}


def file(memory: Memory, given: Arguments) -> Arguments:
    command, files, scope = given["command"], memory.files, given.get("scope", "project")
    wanted = {
        "view": ("path",), "create": ("path", "file_text"), "str_replace": ("path", "old_str", "new_str"),
        "insert": ("path", "insert_line", "insert_text"), "delete": ("path",), "rename": ("old_path", "new_path"),
    }[command]  # fmt: skip
    missing = [name for name in wanted if name not in given and name != "new_str"]
    if missing:
        raise UsageError(f"{command} needs {', '.join(missing)}", f"It takes: {', '.join(wanted)}")
    words = [given.get(name, "") for name in wanted]
    if command == "view":
        lines = given.get("view_range")
        if lines is not None and len(lines) != 2:
            raise UsageError("view_range needs two numbers", "Write [first, last]; -1 is the end")
        text = files.view(words[0], lines and tuple(lines), scope=scope)
        hidden = {"hidden": list(found)} if (found := find_kinds(text)) else {}
        return {"command": command, "path": words[0], "text": text, **hidden}
    how = {"redact": given["redact"]} if given.get("redact") and command in _TEXT_COMMANDS else {}
    getattr(files, command)(*words, scope=scope, **how)
    return {"command": command, "path": words[-1] if command == "rename" else words[0]}


def _redact_hit(hit: Hit) -> Hit:
    """Redact a hit before it is shortened: half a secret is not recognised."""
    return hit.replace(text=hide_secrets(hit.text))


def _redact_fact(fact: Fact) -> Fact:
    """Redact the value of a fact; its label may show that it is a secret."""
    line = f"{fact.label}: {fact.value}"
    redacted = hide_secrets(line)
    return fact if redacted == line else fact.replace(value=redacted.removeprefix(f"{fact.label}: "))


_FLAGS = ("quarantined", "archived", "weak")


def to_plain_data(record: Record) -> Arguments:
    """Return a record as plain data, without empty fields."""
    return {name: value for name, value in _plain(record).items() if _has_content(name, value)}


def _has_content(name: str, value: object) -> bool:
    return value is not None and value != [] and value != "" and not (name in _FLAGS and value is False)


def _plain(record: Record) -> Arguments:
    shown = {}
    for name in (*field_names(type(record)), *computed_names(type(record))):
        value = getattr(record, name)
        if isinstance(value, Record):
            value = str(value) if type(value).__name__ == "Scope" else to_plain_data(value)
        elif isinstance(value, tuple | list):
            value = [to_plain_data(one) if isinstance(one, Record) else one for one in value]
        shown[name] = value
    return shown


def _require_one_of(given: Arguments, *names: str) -> None:
    if len([name for name in names if name in given]) != 1:
        raise UsageError(f"exactly one of {' and '.join(names)} is needed", "Give one of them")


def _reject_arguments(what: str, given: Arguments, *names: str) -> None:
    wrong = [name for name in names if name in given]
    if wrong:
        raise UsageError(
            f"{', '.join(wrong)} cannot be used when {what}", "With `value` the fact is set, without it the fact is read"
        )
