"""`agent` and `role`: which agents may use the gateway, and what each role allows."""

from __future__ import annotations

import sys
from contextlib import closing

from holdfast.access import AccessGate
from holdfast.access.grants import KINDS, make_grants
from holdfast.access.policy import is_unlimited
from holdfast.base import dates
from holdfast.cli.output import format_count, join_lines
from holdfast.cli.runner import confirm
from holdfast.errors import Disabled, HoldfastError, UsageError
from holdfast.models import SCOPES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.access import Role
    from holdfast.cli.output import Output
    from holdfast.cli.runner import Invocation
    from holdfast.ledger.agents import Agent

_NO_DATE, _NO_QUOTA = "never", "none"


def add_agent(call: Invocation) -> int:
    """`holdfast agent add`."""
    if not call["role"]:
        raise UsageError("no role was named", "Name a role with --role; `holdfast role list` shows them")
    given = {kind: call[kind] for kind in KINDS if call[kind]}
    granted = make_grants({kind: [one] if isinstance(one, str) else one for kind, one in given.items()})
    with closing(_open_gate(call, changes=True)) as gate:
        agent, token = gate.add(call["name"], call["role"], call["days"], granted=granted)
    return call.answer(_describe_token(agent, token), _print_token)


def rotate_token(call: Invocation) -> int:
    """`holdfast agent rotate`."""
    with closing(_open_gate(call, changes=True)) as gate:
        agent, token = gate.rotate(call["name"], call["days"], call["grace"] or 0)
    ends = [one["expires"] for one in _select_tokens(_describe_agent(agent)["tokens"])[:-1]]
    report = {**_describe_token(agent, token), "old_token_expires": max(ends, default=None)}
    return call.answer(report, _print_token)


def revoke_agent(call: Invocation) -> int:
    """`holdfast agent revoke`; ask only at a terminal, so that a script is not stopped."""
    with closing(_open_gate(call)) as gate:
        name = gate.agent(call["name"]).name
        if not (call["yes"] or call.output.json) and sys.stdin.isatty() and sys.stderr.isatty():
            confirm(call, f"Revoke all tokens of {name!r}? The agent loses access at once.")
        agent = gate.revoke(name)
    return call.answer(_describe_agent(agent), _print_revoked)


def list_agents(call: Invocation) -> int:
    """`holdfast agent list`."""
    with closing(_open_gate(call)) as gate:
        usage = gate.usage(gate.agents())
        agents = [{**_describe_agent(agent), "quota": usage[agent.name]} for agent in gate.agents() if agent.name in usage]
    return call.answer(agents, _print_agents)


def add_grant(call: Invocation) -> int:
    """`holdfast agent grant`."""
    with closing(_open_gate(call, changes=True)) as gate:
        agent = gate.grant(call["name"], call["kind"], call["pattern"])
        role = gate.role(agent.role)
        report = _describe_grants(agent, role)
    if call["kind"] in SCOPES and call["kind"] not in role.scopes:
        message = f"the role {role.name} does not have the scope {call['kind']}, so this grant has no effect yet"
        call.output.print_message(message, "yellow")
    return call.answer(report, _print_grants)


def remove_grant(call: Invocation) -> int:
    """`holdfast agent ungrant`."""
    with closing(_open_gate(call)) as gate:
        agent = gate.ungrant(call["name"], call["kind"], call["pattern"])
        report = _describe_grants(agent, gate.role(agent.role))
    return call.answer(report, _print_grants)


def list_grants(call: Invocation) -> int:
    """`holdfast agent grants`."""
    with closing(_open_gate(call)) as gate:
        agent = gate.agent(call["name"])
        report = _describe_grants(agent, gate.role(agent.role))
    return call.answer(report, _print_grants)


def list_roles(call: Invocation) -> int:
    """`holdfast role list`."""
    with closing(_open_gate(call)) as gate:
        roles = [{**role.as_dict(), "own": gate.is_custom(role.name)} for role in gate.roles()]
        problems = gate.role_problems()
    for problem in problems:
        call.output.print_message(f"{problem.message}; until this is fixed, the role allows nothing", "yellow")
    return call.answer(roles, _print_roles)


def check_roles(call: Invocation) -> int:
    """`holdfast role check`; exit 1 if a role file has a problem."""
    path: str | None = call["file"]
    if path is not None:
        names, problems = _check_role_file(path)
    else:
        with closing(_open_gate(call)) as gate:
            names = [role.name for role in gate.roles()]
            problems = [problem.as_dict() for problem in gate.role_problems()]
    report = {"ok": not problems, "roles": names, "problems": problems}
    return call.answer(report, _print_check, 1 if problems else 0)


def _check_role_file(path: str) -> tuple[list[str], list[dict[str, Any]]]:
    """Return the names of the file's valid roles, and its problems."""
    from holdfast.access import role_file

    try:
        role: Role = role_file.read(path)
    except HoldfastError as error:
        return [], [{"role": "", "path": path, "message": error.message, "fix": error.fix}]
    return [role.name], []


def _open_gate(call: Invocation, changes: bool = False) -> AccessGate:
    from holdfast.cli.remote import report_local_home

    settings = call.load_settings()
    if changes and not settings.enabled:
        raise Disabled
    report_local_home(call, settings)
    return AccessGate(settings)


def _describe_agent(agent: Agent) -> dict[str, Any]:
    """Return the public fields of an agent, with times as text."""
    now = dates.clock()
    newest = agent.tokens[-1] if agent.tokens else None
    return {
        "agent": agent.name,
        "role": agent.role,
        "state": agent.state(now),
        "token_id": newest.id if newest else "",
        "expires": dates.format_timestamp(newest.expires) if newest and newest.expires is not None else None,
        "created": dates.format_timestamp(agent.created),
        "tokens": [_format_times(token.as_dict()) for token in agent.tokens],
        "grants": [grant.as_dict() for grant in agent.grants],
    }


def _describe_grants(agent: Agent, role: Role) -> dict[str, Any]:
    """Return the agent's own grants, and the patterns that its role gives to all its agents."""
    of_role = {"projects": role.projects, "sessions": role.sessions, "repositories": role.repositories}
    return {
        "agent": agent.name,
        "role": agent.role,
        "everything": is_unlimited(role),
        "grants": [grant.as_dict() for grant in agent.grants],
        "role_grants": {name: list(patterns) for name, patterns in of_role.items()},
    }


def _format_times(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: dates.format_timestamp(value) if isinstance(value, int) else value for name, value in fields.items()}


def _describe_token(agent: Agent, token: str) -> dict[str, Any]:
    """Return a new token with its agent; it is not shown again."""
    fields = _describe_agent(agent)
    return {"token": token, **{name: fields[name] for name in ("agent", "role", "token_id", "expires")}}


def _print_token(output: Output, report: dict[str, Any]) -> None:
    until = f" until {report['expires'][:10]}" if report["expires"] else ""
    output.print_message(f"{report['agent']} has the role {report['role']}{until}. Its token, which is shown only once:")
    output.print_line(report["token"])
    if report.get("old_token_expires"):
        output.print_message(f"The old token is valid until {report['old_token_expires']}.")


def _print_revoked(output: Output, agent: dict[str, Any]) -> None:
    output.print_line(f"{output.style('revoked', 'yellow')} {agent['agent']}")


def _print_grants(output: Output, report: dict[str, Any]) -> None:
    if report["everything"]:
        output.print_line(f"{report['agent']} has access to everything: its role is {report['role']}")
        return
    rows = [(grant["kind"], grant["pattern"], "agent") for grant in report["grants"]]
    for kind, patterns in zip(KINDS, report["role_grants"].values(), strict=True):
        rows += [(kind, pattern, f"role {report['role']}") for pattern in patterns]
    if not rows:
        name = report["agent"]
        output.print_empty(f"{name} has no grants: it has access to its own memory and to sessions named {name}.*")
        return
    output.print_table(("KIND", "PATTERN", "FROM"), rows, ("", "bold", "dim"))


def _print_agents(output: Output, agents: list[dict[str, Any]]) -> None:
    if not agents:
        output.print_empty("No agents yet. Add one with `holdfast agent add NAME --role ROLE`.")
        return
    rows = [
        (
            agent["agent"], agent["role"], agent["state"], token["id"], (token["expires"] or _NO_DATE)[:10],
            agent["created"][:10], _format_quota(agent["quota"]),
        )
        for agent in agents
        for token in _select_tokens(agent["tokens"])
    ]  # fmt: skip
    names, styles = ("AGENT", "ROLE", "STATE", "TOKEN", "EXPIRES", "SINCE", "QUOTA"), ("bold", "", "", "dim", "", "dim", "")
    shown = len(names) if any(row[-1] != _NO_QUOTA for row in rows) else len(names) - 1  # most gateways have no quotas
    output.print_table(names[:shown], [row[:shown] for row in rows], styles[:shown])


def _format_quota(quota: dict[str, dict[str, Any]]) -> str:
    """Return how much of each limit is used."""
    limits = [f"{one['used']:,} of {one['limit']:,} {name}" for name, one in quota.items() if one["limit"] is not None]
    return ", ".join(limits) or _NO_QUOTA


def _select_tokens(tokens: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the older tokens that are still valid, as for a while after a rotation, and the newest token."""
    now = dates.now()
    valid = [token for token in tokens[:-1] if token["revoked"] is None and (token["expires"] or now + "~") > now]
    return [*valid, *tokens[-1:]]


def _print_roles(output: Output, roles: list[dict[str, Any]]) -> None:
    rows = [
        (
            role["name"], "own" if role["own"] else "shipped", ", ".join(role["scopes"]) or "none",
            ", ".join(role["skills"]) or "none", ", ".join(role["allowed_actions"]) or "nothing",
        )
        for role in roles
    ]  # fmt: skip
    output.print_table(("ROLE", "FROM", "SCOPES", "SKILLS", "MAY"), rows, ("bold", "dim", "", "", ""))


def _print_check(output: Output, report: dict[str, Any]) -> None:
    for problem in report["problems"]:
        output.print_line(f"{output.style('wrong', 'red')} {join_lines(problem['message'])}")
        output.print_line(f"      {join_lines(problem['fix'])}")
    if not report["problems"]:
        output.print_line(f"{format_count(len(report['roles']), 'role')}: {', '.join(report['roles'])}; no problems")
