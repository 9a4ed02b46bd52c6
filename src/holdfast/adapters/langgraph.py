"""LangGraph: a `BaseStore` whose items are notes, and a briefing for the nodes of a graph.

An item is a note of one scope. Its text has the value as a block of JSON, which a person can edit, and a comment that names the
namespace and the key. The key of the note is derived from both, and the namespace and each of its prefixes are tags.
"""

from __future__ import annotations

from holdfast.adapters import require

require("langgraph")

import asyncio
import json
import logging
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any, Self

from langchain_core.messages import BaseMessage, SystemMessage
from langgraph.store.base import (
    BaseStore,
    GetOp,
    IndexConfig,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    TTLConfig,
    get_text_at_path,
    tokenize_path,
)

from holdfast import Conflict, Damaged, Memory, Note, NotFound, Refused, UsageError
from holdfast.adapters.secrets import cannot_mask, check_strings
from holdfast.adapters.tools import check_memory, compose_briefing
from holdfast.base import dates
from holdfast.safety.validate import redact

CLIENT = "langgraph"  # recorded with each version, and the tag of every item
_MAX_HITS = 100  # of one recall
_MAX_PREFIXES = 60  # of a namespace that are tags; a note can have 64
_MAX_TAG = 90
_MAX_TTL = 10**8  # minutes: 190 years
_REFRESH_SHARE = 0.1  # of its time to live, after which reading an item extends it: each extension is a version of the note
_BLOCK = re.compile(r"^```json[ \t]*\n(.*?)^```[ \t]*$", re.M | re.S)
_COMMENT = re.compile(r"<!-- langgraph (\{.*?\}) -->")
_WORD = re.compile(r"\w+")
_log = logging.getLogger(__name__)

Namespace = tuple[str, ...]


@dataclass(frozen=True)
class StoredItem:
    """An item, the note it is in, and the fields that a search looks at: None for all, False for none."""

    note: Note
    namespace: Namespace
    key: str
    value: dict[str, Any]
    index: list[str] | bool | None
    ttl: float | None = None  # in minutes since it was last written or read

    @property
    def expires(self) -> datetime | None:
        return _parse_time(self.note.valid_to) if self.note.valid_to else None

    def is_current(self, now: datetime) -> bool:
        return self.expires is None or now < self.expires

    def to_item(self) -> Item:
        return Item(**self._arguments())

    def to_search_item(self, score: float | None) -> SearchItem:
        return SearchItem(**self._arguments(), score=score)

    def _arguments(self) -> dict[str, Any]:
        return {
            "namespace": self.namespace,
            "key": self.key,
            "value": self.value,
            "created_at": _parse_time(self.note.created),
            "updated_at": _parse_time(self.note.valid_from),  # reading extends the validity and keeps its start
        }


class HoldfastStore(BaseStore):
    """LangGraph's long-term memory as notes of one scope.

    The default scope is that of the agent, because items often belong to single users of a program: what is in the scope of a
    project is shown to every agent of the project. Without a `memory`, open the home as the agent "langgraph". Of `index` only
    `fields` is used: the search is Holdfast's own. With `redact`, the names of rules replace secrets in values; otherwise a
    value with a secret is rejected.
    """

    supports_ttl = True

    def __init__(
        self, memory: Memory | None = None, *, index: IndexConfig | None = None, ttl: TTLConfig | None = None,
        scope: str = "agent", redact: bool = False,
    ) -> None:  # fmt: skip
        fields = (index or {}).get("fields")
        self.memory = check_memory(Memory(agent=CLIENT, client=CLIENT) if memory is None else memory, CLIENT)
        self.scope = scope
        self.ttl_config = ttl
        self.redact = redact
        self._fields = fields if fields and "$" not in fields else None
        self._owns_memory = memory is None

    def close(self) -> None:
        """Close the memory, if this store opened it."""
        if self._owns_memory:
            self.memory.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- operations ---------------------------------------------------------------------------------------------------

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Run operations: reads first, on the items as they are before the batch; then all puts with one flush to disk."""
        results: list[Result] = []
        puts: dict[tuple[Namespace, str], PutOp] = {}
        for op in ops:
            if isinstance(op, GetOp):
                results.append(self._get(op))
            elif isinstance(op, SearchOp):
                results.append(self._search(op))
            elif isinstance(op, ListNamespacesOp):
                results.append(self._list_namespaces(op))
            elif isinstance(op, PutOp):
                puts[op.namespace, op.key] = op
                results.append(None)
            else:
                raise UsageError(f"unknown operation {type(op).__name__}", "Use GetOp, PutOp, SearchOp or ListNamespacesOp")
        self._put(list(puts.values()))
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Run operations in a worker thread."""
        return await asyncio.to_thread(self.batch, list(ops))

    def sweep_ttl(self) -> int:
        """Forget the items that have expired and return their number. They are not shown before that either."""
        now, count = _now(), 0
        for item in self._list(()):
            if not item.is_current(now):
                try:
                    count += self.memory.forget(item.note.key, scope=self.scope, expected=item.note.version).deleted
                except Conflict:
                    continue  # another process extended or replaced it
        return count

    def _get(self, op: GetOp) -> Item | None:
        try:
            note = self.memory.get(note_key(op.namespace, op.key), scope=self.scope)
        except NotFound:
            return None
        item = parse_note(note)
        if not item.is_current(_now()):
            return None
        if op.refresh_ttl:
            self._refresh(item)
        return item.to_item()

    def _put(self, ops: Sequence[PutOp]) -> None:
        notes = [self._draft(op) for op in ops if op.value is not None]
        if notes:
            self.memory.store_many(notes, scope=self.scope, redact=self.redact)
        for op in ops:
            if op.value is None:
                self.memory.forget(note_key(op.namespace, op.key), scope=self.scope)

    def _draft(self, op: PutOp) -> dict[str, Any]:
        """Return a note for `store_many`."""
        index = op.index if op.index is not None else self._fields
        render_text(op.namespace, op.key, op.value or {}, index, op.ttl)  # rejects what is not JSON and may have no end
        text = render_text(op.namespace, op.key, check_strings(op.value or {}, self.redact), index, op.ttl)
        if self.redact:
            value, name = _parse_text(redact(text)[0])
            if value is None or name != _parse_text(text)[1]:
                raise cannot_mask()
        return {
            "text": text,
            "key": note_key(op.namespace, op.key),
            "type": "reference",
            "tags": [CLIENT, *namespace_tags(op.namespace)],
            "valid_to": _expiry(op.ttl) if op.ttl is not None else None,
        }

    def _refresh(self, item: StoredItem) -> None:
        """Extend the validity of an item that was read, if enough of it has passed."""
        if item.expires is None or item.ttl is None:
            return
        note, lifetime = item.note, timedelta(minutes=item.ttl)
        if _now() + lifetime - item.expires < lifetime * _REFRESH_SHARE:
            return
        try:
            self.memory.store(
                note.text, key=note.key, scope=self.scope, type=note.type, tags=note.tags, valid_from=note.valid_from,
                valid_to=_expiry(item.ttl), expected=note.version, redact=self.redact,
            )  # fmt: skip
        except (Conflict, Refused) as error:  # another process wrote it, or this caller may only read
            _log.info("the TTL of item %s was not extended: %s", note.key, error)

    def _list_namespaces(self, op: ListNamespacesOp) -> list[Namespace]:
        now, conditions = _now(), op.match_conditions or ()
        namespaces = {item.namespace for item in self._list(_common_prefix(conditions)) if item.is_current(now)}
        found = {name[: op.max_depth] for name in namespaces if all(_is_match(condition, name) for condition in conditions)}
        return sorted(found)[op.offset : op.offset + op.limit]

    # --- search -------------------------------------------------------------------------------------------------------

    def _search(self, op: SearchOp) -> list[SearchItem]:
        """Return the items that a recall finds, best first, and then the other items of the namespace."""
        now, end = _now(), op.offset + op.limit

        def is_wanted(item: StoredItem) -> bool:
            inside = item.namespace[: len(op.namespace_prefix)] == tuple(op.namespace_prefix)
            return inside and item.is_current(now) and _matches_filter(item.value, op.filter or {})

        found: list[tuple[StoredItem, float | None]] = []
        for item, score in self._recall(op):  # reads each hit only when it is asked for
            if is_wanted(item):
                found.append((item, score))
            if len(found) >= end:
                break
        if len(found) < end:
            known = {item.note.key for item, _ in found}
            others = [item for item in self._list(op.namespace_prefix) if item.note.key not in known and is_wanted(item)]
            if op.query:  # items that can be found and do not match come before those that are never found
                found += [(item, 0.0) for item in others if item.index is not False]
                others = [item for item in others if item.index is False]
            found += [(item, None) for item in others]
        page = found[op.offset : end]
        for item, _ in page if op.refresh_ttl else ():
            self._refresh(item)
        return [item.to_search_item(score) for item, score in page]

    def _recall(self, op: SearchOp) -> Iterator[tuple[StoredItem, float]]:
        if not op.query or not op.query.strip():
            return
        answer = self.memory.recall(
            op.query, scope=self.scope, kind="note", tags=[CLIENT, *namespace_tags(op.namespace_prefix)[-1:]], limit=_MAX_HITS
        )
        for hit in answer:
            try:
                note = self.memory.get(hit.key, scope=self.scope)  # a hit may have only a part of the text
            except NotFound:  # deleted since the recall
                continue
            item = _parse_or_warn(note)
            if item is not None and _is_indexed(item, op.query):
                yield item, hit.score

    def _list(self, prefix: Sequence[str]) -> Iterator[StoredItem]:
        """Yield the items of a namespace and of those below it, newest first; archived ones follow."""
        tags = [CLIENT, *namespace_tags(tuple(prefix))[-1:]]
        for archived in (False, True):
            for note in self.memory.list(scope=self.scope, tags=tags, archived=archived):
                item = _parse_or_warn(note)
                if item is not None:
                    yield item


def add_briefing(memory: Memory, messages: Sequence[BaseMessage], *, with_prompt: bool = True) -> list[BaseMessage]:
    """Return the messages with a briefing in front, for a node that calls a model.

    It has what an agent is shown when it starts, and `with_prompt` also the notes that match the last message of the user.
    Nothing is added to the state of the graph, so no checkpoint contains the briefing and every run gets the current one.
    """
    text = compose_briefing(memory, last_prompt(messages) if with_prompt else "")
    if messages and isinstance(messages[0], SystemMessage):  # many models accept one system message only
        return [append_to_system(messages[0], text), *messages[1:]]
    return [append_to_system(None, text), *messages] if text else list(messages)


def append_to_system(message: SystemMessage | None, text: str) -> SystemMessage | None:
    """Return the system message with a text after its own, or a new one."""
    if message is None:
        return SystemMessage(content=text) if text else None
    if not text:
        return message
    if isinstance(message.content, str):
        content: str | list[Any] = f"{message.content}\n\n{text}"
    else:
        content = [*message.content, {"type": "text", "text": text}]
    return message.model_copy(update={"content": content})


def last_prompt(messages: Sequence[BaseMessage]) -> str:
    """Return the text of the last message of the user."""
    return next((str(message.text) for message in reversed(messages) if message.type == "human"), "")


# --- an item as a note ------------------------------------------------------------------------------------------------


def note_key(namespace: Namespace, key: str) -> str:
    """Return the key of the note of an item: its words, and a digest that no other item has."""
    if not all(isinstance(part, str) for part in (*namespace, key)):
        raise UsageError("the labels of a namespace and the key must be strings", "Convert them with str()")
    name = json.dumps([*namespace, key])
    words = re.sub(r"[^a-z0-9]+", "-", "-".join([*namespace, key]).lower()).strip("-")
    return f"{words[:42].strip('-') or 'item'}-{sha256(name.encode()).hexdigest()[:16]}"


def namespace_tags(namespace: Namespace) -> list[str]:
    """Return a tag for each prefix of a namespace, the shortest first: ("users", "ann") has users and users/ann."""
    tags = []
    for depth in range(1, min(len(namespace), _MAX_PREFIXES) + 1):
        tag = "/".join(_quote(label) for label in namespace[:depth])
        if len(tag) > _MAX_TAG:
            tag = f"{tag[:60]}~{sha256(tag.encode()).hexdigest()[:16]}"
        tags.append(tag)
    return tags


def _quote(label: str) -> str:
    """Return a label without the characters that tags or paths of namespaces cannot have."""
    return "".join(one if one.isalnum() or one in "-_@:+=()" else f"%{ord(one):x}." for one in label)


def render_text(
    namespace: Namespace, key: str, value: Mapping[str, Any], index: Sequence[str] | bool | None, ttl: float | None = None
) -> str:
    """Return the text of the note of an item; `parse_note` reads it."""
    try:
        block = json.dumps(dict(value), ensure_ascii=False, indent=2, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError(f"the value of {key!r} is not JSON: {error}", "Store strings, numbers, lists and dicts") from None
    # not "key": a check for secrets takes a random id with that name for an API key
    name: dict[str, Any] = {"namespace": list(namespace), "item": key}
    if index is not None:
        name["index"] = index
    if ttl is not None:
        name["ttl"] = ttl
    comment = json.dumps(name).replace("<", "\\u003c").replace(">", "\\u003e")  # does not end the comment
    title = " ".join(" / ".join([*namespace, key]).split())
    return f"# {title}\n\n```json\n{block}\n```\n\n<!-- langgraph {comment} -->"


def parse_note(note: Note) -> StoredItem:
    """Return the item of a note; raise Damaged if a person's edit made it unreadable."""
    value, name = _parse_text(note.text)
    try:
        item = StoredItem(note, tuple(name["namespace"]), name["item"], value, name.get("index"), name.get("ttl"))
        if isinstance(value, dict) and note_key(item.namespace, item.key) == note.key and _is_valid(item.index, item.ttl):
            return item
    except (KeyError, TypeError, UsageError):
        pass  # the same error as for a value that is not an object
    fix = f"Edit it with `holdfast edit {note.key}`: it needs one block of JSON with an object, and the comment below it"
    raise Damaged(f"{note.path} is not an item of LangGraph", fix)


def _parse_text(text: str) -> tuple[Any, Any]:
    """Return the value and the comment of the text of a note, None for what is not readable."""
    block, comments = _BLOCK.search(text), _COMMENT.findall(text)
    return _load(block[1] if block else ""), _load(comments[-1] if comments else "")  # a title can contain a comment too


def _load(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _is_valid(index: object, ttl: object) -> bool:
    """Return whether a comment has valid options of an item."""
    fields = isinstance(index, list) and all(isinstance(one, str) for one in index)
    return (fields or index is None or isinstance(index, bool)) and (ttl is None or _is_ttl(ttl))


def _parse_or_warn(note: Note) -> StoredItem | None:
    """Return the item of a note that was found; None, and a line in the log, if it is not readable."""
    try:
        return parse_note(note)
    except Damaged as error:
        _log.warning("left out of the answer: %s", error)
        return None


def _is_indexed(item: StoredItem, query: str) -> bool:
    """Return whether a hit counts: not if it has words in common with the query only in fields that are not searched."""
    if item.index is None or item.index is True:
        return True
    if not item.index:
        return False
    texts = [text for path in item.index for text in get_text_at_path(item.value, tokenize_path(path))]
    asked, searched = _words(query), _words(" ".join(texts))
    return bool(asked & searched) or not asked & _words(json.dumps(item.value, ensure_ascii=False))


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.casefold()))


# --- filters and times ------------------------------------------------------------------------------------------------


def _common_prefix(conditions: Iterable[MatchCondition]) -> Namespace:
    """Return the start that every matching namespace has."""
    for condition in conditions:
        if condition.match_type == "prefix":
            path = tuple(condition.path)
            return path[: path.index("*")] if "*" in path else path
    return ()


def _is_match(condition: MatchCondition, namespace: Namespace) -> bool:
    path = tuple(condition.path)
    if condition.match_type not in ("prefix", "suffix"):
        raise UsageError(f"unknown match type {condition.match_type!r}", "Use prefix or suffix")
    if len(namespace) < len(path):
        return False
    part = namespace[: len(path)] if condition.match_type == "prefix" else namespace[len(namespace) - len(path) :]
    return all(wanted in ("*", label) for wanted, label in zip(path, part, strict=True))


def _matches_filter(value: Mapping[str, Any], conditions: Mapping[str, Any]) -> bool:
    return all(_matches(value.get(name), wanted) for name, wanted in conditions.items())


def _matches(value: Any, wanted: Any) -> bool:
    """Return whether a value equals another one or satisfies its operators; an object may have more fields."""
    if isinstance(wanted, Mapping):
        if any(str(name).startswith("$") for name in wanted):
            return all(_compare(value, operator, operand) for operator, operand in wanted.items())
        return isinstance(value, Mapping) and _matches_filter(value, wanted)
    if isinstance(wanted, list | tuple):
        return isinstance(value, list) and len(value) == len(wanted) and all(map(_matches, value, wanted))
    return bool(value == wanted)


def _compare(value: Any, operator: str, operand: Any) -> bool:
    """Return the result of an operator; numbers are ordered with numbers, texts with texts."""
    if operator in ("$eq", "$ne"):
        return bool(value == operand) == (operator == "$eq")
    if operator not in ("$gt", "$gte", "$lt", "$lte"):
        raise UsageError(f"unknown operator {operator!r}", "Use $eq, $ne, $gt, $gte, $lt or $lte")
    numbers = all(isinstance(one, int | float) for one in (value, operand))
    if not numbers and not all(isinstance(one, str) for one in (value, operand)):
        return False
    if value == operand:
        return operator in ("$gte", "$lte")
    return bool(value > operand) == operator.startswith("$g")


def _expiry(minutes: float) -> str:
    """Return the time after this number of minutes from now, rounded up to the second."""
    if not _is_ttl(minutes):
        raise UsageError(f"ttl must be a number of minutes above 0, not {minutes!r}", "Leave it out for items without an end")
    seconds = math.ceil(dates.clock() + minutes * 60)
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _is_ttl(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and bool(0 < value <= _MAX_TTL)


def _now() -> datetime:
    return datetime.fromtimestamp(dates.clock(), UTC)


def _parse_time(text: str) -> datetime:
    """Return a time of a note; one without a zone is UTC."""
    time = datetime.fromisoformat(text)
    return time if time.tzinfo else time.replace(tzinfo=UTC)
