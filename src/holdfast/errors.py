"""Error classes: each has a code, an exit status, an HTTP status and a hint that says what to do.

HoldfastError
├── NotFound          1  404  no such note, version, file, project or agent
├── UsageError        2  422  an invalid argument: unknown mode, bad date, limit out of range
│   └── ConfigError   2  500  an invalid value in config.toml or in an environment variable
├── Refused           3  422  rejected; nothing was written
│   ├── InvalidText   3  422  empty, contains NUL, or not UTF-8
│   ├── TooLarge      3  413  larger than the limit
│   ├── InvalidKey    3  422  not a valid key or id
│   ├── InvalidPath   3  422  a path outside the tree
│   ├── NoScope       3  422  the scope needs an id (project, agent or session), and none is known
│   ├── SecretFound   3  422  the text looks like it contains a password, a key or a token
│   ├── Purged        3  422  the text was purged
│   ├── Disabled      3  403  memory is switched off
│   ├── Unauthenticated 3  401  no valid token
│   ├── Denied        3  403  the role does not allow it
│   └── QuotaExceeded 3  429  the agent has used up its quota of notes, bytes or daily requests
├── Contended         4  409  another process was faster; try again
│   ├── Conflict      4  409  it changed since you read it, or exists already
│   ├── Busy          4  503  a lock was not free in time
│   └── TooMany       4  429  more requests than this token may make
└── Trouble           5  500  a problem with the home or a service
    ├── Damaged       5  500  a file is damaged
    ├── Unreached     5  502  a service in the settings did not answer, or rejected the request
    ├── Unrecorded    5  503  a decision could not be written to the audit, so nothing was done
    ├── Unsure        5  503  the answer was lost; the write may have happened
    └── DiskTrouble   5  507  disk full, read-only, owned by another user, or input/output error
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Self

    Wording = Callable[["Term"], str]


class Term:
    """A term of a message that each interface may show in its own words, by kind and name; the default is `text`."""

    __slots__ = ("args", "kind", "name", "text")

    def __init__(self, kind: str, name: str, text: str, args: tuple[str, ...] = ()) -> None:
        self.kind, self.name, self.text, self.args = kind, name, text, args

    def as_dict(self) -> dict[str, object]:
        return {"kind": self.kind, "name": self.name, "text": self.text, "args": list(self.args)}


def command(form: str, *args: str) -> Term:
    """Return a command such as `restore {}`, which HTTP shows as a request."""
    return Term("command", form, f"`holdfast {form.format(*args)}`", args)


def field(name: str) -> Term:
    """Return a parameter such as `valid_from`, which the command line shows as `--valid-from`."""
    return Term("field", name, name)


def argument(name: str, value: str) -> Term:
    """Return a parameter with a value, which the command line shows as an option with a value."""
    return Term("argument", name, f'{name}="{value}"', (value,))


def phrase(name: str, text: str) -> Term:
    """Return words that some interfaces replace with their own words for this name."""
    return Term("phrase", name, text)


class Template:
    """A text made of strings and terms; the interface that shows it chooses the words of the terms."""

    __slots__ = ("parts",)

    def __init__(self, *parts: str | Term | Template) -> None:
        self.parts: tuple[str | Term, ...] = ()
        for part in parts:
            self.parts += part.parts if isinstance(part, Template) else (part,)

    def render(self, words: Wording) -> str:
        """Return the text; `words` returns what an interface writes for a part, or nothing for the default."""
        return "".join([part if isinstance(part, str) else words(part) or part.text for part in self.parts])

    def __str__(self) -> str:
        return "".join([part if isinstance(part, str) else part.text for part in self.parts])

    def __bool__(self) -> bool:
        return any(self.parts)

    def as_list(self) -> list[object]:
        """Return the parts as JSON values."""
        return [part if isinstance(part, str) else part.as_dict() for part in self.parts]

    @classmethod
    def from_list(cls, given: list[Any]) -> Self:
        """Return the template that `as_list` wrote."""
        return cls(*[one if isinstance(one, str) else Term(**{**one, "args": tuple(one["args"])}) for one in given])


def default_words(term: Term) -> str:
    """Return nothing, so that a term is shown by its default text: the wording of Python, the command line and local MCP."""
    return ""


REDACT = phrase("redact", "`--redact` (redact=True)")
VIEW_FILES = phrase("view the files", "`view /memories`")  # a command of the memory tool
DOCTOR = command("doctor")


class HoldfastError(Exception):
    """Base class of all errors that Holdfast raises on purpose."""

    code = "error"
    exit_code = 5
    http_status = 500
    may_be_done = False  # whether the request may have taken effect: check before repeating it
    operator_fixes = False  # whether the hint is for the operator of the server instead of the caller
    safe_to_log = False  # whether the message never quotes a person or a note
    item, number = "", 0  # the item of a bulk call that it is about: a "note", a "line" or a "turn", counted from 1
    done_before = 0  # other notes of the same call that are stored
    context = ""  # the operation that failed, shown first

    def __init__(self, message: str | Template, fix: str | Template = "") -> None:
        super().__init__(str(message))
        self.text = message  # without its item, context and count
        self.hint = fix

    @property
    def message(self) -> str:
        return str(self.whole())

    @property
    def fix(self) -> str:
        return str(self.hint)

    def __str__(self) -> str:
        return f"{self.message}. {self.fix}" if self.hint else self.message

    def whole(self) -> Template:
        """Return the message with its context, its item and the number of notes stored before."""
        about = f"{self.item} {self.number}: " if self.item else ""
        context = f"{self.context}: " if self.context else ""
        notes = "1 other note was" if self.done_before == 1 else f"{self.done_before:,} other notes were"
        return Template(context, about, self.text, f"; {notes} stored" if self.done_before else "")

    def about(self, item: str, number: int) -> Self:
        """Set the item that this error is about, and return the error."""
        self.item, self.number = item, number
        return self

    def as_dict(self) -> dict[str, object]:
        return {"error": self.code, "message": self.message, "fix": self.fix, "exit_code": self.exit_code}


class NotFound(HoldfastError):
    """There is no such note, version, file, project or agent. The fix names the command that lists what exists."""

    code, exit_code, http_status = "not_found", 1, 404


class UsageError(HoldfastError):
    """An argument is invalid: an unknown mode, a bad date, a limit out of range."""

    code, exit_code, http_status = "usage", 2, 422


class ConfigError(UsageError):
    """A value in config.toml or in an environment variable is invalid."""

    code, http_status = "config", 500
    operator_fixes = safe_to_log = True


class Refused(HoldfastError):
    """The request was rejected; nothing was written."""

    code, exit_code, http_status = "refused", 3, 422


class InvalidText(Refused):
    """The text is empty, contains NUL bytes or is not UTF-8."""

    code = "invalid_text"


class TooLarge(Refused):
    """The text, file or request is larger than the limit."""

    code, http_status = "too_large", 413


class InvalidKey(Refused):
    """The key or id is not valid."""

    code = "invalid_key"


class InvalidPath(Refused):
    """The path leads outside the tree, or hides where it leads."""

    code = "invalid_path"


class SecretFound(Refused):
    """The text looks like it contains a password, a key or a token. The error names the rule and the line, never the value."""

    code = "secret"


class NoScope(Refused):
    """The scope needs an id (project, agent or session), and none is known."""

    code = "no_scope"


class Purged(Refused):
    """The text was purged. Only a person can allow it again."""

    code = "purged"


class Disabled(Refused):
    """Memory is switched off (`memory.enabled`)."""

    code, http_status = "disabled", 403
    operator_fixes = True

    def __init__(
        self, message: str | Template = "memory is disabled",
        fix: str | Template = "Set memory.enabled to true, or unset HOLDFAST_ENABLED",
    ) -> None:  # fmt: skip
        super().__init__(message, fix)


class Unauthenticated(Refused):
    """The request has no valid token."""

    code, http_status = "unauthenticated", 401


class Denied(Refused):
    """The caller's role or grants do not allow it."""

    code, http_status = "denied", 403


class QuotaExceeded(Refused):
    """The agent has used up its quota of notes, bytes or daily requests. `retry_after` is in seconds, if known."""

    code, http_status = "quota_exceeded", 429
    retry_after: float | None = None


class Contended(HoldfastError):
    """Another process was faster. Try again."""

    code, exit_code, http_status = "contended", 4, 409
    retry_after: float | None = None  # in seconds, if known


class Conflict(Contended):
    """It changed since you read it, or exists already. Read it again, then decide."""

    code = "conflict"


class Busy(Contended):
    """A lock was not free in time. Try again."""

    code, http_status = "busy", 503
    safe_to_log = True


class TooMany(Contended):
    """The token made too many requests. Try again after `retry_after` seconds."""

    code, http_status = "too_many", 429

    def __init__(self, message: str | Template, fix: str | Template = "", retry_after: float = 1) -> None:
        super().__init__(message, fix)
        self.retry_after = retry_after


class Trouble(HoldfastError):
    """There is a problem with the home or a service."""

    code = "trouble"
    operator_fixes = safe_to_log = True


class Damaged(Trouble):
    """A file is damaged."""

    code = "damaged"


class Unreached(Trouble):
    """A service in the settings did not answer, or rejected the request."""

    code, http_status = "unreached", 502
    operator_fixes = False

    def __init__(
        self, message: str | Template, fix: str | Template = "", sent: bool = True, retry_after: float | None = None
    ) -> None:
        super().__init__(message, fix)
        self.sent = sent  # whether the request may have been received
        self.retry_after = retry_after  # seconds after which more is known, if that can be said


class Unrecorded(Trouble):
    """A decision could not be written to the audit, so nothing was done."""

    code, http_status = "unrecorded", 503
    operator_fixes = False


class Unsure(Trouble):
    """The answer was lost, and the write may have happened. Check before you repeat it."""

    code, http_status = "unsure", 503
    operator_fixes = False
    may_be_done = True


class DiskTrouble(Trouble):
    """The disk is full, read-only, owned by another user, or failing."""

    code, http_status = "disk", 507
    full = False  # whether the disk is full


def no_space(what: str, where: str = "") -> DiskTrouble:
    """Return the error for a full disk; `where` is the folder that needs space."""
    disk = f"the disk of {where}" if where else "that disk"
    error = DiskTrouble(what, f"Free some space on {disk}, then try again; no file is half-written")
    error.full = True
    return error


def try_again(what: str) -> Trouble:
    """Return an error after which the caller may try again: nothing was done."""
    error = Trouble(what, "Try again")
    error.operator_fixes = False
    return error


def from_os(error: OSError, doing: str = "") -> HoldfastError:
    """Return an OSError as one of Holdfast's errors; without `doing`, the message names the file."""
    import errno

    named = error.filename if isinstance(error.filename, str) else "input/output error"
    what = f"{doing or named}: {error.strerror or error}"
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return no_space(what, named.rpartition("/")[0] if named.startswith("/") else "")
    if error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
        return DiskTrouble(what, "Make the home writable for this user, or set HOLDFAST_HOME to another folder")
    if error.errno in (errno.ELOOP, errno.ENOTDIR, errno.EISDIR, errno.ENXIO):
        return Damaged(what, Template("A link or special file is in the place of a memory file; run ", DOCTOR))
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return DiskTrouble(what, "Close some files or connections, or raise the limit (`ulimit -n`)")
    if error.errno == errno.EBADF:
        return Trouble(f"{what}: it was closed while in use", "Try again, and close the memory only after its last call")
    if error.errno == errno.ENAMETOOLONG:
        return DiskTrouble(what, "Set HOLDFAST_HOME to a shorter path")
    return DiskTrouble(what, Template("Check the disk, then run ", DOCTOR))
