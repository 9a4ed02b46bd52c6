"""The verbs about a whole scope, a whole session or the whole home, asked of a gateway."""

from __future__ import annotations

import os
from builtins import list as List
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from holdfast.api.memory import Memory
from holdfast.api.remote import transcripts
from holdfast.api.remote.records import made, many
from holdfast.context.caller import typed_errors
from holdfast.models import Cleared, Forgotten, Logged, Note, Problem
from holdfast.safety import validate
from holdfast.search.vectorize import WaitingCounts
from holdfast.verbs.scaffold import Scaffolded, choose_scope, parse_names
from holdfast.verbs.scaffold.boot import Boot, check_cap
from holdfast.verbs.status import Reindexed

_CAP = 9000  # the most characters that a start-up ever has


@typed_errors
class Keeping(Memory):
    """What RemoteMemory can do besides."""

    if TYPE_CHECKING:

        def _request(self, method: str, path: str, body: Any = None, **how: Any) -> Any: ...
        def _named(self, scope: str | None) -> str | None: ...

    def clear(self, scope: str) -> Cleared:
        self._context.require_enabled()
        kind = self._context.scope(scope if isinstance(scope, str) else "").kind
        said = self._request("POST", "/v1/clear", {"scope": kind}, keyed=True)
        cleared = Cleared(said["cleared"])
        cleared.beyond_reach = tuple(said["beyond_reach"])
        return cleared

    def import_history(
        self, path: str | os.PathLike[str], *, client: str | None = None, scope: str = "project"
    ) -> List[Logged]:
        self._context.require_enabled()
        return transcripts.imported(self._context, os.fspath(path), client, self._context.scope(scope).kind, self._request)

    def forget_session(self, session: str, *, client: str | None = None) -> Forgotten:
        self._context.require_enabled()
        return made(Forgotten, self._request("POST", "/v1/history/forget", _session(session, client), keyed=True))

    def restore_session(self, session: str, *, client: str | None = None) -> Logged:
        self._context.require_enabled()
        return made(Logged, self._request("POST", "/v1/history/restore", _session(session, client), keyed=True))

    def scaffold(self, name: str, *, scope: str | None = None) -> Scaffolded:
        self._context.require_enabled()
        body = {"name": name, "scope": choose_scope(self._context, scope).kind}
        return made(Scaffolded, self._request("POST", "/v1/scaffold", body, keyed=True))

    def boot(
        self, *, scope: str | None = None, cap: int | None = None, scaffolds: str | Iterable[str] | None = None
    ) -> Boot:
        most, wanted = check_cap(cap), parse_names(self.config.scaffolds, scaffolds)
        if not self.config.enabled:
            return Boot("", disabled=True)
        body = {"scope": self._named(scope), "cap": min(most, _CAP), "scaffolds": List(wanted) or None}
        given = {name: value for name, value in body.items() if value is not None}
        return made(Boot, self._request("POST", "/v1/boot", given, repeatable=True))  # makes only what is missing

    def retain(self, *, dry_run: bool = False) -> List[Note]:
        self._context.require_enabled()
        body = {"dry_run": True} if dry_run else {}
        return many(Note, self._request("POST", "/v1/retain", body, repeatable=dry_run, keyed=not dry_run), "archived")

    def embed(self) -> WaitingCounts:
        self._context.require_enabled()
        said = self._request("POST", "/v1/embed", {}, keyed=True)
        left = WaitingCounts(said["left"])
        left.failed = said["failed"]
        return left

    def check(self) -> List[Problem]:
        return many(Problem, self._request("GET", "/v1/check"), "problems") if self.config.enabled else []

    def reindex(self) -> Reindexed:
        self._context.require_enabled()
        return made(Reindexed, self._request("POST", "/v1/reindex", {}, keyed=True))


def _session(session: object, client: object) -> dict[str, Any]:
    named, of = validate.session(session, client, needed=True)
    return {"session": named} if of is None else {"session": named, "client": of}
