"""Ctrl-C: what may be done by then, and what to do about it, command by command."""

from __future__ import annotations

from holdfast.models import Interrupted

_AGAIN = "Run it again"
_KEPT = ("it may be kept, or some of it", "Run it again: what is kept already is not kept twice")
_PURGE = (
    "the purge may have begun",
    "Run `holdfast doctor`, which ends it or says what will; if nothing was begun, purge it again",
)
_TOKEN = (
    "a token may be made that nobody saw",
    "`holdfast agent list` shows who is there, and `holdfast agent rotate` gives one of them another token",
)
_REPEAT = ("it may be done in part", "Run it again: it goes on where it ended, and nothing is done twice")
_LOOK = ("it may be done, or part of it", "Look how things are, then run it again if it is not done")
_CHANGING = {  # each command that changes anything: what may have come of it, and what to do
    "store": _KEPT, "fact": _KEPT, "log": _KEPT, "import-history": _KEPT, "purge": _PURGE, "agent add": _TOKEN,
    "agent rotate": _TOKEN, "copy": _REPEAT, "migrate": _REPEAT, "reindex": _REPEAT, "embed": _REPEAT, "retain": _REPEAT,
    **dict.fromkeys(
        ("edit", "import", "forget", "restore", "clear", "review", "file create", "file str-replace", "file insert",
         "file delete", "file rename", "scaffold", "install", "uninstall", "render", "agent revoke", "init", "config",
         "project adopt"),
        _LOOK,
    ),
}  # fmt: skip


class Stopped(KeyboardInterrupt):
    """Ctrl-C in the midst of a command, and what is known of it. A person who only asked something is not told."""

    def __init__(self, known: str = "", fix: str = _AGAIN) -> None:
        super().__init__(known)
        self.message, self.fix = f"interrupted; {known}" if known else "interrupted", fix
        self.changes = bool(known)


def nothing_done() -> Stopped:
    """While somebody was asked, or before all was read."""
    return Stopped("nothing was done")


def stopped(command: str, error: KeyboardInterrupt, answered: bool) -> KeyboardInterrupt:
    """What to say of it, unless that is known already; of what was `answered`, that the answer may be cut short."""
    if isinstance(error, Interrupted | Stopped):
        return error
    if not answered or _CHANGING.get(command) is _TOKEN:  # of which an answer cut short may have lost the token
        return Stopped(*_CHANGING.get(command, ()))
    cut = "the answer may be cut short"
    if command in _CHANGING:
        return Stopped(f"it is done, but {cut}", "Nothing need be done again")
    return Stopped(cut)
