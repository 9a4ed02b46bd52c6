"""Texts for agents: when to recall, what to store, what not to store, and in which scope."""

from __future__ import annotations

from holdfast import clients

TITLE = "Holdfast memory"

PROJECT = """\
Every result ends with the project that was used and how it was found. If it is wrong or missing, pass `folder` (absolute path \
of the project's directory) or `project` (its id)."""

PROJECT_AT_GATEWAY = """\
Every result ends with the project that was used. If it is wrong or missing, pass `project` (its id)."""

STORE = """\
Store one thing for later sessions: a decision and its reason, a user's correction or preference, a constraint. \
Write full sentences that make sense alone. An existing key gets a new version: recall first and reuse the key.
Do not store: what code, git or docs say; paths; task state; guesses; secrets.
Example: text "Deploys run on Tuesdays: on-call is short on Fridays.", key "deploys"."""

RECALL = """\
Find what earlier sessions stored, by words and meaning. Use it at the start of a task, before a design choice, and when the \
user refers to earlier work. A result marked Degraded may miss matches."""

FORGET = """\
Move a wrong note to the trash (30 days). To correct it, store the new text with its key instead."""

SEARCH = """\
Find lines in notes and files, by words and meaning."""

GET = """\
Read a note by `key` (`as_of`: as of a day), or lines of a `path` from a result."""

HISTORY = """\
Show all versions of a note (`key`), or the turns around a `turn` (a path from memory_recall)."""

FACT = """\
Set or read a dated fact. With `value`: set it, true from `on` (or today); the old value is closed, not deleted. Without \
`value`: read, also `as_of` a date or with `history`. [[Name]] links to another subject.
Example: subject "Telegram", label "owner", value "[[Ada]]", on "2026-03-27"."""

FILE = """\
Your own files under /memories: view (file or folder), create (or overwrite), str_replace (text that occurs \
once), insert (after a line, 0 = start), delete, rename. MEMORY.md or index.md is shown at session start: keep it short."""

SAVE = """\
Review this session{focus} and store what a later session needs and cannot find out by itself.

1. List the decisions and their reasons, the user's corrections and preferences, and what you learned about people and systems.
2. Remove what code, git or docs already say, paths, the state of this task, guesses, and every secret.
3. For each remaining item, call memory_recall first. If a note exists, store the better text with its key. Otherwise store a \
new note: one topic, full sentences, the right scope and type.
4. For properties that changed (status, owner, version), use memory_fact with the date.
5. Tell the user in one line per note what you stored, with its key. If nothing is worth storing, say so and store nothing."""


def instructions(at_gateway: bool = False) -> str:
    """Return the server's instructions: the guidance of every interface, and how to name a project over MCP.

    A gateway cannot see the folders of its callers."""
    return f"{clients.usage_guide().strip()}\n\n{PROJECT_AT_GATEWAY if at_gateway else PROJECT}"
