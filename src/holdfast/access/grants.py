"""Grants: which projects, sessions and repositories an agent reaches, named by patterns. Pure functions on plain data.

In a pattern `*` stands for any number of characters, also none, and every other character for itself. A project or session is
compared as it is written. A repository is `OWNER/NAME`, where `*` does not match a `/` and case does not count.
"""

from __future__ import annotations

from holdfast.access.policy import Caller, Role, is_unlimited
from holdfast.base.ids import is_name
from holdfast.base.lazy_re import pattern as compile_pattern
from holdfast.base.record import Record
from holdfast.errors import UsageError
from holdfast.ledger.agents import Grant

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

PROJECT, SESSION, REPOSITORY = "project", "session", "repository"
KINDS = (PROJECT, SESSION, REPOSITORY)
MAX_GRANTS = 200  # of one agent
_NAME_PATTERN = compile_pattern(r"[A-Za-z0-9_*-][A-Za-z0-9._*-]{0,127}\Z")
_REPOSITORY_PATTERN = compile_pattern(r"[a-z0-9*][a-z0-9*-]{0,38}/[a-z0-9._*-]{1,100}\Z")
_OWNER = compile_pattern(r"[A-Za-z0-9][A-Za-z0-9-]{0,38}\Z")
_REPOSITORY_NAME = compile_pattern(r"\.*[A-Za-z0-9_-][A-Za-z0-9._-]*\Z")
_MAX_REPOSITORY_CHARS = 100
_NAME_FIX = "Use letters, digits, '_', '-', dots and '*', such as acme-*"
_REPOSITORY_FIX = "Write OWNER/NAME, such as acme/shop or acme/*"


class NamedResources(Record):
    """The project, session and repository that a request names; None for one that it does not name."""

    project: str | None = None
    session: str | None = None
    repository: str | None = None


NOTHING = NamedResources()


def make_grant(kind: str, pattern: object) -> Grant:
    """Return a grant; raise UsageError if the kind is unknown or the pattern is not valid."""
    if kind not in KINDS:
        raise UsageError(f"there is no grant of the kind {str(kind)[:40]!r}", f"One of: {', '.join(KINDS)}")
    if not isinstance(pattern, str):
        raise UsageError(f"a pattern must be a string, not {type(pattern).__name__}", _NAME_FIX)
    if kind == REPOSITORY:
        folded = "*/*" if pattern == "*" else pattern.lower()
        name = folded.partition("/")[2]
        if not _REPOSITORY_PATTERN.match(folded) or not name.strip(".") or "**" in folded:
            raise UsageError(f"not a pattern for a repository: {pattern[:80]!a}", _REPOSITORY_FIX)
        return Grant(kind, folded)
    if not _NAME_PATTERN.match(pattern) or "**" in pattern:
        raise UsageError(f"not a pattern for a {kind}: {pattern[:80]!a}", _NAME_FIX)
    return Grant(kind, pattern)


def make_grants(patterns: dict[str, Iterable[str]]) -> tuple[Grant, ...]:
    """Return the grants for these patterns by kind, each once; raise UsageError if one is not valid or there are too many."""
    grants = tuple(dict.fromkeys([make_grant(kind, one) for kind in KINDS for one in patterns.get(kind, ())]))
    check_count(len(grants))
    return grants


def check_count(count: int) -> None:
    """Raise UsageError if an agent would have too many grants."""
    if count > MAX_GRANTS:
        raise UsageError(f"an agent can have at most {MAX_GRANTS} grants, not {count:,}", "Use patterns, such as acme-*")


def is_repository(owner: object, name: object) -> bool:
    """Return whether GitHub could have a repository of this owner and name; neither can leave its place in a path."""
    return (
        isinstance(owner, str)
        and isinstance(name, str)
        and bool(_OWNER.match(owner))
        and len(name) <= _MAX_REPOSITORY_CHARS
        and bool(_REPOSITORY_NAME.match(name))
    )


def matches(pattern: str, name: str) -> bool:
    """Return whether a name fits a pattern, in time proportional to their lengths."""
    first, *rest = pattern.split("*")
    if not rest:
        return pattern == name
    *between, last = rest
    start, end = len(first), len(name) - len(last)
    if end < start or not name.startswith(first) or not name.endswith(last):
        return False
    for piece in between:
        found = name.find(piece, start, end)
        if found < 0:
            return False
        start = found + len(piece)
    return True


def is_own_session(agent: str, session: str) -> bool:
    """Return whether a session belongs to an agent without a grant: its id is the agent's name, or begins with `NAME.`."""
    return session == agent or session.startswith(f"{agent}.")


def is_granted(role: Role, caller: Caller, kind: str, name: str) -> bool:
    """Return whether a caller reaches a project, session or repository: by its role, a grant, or because it is its own."""
    if is_unlimited(role) or (kind == SESSION and is_own_session(caller.agent, name)):
        return True
    own = [grant.pattern for grant in caller.grants if grant.kind == kind]
    patterns = (*_role_patterns(role, kind), *own)
    if kind == REPOSITORY:
        owner, _, repository = name.lower().partition("/")
        halves = [pattern.partition("/") for pattern in patterns]
        return any(matches(first, owner) and matches(second, repository) for first, _, second in halves)
    return any(matches(pattern, name) for pattern in patterns)


def _role_patterns(role: Role, kind: str) -> tuple[str, ...]:
    return {PROJECT: role.projects, SESSION: role.sessions, REPOSITORY: role.repositories}[kind]


def find_missing(role: Role, caller: Caller, scope: str | None, named: NamedResources) -> str:
    """Return the kind of the grant that a request needs and its caller does not have; "" if there is none.

    A project or session counts if the request reaches the scope of that kind: it names the scope, or it names none and the
    role has it.
    """
    for kind in (PROJECT, SESSION):
        name = getattr(named, kind)
        if name and kind in role.scopes and scope in (None, kind) and not is_granted(role, caller, kind, name):
            return kind
    if named.repository is not None and not is_granted(role, caller, REPOSITORY, named.repository):
        return REPOSITORY
    return ""


def reachable_scopes(role: Role, caller: Caller, project: str | None, session: str | None) -> tuple[str, ...]:
    """Return the scopes of a role without those whose project or session is not granted to the caller."""
    named = {PROJECT: project, SESSION: session}
    return tuple([scope for scope in role.scopes if not (name := named.get(scope)) or is_granted(role, caller, scope, name)])


def audit_details(kind: str, named: NamedResources) -> dict[str, str]:
    """Return what the audit records about a missing grant: its kind, and the name if it is one and not any text."""
    name = getattr(named, kind) or ""
    is_valid = is_repository(*name.partition("/")[::2]) if kind == REPOSITORY else is_name(name)
    return {"grant": kind, **({kind: name} if is_valid else {})}
