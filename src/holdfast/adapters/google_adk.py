"""Google ADK: a memory service whose sessions are transcripts, and tools that store and forget memories of the user.

Each user of each app has a project. `add_session_to_memory` appends the turns that are new to the transcript of the session;
`add_memory` stores notes. `search_memory`, and with it ADK's own tools `load_memory` and `preload_memory`, finds both.
"""

from __future__ import annotations

from holdfast.adapters import require

require("google-adk")

import asyncio
import functools
import logging
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from google.adk.events.event import Event
from google.adk.memory.base_memory_service import BaseMemoryService, SearchMemoryResponse
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.sessions.session import Session
from google.adk.tools.tool_context import ToolContext
from google.genai import types

from holdfast import Hit, HoldfastError, Memory, NotFound, Turn, UsageError
from holdfast.adapters.comments import add_comment, split_comment
from holdfast.adapters.tenants import MemoryPool, project_name

CLIENT = "google-adk"  # of the transcripts, and the tag of notes
_PREFIX = "adk"
_NO_SESSION = "without-session"  # the transcript of events that name no session
_KEY = re.compile(r"[a-z0-9][a-z0-9-]{0,59}")
_MAX_HITS = 100  # of one recall
_log = logging.getLogger(__name__)


class TurnNotDeleted(UsageError, NotImplementedError):
    """One turn of a session cannot be deleted on its own."""


class HoldfastMemoryService(BaseMemoryService):
    """The memory of each user of each app, in a project of their own.

    `home` is a folder, PostgreSQL or a gateway (then with `token`), as for `Memory`; by default the home of this machine.
    `limit` is the largest number of memories that a search returns, at most 100.
    """

    def __init__(self, home: str | None = None, *, token: str | None = None, limit: int = 10) -> None:
        if not isinstance(limit, int) or isinstance(limit, bool) or not 1 <= limit <= _MAX_HITS:
            raise UsageError(f"limit must be 1 to {_MAX_HITS}, not {limit!r}", "Leave it out for 10")
        self.limit = limit

        def open_memory(project: str) -> Memory:
            return Memory(home, token=token, project=project, client=CLIENT)

        self._pool = MemoryPool(open_memory)

    def close(self) -> None:
        """Close files and connections. Everything stored is durable already."""
        self._pool.close()

    async def add_session_to_memory(self, session: Session) -> None:
        """Store the turns of a session word for word; those that are stored already are not repeated."""
        await self._log(session.app_name, session.user_id, session.id, session.events)

    async def add_events_to_memory(
        self, *, app_name: str, user_id: str, events: Sequence[Event], session_id: str | None = None,
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:  # fmt: skip
        """Store these events of a session word for word. `custom_metadata` has no place in a transcript and is not stored."""
        if custom_metadata:
            _log.warning("custom_metadata of events is not stored")
        await self._log(app_name, user_id, session_id or _NO_SESSION, events)

    async def add_memory(
        self, *, app_name: str, user_id: str, memories: Sequence[MemoryEntry],
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:  # fmt: skip
        """Store each memory as a note; its id is the key of the note. A memory with a known id gets a new version."""
        drafts = [make_draft(entry, custom_metadata or {}) for entry in memories]
        if drafts:
            await self._run(app_name, user_id, lambda memory: memory.store_many(drafts, scope="project", redact=True))

    async def search_memory(self, *, app_name: str, user_id: str, query: str) -> SearchMemoryResponse:
        """Return the turns and notes of this user that match best."""
        if not isinstance(query, str) or not query.strip():
            return SearchMemoryResponse()
        return SearchMemoryResponse(memories=await self._run(app_name, user_id, lambda memory: self._search(memory, query)))

    async def delete_memory(self, *, app_name: str, user_id: str, memory_id: str | None = None) -> None:
        """Forget the note with this id. Raise TurnNotDeleted for the id of a turn: `delete_session` forgets its session."""
        if memory_id:
            await self._run(app_name, user_id, lambda memory: _forget(memory, memory_id))

    async def delete_session(self, *, app_name: str, user_id: str, session_id: str) -> bool:
        """Forget the transcript of a session; return whether there was one. It can be restored for 30 days."""
        forgotten = await self._run(app_name, user_id, lambda memory: memory.forget_session(session_id, client=CLIENT))
        return bool(forgotten.deleted)

    def tools(self) -> list[Callable[..., Any]]:
        """Return tools that store and forget memories of the user that an agent is talking to."""

        async def store_memory(text: str, key: str, tool_context: ToolContext) -> str:
            """Store something about the user that should be known in later sessions. An existing key gets the new text.

            Args:
                text: One subject, in complete sentences, without secrets.
                key: A short name such as "home-town": lower-case letters, digits and dashes. Empty for a new name.
            """
            session = tool_context.session
            stored = await self._run(
                session.app_name, session.user_id,
                lambda memory: memory.store(text, key=key or None, scope="project", tags=[CLIENT], redact=True),
            )  # fmt: skip
            return f"{stored.action}: {stored.note.key}"

        async def forget_memory(memory_id: str, tool_context: ToolContext) -> str:
            """Forget a memory that is wrong or no longer wanted.

            Args:
                memory_id: The key of the memory, as store_memory returned it.
            """
            session = tool_context.session
            await self.delete_memory(app_name=session.app_name, user_id=session.user_id, memory_id=memory_id)
            return f"forgotten: {memory_id}"

        return [_answer_errors(store_memory), _answer_errors(forget_memory)]

    async def _run(self, app_name: str, user_id: str, action: Callable[[Memory], Any]) -> Any:
        """Run an action on the memory of a user, in a worker thread."""

        def run() -> Any:
            with self._pool.use(project_of(app_name, user_id)) as memory:
                return action(memory)

        return await asyncio.to_thread(run)

    async def _log(self, app_name: str, user_id: str, session_id: str, events: Iterable[Event]) -> None:
        turns = list(to_turns(events))
        if turns:
            await self._run(app_name, user_id, lambda memory: memory.log(turns, session=session_id, client=CLIENT, redact=True))

    def _search(self, memory: Memory, query: str) -> list[MemoryEntry]:
        found: dict[str, MemoryEntry] = {}
        for hit in memory.recall(query, scope="project", kind="turn,note", limit=self.limit):
            for entry in _read_hit(memory, hit):
                found.setdefault(f"{hit.kind} {hit.session} {entry.id}", entry)
        return list(found.values())[: self.limit]


def project_of(app_name: str, user_id: str) -> str:
    """Return the project of a user of an app; no two users or apps have the same one."""
    for name, value in (("app_name", app_name), ("user_id", user_id)):
        if not isinstance(value, str) or not value:
            raise UsageError(f"{name} must be a text that is not empty", f"Pass the {name} of the session")
    return project_name(_PREFIX, app_name, user_id)


def to_turns(events: Iterable[Event]) -> Iterator[dict[str, Any]]:
    """Yield the turns of events that have text. Thoughts, calls of tools and parts of a streamed answer are left out."""
    for event in events:
        text = content_text(event.content)
        if text.strip() and not event.partial:
            yield {
                "id": event.id,
                "role": "user" if event.author == "user" else "assistant",
                "speaker": event.author or None,
                "time": datetime.fromtimestamp(event.timestamp, UTC).isoformat(),
                "text": text,
            }


def content_text(content: types.Content | None) -> str:
    """Return the text that was said."""
    parts = (content.parts if content else None) or []
    return "\n".join(part.text for part in parts if part.text and not part.thought)


def make_draft(entry: MemoryEntry, custom_metadata: Mapping[str, object]) -> dict[str, Any]:
    """Return the arguments of `store` for a memory."""
    text = content_text(entry.content)
    if not text.strip():
        raise UsageError("a memory has no text", "Only text can be stored")
    if entry.id is not None and not _KEY.fullmatch(entry.id):
        raise UsageError(
            f"not a valid id of a memory: {ascii(entry.id)[:80]}", "Use 1 to 60 of a-z, 0-9 and '-', or leave it out"
        )
    fields: dict[str, Any] = {"author": entry.author, "timestamp": entry.timestamp}
    metadata = {**custom_metadata, **entry.custom_metadata}
    if metadata:
        fields["metadata"] = metadata
    fields = {name: value for name, value in fields.items() if value is not None}
    return {"text": add_comment(text, CLIENT, fields, mask=True) if fields else text, "key": entry.id, "tags": [CLIENT]}


def _read_hit(memory: Memory, hit: Hit) -> Iterator[MemoryEntry]:
    """Yield the turns or the note of a hit, whole."""
    try:
        if hit.kind == "turn":
            yield from map(_turn_entry, memory.expand(hit.citation, before=0, after=0))
            return
        note = memory.get(hit.key, scope="project")
    except NotFound:  # deleted since the recall
        return
    text, fields = split_comment(note.text, CLIENT)
    metadata = fields.get("metadata")
    yield MemoryEntry(
        content=make_content("model", text), id=note.key, author=_text_or_none(fields.get("author")),
        timestamp=_text_or_none(fields.get("timestamp")) or note.updated,
        custom_metadata=metadata if isinstance(metadata, dict) else {},
    )  # fmt: skip


def _turn_entry(turn: Turn) -> MemoryEntry:
    role = "user" if turn.role == "user" else "model"
    return MemoryEntry(content=make_content(role, turn.text), id=turn.id, author=turn.speaker or turn.role, timestamp=turn.time)


def make_content(role: str, text: str) -> types.Content:
    return types.Content(role=role, parts=[types.Part(text=text)])


def _text_or_none(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _forget(memory: Memory, memory_id: str) -> None:
    """Forget a note; raise TurnNotDeleted if the id is that of a turn."""
    if _KEY.fullmatch(memory_id) and memory.forget(memory_id, scope="project").deleted:
        return
    try:
        memory.expand(memory_id, before=0, after=0)
    except (NotFound, UsageError):
        return  # deleted already, as in ADK's own services
    raise TurnNotDeleted("a turn of a session cannot be deleted alone", "Delete the session with delete_session")


def _answer_errors(tool: Callable[..., Any]) -> Callable[..., Any]:
    """Return a tool that answers with the text of an error, so that the model can correct its call."""

    @functools.wraps(tool)
    async def answer(*args: Any, **kwargs: Any) -> str:
        try:
            return str(await tool(*args, **kwargs))
        except HoldfastError as error:
            return f"Error {error.code}: {error}"

    return answer
