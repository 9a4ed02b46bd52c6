"""edit: a note in a person's own editor, safe against everybody else who edits it meanwhile."""

from __future__ import annotations

import os

from holdfast.cli.commands.notes import sure_of_secret, tell_stored
from holdfast.errors import ConfigError, HoldfastError, Refused, Template

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.cli.runner import Invocation
    from holdfast.models import Note, Stored


_STDERR = 2


def edit(call: Invocation) -> int:
    sure_of_secret(call)
    note = call.memory.get(call["key"], scope=call["scope"])
    return call.answer(edited(call, note), tell_stored)


def edited(call: Invocation, note: Note) -> Stored:
    """What became of a note in a person's editor."""
    path = _draft(note)
    try:
        _edit(path, call.screen.json)
        text = _edited(path)
    except (HoldfastError, OSError):
        if os.path.lexists(path):
            os.unlink(path)
        raise
    return _kept(call, note, text, path)


def _kept(call: Invocation, note: Note, text: bytes, path: str) -> Stored:
    """Store it; where that is refused, a person's text is not lost but stays in the file."""
    try:
        stored = call.memory.store(
            text,
            key=note.key,
            scope=note.scope.kind,
            expected=note.version,
            valid_to=note.valid_to,
            redact=bool(call["redact"]),
            allow_secret=call["allow_secret"],
        )
    except HoldfastError as error:
        if text.strip():
            error.hint = Template(f"Your text is kept in {path}. ", error.hint)
        else:
            os.unlink(path)
        raise
    os.unlink(path)
    return stored


def _draft(note: Note) -> str:
    """A file only its owner can read, that ends in a newline as editors like it."""
    import tempfile

    fd, path = tempfile.mkstemp(prefix=f"holdfast-{note.key}-", suffix=".md")
    with os.fdopen(fd, "wb") as file:
        file.write(note.text.encode("utf-8", "surrogateescape") + b"\n")
    return path


def _edited(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read().removesuffix(b"\n")


def _edit(path: str, quiet: bool) -> None:
    """Run the editor; Ctrl-C in it is the editor's affair. With --json what it prints goes to stderr."""
    import shlex
    import signal
    import subprocess

    from holdfast.config import find_editor

    command = find_editor()
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        done = subprocess.run([*shlex.split(command), path], stdout=_STDERR if quiet else None)
    except (OSError, ValueError) as error:
        fix = "Set EDITOR to a program that is there"
        raise ConfigError(f"cannot run the editor {command!r}: {error}", fix) from None
    finally:
        signal.signal(signal.SIGINT, before)
    if done.returncode:
        raise Refused(f"the editor ended with {done.returncode}; nothing was changed", "Leave it with success to store")
