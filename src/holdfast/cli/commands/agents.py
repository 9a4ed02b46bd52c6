"""agent and role: who may come in by the gateway, and what they may do there."""

from __future__ import annotations

import sys

from holdfast.access import AccessGate
from holdfast.base import dates
from holdfast.cli.output import one_line, plural
from holdfast.cli.runner import confirm
from holdfast.errors import Disabled, HoldfastError, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.access import Role
    from holdfast.cli.output import Output
    from holdfast.cli.runner import Invocation
    from holdfast.ledger.agents import Agent

_NO_DATE = "never"


def add(call: Invocation) -> int:
    if not call["role"]:
        raise UsageError("which role?", "Say it with --role; `holdfast role list` shows them")
    gate = _gate(call, changes=True)
    try:
        agent, token = gate.add(call["name"], call["role"], call["days"])
    finally:
        gate.close()
    return call.answer(_shown_once(agent, token), _tell_token)


def rotate(call: Invocation) -> int:
    gate = _gate(call, changes=True)
    try:
        agent, token = gate.rotate(call["name"], call["days"], call["grace"] or 0)
    finally:
        gate.close()
    return call.answer(_shown_once(agent, token), _tell_token)


def revoke(call: Invocation) -> int:
    """Asked only where somebody can answer: a script that revokes must not be held up."""
    gate = _gate(call)
    try:
        name = gate.agent(call["name"]).name
        if not (call["yes"] or call.screen.json) and sys.stdin.isatty() and sys.stderr.isatty():
            confirm(call, f"End every token of {name!r}? It is shut out at once.")
        agent = gate.revoke(name)
    finally:
        gate.close()
    return call.answer(_plain(agent), lambda screen, told: screen.say(f"{screen.paint('revoked', 'yellow')} {told['agent']}"))


def list_(call: Invocation) -> int:
    gate = _gate(call)
    try:
        agents = [_plain(agent) for agent in gate.agents()]
    finally:
        gate.close()
    return call.answer(agents, _tell_agents)


def roles(call: Invocation) -> int:
    gate = _gate(call)
    try:
        told = [{**role.as_dict(), "own": gate.is_custom(role.name)} for role in gate.roles()]
        faults = gate.role_problems()
    finally:
        gate.close()
    for fault in faults:
        call.screen.aside(f"{fault.message}; until it is mended this role means nothing", "yellow")
    return call.answer(told, _tell_roles)


def check(call: Invocation) -> int:
    named: str | None = call["file"]
    if named is not None:
        good, problems = _checked(named)
    else:
        gate = _gate(call)
        try:
            good = [role.name for role in gate.roles()]
            problems = [fault.as_dict() for fault in gate.role_problems()]
        finally:
            gate.close()
    report = {"ok": not problems, "roles": good, "problems": problems}
    return call.answer(report, _tell_check, 1 if problems else 0)


def _checked(path: str) -> tuple[list[str], list[dict[str, Any]]]:
    from holdfast.access import role_file

    try:
        role: Role = role_file.read(path)
    except HoldfastError as error:
        return [], [{"role": "", "path": path, "message": error.message, "fix": error.fix}]
    return [role.name], []


def _gate(call: Invocation, changes: bool = False) -> AccessGate:
    from holdfast.cli.remote import say_where

    settings = call.settings()
    if changes and not settings.enabled:
        raise Disabled
    say_where(call, settings)
    return AccessGate(settings)


def _plain(agent: Agent) -> dict[str, Any]:
    """What anybody may know of one; times as text, as everywhere."""
    now = dates.clock()
    newest = agent.tokens[-1] if agent.tokens else None
    return {
        "agent": agent.name,
        "role": agent.role,
        "state": agent.state(now),
        "token_id": newest.id if newest else "",
        "expires": dates.format_timestamp(newest.expires) if newest and newest.expires is not None else None,
        "created": dates.format_timestamp(agent.created),
        "tokens": [_token(token.as_dict()) for token in agent.tokens],
    }


def _token(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: dates.format_timestamp(value) if isinstance(value, int) else value for name, value in fields.items()}


def _shown_once(agent: Agent, token: str) -> dict[str, Any]:
    told = _plain(agent)
    return {"token": token, **{name: told[name] for name in ("agent", "role", "token_id", "expires")}}


def _tell_token(screen: Output, told: dict[str, Any]) -> None:
    until = f" until {told['expires'][:10]}" if told["expires"] else ""
    screen.aside(f"{told['agent']} may come in as {told['role']}{until}. Its token, which is shown only now:")
    screen.say(told["token"])


def _tell_agents(screen: Output, agents: list[dict[str, Any]]) -> None:
    if not agents:
        screen.nothing("there is no agent; `holdfast agent add NAME --role ROLE` lets one in")
        return
    rows = [
        (one["agent"], one["role"], one["state"], token["id"], (token["expires"] or _NO_DATE)[:10], one["created"][:10])
        for one in agents
        for token in _shown(one["tokens"])
    ]
    screen.table(("AGENT", "ROLE", "STATE", "TOKEN", "EXPIRES", "SINCE"), rows, ("bold", "", "", "dim", "", "dim"))


def _shown(tokens: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The newest one, and before it those that are still good: after a rotation the old one may be, for a while."""
    now = dates.now()
    good = [one for one in tokens[:-1] if one["revoked"] is None and (one["expires"] or now + "~") > now]
    return [*good, *tokens[-1:]]


def _tell_roles(screen: Output, told: list[dict[str, Any]]) -> None:
    rows = [
        (
            one["name"], "own" if one["own"] else "shipped", ", ".join(one["scopes"]) or "none",
            ", ".join(one["skills"]) or "none", ", ".join(one["allowed_actions"]) or "nothing",
        )
        for one in told
    ]  # fmt: skip
    screen.table(("ROLE", "FROM", "SCOPES", "SKILLS", "MAY"), rows, ("bold", "dim", "", "", ""))


def _tell_check(screen: Output, report: dict[str, Any]) -> None:
    for problem in report["problems"]:
        screen.say(f"{screen.paint('wrong', 'red')} {one_line(problem['message'])}")
        screen.say(f"      {one_line(problem['fix'])}")
    if not report["problems"]:
        screen.say(f"{plural(len(report['roles']), 'role')}: {', '.join(report['roles'])}; nothing is wrong")
