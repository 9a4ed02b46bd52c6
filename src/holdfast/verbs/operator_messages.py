"""Messages between the operator and an agent, in two files of a scope's tree: the inbox of the agent, and its outbox.

Both files have one JSON object per line and are only appended to. A line `{"read": [ID, ...]}` marks messages above it as read.
Only a person writes to the inbox. Who sent a message follows from its file, never from what an agent wrote into it.
"""

from __future__ import annotations

from holdfast.base import dates
from holdfast.base.ids import digest, new_id
from holdfast.base.record import Record
from holdfast.context import file_sources
from holdfast.errors import Denied, NotFound, Template, TooLarge, UsageError, command
from holdfast.ledger.file_sources import FileVersion
from holdfast.models import Scope, TextRecord
from holdfast.safety import validate
from holdfast.store.layout import FILE_BYTES
from holdfast.verbs import quota, scaffold

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from holdfast.context.caller import Context
    from holdfast.store.interface import Tree

INBOX, OUTBOX = "operator-inbox.jsonl", "operator-outbox.jsonl"
AGENT, OPERATOR = RECIPIENTS = ("agent", "operator")
MESSAGE_BYTES = 64 * 1024
_FILES = {AGENT: INBOX, OPERATOR: OUTBOX}  # by the recipient of their messages
_TEXT_FIELDS = ("text", "body", "content", "message")  # a person or an agent may have written a line by hand
_TIME_FIELDS = ("time", "ts", "at", "created")
_SENDER_FIELDS = ("from", "sender", "author")
_ANSWER_FIELDS = ("re", "reply_to", "in_reply_to")
_READ_STATUSES = ("read", "done", "closed", "handled", "answered")


class Message(TextRecord):
    """A message between the operator and an agent. `read`: the recipient has read or answered it."""

    _text_fields, _name_fields = ("text",), ("id", "sender", "time")
    id: str
    scope: Scope
    to: str
    sender: str
    time: str
    text: str
    re: str | None = None  # the message that this one answers
    read: bool = False


class Line(Record):
    """A message as a line of a file has it. `number` counts from 1; a line that is not a JSON object is only a text."""

    number: int
    id: str
    text: str
    time: str = ""
    sender: str = ""
    re: str = ""
    read: bool = False
    is_object: bool = True


# --- verbs ------------------------------------------------------------------------------------------------------------


def send(
    context: Context, text: object, *, to: str, re: str | None, agent: str | None, scope: str | None, redact: bool
) -> Message:
    """Implement `Memory.operator_send`."""
    validate.check_choice(to, RECIPIENTS, "recipient")
    if to == AGENT:
        context.require_person("send messages to an agent as its operator", "operator send TEXT")
    context.require_enabled()
    context.check_caller_names()
    checked = check_message(text, redact)
    target = _find_question(context, to, re, agent, scope) if re is not None else _choose_scope(context, agent, scope)
    message = Message(
        id=new_id(int(dates.clock() * 1000)), scope=target, to=to,
        sender=OPERATOR if to == AGENT else _agent_name(context, target), time=dates.now(), text=checked, re=re,
    )  # fmt: skip
    answered = {"re": re} if re else {}
    line = _encode_line({"id": message.id, "time": message.time, "from": message.sender, "text": checked, **answered})
    quota.check(context, bytes=len(line))

    def compose(data: bytes) -> bytes:
        context.purge_filter.refuse_purged([(target.folder, checked)])
        return _separate(data, line)

    _append(context, target, _FILES[to], compose, is_message=True)
    return message


def list_messages(context: Context, *, agent: str | None, scope: str | None, unread: bool) -> list[Message]:
    """Implement `Memory.operator_list`."""
    if not context.config.enabled:
        return []
    found = [message for one in _visible_scopes(context, agent, scope) for message in _read_scope(context, one)]
    wanted = [message for message in found if not (unread and message.read)]
    return sorted(wanted, key=lambda message: (message.time, message.id if message.time else ""), reverse=True)


def read(context: Context, id: str | None, *, agent: str | None, scope: str | None) -> list[Message]:
    """Implement `Memory.operator_read`."""
    context.require_enabled()
    if id is not None:
        _check_id(id)
    recipient = OPERATOR if context.origin == "user" else AGENT
    found = list_messages(context, agent=agent, scope=scope, unread=False)
    if id is None:
        shown = [message for message in found if message.to == recipient and not message.read]
    else:
        shown = [message for message in found if message.id == id]
        if not shown:
            raise _make_missing_error(id)
    marked = [message for message in shown if message.to == recipient and not message.read]
    for target in dict.fromkeys([message.scope for message in marked]):
        mark_read(context, target, _FILES[recipient], [message.id for message in marked if message.scope == target])
    return shown


def mark_read(context: Context, scope: Scope, path: str, ids: Iterable[str]) -> None:
    """Mark messages of a file as read; those that another process marked meanwhile are left out."""
    if context.config.read_only:
        raise Denied("the role of this caller only allows reading", "Ask an operator for a role that may write")
    wanted, by = set(ids), _agent_name(context, scope) if path == INBOX else OPERATOR

    def compose(data: bytes) -> bytes:
        unread = {line.id for line in parse_lines(_decode(data)) if not line.read} & wanted
        return _separate(data, _encode_line({"read": sorted(unread), "time": dates.now(), "by": by})) if unread else b""

    _append(context, scope, path, compose, is_message=False)


def check_message(text: object, redact: bool) -> str:
    """Return the text of a message that may be sent."""
    decoded = validate.decode_text(text)
    return validate.check_text(validate.redact(decoded)[0] if redact else decoded, MESSAGE_BYTES, "a message")


def _check_id(id: object) -> None:
    if not isinstance(id, str) or not id.strip():
        raise UsageError("not the id of a message", Template(command("operator list"), " shows the ids"))


def check_writer(context: Context, parts: tuple[str, ...]) -> None:
    """Raise `Denied` if an agent would write, move or delete the inbox: its messages are the operator's."""
    if parts and parts[0].casefold() == INBOX and context.origin != "user":
        answer = Template("Answer with ", command("operator send --to-operator TEXT"), f", or write to {OUTBOX}")
        raise Denied(f"only a person may write to {INBOX}", answer)


# --- scopes -----------------------------------------------------------------------------------------------------------


def _choose_scope(context: Context, agent: str | None, kind: str | None) -> Scope:
    if agent is None:
        return scaffold.choose_scope(context, kind)
    of_agent = _agent_scope(context, agent)
    return of_agent if kind in (None, "agent") else context.scope(kind)


def _visible_scopes(context: Context, agent: str | None, kind: str | None) -> list[Scope]:
    if agent is None:
        return [*context.visible_scopes(kind), *(_all_agents(context) if kind is None else ())]
    of_agent = _agent_scope(context, agent)
    if kind is not None:
        return [of_agent] if kind == "agent" else context.visible_scopes(kind)
    return [of_agent, *[scope for scope in context.visible_scopes(None) if scope.kind != "agent"]]


def _all_agents(context: Context) -> list[Scope]:
    """Return the scope of every agent for a person without an agent's name, who would find answers only agent by agent."""
    if context.origin != "user" or context.agent or "agent" not in context.config.allowed_scopes:
        return []
    return [scope for scope in map(Scope.of_folder, context.store.list_scopes()) if scope.kind == "agent"]


def _agent_scope(context: Context, agent: str) -> Scope:
    """Return the scope of an agent; only a person may name another agent than the caller."""
    name = validate.check_name(agent, "agent name")
    if name != context.agent:
        context.require_person("use the messages of another agent", "operator list")
        if "agent" not in context.config.allowed_scopes:
            raise Denied("this caller cannot use the scope agent", f"Use one of: {', '.join(context.config.allowed_scopes)}")
    return Scope("agent", name)


def _find_question(context: Context, to: str, re: str, agent: str | None, kind: str | None) -> Scope:
    """Return the scope of the message that is answered: one to the sender of the answer."""
    _check_id(re)
    asked = OPERATOR if to == AGENT else AGENT
    for scope in _visible_scopes(context, agent, kind):
        if any(one.id == re and one.to == asked for one in _read_scope(context, scope)):
            return scope
    raise _make_missing_error(re)


def _make_missing_error(id: str) -> NotFound:
    return NotFound(f"no message {id[:60]!r}", Template(command("operator list"), " shows the messages"))


def _agent_name(context: Context, scope: Scope) -> str:
    """Return the agent as the sender or reader of messages of a scope."""
    name = context.agent or (scope.id if scope.kind == "agent" else "")
    return f"{AGENT}:{name}" if name else AGENT


# --- files ------------------------------------------------------------------------------------------------------------


def _read_scope(context: Context, scope: Scope) -> list[Message]:
    """Return the messages of a scope, each file from its end, without those whose text was purged."""
    tree = context.store.tree(scope.folder)
    inbox, outbox = [parse_lines(_read_text(tree, path)) for path in (INBOX, OUTBOX)]
    by_agent, by_operator = {line.re for line in outbox}, {line.re for line in inbox}
    found = [_make_message(scope, AGENT, line, answered=by_agent) for line in reversed(inbox)]
    found += [_make_message(scope, OPERATOR, line, answered=by_operator) for line in reversed(outbox)]
    if not context.purge_filter.any_purged():
        return found
    return [one for one in found if not context.purge_filter.find_receipt(scope.folder, [one.text])]


def _make_message(scope: Scope, to: str, line: Line, *, answered: set[str]) -> Message:
    sender = line.sender or OPERATOR
    if to == OPERATOR:  # an agent may have written the line: it cannot name another sender
        sender = line.sender if line.sender == AGENT or line.sender.startswith(f"{AGENT}:") else AGENT
    return Message(
        id=line.id, scope=scope, to=to, sender=_clean(sender), time=_clean(line.time),
        text=_clean(line.text), re=line.re or None, read=line.read or line.id in answered,
    )  # fmt: skip


def _read_text(tree: Tree, path: str) -> str:
    content = tree.read((path,))
    return _decode(content.data) if content else ""


def _decode(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape").removeprefix("\ufeff")


def _append(context: Context, scope: Scope, path: str, compose: Callable[[bytes], bytes], *, is_message: bool) -> None:
    """Append to a file of a scope, and record the writer of a message; a mark leaves the writer of the file as it is."""
    before, after = context.store.tree(scope.folder).append((path,), compose)
    if after is None or after is before:
        return
    old = FileVersion(scope.folder, path, before.file_id) if before and before.data else None
    if is_message:
        file_sources.record_written(context, scope.folder, {path: after.file_id}, old)
    elif old:
        file_sources.record_rewritten(context.ledger, old, after.file_id)
    context.update_index(lambda: context.sync.index_file(scope.folder, path, after))


def _separate(data: bytes, line: bytes) -> bytes:
    """Return a line as it is appended to a file: after a line that is not ended, it starts a new one."""
    added = line if not data or data.endswith(b"\n") else b"\n" + line
    if len(data) + len(added) > FILE_BYTES:
        fix = "Delete old messages from the file, or move the file to another name"
        raise TooLarge(f"a file of messages can have at most {FILE_BYTES:,} bytes", fix)
    return added


def _encode_line(fields: dict[str, Any]) -> bytes:
    import json

    return json.dumps(fields, ensure_ascii=False).encode() + b"\n"


# --- lines ------------------------------------------------------------------------------------------------------------


def parse_lines(text: str) -> list[Line]:
    """Return the messages of a file in their order. A line that is not JSON is a message, and a blank line is none."""
    found: list[Line] = []
    places: dict[str, list[int]] = {}  # of unread messages, by their ids
    for number, row in enumerate(text.split("\n"), 1):
        if not row.strip("\r \t\0"):
            continue
        value = _parse_json(row)
        ids = _marked_ids(value)
        if ids is None:
            line = _parse_line(number, row, value)
            places.setdefault(line.id, []).append(len(found))
            found.append(line)
        for place in [place for id in ids or () for place in places.pop(id, ())]:
            found[place] = found[place].replace(read=True)
    return found


def _marked_ids(value: Any) -> set[str] | None:
    """Return the ids that a line marks as read; None if it is a message."""
    if not isinstance(value, dict) or "id" in value or any(name in value for name in _TEXT_FIELDS):
        return None
    marked = value.get("read")
    if isinstance(marked, list):
        return {id for id in marked if isinstance(id, str)}
    return {marked} if isinstance(marked, str) and marked else None


def _parse_line(number: int, line: str, value: Any) -> Line:
    named = digest(line.strip().encode("utf-8", "replace"))[:8]
    if not isinstance(value, dict):
        return Line(number, named, value if isinstance(value, str) else line, is_object=False)
    texts = [value.get(name) for name in _TEXT_FIELDS]
    exact = next((text for text in texts if isinstance(text, str) and text.strip()), "")
    return Line(
        number, _clean(_first_field(value, ("id",))) or named, text=exact or _first_field(value, _TEXT_FIELDS) or line,
        time=_first_field(value, _TIME_FIELDS), sender=_first_field(value, _SENDER_FIELDS),
        re=_clean(_first_field(value, _ANSWER_FIELDS)), read=_is_read(value),
    )  # fmt: skip


def _is_read(message: dict[str, Any]) -> bool:
    return bool(message.get("read") or message.get("read_at")) or str(message.get("status")).lower() in _READ_STATUSES


def _parse_json(line: str) -> Any:
    """Return the value of a line of JSON; None if it is not JSON."""
    import json

    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _clean(text: str) -> str:
    """Return the text with a question mark for each byte that is not UTF-8, and for each half of a character."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _first_field(message: dict[str, Any], names: tuple[str, ...]) -> str:
    """Return the first of these fields that is a non-empty string or a number, as a string."""
    values = (message.get(name) for name in names)
    plain = (str(value).strip() for value in values if isinstance(value, str | int | float) and not isinstance(value, bool))
    return next((value for value in plain if value), "")
