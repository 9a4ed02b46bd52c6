"""What a run proves, one check at a time: green or red, what was seen, and where it is red what to do about it."""

from __future__ import annotations

import json
import tempfile

from holdfast.base.record import Record
from holdfast.clients.base import Client, InstallTarget
from holdfast_prove import observations as seen
from holdfast_prove.model_server import TOOL, Request
from holdfast_prove.run import SECONDS, Run, version_of
from holdfast_prove.run import run as run_once
from holdfast_prove.sandbox import FACT, VALUES

_KNOWN_BY = 60  # characters of the server's instructions by which they are known again
_READ = "see docs/clients.md for what this client needs"
_ALLOW = "Allow the tools of the server holdfast in the client's settings"


class Check(Record):
    """One thing that must hold."""

    name: str
    ok: bool
    seen: str
    fix: str = ""  # only where it does not


class Reached(Record):
    """One request that reached the model: how long it is, and of what it is made."""

    path: str
    bytes: int
    pieces: tuple[str, ...]  # who says it, how many characters, and what of ours is in it


class Proof(Record):
    """All that was checked of one run."""

    client: str
    program: str
    version: str
    ok: bool
    seconds: float
    checks: tuple[Check, ...]
    requests: tuple[Reached, ...]
    refused: tuple[str, ...]  # hosts that the program wanted to reach, and could not
    printed: str = ""  # the end of what the program said, where something is red


def prove(client: Client, program: str, place: InstallTarget, seconds: float = SECONDS) -> tuple[Proof, Run]:
    """Run the client's program in a private home that is gone afterwards, and check what was seen."""
    with tempfile.TemporaryDirectory(prefix="holdfast-proof-", ignore_cleanup_errors=True) as root:
        run = run_once(client, program, place.command, place.environ, root, seconds)
        version = version_of(program, place.environ, root)
    return judge(client, run, version), run


def judge(client: Client, run: Run, version: str = "") -> Proof:
    """Every check, in the order in which things happen."""
    checks = [
        _ran(run), _asked(run), _hooks(client, run), _briefing(run), _whole(run), _handshake(run), _tools(run), _recall(run),
        _fact(run),
    ]  # fmt: skip
    if client.reads_server_instructions:
        checks.append(_instructions(run))
    ok = all(check.ok for check in checks)
    reached = tuple(_reached(run, one) for one in run.requests if one.ask)
    printed = "" if ok else run.printed
    return Proof(run.client, run.program, version, ok, run.seconds, tuple(checks), reached, run.refused, printed)


def _reached(run: Run, request: Request) -> Reached:
    ours = {run.briefed: " with the briefing", run.buried: " with the recalled note"}
    pieces = [
        f"{one.role} {len(one.text):,}" + "".join(what for word, what in ours.items() if word in one.text)
        for one in (request.ask.said if request.ask else ())
        if one.text
    ]
    return Reached(request.path, len(request.body), tuple(pieces))


def _ran(run: Run) -> Check:
    name = "the program ran"
    if run.code is None:
        fix = "Give it more time with --seconds; a program that waits for a person may be of a version that wants other words"
        return Check(name, False, f"stopped after {run.seconds} s", fix)
    if run.code:
        return Check(name, False, f"exit code {run.code} after {run.seconds} s", "What it said stands below")
    return Check(name, True, f"{run.seconds} s")


def _asked(run: Run) -> Check:
    name, asks = "it asked the model", seen.asks(run)
    if not asks:
        return Check(name, False, "no request came", "Its version may want its model set otherwise; what it said stands below")
    return Check(name, True, f"{len(asks)} requests, {sum(len(one.body) for one in run.requests):,} bytes")


def _hooks(client: Client, run: Run) -> Check:
    """The first hook that can tell the model something was called, and none failed."""
    name, called = "our hooks were called", seen.hooks(run)
    needed = [own for own, ours in client.events.items() if ours in client.injects[:1]]
    if not set(needed) & set(called):
        what = f"never {' or '.join(needed)}"
        return Check(name, False, what, f"The client does not load our hooks, or does not trust them: {_READ}")
    failed = [event for event, call in called.items() if call.code]
    if failed:
        return Check(name, False, f"{', '.join(failed)} failed", "`holdfast doctor` shows the log of hooks")
    return Check(name, True, ", ".join(called))


def _briefing(run: Run) -> Check:
    name, places = "the briefing reached the model", seen.holding(run, run.briefed)
    if places:
        return Check(name, True, "in " + " and ".join(dict.fromkeys(f"a {one.role} message" for one in places)))
    told = [event for event, call in seen.hooks(run).items() if run.briefed in call.said]
    if told:
        what = f"{', '.join(told)} printed it, and the client dropped it"
        return Check(name, False, what, "Its version takes another format: please report it with what --keep keeps")
    return Check(name, False, "no hook printed it", "`holdfast doctor` shows the log of hooks")


def _whole(run: Run) -> Check:
    """The block stands in the request as it was printed, to the last character."""
    name, block = "nothing of it was cut", seen.block(run, run.briefed)
    if not block:
        return Check(name, False, "no briefing was printed", "Mend the red ones above")
    arrived = seen.arrived(run, run.briefed, block)
    what = f"{arrived:,} of {len(block):,} characters"
    if not arrived:
        return Check(name, False, what, "Mend the red ones above; or give it more time: `--seconds 120`")
    if arrived < len(block):
        return Check(name, False, what, f"Make briefings shorter: `holdfast config brief.total_chars {max(arrived // 2, 750)}`")
    return Check(name, True, what)


def _handshake(run: Run) -> Check:
    name, welcome, who = "MCP handshake", seen.welcome(run), seen.greeting(run)
    if welcome:
        return Check(name, True, f"protocol {welcome['protocolVersion']} with {who.get('name', 'somebody')}")
    if not seen.servers(run):
        return Check(name, False, "the client did not start the server", f"It may read servers from another file: {_READ}")
    return Check(name, False, "the server did not answer", "`holdfast doctor` says what is wrong; try `holdfast mcp` by hand")


def _tools(run: Run) -> Check:
    name = "our tools are offered"
    offered = [place for ask in seen.asks(run) if (place := ask.offered(TOOL))]
    if offered:
        return Check(name, True, ".".join(filter(None, offered[0])))
    if any(TOOL in one.text for ask in seen.asks(run) for one in ask.said if one.role == "tool"):
        return Check(name, True, "held back, and found by the client's own search for tools")
    return Check(name, False, f"{TOOL} is in no request", _ALLOW)


def _recall(run: Run) -> Check:
    name = "a recall came back to the model"
    answers = [text for ask in seen.asks(run) if (text := ask.answer_of(TOOL)) is not None]
    if any(run.buried in text for text in answers):
        return Check(name, True, f"{len(answers[-1]):,} characters, with the note that no briefing holds")
    if answers:
        what = f"without the note: {answers[-1][:200]!r}"
        return Check(name, False, what, f"The answer says which project it looked in, or what was refused: {_READ}")
    return Check(name, False, "the tool was not called, or its answer was lost", _ALLOW)


def _fact(run: Run) -> Check:
    """Of a fact that was stated twice the current value is told, and the old one is not."""
    name, found = "a changed fact has its new value only", seen.values(run)
    *old, current = VALUES.values()
    stale = [value for value in old if value in found]
    if current in found and not stale:
        return Check(name, True, f"{' '.join(FACT)}: {current}")
    if stale:
        what = f"the old value {' and '.join(stale)} reached the model"
        return Check(name, False, what, "Please report it with what --keep keeps")
    return Check(name, False, f"{current} reached the model in no request", "`holdfast doctor` shows the log of hooks")


def _instructions(run: Run) -> Check:
    name, said = "the server's instructions reached the model", str(seen.welcome(run).get("instructions", ""))
    start = json.dumps(said[:_KNOWN_BY])[1:-1].encode()
    plain = json.dumps(said[:_KNOWN_BY], ensure_ascii=False)[1:-1].encode()
    if said and any(start in one.body or plain in one.body for one in run.requests if one.ask):
        return Check(name, True, f"{len(said):,} characters")
    return Check(name, False, "not seen", "This version keeps them to itself; the skill holdfast-memory says the same")
