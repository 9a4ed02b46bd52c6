"""`edit`: change a note in an editor, without overwriting another process's change."""

from __future__ import annotations

import os

from holdfast.cli.commands.notes import confirm_secret, print_stored
from holdfast.errors import ConfigError, HoldfastError, Refused, Template

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.cli.runner import Invocation
    from holdfast.models import Note, Stored


_STDERR = 2


def edit(call: Invocation) -> int:
    """`holdfast edit`."""
    confirm_secret(call)
    note = call.memory.get(call["key"], scope=call["scope"])
    return call.answer(edit_note(call, note), print_stored)


def edit_note(call: Invocation, note: Note) -> Stored:
    """Open the note in the editor and store the new text."""
    path = _write_draft(note)
    try:
        _run_editor(path, call.output.json)
        text = _read_draft(path)
    except (HoldfastError, OSError):
        if os.path.lexists(path):
            os.unlink(path)
        raise
    return _store_draft(call, note, text, path)


def _store_draft(call: Invocation, note: Note, text: bytes, path: str) -> Stored:
    """Store the edited text and delete the draft; if the text is rejected, keep the draft and name it in the error."""
    try:
        stored = call.memory.store(
            text, key=note.key, scope=note.scope.kind, expected=note.version, valid_to=note.valid_to,
            redact=bool(call["redact"]), allow_secret=call["allow_secret"],
        )  # fmt: skip
    except HoldfastError as error:
        if text.strip():
            error.hint = Template(f"Your text is saved in {path}. ", error.hint)
        else:
            os.unlink(path)
        raise
    os.unlink(path)
    return stored


def _write_draft(note: Note) -> str:
    """Write the note to a temporary file that only its owner can read, with the newline at the end that editors expect."""
    import tempfile

    fd, path = tempfile.mkstemp(prefix=f"holdfast-{note.key}-", suffix=".md")
    with os.fdopen(fd, "wb") as file:
        file.write(note.text.encode("utf-8", "surrogateescape") + b"\n")
    return path


def _read_draft(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read().removesuffix(b"\n")


def _run_editor(path: str, json: bool) -> None:
    """Run the editor and leave Ctrl-C to it; with --json its stdout goes to stderr."""
    import shlex
    import signal
    import subprocess

    from holdfast.config import find_editor

    command = find_editor()
    previous_handler = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        done = subprocess.run([*shlex.split(command), path], stdout=_STDERR if json else None)
    except (OSError, ValueError) as error:
        fix = "Set EDITOR to an installed program"
        raise ConfigError(f"cannot run the editor {command!r}: {error}", fix) from None
    finally:
        signal.signal(signal.SIGINT, previous_handler)
    if done.returncode:
        raise Refused(
            f"the editor exited with {done.returncode}; nothing was stored", "Save and quit normally to store the note"
        )
