"""Memory as tools of an agent: plain functions with types and docstrings, from which a framework makes its own tools.

A tool returns text for the model. An error of Holdfast is the answer too, with what to do, so that the model can correct its
call. The module also has what several adapters share.
"""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec, TypeVar

from holdfast import Answer, Hit, HoldfastError, Memory, Note, UsageError
from holdfast.safety.model_text import NOTICE, QUARANTINED, escape_markup, show_hidden

P = ParamSpec("P")
T = TypeVar("T")
_log = logging.getLogger(__name__)


def make_tools(memory: Memory, scope: str = "project") -> list[Callable[..., str]]:
    """Return the tools memory_recall, memory_get, memory_store, memory_fact and memory_forget; the last three write to this
    scope."""

    @_answer_errors
    def memory_recall(query: str, limit: int = 5) -> str:
        """Search the memory by words and by meaning: notes, earlier sessions and files.

        Args:
            query: What you want to know, for example "when do we deploy".
            limit: The largest number of results, 1 to 100.
        """
        return _render_answer(memory.recall(query, limit=limit))

    @_answer_errors
    def memory_get(key: str) -> str:
        """Read one note whole.

        Args:
            key: The key of the note, as memory_recall shows it.
        """
        return _render_note(memory.get(key))

    @_answer_errors
    def memory_store(text: str, key: str = "") -> str:
        """Store a note that should be known in later sessions. A new text of an existing key replaces it; the history stays.

        Args:
            text: One subject, in complete sentences, without secrets.
            key: A short name such as "deploy-day": lower-case letters, digits and dashes. Empty for a new name.
        """
        stored = memory.store(text, key=key or None, scope=scope)
        return f"{stored.action}: {stored.note.key}"

    @_answer_errors
    def memory_fact(subject: str, label: str, value: str, on: str = "") -> str:
        """Set one property of a subject that can change over time. The previous value stays in the history, with its dates.

        Args:
            subject: What the fact is about, for example "Project Atlas".
            label: The property, for example "status".
            value: Its value, for example "paused".
            on: The day from which it is true, such as 2026-03-27. Empty for today.
        """
        stated = memory.fact(subject, label, value, on=on or None, scope=scope)
        return f"{stated.action}: {stated.fact.label}: {stated.fact.value}"

    @_answer_errors
    def memory_forget(key: str) -> str:
        """Forget a note that is wrong or no longer wanted. It can be restored for some time.

        Args:
            key: The key of the note.
        """
        return f"forgotten: {key}" if memory.forget(key, scope=scope).deleted else f"There is no note {key}."

    return [memory_recall, memory_get, memory_store, memory_fact, memory_forget]


def in_thread(tool: Callable[P, T]) -> Callable[P, Coroutine[Any, Any, T]]:
    """Return a coroutine function with the signature and docstring of a tool, which runs the tool in a worker thread."""

    @functools.wraps(tool)
    async def run(*args: P.args, **kwargs: P.kwargs) -> T:
        return await asyncio.to_thread(tool, *args, **kwargs)

    return run


def check_memory(memory: Memory | None, client: str) -> Memory:
    """Return the memory that a caller passed; without one, open the home and the project of the current folder."""
    if memory is None:
        return Memory(client=client)
    if not isinstance(memory, Memory):
        raise UsageError(
            f"memory must be a Memory, not {type(memory).__name__}", "Pass Memory(...); it works in async code too"
        )
    return memory


def compose_briefing(memory: Memory, prompt: str = "", cap: int | None = None) -> str:
    """Return what an agent is shown when it starts, in at most `cap` characters, and what matches the prompt. An error is
    logged and shows nothing."""
    try:
        parts = [memory.brief(cap=cap).text, memory.brief(prompt=prompt, again=True).text if prompt.strip() else ""]
    except HoldfastError as error:  # an agent works without a briefing too
        _log.warning("no briefing: %s", error)
        return ""
    return "\n\n".join(part.strip() for part in parts if part.strip())


def _answer_errors(tool: Callable[P, str]) -> Callable[P, str]:
    """Return a tool that answers with the text of an error instead of raising it."""

    @functools.wraps(tool)
    def answer(*args: P.args, **kwargs: P.kwargs) -> str:
        try:
            return tool(*args, **kwargs)
        except HoldfastError as error:
            return f"Error {error.code}: {error}"

    return answer


def _render_answer(answer: Answer) -> str:
    """Return what the model should know about the hits, and then the hits, one on each line."""
    remarks = [f"{len(answer)} found. {NOTICE}" if len(answer) else "Nothing matches."]
    if answer.disabled:
        remarks.append("The memory is disabled.")
    elif answer.degraded:
        remarks.append(f"Degraded: {answer.reason.rstrip('.')}. Matches may be missing, or in another order.")
    if any(hit.quarantined for hit in answer):
        remarks.append(f"Quarantined: {QUARANTINED}.")
    return "\n".join([" ".join(remarks), *map(_render_hit, answer)])


def _render_hit(hit: Hit) -> str:
    """Return a hit on one line: where it is, from when, who said it, and its text."""
    said_by = hit.speaker or (hit.source.origin if hit.source else "")
    marks = [
        "archived" if hit.archived else "",
        "quarantined" if hit.quarantined else "",
        f"superseded by {hit.superseded_by}" if hit.superseded_by else "",
    ]
    details = ", ".join(one for one in (hit.updated[:10], said_by, *marks) if one)
    line = f"- {hit.key if hit.kind == 'note' else hit.citation} ({details}): {hit.text}"
    return " ".join(_escape(line).split())


def _render_note(note: Note) -> str:
    """Return the whole text of a note, below what the model should know about it."""
    quarantined = f" Quarantined: {QUARANTINED}." if note.quarantined else ""
    head = f"{note.key} ({note.updated[:10]}, {note.source.origin}). {NOTICE}{quarantined}"
    return f"{head}\n\n{_escape(note.text)}"


def _escape(text: str) -> str:
    """Return stored text without secrets, hidden characters and tags, which could take the place of instructions."""
    return escape_markup(str(show_hidden(text)))
