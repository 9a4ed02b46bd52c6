"""mem0: the classes of its open-source package on Holdfast, without a language model and without mem0 itself.

A program changes its import: `from holdfast.adapters.mem0 import Memory`. Arguments and answers are those of mem0 2.2.
Each user has a project of their own, and each memory is a note in it whose key is the id of the memory.
"""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import re
import secrets
import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from time import sleep
from typing import Any, NoReturn, Self

from holdfast import Conflict, Hit, Note, NotFound, TooMany
from holdfast import Memory as Store
from holdfast.adapters.comments import add_comment, split_comment
from holdfast.adapters.mem0_arguments import (
    COMPUTED,
    OTHERS_SCORE,
    InvalidArgument,
    Json,
    ValidationError,
    check_expiration,
    check_filters,
    check_ids,
    check_limit,
    check_metadata,
    check_threshold,
    matches,
    read_messages,
    read_options,
    reject_hosted,
    spoken_by,
)
from holdfast.adapters.tenants import MemoryPool, digest_tag, name_parts, project_name
from holdfast.base import dates

CLIENT = "mem0"  # recorded with each version, and the tag of every memory
_USER_TAG = "mem0-user"  # of the notes that name the users' projects
_PROMOTED = ("user_id", "agent_id", "run_id", "actor_id", "role", "attributed_to", "expiration_date")
_NOT_METADATA = {*_PROMOTED, *COMPUTED, "created_at"}
_PROCEDURAL = "procedural_memory"
_MAX_HITS = 100  # of one recall
_ATTEMPTS = 20  # of an update while others write the same memory
_UNSET: Any = object()


class MemoryNotFound(NotFound, ValueError):
    """There is no memory with this id: a `ValueError`, as in mem0."""


@dataclass(frozen=True)
class Item:
    """A memory, and the note that it is in."""

    note: Note
    text: str
    fields: Json  # what the note keeps besides the text: ids, role, metadata
    user_id: str | None

    @property
    def payload(self) -> Json:
        """Return the fields that filters see."""
        owner = {} if self.user_id is None else {"user_id": self.user_id}
        created = self.fields.get("created_at") or format_time(self.note.created)
        return {
            **self.fields, **owner, "data": self.text, "hash": hash_text(self.text), "created_at": created,
            "updated_at": format_time(self.note.updated) if self.note.versions > 1 else created,
        }  # fmt: skip

    @property
    def is_expired(self) -> bool:
        return is_expired(self.fields.get("expiration_date"))

    def is_shown(self, filters: Json, show_expired: bool) -> bool:
        """Return whether the memory is part of an answer with these filters."""
        return (show_expired or not self.is_expired) and matches(self.payload, filters)

    def to_answer(self, **scores: Any) -> Json:
        """Return the memory as mem0 returns it."""
        payload = self.payload
        metadata = {name: value for name, value in payload.items() if name not in _NOT_METADATA}
        return {
            "id": self.note.key, "memory": self.text, "hash": payload["hash"], "metadata": metadata or None,
            **({"score": scores.pop("score")} if "score" in scores else {}),
            "created_at": payload["created_at"], "updated_at": payload["updated_at"],
            **{name: payload[name] for name in _PROMOTED if name in payload}, **scores,
        }  # fmt: skip


Match = tuple[float, Item, Json]  # score, memory, details of the score


@dataclass(frozen=True)
class Entry:
    """A memory to add: its text, what the note keeps besides, and what the answer shows besides."""

    text: str
    fields: Json
    shown: Json


class _Project:
    """Updates of mem0's hosted service, which its open-source package rejects too."""

    def update(self, **settings: Any) -> NoReturn:
        raise InvalidArgument("there are no project settings to update", "Use the settings of the home, `holdfast config`")


class Memory:
    """mem0's `Memory`. The entry `holdfast` of its configuration has `home`, `token`, `project` and `redact`.

    `home` is a folder, PostgreSQL or a gateway, as for `holdfast.Memory`; `project` is the prefix of the projects that memories
    are kept in. With `redact`, the names of rules replace secrets; otherwise a memory with a secret is rejected.
    """

    def __init__(self, config: Any = None) -> None:
        self.config = config
        options = read_options(config)
        home, token, redact = options.get("home"), options.get("token"), options.get("redact", True)
        self._prefix: str = options.get("project", CLIENT)
        self._redact = redact

        def open_memory(project: str) -> Store:
            return Store(home, token=token, project=project, client=CLIENT)

        self._pool = MemoryPool(open_memory)
        self._known: dict[str, tuple[str, str | None]] = {}  # project and user, by the part of an id that names them

    @classmethod
    def from_config(cls, config_dict: Mapping[str, Any]) -> Self:
        """Return a memory with a configuration of mem0. Models, stores and history files in it are not used."""
        return cls(config_dict)

    @property
    def project(self) -> _Project:
        return _Project()

    def close(self) -> None:
        """Close files and connections. Everything stored is durable already."""
        self._pool.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- writing ------------------------------------------------------------------------------------------------------

    def add(
        self, messages: Any, *, user_id: str | None = None, agent_id: str | None = None, run_id: str | None = None,
        metadata: Json | None = None, timestamp: Any = None, expiration_date: Any = None, infer: bool = True,
        memory_type: str | None = None, prompt: str | None = None,
    ) -> Json:  # fmt: skip
        """Store each message as a memory, word for word; with `infer`, not one that these ids have already."""
        reject_hosted("timestamp", timestamp)
        expires = check_expiration(expiration_date)
        ids = check_ids({"user_id": user_id, "agent_id": agent_id, "run_id": run_id})
        if not ids:
            raise ValidationError(
                "At least one of 'user_id', 'agent_id', or 'run_id' must be provided",
                "Pass the id of the user",
                "VALIDATION_001",
            )
        if memory_type not in (None, _PROCEDURAL):
            raise ValidationError("Invalid 'memory_type'", f"Pass {_PROCEDURAL} or leave it out", "VALIDATION_002")
        fields = {**check_metadata(metadata), **{name: value for name, value in ids.items() if name != "user_id"}}
        if expires:
            fields["expiration_date"] = expires
        procedural = memory_type is not None and agent_id is not None
        entries = compose_entries(list(read_messages(messages)), fields, infer=infer, procedural=procedural)
        return {"results": self._store(ids.get("user_id"), entries, once=infer and not procedural)}

    def _store(self, user_id: str | None, entries: Iterable[Entry], *, once: bool) -> list[Json]:
        """Store texts with their fields; `once` leaves out those that are stored already with the same ids."""
        project = self._project_of(user_id)
        with self._pool.use(project) as memory:
            new: list[tuple[Json, Json]] = []
            seen: set[str] = set()
            for entry in entries:
                if once and (entry.text in seen or _find_same(memory, entry.text, entry.fields)):
                    continue
                seen.add(entry.text)
                new.append((make_draft(new_memory_id(project), entry.text, entry.fields, self._redact), entry.shown))
            if not new:
                return []
            if user_id is not None:
                self._register(project, user_id)  # first, so that no memory is stored that its id does not lead to
            stored = memory.store_many([draft for draft, _ in new], scope="project", redact=self._redact)
        return [
            {"id": one.note.key, "memory": split_comment(one.note.text, CLIENT)[0], "event": "ADD", **shown}
            for one, (_, shown) in zip(stored, new, strict=True)
        ]

    def update(
        self, memory_id: str, text: str | None = None, metadata: Json | None = None, expiration_date: Any = _UNSET,
        data: str | None = None,
    ) -> Json:  # fmt: skip
        """Replace the text, change metadata, or both; the history keeps the previous version. `data` is an alias of `text`."""
        text = data if text is None else text
        if text is None and metadata is None and expiration_date is _UNSET:
            raise InvalidArgument("At least one of text, metadata, or expiration_date must be provided", "Pass the new text")
        changes = check_metadata(metadata)
        if expiration_date is not _UNSET:
            changes["expiration_date"] = check_expiration(expiration_date)
        changes.pop("created_at", None)
        if text is not None and (not isinstance(text, str) or not text.strip()):
            raise InvalidArgument("the text of a memory must be a string that is not empty", "Pass text=...")
        for _ in range(_ATTEMPTS):
            item = self._require(memory_id)
            draft = make_draft(item.note.key, item.text if text is None else text, {**item.fields, **changes}, self._redact)
            with self._pool.use(self._locate(memory_id)[0]) as memory:
                try:
                    memory.store(**draft, scope="project", redact=self._redact, expected=item.note.version)
                except Conflict:
                    continue  # another writer was faster: change what it wrote
            return {"message": "Memory updated successfully!"}
        raise Conflict(f"memory {memory_id} is being changed by others", "Try again")

    def delete(self, memory_id: str) -> Json:
        """Forget a memory. `holdfast restore` can bring it back for 30 days."""
        item = self._require(memory_id)
        with self._pool.use(self._locate(memory_id)[0]) as memory:
            memory.forget(item.note.key, scope="project")
        return {"message": "Memory deleted successfully!"}

    def delete_all(self, user_id: str | None = None, agent_id: str | None = None, run_id: str | None = None) -> Json:
        """Forget every memory with these ids."""
        ids = check_ids({"user_id": user_id, "agent_id": agent_id, "run_id": run_id})
        if not ids:
            raise InvalidArgument(
                "At least one filter is required to delete all memories", "Pass an id; reset() deletes the memories of everyone"
            )
        for project, owner in self._projects(ids):
            with self._pool.use(project) as memory:
                _forget(memory, list(_list_items(memory, owner, ids)))
        return {"message": "Memories deleted successfully!"}

    def reset(self) -> None:
        """Forget every memory of every user that was stored with this prefix."""
        for project, owner in self._projects({}):
            with self._pool.use(project) as memory:
                _forget(memory, list(_list_items(memory, owner, {})))

    # --- reading ------------------------------------------------------------------------------------------------------

    def get(self, memory_id: str) -> Json | None:
        """Return a memory, or None."""
        item = self._find(memory_id)
        return item.to_answer(score=None) if item else None

    def get_all(
        self, *, filters: Json | None = None, top_k: int = 20, show_expired: bool = False, **options: Any
    ) -> dict[str, list[Json]]:
        """Return the memories with these ids that match the filters, newest first."""
        top_k = check_limit(top_k, options, "get_all")
        ids, conditions = check_filters(filters)
        found = [item for item in self._list(ids) if item.is_shown(conditions, show_expired)]
        return {"results": [item.to_answer() for item in found[:top_k]]}

    def search(
        self, query: str, *, top_k: int = 20, filters: Json | None = None, threshold: float = 0.1, rerank: bool = False,
        explain: bool = False, reference_date: Any = None, show_expired: bool = False, **options: Any,
    ) -> dict[str, list[Json]]:  # fmt: skip
        """Return the memories that match best, and then the newest others, as a search by vectors does.

        A score of 0.5 or more means that the memory matches, 0.2 to 0.4 that it has words in common with the query, and 0.1
        that only its ids and the filters match.
        """
        reject_hosted("reference_date", reference_date)
        top_k = check_limit(top_k, options, "search")
        threshold = check_threshold(threshold)
        if not isinstance(query, str) or not query.strip():
            raise InvalidArgument("Invalid query: must be a non-empty string", "Pass the words to search for")
        ids, conditions = check_filters(filters)

        def is_wanted(score: float, item: Item) -> bool:
            return score >= threshold and item.is_shown(conditions, show_expired)

        found: list[Match] = []
        for project, owner in self._projects(ids):
            with self._pool.use(project) as memory:
                candidates = _find_matches(memory, owner, ids, query, top_k)
                found += itertools.islice((one for one in candidates if is_wanted(one[0], one[1])), top_k)
        ranked = sorted(found, key=lambda one: -one[0])
        results = []
        for score, item, why in ranked[:top_k]:
            details = {"score_details": {**why, "final_score": score, "threshold": threshold}} if explain else {}
            results.append(item.to_answer(score=score, **details))
        return {"results": results}

    def history(self, memory_id: str) -> list[Json]:
        """Return the changes of a memory, oldest first. Of a deleted one, return only the deletion; the trash has its texts."""
        key, item = parse_id(memory_id), self._find(memory_id)
        with self._pool.use(self._locate(memory_id)[0]) as memory:
            if item is None:
                gone = [one for one in memory.trash(scope="project") if one.key == key and one.part == "trash"]
                return [make_event(one.key, "DELETE", 0, time=one.time, created=None) for one in gone[:1]]
            versions = memory.history(item.note.key, scope="project")[::-1]
        events: list[Json] = []
        for number, version in enumerate(versions):
            text, fields = split_comment(version.text, CLIENT)
            previous = events[-1]["new_memory"] if events else None
            events.append(
                make_event(
                    item.note.key, "UPDATE" if events else "ADD", number, time=version.recorded,
                    created=item.payload["created_at"], old=previous, new=text, fields=fields,
                )
            )  # fmt: skip
        return events

    def chat(self, query: str) -> NoReturn:
        raise NotImplementedError("There is no chat: Holdfast uses no language model. Use search().")

    # --- users and their projects -------------------------------------------------------------------------------------

    def _project_of(self, user_id: str | None) -> str:
        """Return the project of a user; memories without a user are in the project that is the prefix."""
        return self._prefix if user_id is None else project_name(f"{self._prefix}.user", user_id)

    def _register(self, project: str, user_id: str) -> None:
        """Note the project of a user, so that it is found by the id of a memory and by `reset`."""
        name = owner_part(project)
        if name in self._known:
            return
        with self._pool.use(self._prefix) as memory:
            try:
                known = self._read_user(memory.get(f"user-{name}", scope="project"))
            except NotFound:
                fields = {"project": project, "user_id": user_id}
                text = add_comment(f"The memories of a user are in the project {project}.", CLIENT, fields, mask=True)
                memory.store(text, key=f"user-{name}", scope="project", type="reference", tags=[_USER_TAG], redact=True)
                known = project, user_id
        if known[0] != project:
            raise Conflict(
                f"the ids of memories in {project} and {known[0]} cannot be told apart", "Use another id of the user"
            )
        self._known[name] = (project, user_id)

    def _locate(self, memory_id: object) -> tuple[str, str | None]:
        """Return the project and the user that the id of a memory names."""
        name = owner_part_of_id(parse_id(memory_id))
        if name not in self._known:
            with self._pool.use(self._prefix) as memory:
                try:
                    self._known[name] = self._read_user(memory.get(f"user-{name}", scope="project"))
                except NotFound:
                    return self._prefix, None
        return self._known[name]

    def _read_user(self, note: Note) -> tuple[str, str | None]:
        """Return the project and the user that a note names."""
        fields = split_comment(note.text, CLIENT)[1]
        project = str(fields.get("project"))
        if note.key != f"user-{owner_part(project)}":
            raise NotFound(
                f"{note.path} does not name the project of a user", "Restore its previous version, `holdfast history`"
            )
        parts = name_parts(f"{self._prefix}.user", project)
        return project, parts[0] if parts else str(fields.get("user_id"))

    def _projects(self, ids: Mapping[str, str]) -> Iterator[tuple[str, str | None]]:
        """Yield the project of the user that the ids name; without one, the projects of every user."""
        if "user_id" in ids:
            yield self._project_of(ids["user_id"]), ids["user_id"]
            return
        yield self._prefix, None
        with self._pool.use(self._prefix) as memory:
            users = memory.list(scope="project", tags=[_USER_TAG])
        yield from map(self._read_user, users)

    def _list(self, ids: Mapping[str, str]) -> list[Item]:
        """Return the memories with these ids, newest first."""
        found: list[Item] = []
        projects = list(self._projects(ids))
        for project, owner in projects:
            with self._pool.use(project) as memory:
                found += _list_items(memory, owner, ids)
        return found if len(projects) == 1 else sorted(found, key=lambda item: item.note.updated, reverse=True)

    def _find(self, memory_id: object) -> Item | None:
        project, owner = self._locate(memory_id)
        with self._pool.use(project) as memory:
            return _read_item(memory, parse_id(memory_id), owner)

    def _require(self, memory_id: object) -> Item:
        item = self._find(memory_id)
        if item is None:
            raise MemoryNotFound(f"Memory with id {str(memory_id)[:100]} not found", "Please provide a valid 'memory_id'")
        return item


class AsyncMemory:
    """mem0's `AsyncMemory`: the methods of `Memory` as coroutines, each in a worker thread."""

    def __init__(self, config: Any = None) -> None:
        self._memory = Memory(config)
        self.config = config

    @classmethod
    def from_config(cls, config_dict: Mapping[str, Any]) -> Self:
        """Return a memory with a configuration of mem0; see `Memory.from_config`."""
        return cls(config_dict)

    async def add(
        self, messages: Any, *, user_id: str | None = None, agent_id: str | None = None, run_id: str | None = None,
        metadata: Json | None = None, timestamp: Any = None, expiration_date: Any = None, infer: bool = True,
        memory_type: str | None = None, prompt: str | None = None, llm: Any = None,
    ) -> Json:  # fmt: skip
        return await asyncio.to_thread(
            self._memory.add, messages, user_id=user_id, agent_id=agent_id, run_id=run_id, metadata=metadata,
            timestamp=timestamp, expiration_date=expiration_date, infer=infer, memory_type=memory_type, prompt=prompt,
        )  # fmt: skip

    async def search(
        self, query: str, *, top_k: int = 20, filters: Json | None = None, threshold: float = 0.1, rerank: bool = False,
        explain: bool = False, reference_date: Any = None, show_expired: bool = False, **options: Any,
    ) -> dict[str, list[Json]]:  # fmt: skip
        return await asyncio.to_thread(
            self._memory.search, query, top_k=top_k, filters=filters, threshold=threshold, rerank=rerank, explain=explain,
            reference_date=reference_date, show_expired=show_expired, **options,
        )  # fmt: skip

    async def get(self, memory_id: str) -> Json | None:
        return await asyncio.to_thread(self._memory.get, memory_id)

    async def get_all(
        self, *, filters: Json | None = None, top_k: int = 20, show_expired: bool = False, **options: Any
    ) -> dict[str, list[Json]]:
        return await asyncio.to_thread(self._memory.get_all, filters=filters, top_k=top_k, show_expired=show_expired, **options)

    async def update(
        self, memory_id: str, text: str | None = None, metadata: Json | None = None, expiration_date: Any = _UNSET,
        data: str | None = None,
    ) -> Json:  # fmt: skip
        return await asyncio.to_thread(self._memory.update, memory_id, text, metadata, expiration_date, data)

    async def delete(self, memory_id: str) -> Json:
        return await asyncio.to_thread(self._memory.delete, memory_id)

    async def delete_all(self, user_id: str | None = None, agent_id: str | None = None, run_id: str | None = None) -> Json:
        return await asyncio.to_thread(self._memory.delete_all, user_id, agent_id, run_id)

    async def history(self, memory_id: str) -> list[Json]:
        return await asyncio.to_thread(self._memory.history, memory_id)

    async def reset(self) -> None:
        await asyncio.to_thread(self._memory.reset)

    async def chat(self, query: str) -> NoReturn:
        raise NotImplementedError("There is no chat: Holdfast uses no language model. Use search().")

    @property
    def project(self) -> _Project:
        return self._memory.project

    def close(self) -> None:
        """Close files and connections."""
        self._memory.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()


def compose_entries(messages: list[Json], fields: Json, *, infer: bool, procedural: bool) -> list[Entry]:
    """Return the memories that messages become: one each, or one for all steps of a procedure."""
    if procedural:
        text = "\n".join(f"{one['role']}: {one['text']}" for one in messages)
        return [Entry(text, {**fields, "memory_type": _PROCEDURAL}, {})] if text else []
    if infer:
        said = [one for one in messages if one["role"] in ("user", "assistant")]
        return [Entry(one["text"], {**fields, "attributed_to": one["role"]}, {}) for one in said]
    return [
        Entry(one["text"], {**fields, **spoken_by(one)}, {"actor_id": one["name"], "role": one["role"]}) for one in messages
    ]


# --- a memory as a note -----------------------------------------------------------------------------------------------


def owner_part(project: str) -> str:
    """Return the 15 digits that the ids of a project's memories have in common."""
    return hashlib.sha256(project.encode()).hexdigest()[:15]


def owner_part_of_id(memory_id: str) -> str:
    """Return the digits of an id that name the project; the digit between them is the version of the UUID."""
    return f"{memory_id[:8]}{memory_id[9:13]}{memory_id[15:18]}"


def parse_id(memory_id: object) -> str:
    """Return the id of a memory in its usual form; the id that no memory has for a text that is not a UUID."""
    try:
        return str(uuid.UUID(str(memory_id)))
    except ValueError:
        return str(uuid.UUID(int=0))


def new_memory_id(project: str) -> str:
    """Return a new UUID whose first part names the project."""
    owner = owner_part(project)
    return str(uuid.UUID(hex=f"{owner[:12]}4{owner[12:]}{secrets.randbits(62) | 1 << 63:016x}"))


def make_draft(key: str, text: str, fields: Json, mask: bool) -> Json:
    """Return the arguments of `store` for a memory, with the secrets in its fields masked or rejected."""
    expires = fields.get("expiration_date")
    ends = None  # Holdfast does not show an expired note either
    if expires and not is_expired(expires):
        ends = (date.fromisoformat(expires) + timedelta(days=1)).isoformat()
    return {
        "text": add_comment(text, CLIENT, {name: value for name, value in fields.items() if value is not None}, mask),
        "key": key,
        "tags": [CLIENT, digest_tag("text", text), *_id_tags(fields)],
        "valid_to": ends,
    }


def _id_tags(ids: Mapping[str, Any]) -> list[str]:
    """Return the tags of an agent and of a run, by which the index finds their memories."""
    return [digest_tag(name.removesuffix("_id"), ids[name]) for name in ("agent_id", "run_id") if name in ids]


def parse_note(note: Note, user_id: str | None) -> Item | None:
    """Return the memory of a note of this user's project; None if the note is not a memory."""
    if CLIENT not in note.tags:
        return None
    text, fields = split_comment(note.text, CLIENT)
    return Item(note, text, fields, user_id)


def make_event(
    memory_id: str, event: str, number: int, *, time: str, created: str | None, old: str | None = None, new: str | None = None,
    fields: Mapping[str, Any] | None = None,
) -> Json:  # fmt: skip
    """Return an entry of a history."""
    fields = fields or {}
    return {
        "id": str(uuid.uuid5(uuid.UUID(memory_id), f"{event} {number}")), "memory_id": memory_id, "old_memory": old,
        "new_memory": new, "event": event, "created_at": created, "updated_at": format_time(time),
        "is_deleted": event == "DELETE", "actor_id": fields.get("actor_id"), "role": fields.get("role"),
    }  # fmt: skip


def format_time(text: str) -> str:
    """Return a time of a note as mem0 writes it; one without a zone is UTC."""
    time = datetime.fromisoformat(text)
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).isoformat()


def hash_text(text: str) -> str:
    """Return the hash of a memory as mem0 computes it; it protects nothing."""
    return hashlib.md5(text.encode("utf-8", "replace"), usedforsecurity=False).hexdigest()


def is_expired(expiration_date: object) -> bool:
    """Return whether a day is over."""
    try:
        return bool(expiration_date) and date.fromisoformat(str(expiration_date)) < _today()
    except ValueError:
        return False


def _today() -> date:
    return datetime.fromtimestamp(dates.clock(), UTC).date()


def _list_items(memory: Store, user_id: str | None, ids: Mapping[str, str]) -> Iterator[Item]:
    """Yield the memories of a project with these ids, newest first; archived ones follow."""
    for archived in (False, True):
        for note in memory.list(scope="project", tags=[CLIENT, *_id_tags(ids)], archived=archived):
            item = parse_note(note, user_id)
            if item is not None and _has_ids(item, ids):
                yield item


def _find_matches(memory: Store, user_id: str | None, ids: Mapping[str, str], query: str, top_k: int) -> Iterator[Match]:
    """Yield the memories that a recall finds, best first, and then the newest others; each is read when it is asked for."""
    answer = memory.recall(query.strip(), scope="project", kind="note", tags=[CLIENT, *_id_tags(ids)], limit=_MAX_HITS)
    best = max((hit.score for hit in answer), default=0.0)
    asked = _words(query)
    known = _items_by_key(memory, user_id, ids) if len(answer) < top_k else None  # one request instead of many
    shown: set[str] = set()
    for hit in sorted(answer, key=lambda one: -_score(one, best)):
        item = _read_item(memory, hit.key, user_id) if known is None else known.get(hit.key)
        if item is not None and _has_ids(item, ids) and not _is_only_in_comment(item, asked):
            shown.add(hit.key)
            yield _score(hit, best), item, {"weak": hit.weak, "recall_score": hit.score}
    for key, item in (_items_by_key(memory, user_id, ids) if known is None else known).items():
        if key not in shown:
            yield OTHERS_SCORE, item, {}


def _items_by_key(memory: Store, user_id: str | None, ids: Mapping[str, str]) -> dict[str, Item]:
    return {item.note.key: item for item in _list_items(memory, user_id, ids)}


def _read_item(memory: Store, key: str, user_id: str | None) -> Item | None:
    """Return the memory of a key; None if it was deleted meanwhile."""
    try:
        return parse_note(memory.get(key, scope="project"), user_id)
    except NotFound:
        return None


def _forget(memory: Store, items: Iterable[Item]) -> None:
    """Forget memories. A gateway limits the requests of each second: wait as long as it says."""
    for item in items:
        for attempt in range(_ATTEMPTS):
            try:
                memory.forget(item.note.key, scope="project")
                break
            except TooMany as error:
                if attempt == _ATTEMPTS - 1:
                    raise
                sleep(error.retry_after or 1)


def _score(hit: Hit, best: float) -> float:
    """Return a score between 0 and 1: 0.5 to 1 for a hit that matches, 0.2 to 0.4 for a weak one."""
    share = min(1.0, max(0.0, hit.score / best)) if best > 0 else 1.0
    return round(0.2 + 0.2 * share if hit.weak else 0.5 + 0.5 * share, 4)


def _is_only_in_comment(item: Item, asked: set[str]) -> bool:
    """Return whether the words of a query are in the comment of a note and not in its text."""
    return not asked & _words(item.text) and bool(asked & _words(item.note.text))


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text.casefold()))


def _has_ids(item: Item, ids: Mapping[str, str]) -> bool:
    payload = item.payload
    return all(payload.get(name) == value for name, value in ids.items())


def _find_same(memory: Store, text: str, fields: Json) -> bool:
    """Return whether a project has a memory with this text and the ids of these fields, also in the archive."""
    tags = [CLIENT, digest_tag("text", text), *_id_tags(fields)]
    notes = (note for archived in (False, True) for note in memory.list(scope="project", tags=tags, archived=archived))
    items = (parse_note(note, None) for note in notes)
    return any(item is not None and not item.is_expired for item in items)
