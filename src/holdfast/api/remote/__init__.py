"""RemoteMemory: the verbs of Memory, asked of a gateway over HTTP. `Memory("https://...", token=...)` makes one."""

from __future__ import annotations

import os
from builtins import list as List  # `list` is a verb here
from collections.abc import Generator, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import quote

from holdfast import config as configuration
from holdfast.api.memory import Memory
from holdfast.api.remote import bulk, parameters
from holdfast.api.remote.connection import GatewayClient
from holdfast.api.remote.files import RemoteFiles
from holdfast.api.remote.notes import Keeping
from holdfast.api.remote.records import R, made, many
from holdfast.api.remote.scopes import RemoteScopes
from holdfast.base import dates
from holdfast.context.caller import typed_errors
from holdfast.errors import Disabled, NotFound, Template, Unauthenticated, UsageError, command, field
from holdfast.formats.facts import reads_back
from holdfast.models import (
    SEARCH_MODES,
    Answer,
    Fact,
    FactSet,
    Forgotten,
    Logged,
    Note,
    Progress,
    Receipt,
    Scope,
    Stored,
    TrashedNote,
    Turn,
    Version,
    parse_tags,
)
from holdfast.safety import validate
from holdfast.verbs.brief.render import Brief
from holdfast.verbs.export import Export, LeftOut
from holdfast.verbs.forget_source import Swept
from holdfast.verbs.graph import Edge, Graph
from holdfast.verbs.read import Piece, Snippet, Snippets
from holdfast.verbs.status import Status
from holdfast.verbs.trace import Trace

if TYPE_CHECKING:
    from holdfast.context.caller import Tags, When

_PAGE = 500


@typed_errors
class RemoteMemory(Keeping):
    """One caller's memory at a gateway. The token says which agent; project and session go with each request."""

    def __new__(cls, *_: object, **__: object) -> Self:
        return object.__new__(cls)

    def __init__(
        self,
        home: str | os.PathLike[str] | None = None,
        *,
        token: str | None = None,
        project: str | None = None,
        session: str | None = None,
        agent: str | None = None,
        client: str | None = None,
        origin: str = "agent",
        cwd: str | os.PathLike[str] | None = None,
        progress: Progress | None = None,
        config: configuration.Config | None = None,
    ) -> None:
        if agent is not None:
            raise UsageError("over HTTP the token says which agent this is", "Leave `agent` out, or use that agent's token")
        settings = config or configuration.load()
        super().__init__(
            None, config=settings.replace(agent=parameters.NOBODY, store_read=None), project=project, session=session,
            client=client, origin=origin, cwd=cwd, progress=progress,
        )  # fmt: skip
        self._gateway = GatewayClient(os.fspath(home or settings.url or ""), token or settings.token)
        self._places = RemoteScopes(self._context)

    # --- writing -------------------------------------------------------------------------------------------------

    def store(
        self,
        text: str | bytes,
        *,
        key: str | None = None,
        scope: str = "project",
        type: str | None = None,
        tags: Tags = None,
        valid_from: When = None,
        valid_to: When = None,
        pinned: bool | None = None,
        origin: str | None = None,
        expected: str | None = None,
        made_from: str | Iterable[str] | None = None,
        again: bool = False,
        redact: bool = False,
        allow_secret: str | None = None,
    ) -> Stored:
        self._context.require_enabled()
        draft = self._context.make_draft(  # the gate stands here too: no secret is sent
            text, key, type, tags, valid_from, valid_to, pinned, origin, expected, None, redact, allow_secret
        )
        more = {"again": again or None, "allow_secret": allow_secret, "made_from": parameters.sources(made_from)}
        body = {**parameters.of_draft(draft, key), "scope": self._context.scope(scope).kind, **more}
        stored = made(Stored, self._request("POST", "/v1/notes", _given(body), keyed=True))
        return stored.replace(redacted=draft.redacted) if draft.redacted else stored

    def store_many(
        self, notes: Iterable[Mapping[str, Any]], *, scope: str | None = None, origin: str | None = None, redact: bool = False
    ) -> List[Stored]:
        self._context.require_enabled()
        rows = bulk.rows(self._context, notes, scope, origin, redact)
        return bulk.kept(self._gateway, self._caller_headers(), rows, self._noted, self._listed)

    def fact(
        self,
        subject: str,
        label: str,
        value: str,
        *,
        on: When = None,
        many: bool = False,
        scope: str = "project",
        origin: str | None = None,
        made_from: str | Iterable[str] | None = None,
        redact: bool = False,
    ) -> FactSet:
        self._context.require_enabled()
        subject, label, value, rules = validate.fact(subject, label, value, redact, reads_back=reads_back)
        body = {
            "subject": subject, "label": label, "value": value, "scope": self._context.scope(scope).kind, "many": many or None,
            "on": dates.day_or_moment(on, "on") if on is not None else None, "made_from": parameters.sources(made_from),
            "origin": parameters.origin(self._context.origin, origin),
        }  # fmt: skip
        stated = made(FactSet, self._request("POST", "/v1/facts", _given(body), keyed=True))
        return stated.replace(redacted=rules) if rules else stated

    def log(
        self, turns: Iterable[Mapping[str, Any]], *, session: str | None = None, client: str | None = None,
        scope: str = "project", redact: bool = False,
    ) -> Logged:  # fmt: skip
        self._context.require_enabled()
        return bulk.logged(self._context, turns, session, client, self._context.scope(scope).kind, redact, self._request)

    def forget(self, key: str, *, scope: str | None = None, expected: str | None = None) -> Forgotten:
        self._context.require_enabled()
        validate.existing_key(key)
        kind = self._places.holding(key, scope, lambda kind: self._noted(kind, key))
        if kind is None:
            return Forgotten(False, key)
        return made(Forgotten, self._request("DELETE", _at(kind, key), keyed=True, if_match=expected))

    def restore(self, key: str, *, scope: str | None = None, under: str | None = None) -> Note:
        self._context.require_enabled()
        otherwise = Template("bring it back under one: ", command("restore {} --as {}", "NAME", "KEY"))
        validate.key(under if under is not None else key, otherwise)
        binned = [one.scope.kind for one in self.trash() if one.key == key] if scope is None else []
        kind = binned[0] if binned else self._places.kinds(scope)[0]
        return made(Note, self._request("POST", _at(kind, key, "/restore"), _given({"under": under}), keyed=True))

    def trash(self, *, scope: str | None = None) -> List[TrashedNote]:
        if not self.config.enabled:
            return []
        return List(self._pages(TrashedNote, "/v1/trash", "trash", {"scope": self._named(scope)}))

    def purge(
        self, key: str | None = None, *, scope: str | None = None, transcripts: bool = False, session: str | None = None,
        client: str | None = None, text: str | bytes | None = None, files: bool = False,
    ) -> Receipt:  # fmt: skip
        self._context.require_enabled()
        if sum([one is not None for one in (key, session, text)]) != 1:
            raise UsageError("what should be purged?", "Give a key, a session, or a text: one of them")
        if key is None:
            words = validate.decode_text(text) if text is not None else None
            body = {"session": session, "client": client, "text": words, "files": files or None}
            return made(Receipt, self._request("POST", "/v1/purge", _given(body), keyed=True))
        validate.existing_key(key)
        binned = [one.scope.kind for one in self.trash() if one.key == key] if scope is None else []
        kind = self._places.holding(key, scope, lambda kind: kind in binned or self._noted(kind, key))
        if kind is None:
            return Receipt(key, None, False, (), 0, 0, (), (), dates.now())
        body = _given({"transcripts": transcripts or None})
        return made(Receipt, self._request("POST", _at(kind, key, "/purge"), body, keyed=True))

    def receipts(self, id: str | None = None) -> List[Receipt]:
        if id is not None:
            return [made(Receipt, self._request("GET", f"/v1/receipts/{quote(id, safe='')}"))]
        return List(self._pages(Receipt, "/v1/receipts", "receipts"))

    # --- where it came from --------------------------------------------------------------------------------------

    def forget_source(
        self, source: str, *, revert: bool = False, dry_run: bool = False, everywhere: bool = False
    ) -> Swept:
        self._context.require_enabled()
        body = {"source": source, "revert": revert or None, "dry_run": dry_run or None, "everywhere": everywhere or None}
        return made(Swept, self._request("POST", "/v1/forget-source", _given(body), keyed=True))

    def review(self, *, scope: str | None = None, everywhere: bool = False) -> List[Note]:
        if not self.config.enabled:
            return []
        query = {"scope": scope if everywhere else self._named(scope), "everywhere": everywhere or None}
        return List(self._pages(Note, "/v1/review", "notes", query))

    def approve(self, key: str, *, scope: str | Scope | None = None, expected: str | None = None) -> Note:
        return made(Note, self._decided("approve", key, scope, expected))

    def reject(self, key: str, *, scope: str | Scope | None = None, expected: str | None = None) -> Forgotten:
        return made(Forgotten, self._decided("reject", key, scope, expected))

    def _decided(self, what: str, key: str, scope: str | Scope | None, expected: str | None) -> Any:
        """Of the text that was read. Whose the note is goes with the request where its whole scope is named."""
        if isinstance(scope, Scope):
            every = self.review(everywhere=True) if expected is None else []
            seen = next((note.version for note in every if (note.scope, note.key) == (scope, key)), expected)
            if seen is None:
                raise NotFound(f"no note {key!r} waits in {scope}", Template(command("review"), " lists what waits"))
            kind, whose = scope.kind, {scope.kind: scope.id} if scope.id else {}
        else:
            note = self.get(key, scope=scope)
            kind, whose, seen = note.scope.kind, {}, note.version if expected is None else expected
        return self._request("POST", f"/v1/review/{kind}/{key}/{what}", {"version": seen, **whose}, keyed=True)

    def trace(self, key: str, *, scope: str | None = None) -> Trace:
        validate.existing_key(key)
        name = quote(key, safe="")
        return self._places.nearest(scope, lambda kind: made(Trace, self._request("GET", f"/v1/trace/{kind}/{name}")))

    # --- asking --------------------------------------------------------------------------------------------------

    def recall(
        self,
        query: str = "",
        *,
        scope: str | None = None,
        type: str | None = None,
        tags: Tags = None,
        limit: int = 10,
        as_of: When = None,
        known_at: When = None,
        mode: str = "hybrid",
        sort: str = "relevance",
        kind: str | None = None,
        now: When = None,
        explain: bool = False,
    ) -> Answer:
        asked, ran = self._asked(query, scope, kind, type, tags, limit, as_of, known_at, mode, sort)
        if not self.config.enabled:
            return Answer((), ran, True, "memory is disabled", True)
        kinds = kind.split(",") if kind else []
        several = len(kinds) > 1  # a request can name one or none: ask for all, and keep those
        body = {
            "query": query, "scope": scope, "type": type or None, "tags": list(parse_tags(tags)) or None, "mode": mode,
            "sort": sort, "limit": 100 if several else limit,
            "as_of": dates.as_of(as_of, "as_of") if as_of is not None else None,
            "known_at": asked.known_at, "kind": None if several else kind or None, "explain": explain or None,
            "now": dates.moment(now, "now") if now is not None else None,
        }  # fmt: skip
        answer = made(Answer, self._request("POST", "/v1/recall", _given(body), repeatable=True))
        return parameters.only(answer, kinds, limit) if several else answer

    def get(self, key: str, *, scope: str | None = None, as_of: When = None, known_at: When = None) -> Note:
        validate.existing_key(key)
        then = {
            "as_of": dates.as_of(as_of, "as_of") if as_of is not None else None,
            "known_at": dates.as_of(known_at, "known_at") if known_at is not None else None,
        }
        return self._places.nearest(scope, lambda kind: self._noted(kind, key, then))

    def list(
        self, *, scope: str | None = None, type: str | None = None, tags: Tags = None, limit: int | None = None,
        source: str | None = None, archived: bool = False,
    ) -> List[Note]:  # fmt: skip
        if limit is not None and (not isinstance(limit, int) or isinstance(limit, bool) or limit < 1):
            raise UsageError(Template(field("limit"), f" must be 1 or more, not {limit!r}"), "Ask for 1 or more")
        if not self.config.enabled:
            return []
        query = {
            "scope": self._named(scope), "type": type or None, "tags": list(parse_tags(tags)) or None, "source": source,
            "archived": archived or None,
        }  # fmt: skip
        found: List[Note] = []
        for note in self._listed(query, min(limit or _PAGE, _PAGE)):
            found.append(note)
            if len(found) == limit:
                break
        return found

    def history(self, key: str, *, scope: str | None = None) -> List[Version]:
        validate.existing_key(key)
        return self._places.nearest(scope, lambda kind: List(self._pages(Version, _at(kind, key, "/history"), "versions")))

    def facts(
        self,
        subject: str | None = None,
        *,
        label: str | None = None,
        as_of: When = None,
        scope: str | None = None,
        history: bool = False,
    ) -> List[Fact]:
        then = dates.as_of(as_of, "as_of") if as_of is not None else None
        for name in (subject, label):
            if name is not None:
                validate.one_line(name, "subject or label")
        if not self.config.enabled:
            return []
        query = {"subject": subject, "label": label, "as_of": then, "scope": self._named(scope), "history": history or None}
        return List(self._pages(Fact, "/v1/facts", "facts", query))

    def brief(
        self, *, prompt: str | None = None, again: bool = False, cap: int | None = None, explain: bool = False,
        mode: str = "keyword", remember: bool = True,
    ) -> Brief:  # fmt: skip
        validate.choice(mode, ("keyword", "hybrid"), "mode")
        if not self.config.enabled:
            return Brief("", disabled=True)
        body = {"prompt": prompt, "again": again or None, "cap": cap, "explain": explain or None, "mode": mode}
        told = {**_given(body), **({} if remember else {"remember": False})}
        repeatable = prompt is None or again or explain or not remember  # else what was shown once is not shown again
        return made(Brief, self._request("POST", "/v1/brief", told, repeatable=repeatable))

    def expand(self, of: str, *, before: int = 3, after: int = 3, session: str | None = None) -> List[Turn]:
        query = {"of": of, "before": before, "after": after, "session": session}
        return many(Turn, self._request("GET", "/v1/history", query=query), "turns")

    def export(self, *, scope: str | None = None) -> Export:
        return Export(lambda left_out: self._exported(scope, left_out))

    def _exported(self, scope: str | None, left_out: LeftOut) -> Generator[dict[str, Any], None, None]:
        if self.config.enabled:
            query = {"scope": self._named(scope)}
            yield from bulk.exported(self._gateway, self._caller_headers(), query, self._context.progress, left_out)

    def graph(self, entity: str, *, depth: int = 1, as_of: When = None, scope: str | None = None) -> Graph:
        then = dates.as_of(as_of, "as_of") if as_of is not None else None
        query = {"entity": entity, "depth": depth, "as_of": then, "scope": self._named(scope)}
        return made(Graph, self._request("GET", "/v1/graph", query=query))

    def path(self, start: str, end: str, *, as_of: When = None, scope: str | None = None) -> List[Edge]:
        then = dates.as_of(as_of, "as_of") if as_of is not None else None
        query = {"from": start, "to": end, "as_of": then, "scope": self._named(scope)}
        return many(Edge, self._request("GET", "/v1/graph/path", query=query), "path")

    def search(self, query: str, *, limit: int = 10, mode: str = "hybrid") -> Snippets:
        validate.choice(mode, SEARCH_MODES, "mode")
        self._asked(query, None, None, None, None, limit, None, None, mode, "relevance")
        if not self.config.enabled:
            return Snippets((), mode, True, "memory is disabled", True)
        body = {"query": query, "limit": limit, "mode": None if mode == "hybrid" else mode}
        said = self._request("POST", "/v1/search", _given(body), repeatable=True)
        results = many(Snippet, said, "results")
        how = {name: said[name] for name in ("mode", "degraded", "reason", "disabled") if name in said}
        return Snippets(results, **{"mode": "keyword", **how})  # an older gateway says no mode

    def read(self, path: str, start: int = 1, lines: int | None = None) -> Piece:
        return made(Piece, self._request("GET", "/v1/read", query={"path": path, "from": start, "lines": lines}))

    @property
    def files(self) -> RemoteFiles:
        """The agent's own tree, by the six verbs of the memory tool."""
        return RemoteFiles(self._context, self._request)

    def status(self, *, whole: bool = True) -> Status:
        told = self._request("GET", "/v1/status", query={"whole": None if whole else False})
        return made(Status, {"shelf": "", **told, "home": self.home, "project": self.project})

    # --- who asks, and whom --------------------------------------------------------------------------------------

    @property
    def home(self) -> str:
        """The gateway's address."""
        return self._gateway.url

    @property
    def agent(self) -> str | None:
        """Nobody knows here: the token says it there."""
        return None

    def close(self) -> None:
        self._gateway.close()
        super().close()

    def _caller_headers(self) -> dict[str, str]:
        named = {"X-Holdfast-Project": self.project, "X-Holdfast-Session": self.session}
        return {name: value for name, value in named.items() if value}

    def _request(self, method: str, path: str, body: Any = None, **how: Any) -> Any:
        if not self.config.enabled:
            raise Disabled
        if not self._gateway.has_token:
            raise Unauthenticated("no token is known for the gateway", "Give one: Memory(url, token=...) or HOLDFAST_TOKEN")
        return self._gateway.request(method, path, body, headers=self._caller_headers(), **how)

    def _named(self, scope: str | None) -> str | None:
        return None if scope is None else self._context.scope(scope).kind

    def _noted(self, kind: str, key: str, then: dict[str, Any] | None = None) -> Note:
        return made(Note, self._request("GET", _at(kind, key), query=then))

    def _listed(self, query: dict[str, Any], at_once: int = _PAGE) -> Iterator[Note]:
        return self._pages(Note, "/v1/notes", "notes", query, at_once)

    def _pages(
        self, kind: type[R], path: str, name: str, query: dict[str, Any] | None = None, at_once: int = _PAGE
    ) -> Iterator[R]:
        """A list page by page, as long as anybody wants more."""
        cursor = None
        while True:
            said = self._request("GET", path, query={**(query or {}), "limit": at_once, "cursor": cursor})
            yield from many(kind, said, name)
            cursor = said.get("next")
            if not cursor:
                return


def _at(kind: str, key: str, more: str = "") -> str:
    return f"/v1/notes/{kind}/{quote(key, safe='')}{more}"


def _given(body: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in body.items() if value is not None}


parameters.refuse_the_rest(RemoteMemory, Memory)
