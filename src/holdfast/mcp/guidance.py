"""Texts for agents: when to recall, what to store and what not, and where it belongs."""

from __future__ import annotations

from holdfast import clients

TITLE = "Holdfast memory"

PROJECT = """\
Every result ends with the project that was used and how it was found. If it is wrong or missing, pass `folder` (absolute path \
of the project's directory) or `project` (its id)."""

PROJECT_AT_GATEWAY = """\
Every result ends with the project that was used. If it is wrong or missing, pass `project` (its id)."""

STORE = """\
Remember one thing for later sessions: a decision and its reason, a user's correction or preference, a constraint. \
Write full sentences that make sense alone. An existing key gets a new version: recall first, reuse the key.
Not: what code, git or docs say, paths, task state, guesses, secrets.
Example: text "Deploys run on Tuesdays: on-call is short on Fridays.", key "deploys"."""

RECALL = """\
Find what earlier sessions stored, by words and meaning. Use it at the start of a task, before a design choice, and when the \
user refers to earlier work. Ask in plain words. A result marked Degraded may miss matches."""

FORGET = """\
Move a wrong or unwanted note to the trash (30 days). If it only changed, store the new text on its key instead."""

SEARCH = """\
Find lines in notes and memory files, by words and meaning: path, lines, score, snippet."""

GET = """\
Read a note by `key` (also `as_of` a day), or lines of a `path` that a result shows."""

HISTORY = """\
Show all versions of a note (`key`), or what was said around a `turn` (a path from memory_recall)."""

FACT = """\
Set or ask a dated property. With `value`: it holds from `on` (default today); the old value is closed and kept. Without: \
ask, also `as_of` a day or with `history`. [[Name]] links to another subject.
Example: subject "Telegram", label "owner", value "[[Ada]]", on "2026-03-27"."""

FILE = """\
Your own files under /memories for longer texts: view (file or folder), create (or overwrite), str_replace (text that occurs \
once), insert (after a line, 0 = start), delete, rename. MEMORY.md or index.md is shown at session start: keep it short."""

SAVE = """\
Look back over this session{focus} and save what a later one needs and could not find out by itself.

1. List what was decided and why, what the user corrected, what they prefer, what turned out to be true of people and \
systems.
2. Leave out what code, git or docs already say, paths, the state of this task, guesses, and every secret.
3. For each of the rest, memory_recall first. If a note is there, store the better text on its key; if it has become wrong, \
say so in the new version. Otherwise store a new note: one thing, full sentences, the right scope and type.
4. For properties that changed (status, owner, version) use memory_fact with the day.
5. Tell the user in one line each what was saved, under which key. If nothing is worth keeping, say so and store nothing."""


def instructions(at_gateway: bool = False) -> str:
    """Return the server's instructions: the guidance of every interface, and how to name a project over MCP.

    A gateway cannot see the folders of its callers."""
    return f"{clients.usage_guide().strip()}\n\n{PROJECT_AT_GATEWAY if at_gateway else PROJECT}"
