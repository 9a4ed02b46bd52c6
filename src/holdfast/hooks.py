"""The hooks of coding agents: `holdfast hook CLIENT EVENT` hears on stdin what happened and says on stdout what the model
should know. It leaves with 0 and with output that its client understands, whatever happens; what went wrong is for `doctor`.

An agent waits for this at every prompt, so it loads as little as it can.
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

Run by the client, which tells on stdin what happened; `holdfast install CLIENT` sets that up. EVENT is the client's own name
of the event, or start, prompt, compact, stop, end."""
_STDIN_BYTES = 10 * 1024 * 1024
_NO_OBJECT = "no JSON object"
_SECONDS = {"end": 2.5, "stop": 10.0, "compact": 10.0}  # how long a hook may take; one client gives an end no more than 3 s
_LONGEST = 10.0
_TOO_LONG = "it took too long", "Once is no matter; if it goes on, see what keeps this machine or the disk of the home busy"
_LOCK_SECONDS = 1  # how long it waits for other processes
_ASK_SECONDS = 2.0  # and for the one that stays


class _Late(BaseException):
    """The time is up: no error that anything on the way may swallow."""


def main(words: list[str], home: str | None = None) -> int:
    """Always 0: nothing that happens here may hinder an agent."""
    if len(words) != 2 or words[0].startswith("-"):
        _print(_USAGE + "\n")
        return 0
    client, event = words
    said = ""
    try:
        _in_time(_LONGEST)
        said = _answer(client, event, home)
    except _Late:
        _failed(home, client, event, *_TOO_LONG)
    except (Exception, KeyboardInterrupt) as error:
        _failed(home, client, event, *_told(error))
    try:
        _in_time(0)
        _print(said)
    except (Exception, KeyboardInterrupt, _Late) as error:
        if not isinstance(error, BrokenPipeError):
            _failed(home, client, event, *_told(error))
    return 0


def _answer(name: str, event: str, home: str | None) -> str:
    from holdfast import clients

    client = clients.load(name)
    nothing = client.said(event, "")
    try:
        data, wrong = _heard_on_stdin()
        if wrong:
            _failed(home, name, event, f"what the client told on stdin is {wrong}", "Update the client, or report it")
        heard = client.heard(event, data)
        if not heard.event and event not in client.events:
            _failed_once(home, name, event, "this client has no such event that we know", "Take this hook out of its settings")
        if heard.event in _SECONDS:
            _in_time(_SECONDS[heard.event])
        text = _text(client, heard, home)
    except _Late:
        _failed(home, name, event, *_TOO_LONG)
        return nothing
    except Exception as error:
        _failed(home, name, event, *_told(error))
        return nothing
    return client.said(event, text) if text else nothing


def _text(client: Client, heard: HookInput, home: str | None) -> str:
    """What the model should know; mostly nothing."""
    if not heard.event or (heard.event == "start" and heard.source == "resume"):
        return ""
    from holdfast import config

    settings = config.load(home)
    if not settings.enabled or not (settings.store or os.path.isdir(settings.home)):
        return ""
    settings = settings.replace(lock_seconds=min(settings.lock_seconds, _LOCK_SECONDS))
    return _told_by(client, heard, settings)


def _told_by(client: Client, heard: HookInput, settings: Config) -> str:
    todo = _todo(client, heard, settings)
    if not todo:
        return ""
    context = _context(client, heard, settings)
    try:
        return "".join([_STEPS[step](context, client, heard) for step in todo])
    finally:
        context.close()


def _todo(client: Client, heard: HookInput, settings: Config) -> list[str]:
    """Which steps an event takes; mostly none, and then nothing is opened."""
    if heard.event == "prompt":
        return ["prompt"] if "prompt" in client.injects and _plain(heard.prompt) else []
    late = "prompt" in client.injects and "start" not in client.injects  # the briefing comes with the first prompt
    if heard.event == "start":
        return ["begin"] if late else ["start"] if "start" in client.injects else []
    steps = ["begin"] if late and heard.event == "compact" else []
    captured = settings.capture and client.transcripts and heard.transcript and not heard.again
    return [*steps, "capture"] if captured else steps


# --- the events -------------------------------------------------------------------------------------------------------


def _start(context: Context, client: Client, heard: HookInput) -> str:
    return _briefed(context, client, client.cap, _is_first(heard))


def _is_first(heard: HookInput) -> bool:
    """Whether a session's first context begins: some clients tell of it and of the first prompt at once."""
    return heard.event == "start" and heard.source == "startup"


def _briefed(context: Context, client: Client, cap: int, first: bool = False, anew: bool = True) -> str:
    """What a new context begins with: the start-up of an agent that keeps continuity, where one is declared, and the notes."""
    from holdfast.verbs.brief import select

    booted = ""
    if client.scaffolds or context.config.scaffolds:
        from holdfast.verbs.scaffold.boot import boot

        booted = boot(context, None, cap // 2, client.scaffolds).text
    return booted + select.brief(context, cap=cap - len(booted), first=first, anew=anew).text


def _begin(context: Context, client: Client, heard: HookInput) -> str:
    from holdfast.verbs.brief import select

    select.begin_anew(context, _is_first(heard))
    return ""


def _prompt(context: Context, client: Client, heard: HookInput) -> str:
    """What bears on it; before the first one also the briefing, where a start cannot carry that; and now and then a word."""
    from holdfast.verbs.brief import select

    prompt = _plain(heard.prompt)
    count = select.heard_prompt(context, prompt)
    word = _reminder(context, count)
    cap = client.cap - len(word)
    brought = select.brief(context, prompt=prompt, cap=cap, matches=_of_resident(context, prompt)).text
    first = count == 1 and "start" not in client.injects
    return (_briefed(context, client, cap - len(brought), anew=False) if first else "") + brought + word


def _reminder(context: Context, count: int) -> str:
    if not context.config.reminder or not count or count % context.config.reminder:
        return ""
    from holdfast.verbs.brief.render import reminder

    return reminder()


def _capture(context: Context, client: Client, heard: HookInput) -> str:
    """Keep the session word for word; what is kept already is not added again."""
    if os.path.isfile(heard.transcript):
        from holdfast.errors import Refused, Trouble, UsageError
        from holdfast.verbs.history import import_history

        try:
            import_history(context, heard.transcript, client.name, "project", written=client.transcripts, kept="live")
        except (Refused, UsageError):  # whose words may quote what was said
            fix = "Update Holdfast and the client, or switch capture off: `holdfast config hooks.capture false`"
            raise Trouble("the transcript that the client names cannot be read", fix) from None
    return ""


_STEPS = {"start": _start, "begin": _begin, "prompt": _prompt, "capture": _capture}


def _of_resident(context: Context, prompt: str) -> list[Match] | None:
    """What a process that stays and has the models finds; None where there is none."""
    if context.config.store or not _somebody_stays(context.config.home):  # who stays has a home, and no store
        return None
    from holdfast.api import resident

    who = {
        "project": context.project_override,
        "session": context.session,
        "agent": context.agent,
        "cwd": os.path.abspath(context.working_folder),
    }
    return resident.matches(context.config.home, who, prompt[:8000], _ASK_SECONDS)


def _somebody_stays(home: str) -> bool:
    """What `resident.is_there` says, without loading it for the answer no."""
    return os.path.exists(os.path.join(home, "run", "resident.sock"))


def _context(client: Client, heard: HookInput, settings: Config) -> Context:
    """The desk of whoever works in that folder, in that session."""
    folder = heard.folder or "."
    if not os.path.isdir(folder):
        if not settings.project:  # where this hook happens to run is not where the agent works
            from holdfast.errors import Trouble

            raise Trouble("the folder that the client names is not there", "Start the client in a folder that is there")
        folder = "."
    from holdfast.base.ids import digest, is_name
    from holdfast.context.caller import Context
    from holdfast.models import Progress

    session = heard.session or settings.session
    if session and not is_name(session):
        session = digest(session.encode("utf-8", "replace"))
    return Context(settings, settings.project, session, settings.agent, client.name, "agent", folder, Progress())


# --- in and out -------------------------------------------------------------------------------------------------------


def _heard_on_stdin() -> tuple[dict[str, Any], str]:
    """What the client told, and what is wrong with it; nothing at all is fine."""
    data = _stdin()
    if len(data) > _STDIN_BYTES:
        return {}, "more than 10 MiB of JSON"
    text = data.decode("utf-8", "replace").lstrip("\ufeff \t\r\n\x00")
    if not text:
        return {}, ""
    try:
        found = _scanner()(text, 0)[0]
    except Exception:  # of many kinds: the bare scanner even leaves it to json, which is not loaded, to say what is wrong
        return {}, _NO_OBJECT
    return (found, "") if isinstance(found, dict) else ({}, _NO_OBJECT)


def _stdin() -> bytes:
    pieces: list[bytes] = []
    size = 0
    try:
        if os.isatty(0):
            return b""  # a person tries it out
        while size <= _STDIN_BYTES and (piece := os.read(0, 1 << 20)):
            pieces.append(piece)
            size += len(piece)
    except OSError:
        pass  # there is no stdin
    return b"".join(pieces)


def _scanner() -> Any:
    """Reads one JSON value. Straight from its C module: json would load regular expressions first."""
    try:
        from _json import make_scanner

        return make_scanner(_Reading)  # type: ignore[arg-type]
    except ImportError:  # a Python built otherwise
        from json import JSONDecoder

        return JSONDecoder(strict=False).raw_decode


class _Reading:
    """How JSON is read: as json.JSONDecoder says it to the same module."""

    strict = False
    object_hook = None
    object_pairs_hook = None
    parse_float = float
    parse_int = float  # int refuses very long ones, and no number matters here
    parse_constant = float
    memo: dict[str, str] = {}


def _plain(prompt: str) -> str:
    """A prompt as the person wrote it; nothing of a command to the client itself, such as /compact."""
    if "holdfast-memory" in prompt:  # some clients hand our own block back to us
        from holdfast.formats.transcript import strip_own_output

        prompt = strip_own_output(prompt)
    text = prompt.strip()
    first = text.partition(" ")[0]
    return "" if first.startswith("/") and "/" not in first[1:] and "." not in first else text


def _print(text: str) -> None:
    """All of it, as UTF-8 whatever the surroundings say."""
    if text and sys.stdout is not None:
        sys.stdout.flush()
        data = text.encode("utf-8", "replace")
        raw = getattr(sys.stdout, "buffer", None)
        if raw is None:
            sys.stdout.write(text)
        else:
            raw.write(data)
            raw.flush()


def _in_time(seconds: float) -> None:
    """Be called off after so long; 0: no more. Only where this process is ours to call off."""
    from holdfast import cli

    if cli.alone:
        import _signal  # type: ignore[import-not-found]  # the bare module: what `signal` adds costs time

        _signal.signal(_signal.SIGALRM, _late)
        _signal.setitimer(_signal.ITIMER_REAL, seconds)


def _late(*_: object) -> None:
    raise _Late


# --- what went wrong --------------------------------------------------------------------------------------------------


def _told(error: BaseException) -> tuple[str, str]:
    """What may be written down about an error: never what a person or a note says."""
    from holdfast.errors import HoldfastError, from_os

    if isinstance(error, OSError) and error.errno is not None:
        error = from_os(error)
    if isinstance(error, HoldfastError) and error.safe_to_log:
        return error.message, error.fix or "Run `holdfast doctor`"
    name, trace, where = type(error).__name__, error.__traceback__, ""
    while trace is not None:
        where, trace = f"{os.path.basename(trace.tb_frame.f_code.co_filename)}:{trace.tb_lineno}", trace.tb_next
    fix = error.fix if isinstance(error, HoldfastError) and error.fix else "Run `holdfast doctor`, and report this"
    return f"{name} at {where}", fix


def _failed_once(home: str | None, client: str, event: str, message: str, fix: str) -> None:
    """The same, unless the log says it already."""
    from holdfast import config
    from holdfast.base import failure_log

    said = [(one.client, one.event, one.message) for one in failure_log.read(config.find_home(home))]
    if (client[:60], event[:60], message) not in said:
        _failed(home, client, event, message, fix)


def _failed(home: str | None, client: str, event: str, message: str, fix: str) -> None:
    """A line in the log; where that is not possible, not a word."""
    try:
        from holdfast import config
        from holdfast.base import failure_log

        failure_log.write(config.find_home(home), client=client, event=event, message=message, fix=fix)
    except (Exception, KeyboardInterrupt, _Late):
        pass
