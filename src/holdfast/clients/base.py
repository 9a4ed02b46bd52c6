"""What a coding agent's program is to us: what its hooks tell, what they may answer, and what an install changes.

A hook loads this on every event, so it stays small: whatever only an install needs is imported by who needs it.
"""

from __future__ import annotations

import os

from holdfast.base.record import Record

try:
    from _json import encode_basestring_ascii as quoted  # straight from its C module: json costs a hook several ms
except ImportError:  # a Python built otherwise
    from json.encoder import encode_basestring_ascii as quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

EVENTS = ("start", "prompt", "compact", "stop", "end")
SOURCES = ("startup", "resume", "clear", "compact")


class HookInput(Record):
    """What a hook was told, in our words."""

    event: str
    session: str = ""
    folder: str = ""  # where the project is, as far as the client tells
    source: str = ""  # of a start
    prompt: str = ""  # of a prompt
    transcript: str = ""  # the path of the client's transcript, if it tells
    again: bool = False  # a stop that our own stop hook caused


class InstallTarget(Record):
    """Where to install: the user's home and surroundings, the absolute command that runs Holdfast, and Holdfast's own home."""

    home: str
    environ: dict[str, str]
    command: tuple[str, ...]
    memory: str = ""
    project: str = ""  # the folder somebody works in, for what can only be told in a file there
    gateway: bool = False  # whether to install the skill for agents of a gateway, too

    def folder(self, default: str, variable: str = "") -> str:
        """A client's folder: where its own variable points, or its usual place in the user's home."""
        return (self.environ.get(variable) if variable else "") or os.path.join(self.home, default)

    def program(self, *names: str) -> str:
        """Where the first of these programs is on the PATH; nothing if none is."""
        from shutil import which

        found = (which(name, path=self.environ.get("PATH", os.defpath)) for name in names)
        return next((path for path in found if path), "")

    def shell(self, *words: str) -> str:
        """The command with these words, as a shell reads it."""
        from shlex import join

        return join([*self.command, *words])


class Change(Record):
    """One thing that an install does to one file."""

    path: str
    how: str  # file: all of it is ours | entry, item: one of a JSON object or array | default: an entry that is only
    # written where there is none | toml, block: lines between marks
    # | trace: not written by us, but by the client because of us: only an uninstall takes it out
    value: Any
    keys: tuple[str, ...] = ()  # where in a JSON document


class Session(Record):
    """A headless run of a client in a private home: what to start, with which environment, over which files."""

    argv: tuple[str, ...]
    env: dict[str, str] = {}
    files: dict[str, str] = {}  # by their paths in the private home


class Client:
    """One coding agent's program. Its module in this package says what differs from this."""

    name = ""
    title = ""
    programs: tuple[str, ...] = ()  # what its program is called
    proven = ""  # the version of the real program it was proven with; otherwise it is by document
    events: dict[str, str] = {}  # the client's own event names to ours
    injects: tuple[str, ...] = ("start", "prompt")  # of our events, those whose output reaches the model
    cap = 9000  # characters of a start briefing that arrive whole
    scaffolds: tuple[str, ...] = ()  # which capabilities it declares
    transcripts = ""  # the dialect of holdfast.formats.importers that its transcripts are written in
    folder_env: tuple[str, ...] = ()  # variables that tell its MCP servers where the project is
    session_env: tuple[str, ...] = ()  # variables that tell its MCP servers which session it is
    plain = False  # whether its hooks print the text for the model as it is, not as JSON
    strict = False  # whether it refuses settings with comments or trailing commas
    per_project = False  # whether it is told in files of the project somebody works in
    note = ""  # what a person must know or do besides the install
    instructs = True  # whether what an MCP server says about itself reaches the model

    def parse_input(self, event: str, data: dict[str, Any]) -> HookInput:
        """What the client's hook was told; whatever is missing or of another kind is left empty."""
        return HookInput(
            event=self.events.get(event, event if event in EVENTS else ""),
            session=text_of(data, "session_id", "sessionId", "conversation_id"),
            folder=folder_of(data),
            source=source_of(data),
            prompt=prompt_of(data),
            transcript=text_of(data, "transcript_path", "transcriptPath"),
            again=data.get("stop_hook_active") is True,
        )

    def format_output(self, event: str, text: str) -> str:
        """What to print so that the text reaches the model; with nothing to say, what this client takes for nothing."""
        if not text or self.events.get(event, event) not in self.injects:
            return ""
        return text if self.plain else nested(self.event_name(event), text)

    def event_name(self, event: str) -> str:
        """The client's own name of an event."""
        return event if event in self.events else next((own for own, ours in self.events.items() if ours == event), event)

    def detect(self, place: InstallTarget) -> str:
        """Where the client was seen: its program or its folder; nothing if it is not there."""
        folder = self.folder(place)
        return place.program(*self.programs) or (folder if folder and os.path.isdir(folder) else "")

    def folder(self, place: InstallTarget) -> str:
        """Where it keeps its settings; nothing if it has no such place."""
        return ""

    def changes(self, place: InstallTarget) -> list[Change]:
        """What an install changes, each in one file of the user's."""
        return []

    def auto_memory(self, place: InstallTarget, folder: str) -> list[Change]:
        """What makes the client's own memory live in a folder of ours; nothing if it has none that can be moved."""
        return []

    def to_paste(self, place: InstallTarget) -> dict[str, str]:
        """What else a person must put somewhere by hand, by where that is."""
        return {}

    def plugin(self, place: InstallTarget) -> dict[str, str]:
        """A plugin that can be loaded for one session, as files by name; empty if the client has no such thing."""
        return {}

    def session(self, place: InstallTarget, url: str, prompt: str, program: str) -> Session | None:
        """A headless run in a private home, `place.home`, against a model at that URL; None if it cannot be run so."""
        return None

    def find_problems(self, place: InstallTarget) -> list[tuple[str, str]]:
        """What keeps an installed client from hearing us, each with what to do about it."""
        return []


# --- what clients tell: tolerant of anything -----------------------------------------------------------------------------


def text_of(data: dict[str, Any], *names: str) -> str:
    """The first of these fields that is a text."""
    return next((value for name in names if isinstance(value := data.get(name), str) and value), "")


def folder_of(data: dict[str, Any]) -> str:
    """Where the project is: the workspace if one is told, else the working directory."""
    roots = data.get("workspace_roots")
    if isinstance(roots, list) and roots and isinstance(roots[0], str):
        return roots[0]
    return text_of(data, "cwd", "workspace", "directory")


def source_of(data: dict[str, Any]) -> str:
    """Why a session starts; one that says nothing we know of starts up."""
    source = data.get("source")
    return source if isinstance(source, str) and source in SOURCES else "startup"


def prompt_of(data: dict[str, Any]) -> str:
    """The prompt: a text, or a list of parts of which some are text."""
    prompt = data.get("prompt", data.get("initialPrompt"))
    if isinstance(prompt, str):
        return prompt
    return "\n".join(_texts(prompt)) if isinstance(prompt, list) else ""


def _texts(parts: list[Any]) -> Iterable[str]:
    for part in parts:
        text = part.get("text") if isinstance(part, dict) else part
        if isinstance(text, str):
            yield text


# --- what clients take ---------------------------------------------------------------------------------------------------


def nested(event: str, text: str) -> str:
    """The answer that most clients take, and nothing besides: some refuse a field they do not know."""
    return f'{{"hookSpecificOutput": {{"hookEventName": {quoted(event)}, "additionalContext": {quoted(text)}}}}}'


def flat(name: str, text: str) -> str:
    """An answer of one field."""
    return f"{{{quoted(name)}: {quoted(text)}}}"
