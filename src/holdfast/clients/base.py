"""The interface of a coding agent ("client"): parse the input of its hooks, format their output, list what an install changes.

A hook imports this module on every event, so it stays small. Import whatever only an install needs inside functions.
"""

from __future__ import annotations

import os

from holdfast.base.record import Record

try:
    from _json import encode_basestring_ascii as quote_json  # from its C module: importing json takes several ms
except ImportError:  # a Python without the C module
    from json.encoder import encode_basestring_ascii as quote_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

EVENTS = ("start", "prompt", "compact", "stop", "end")
SOURCES = ("startup", "resume", "clear", "compact")


class HookInput(Record):
    """The input of a hook, the same for every client."""

    event: str
    session: str = ""
    folder: str = ""  # the project's folder, if the client sends it
    source: str = ""  # why a session starts; one of SOURCES
    prompt: str = ""  # only of a prompt event
    transcript: str = ""  # the path of the client's transcript, if the client sends it
    stop_hook_active: bool = False  # whether our own stop hook caused this stop


class InstallTarget(Record):
    """The target of an install: the user's home and environment, the absolute command of Holdfast, and Holdfast's home."""

    home: str
    environ: dict[str, str]
    command: tuple[str, ...]
    memory: str = ""
    project: str = ""  # the working folder, for clients that read files of the project only
    gateway: bool = False  # whether to install the skill for agents of a gateway as well

    def folder(self, default: str, variable: str = "") -> str:
        """Return a client's folder: the value of its own variable, or the default folder in the user's home."""
        return (self.environ.get(variable) if variable else "") or os.path.join(self.home, default)

    def program(self, *names: str) -> str:
        """Return the path of the first of these programs that is on the PATH; empty if none is."""
        from shutil import which

        found = (which(name, path=self.environ.get("PATH", os.defpath)) for name in names)
        return next((path for path in found if path), "")

    def shell(self, *words: str) -> str:
        """Return the command with these arguments, quoted for a shell."""
        from shlex import join

        return join([*self.command, *words])


class Change(Record):
    """One edit of one file, made by an install."""

    path: str
    # file: the whole file is ours | entry: a value of a JSON object | item: an item of a JSON array | default: a value that
    # is written only if it is missing | toml, block: lines between marks | trace: an entry that the client itself writes
    # because of us, and that an uninstall removes
    kind: str
    value: Any
    keys: tuple[str, ...] = ()  # the path in a JSON document


class Session(Record):
    """A headless run of a client in a private home: command, environment and files."""

    argv: tuple[str, ...]
    env: dict[str, str] = {}
    files: dict[str, str] = {}  # texts by path in the private home


class Client:
    """One coding agent. Its module in this package overrides what differs."""

    name = ""
    title = ""
    programs: tuple[str, ...] = ()  # names of its program
    proven = ""  # the version of the real program that it was tested with; empty if only its documentation was followed
    events: dict[str, str] = {}  # the client's own event names to ours
    injects: tuple[str, ...] = ("start", "prompt")  # those of our events whose output reaches the model
    cap = 9000  # characters of a briefing that the client does not truncate
    scaffolds: tuple[str, ...] = ()  # scaffolds that the client declares
    transcripts = ""  # the format in holdfast.formats.importers of its transcripts
    folder_env: tuple[str, ...] = ()  # variables that give its MCP servers the project's folder
    session_env: tuple[str, ...] = ()  # variables that give its MCP servers the session's ID
    plain_text = False  # whether its hooks print text for the model as it is, instead of as JSON
    strict_json = False  # whether it rejects settings with comments or trailing commas
    per_project = False  # whether it is installed in files of the project
    note = ""  # what a person must know or do after an install
    reads_server_instructions = True  # whether the instructions of an MCP server reach the model

    def parse_input(self, event: str, data: dict[str, Any]) -> HookInput:
        """Return the input of the client's hook; a field that is missing or of another type is left empty."""
        return HookInput(
            event=self.events.get(event, event if event in EVENTS else ""),
            session=find_text(data, "session_id", "sessionId", "conversation_id"),
            folder=find_folder(data),
            source=find_source(data),
            prompt=find_prompt(data),
            transcript=find_text(data, "transcript_path", "transcriptPath"),
            stop_hook_active=data.get("stop_hook_active") is True,
        )

    def format_output(self, event: str, text: str) -> str:
        """Return what to print so that the text reaches the model; for an empty text, the client's empty answer."""
        if not text or self.events.get(event, event) not in self.injects:
            return ""
        return text if self.plain_text else format_nested(self.event_name(event), text)

    def event_name(self, event: str) -> str:
        """Return the client's own name of an event."""
        return event if event in self.events else next((name for name, known in self.events.items() if known == event), event)

    def detect(self, target: InstallTarget) -> str:
        """Return the path of the client's program or else of its folder; empty if the client is not installed."""
        folder = self.folder(target)
        return target.program(*self.programs) or (folder if folder and os.path.isdir(folder) else "")

    def folder(self, target: InstallTarget) -> str:
        """Return the folder of the client's settings; empty if it has none."""
        return ""

    def changes(self, target: InstallTarget) -> list[Change]:
        """Return the file edits that make up an install."""
        return []

    def auto_memory(self, target: InstallTarget, folder: str) -> list[Change]:
        """Return the edits that move the client's own memory into a folder of the store; empty if it cannot be moved."""
        return []

    def to_paste(self, target: InstallTarget) -> dict[str, str]:
        """Return texts that a person must insert by hand, by the place to insert them."""
        return {}

    def plugin(self, target: InstallTarget) -> dict[str, str]:
        """Return a plugin that can be loaded for one session, as texts by file name; empty if the client has no plugins."""
        return {}

    def session(self, target: InstallTarget, url: str, prompt: str, program: str) -> Session | None:
        """Return a headless run in the private home `target.home`, with a model at that URL; None if the client has no such
        mode."""
        return None

    def find_problems(self, target: InstallTarget) -> list[tuple[str, str]]:
        """Return what keeps an installed client from using Holdfast, each as problem and fix."""
        return []


# --- fields of the input: clients may send anything -----------------------------------------------------------------------


def find_text(data: dict[str, Any], *names: str) -> str:
    """Return the first of these fields that is a non-empty string; empty if none is."""
    return next((value for name in names if isinstance(value := data.get(name), str) and value), "")


def find_folder(data: dict[str, Any]) -> str:
    """Return the folder of the project: the first workspace root if there is one, else the working directory."""
    roots = data.get("workspace_roots")
    if isinstance(roots, list) and roots and isinstance(roots[0], str):
        return roots[0]
    return find_text(data, "cwd", "workspace", "directory")


def find_source(data: dict[str, Any]) -> str:
    """Return why a session starts; "startup" if the client gives no known reason."""
    source = data.get("source")
    return source if isinstance(source, str) and source in SOURCES else "startup"


def find_prompt(data: dict[str, Any]) -> str:
    """Return the prompt, which is a string or a list of parts some of which are text."""
    prompt = data.get("prompt", data.get("initialPrompt"))
    if isinstance(prompt, str):
        return prompt
    return "\n".join(_list_texts(prompt)) if isinstance(prompt, list) else ""


def _list_texts(parts: list[Any]) -> Iterable[str]:
    for part in parts:
        text = part.get("text") if isinstance(part, dict) else part
        if isinstance(text, str):
            yield text


# --- formats of the output ------------------------------------------------------------------------------------------------


def format_nested(event: str, text: str) -> str:
    """Return the JSON answer that most clients accept, without other fields: some clients reject unknown ones."""
    return f'{{"hookSpecificOutput": {{"hookEventName": {quote_json(event)}, "additionalContext": {quote_json(text)}}}}}'


def format_field(name: str, text: str) -> str:
    """Return a JSON object with one field."""
    return f"{{{quote_json(name)}: {quote_json(text)}}}"
