"""Hooks of coding agents: `holdfast hook CLIENT EVENT` reads the event from stdin and prints what the model should know.

It always exits with 0 and with output that the client understands; `doctor` shows what failed. The agent waits for a hook at
every prompt, so this module imports as little as possible.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.clients.base import Client, HookInput
    from holdfast.config import Config
    from holdfast.context.caller import Context
    from holdfast.verbs.brief.relevance import Match

_USAGE = """usage: holdfast hook CLIENT EVENT

Called by the client, with the event as JSON on stdin; `holdfast install CLIENT` sets this up. EVENT is the client's name of
the event, or start, prompt, compact, stop or end."""
_STDIN_BYTES = 10 * 1024 * 1024
_NO_OBJECT = "not a JSON object"
_EVENT_SECONDS = {"end": 2.5, "stop": 10.0, "compact": 10.0}  # time limit of a hook; one client allows 3 s for an end
_MAX_SECONDS = 10.0
_TOO_LONG = "the hook took too long", "If it happens often, find out what keeps this machine or the disk of the home busy"
_LOCK_SECONDS = 1  # how long to wait for other processes
_RESIDENT_SECONDS = 2.0  # how long to wait for the resident process


class _TimedOut(BaseException):
    """The time limit has passed. Not an `Exception`, so that no handler on the way catches it."""


class _Deadline:
    """A time limit for the whole hook, by SIGALRM; without effect unless this process may be interrupted."""

    def __init__(self, enforced: bool) -> None:
        self._enforced = enforced

    def set(self, seconds: float) -> None:
        """Raise `_TimedOut` after this many seconds; 0 means never."""
        if self._enforced:
            import _signal  # type: ignore[import-not-found]  # not `signal`: importing it takes longer

            _signal.signal(_signal.SIGALRM, _time_out)
            _signal.setitimer(_signal.ITIMER_REAL, seconds)


def _time_out(*_: object) -> None:
    raise _TimedOut


def main(words: list[str], home: str | None = None, *, enforce_deadline: bool = False) -> int:
    """Run one hook and return 0, whatever happens. `enforce_deadline` is for a process that does nothing else."""
    if len(words) != 2 or words[0].startswith("-"):
        _print(_USAGE + "\n")
        return 0
    client, event = words
    output, deadline = "", _Deadline(enforce_deadline)
    try:
        deadline.set(_MAX_SECONDS)
        output = _run(client, event, home, deadline)
    except _TimedOut:
        _log_failure(home, client, event, *_TOO_LONG)
    except (Exception, KeyboardInterrupt) as error:
        _log_failure(home, client, event, *_describe(error))
    try:
        deadline.set(0)
        _print(output)
    except (Exception, KeyboardInterrupt, _TimedOut) as error:
        if not isinstance(error, BrokenPipeError):
            _log_failure(home, client, event, *_describe(error))
    return 0


def _run(name: str, event: str, home: str | None, deadline: _Deadline) -> str:
    """Return the output for the client, in its own format."""
    from holdfast import clients

    client = clients.load(name)
    nothing = client.format_output(event, "")
    try:
        data, problem = _read_event()
        if problem:
            _log_failure(home, name, event, f"the input on stdin is {problem}", "Update the client, or report this as a bug")
        hook_input = client.parse_input(event, data)
        if not hook_input.event and event not in client.events:
            _log_failure_once(
                home,
                name,
                event,
                "Holdfast does not know this event of the client",
                "Remove this hook from the settings of the client",
            )
        if hook_input.event in _EVENT_SECONDS:
            deadline.set(_EVENT_SECONDS[hook_input.event])
        text = _handle(client, hook_input, home)
    except _TimedOut:
        _log_failure(home, name, event, *_TOO_LONG)
        return nothing
    except Exception as error:
        _log_failure(home, name, event, *_describe(error))
        return nothing
    return client.format_output(event, text) if text else nothing


def _handle(client: Client, hook_input: HookInput, home: str | None) -> str:
    """Return the text to show the model, which is usually empty."""
    if not hook_input.event or (hook_input.event == "start" and hook_input.source == "resume"):
        return ""
    from holdfast import config

    settings = config.load(home)
    if not settings.enabled or not (settings.store or os.path.isdir(settings.home)):
        return ""
    settings = settings.replace(lock_seconds=min(settings.lock_seconds, _LOCK_SECONDS))
    return _run_steps(client, hook_input, settings)


def _run_steps(client: Client, hook_input: HookInput, settings: Config) -> str:
    steps = _select_steps(client, hook_input, settings)
    if not steps:
        return ""
    context = _open_context(client, hook_input, settings)
    try:
        return "".join([_STEPS[step](context, client, hook_input) for step in steps])
    finally:
        context.close()


def _select_steps(client: Client, hook_input: HookInput, settings: Config) -> list[str]:
    """Return the steps of an event; usually none, and then nothing is opened."""
    if hook_input.event == "prompt":
        return ["prompt"] if "prompt" in client.injects and _strip_prompt(hook_input.prompt) else []
    late = "prompt" in client.injects and "start" not in client.injects  # the briefing comes with the first prompt
    if hook_input.event == "start":
        return ["begin"] if late else ["start"] if "start" in client.injects else []
    steps = ["begin"] if late and hook_input.event == "compact" else []
    captured = settings.capture and client.transcripts and hook_input.transcript and not hook_input.stop_hook_active
    return [*steps, "capture"] if captured else steps


# --- the events -------------------------------------------------------------------------------------------------------


def _start(context: Context, client: Client, hook_input: HookInput) -> str:
    return _start_briefing(context, client, client.cap, _is_first(hook_input))


def _is_first(hook_input: HookInput) -> bool:
    """Return whether a session starts. Some clients send this event and the first prompt at the same time."""
    return hook_input.event == "start" and hook_input.source == "startup"


def _start_briefing(context: Context, client: Client, cap: int, first: bool = False, new_context: bool = True) -> str:
    """Return the boot text of an agent with continuity, if scaffolds are declared, and the briefing."""
    from holdfast.verbs.brief import select

    if not client.scaffolds and not context.config.scaffolds:
        return select.brief(context, cap=cap, first=first, new_context=new_context).text
    from holdfast.verbs.scaffold import boot

    booted, messages = boot.compose(context, None, cap // 2, client.scaffolds)
    brief = select.brief(context, cap=cap - len(booted.text), first=first, new_context=new_context)
    boot.mark_shown(context, messages)  # last: a message counts as read only when nothing can fail any more
    return booted.text + brief.text


def _begin(context: Context, client: Client, hook_input: HookInput) -> str:
    from holdfast.verbs.brief import select

    select.reset_shown(context, _is_first(hook_input))
    return ""


def _prompt(context: Context, client: Client, hook_input: HookInput) -> str:
    """Return the notes that match a prompt, and at intervals a reminder. If the client shows nothing at the start, the first
    prompt also gets the briefing."""
    from holdfast.verbs.brief import select

    prompt = _strip_prompt(hook_input.prompt)
    count = select.count_prompt(context, prompt)
    reminder = _compose_reminder_at_interval(context, count)
    cap = client.cap - len(reminder)
    matches_text = select.brief(context, prompt=prompt, cap=cap, matches=_ask_resident(context, prompt)).text
    is_first = count == 1 and "start" not in client.injects
    briefing = _start_briefing(context, client, cap - len(matches_text), new_context=False) if is_first else ""
    return briefing + matches_text + reminder


def _compose_reminder_at_interval(context: Context, count: int) -> str:
    if not context.config.reminder or not count or count % context.config.reminder:
        return ""
    from holdfast.verbs.brief.render import compose_reminder

    return compose_reminder()


def _capture(context: Context, client: Client, hook_input: HookInput) -> str:
    """Store the session's transcript; turns that are stored already are not added again."""
    if os.path.isfile(hook_input.transcript):
        from holdfast.errors import Refused, Trouble, UsageError
        from holdfast.verbs.history import import_history

        try:
            import_history(
                context, hook_input.transcript, client=client.name, scope="project", written=client.transcripts, kept="live"
            )
        except (Refused, UsageError):  # its message may quote the transcript
            fix = "Update Holdfast and the client, or switch capture off with `holdfast config hooks.capture false`"
            raise Trouble("the transcript that the client names cannot be read", fix) from None
    return ""


_STEPS = {"start": _start, "begin": _begin, "prompt": _prompt, "capture": _capture}


def _ask_resident(context: Context, prompt: str) -> list[Match] | None:
    """Return the matches that the resident process finds, which has the models loaded; None if there is no such process."""
    if context.config.store or not _has_resident(context.config.home):  # a resident process serves a folder only
        return None
    from holdfast.api import resident

    caller = {
        "project": context.project_override,
        "session": context.session,
        "agent": context.agent,
        "cwd": os.path.abspath(context.working_folder),
    }
    return resident.find_matches(context.config.home, caller, prompt[:8000], _RESIDENT_SECONDS)


def _has_resident(home: str) -> bool:
    """Return what `resident.is_running` returns, without importing it in the common case."""
    return os.path.exists(os.path.join(home, "run", "resident.sock"))


def _open_context(client: Client, hook_input: HookInput, settings: Config) -> Context:
    """Return the context of the folder and session that the client names."""
    folder = hook_input.folder or "."
    if not os.path.isdir(folder):
        if not settings.project:  # the folder that this hook runs in need not be the agent's
            from holdfast.errors import Trouble

            raise Trouble("the folder that the client names does not exist", "Start the client in a folder that exists")
        folder = "."
    from holdfast.base.ids import digest, is_name
    from holdfast.context.caller import Context
    from holdfast.models import Progress

    session = hook_input.session or settings.session
    if session and not is_name(session):
        session = digest(session.encode("utf-8", "replace"))
    return Context(
        settings, project=settings.project, session=session, agent=settings.agent, client=client.name, origin="agent",
        cwd=folder, progress=Progress(),
    )  # fmt: skip


# --- in and out -------------------------------------------------------------------------------------------------------


def _read_event() -> tuple[dict[str, Any], str]:
    """Return the JSON object on stdin, and what is wrong with it; empty input is allowed."""
    data = _read_stdin()
    if len(data) > _STDIN_BYTES:
        return {}, "more than 10 MiB of JSON"
    text = data.decode("utf-8", "replace").lstrip("\ufeff \t\r\n\x00")
    if not text:
        return {}, ""
    try:
        found = _make_scanner()(text, 0)[0]
    except Exception:  # of many types: the bare scanner imports json to raise its error
        return {}, _NO_OBJECT
    return (found, "") if isinstance(found, dict) else ({}, _NO_OBJECT)


def _read_stdin() -> bytes:
    pieces: list[bytes] = []
    size = 0
    try:
        if os.isatty(0):
            return b""  # a person runs it by hand
        while size <= _STDIN_BYTES and (piece := os.read(0, 1 << 20)):
            pieces.append(piece)
            size += len(piece)
    except OSError:
        pass  # there is no stdin
    return b"".join(pieces)


def _make_scanner() -> Any:
    """Return a JSON parser straight from its C module: `json` imports regular expressions, which takes longer."""
    try:
        from _json import make_scanner

        return make_scanner(_ScannerOptions)  # type: ignore[arg-type]
    except ImportError:  # a Python without the C module
        from json import JSONDecoder

        return JSONDecoder(strict=False).raw_decode


class _ScannerOptions:
    """The options that json.JSONDecoder passes to the same module."""

    strict = False
    object_hook = None
    object_pairs_hook = None
    parse_float = float
    parse_int = float  # int rejects very long numbers, and no number matters here
    parse_constant = float
    memo: dict[str, str] = {}


def _strip_prompt(prompt: str) -> str:
    """Return a prompt as the person wrote it; empty for a command of the client, such as /compact."""
    if "holdfast-memory" in prompt:  # some clients send our own block back
        from holdfast.formats.transcript import strip_own_output

        prompt = strip_own_output(prompt)
    text = prompt.strip()
    first = text.partition(" ")[0]
    return "" if first.startswith("/") and "/" not in first[1:] and "." not in first else text


def _print(text: str) -> None:
    """Write the output as UTF-8, whatever the locale is."""
    if text and sys.stdout is not None:
        sys.stdout.flush()
        data = text.encode("utf-8", "replace")
        raw = getattr(sys.stdout, "buffer", None)
        if raw is None:
            sys.stdout.write(text)
        else:
            raw.write(data)
            raw.flush()


# --- failures --------------------------------------------------------------------------------------------------------


def _describe(error: BaseException) -> tuple[str, str]:
    """Return the message and the fix to log for an error, without text of a person or a note."""
    from holdfast.errors import HoldfastError, from_os

    if isinstance(error, OSError) and error.errno is not None:
        error = from_os(error)
    if isinstance(error, HoldfastError) and error.safe_to_log:
        return error.message, error.fix or "Run `holdfast doctor`"
    name, trace, where = type(error).__name__, error.__traceback__, ""
    while trace is not None:
        where, trace = f"{os.path.basename(trace.tb_frame.f_code.co_filename)}:{trace.tb_lineno}", trace.tb_next
    fix = error.fix if isinstance(error, HoldfastError) and error.fix else "Run `holdfast doctor`, and report this as a bug"
    return f"{name} at {where}", fix


def _log_failure_once(home: str | None, client: str, event: str, message: str, fix: str) -> None:
    """Log a failure unless the log has it already."""
    from holdfast import config
    from holdfast.base import failure_log

    logged = [(entry.client, entry.event, entry.message) for entry in failure_log.read(config.find_home(home))]
    if (client[:60], event[:60], message) not in logged:
        _log_failure(home, client, event, message, fix)


def _log_failure(home: str | None, client: str, event: str, message: str, fix: str) -> None:
    """Write a failure to the log of the home; if that fails too, do nothing."""
    try:
        from holdfast import config
        from holdfast.base import failure_log

        failure_log.write(config.find_home(home), client=client, event=event, message=message, fix=fix)
    except (Exception, KeyboardInterrupt, _TimedOut):
        pass
