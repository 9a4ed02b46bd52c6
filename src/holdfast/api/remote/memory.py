"""RemoteMemory: every verb as a request to a gateway. Arguments are checked here first, so that no secret is sent."""

from __future__ import annotations

import os
from builtins import list as List  # `list` is a verb here
from collections.abc import Generator, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NoReturn, Self
from urllib.parse import quote

from holdfast import config as configuration
from holdfast.api.interface import MemoryInterface, copy_docstrings
from holdfast.api.memory import Memory
from holdfast.api.remote import bulk
from holdfast.api.remote.caller import RemoteCaller, draft_fields, drop_none, source_list
from holdfast.api.remote.client import GatewayClient
from holdfast.api.remote.files import RemoteFiles
from holdfast.api.remote.records import R, parse_record, parse_records
from holdfast.base import dates
from holdfast.context.caller import typed_errors
from holdfast.errors import Disabled, NotFound, Template, Unauthenticated, UsageError, command, field
from holdfast.formats.facts import reads_back
from holdfast.models import (
    RELATION_KINDS,
    SEARCH_MODES,
    Answer,
    Cleared,
    Fact,
    FactSet,
    Forgotten,
    Logged,
    Note,
    Problem,
    Progress,
    Receipt,
    Related,
    Relation,
    Scope,
    Stored,
    TrashedNote,
    Turn,
    Version,
    parse_tags,
)
from holdfast.safety import validate
from holdfast.search.vectorize import WaitingCounts
from holdfast.verbs import operator_messages
from holdfast.verbs.brief.render import Brief
from holdfast.verbs.export import Export, LeftOut
from holdfast.verbs.forget_source import Swept
from holdfast.verbs.graph import Edge, Graph
from holdfast.verbs.operator_messages import Message
from holdfast.verbs.read import Piece, Snippet, Snippets
from holdfast.verbs.recall import make_filter
from holdfast.verbs.scaffold import Scaffolded, parse_names
from holdfast.verbs.scaffold.boot import Boot, check_cap
from holdfast.verbs.status import Reindexed, Status
from holdfast.verbs.trace import Trace

if TYPE_CHECKING:
    from types import TracebackType

    from holdfast.context.caller import Tags, When
    from holdfast.verbs.projects import Adopted, KnownProject
    from holdfast.verbs.render import Rendered

NOT_OFFERED = {  # each verb that has no route, and why; docs/gateway.md says the same
    "render": "it writes into a file on the server's machine and keeps that file up to date",
    "projects": "it lists folders of the server's machine",
    "adopt": "it joins projects of the home; run it on the server's machine",
    "mark": "it writes a marker into a local folder, for a local home",
}
_PAGE = 500  # rows of a list in one request
_MOST_HITS = 100  # that a gateway returns
_BOOT_CHARS = 9000  # the most that `boot` ever returns
_HIT_KINDS = {"note": ("note", "past"), "file": ("file",), "turn": ("turn",), "fact": ("fact",)}


@typed_errors
@copy_docstrings
class RemoteMemory(MemoryInterface):
    """One caller's memory at a gateway. The token says which agent; project and session go with each request."""

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
            raise UsageError("over HTTP the token determines the agent", "Leave out `agent`, or use the token of that agent")
        self.config = config or configuration.load()
        self._caller = RemoteCaller(
            self.config, project=self.config.project if project is None else project, session=session or self.config.session,
            client=client or self.config.client, origin=origin, folder=os.fspath(cwd) if cwd is not None else None,
            progress=progress or Progress(),
        )  # fmt: skip
        self._gateway = GatewayClient(os.fspath(home or self.config.url or ""), token or self.config.token)

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
        self._caller.require_enabled()
        draft = self._caller.make_draft(
            text, key=key, type=type, tags=tags, valid_from=valid_from, valid_to=valid_to, pinned=pinned, origin=origin,
            expected=expected, redact=redact, allow_secret=allow_secret,
        )  # fmt: skip
        body = {
            **draft_fields(draft, key), "scope": self._caller.scope(scope).kind, "again": again or None,
            "allow_secret": allow_secret, "made_from": source_list(made_from),
        }  # fmt: skip
        stored = parse_record(Stored, self._request("POST", "/v1/notes", drop_none(body), keyed=True))
        return stored.replace(redacted=draft.redacted) if draft.redacted else stored

    def store_many(
        self, notes: Iterable[Mapping[str, Any]], *, scope: str | None = None, origin: str | None = None, redact: bool = False
    ) -> List[Stored]:
        self._caller.require_enabled()
        checked = bulk.check_notes(self._caller, notes, scope=scope, origin=origin, redact=redact)
        return bulk.store_notes(self._gateway, self._caller_headers(), checked, self._get_note, self._list_notes)

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
        self._caller.require_enabled()
        subject, label, value, rules = validate.check_fact(subject, label, value, redact, reads_back=reads_back)
        body = {
            "subject": subject, "label": label, "value": value, "scope": self._caller.scope(scope).kind, "many": many or None,
            "on": dates.parse_day_or_moment(on, "on") if on is not None else None, "made_from": source_list(made_from),
            "origin": self._caller.origin_field(origin),
        }  # fmt: skip
        fact_set = parse_record(FactSet, self._request("POST", "/v1/facts", drop_none(body), keyed=True))
        return fact_set.replace(redacted=rules) if rules else fact_set

    def log(
        self, turns: Iterable[Mapping[str, Any]], *, session: str | None = None, client: str | None = None,
        scope: str = "project", redact: bool = False,
    ) -> Logged:  # fmt: skip
        self._caller.require_enabled()
        kind = self._caller.scope(scope).kind
        return bulk.log_turns(
            self._caller, turns, session=session, client=client, kind=kind, redact=redact, request=self._request
        )

    def import_history(
        self, path: str | os.PathLike[str], *, client: str | None = None, scope: str = "project"
    ) -> List[Logged]:
        self._caller.require_enabled()
        kind = self._caller.scope(scope).kind
        return bulk.import_transcripts(self._caller, os.fspath(path), client, kind, self._request)

    def forget(self, key: str, *, scope: str | None = None, expected: str | None = None) -> Forgotten:
        self._caller.require_enabled()
        validate.check_existing_key(key)
        kind = self._caller.find_scope(key, scope, lambda kind: self._get_note(kind, key))
        if kind is None:
            return Forgotten(False, key)
        return parse_record(Forgotten, self._request("DELETE", _note_path(kind, key), keyed=True, if_match=expected))

    def restore(self, key: str, *, scope: str | None = None, under: str | None = None) -> Note:
        self._caller.require_enabled()
        otherwise = Template("Restore it under a valid key: ", command("restore {} --as {}", "NAME", "KEY"))
        validate.check_key(under if under is not None else key, otherwise)
        in_trash = self._kinds_in_trash(key, scope)
        kind = in_trash[0] if in_trash else self._caller.scope_kinds(scope)[0]
        body = drop_none({"under": under})
        return parse_record(Note, self._request("POST", _note_path(kind, key, "/restore"), body, keyed=True))

    def forget_session(self, session: str, *, client: str | None = None) -> Forgotten:
        self._caller.require_enabled()
        body = _session_fields(session, client)
        return parse_record(Forgotten, self._request("POST", "/v1/history/forget", body, keyed=True))

    def restore_session(self, session: str, *, client: str | None = None) -> Logged:
        self._caller.require_enabled()
        body = _session_fields(session, client)
        return parse_record(Logged, self._request("POST", "/v1/history/restore", body, keyed=True))

    def trash(self, *, scope: str | None = None) -> List[TrashedNote]:
        if not self.config.enabled:
            return []
        return List(self._pages(TrashedNote, "/v1/trash", "trash", {"scope": self._scope_kind(scope)}))

    def purge(
        self, key: str | None = None, *, scope: str | None = None, transcripts: bool = False, session: str | None = None,
        client: str | None = None, text: str | bytes | None = None, files: bool = False,
    ) -> Receipt:  # fmt: skip
        self._caller.require_enabled()
        if sum([given is not None for given in (key, session, text)]) != 1:
            raise UsageError("no note, session or text to purge", "Give exactly one of a key, a session and a text")
        if key is None:
            words = validate.decode_text(text) if text is not None else None
            body = {"session": session, "client": client, "text": words, "files": files or None}
            return parse_record(Receipt, self._request("POST", "/v1/purge", drop_none(body), keyed=True))
        validate.check_existing_key(key)
        in_trash = self._kinds_in_trash(key, scope)
        kind = self._caller.find_scope(key, scope, lambda kind: kind in in_trash or self._get_note(kind, key))
        if kind is None:
            return Receipt(
                key=key,
                scope=None,
                deleted=False,
                removed=(),
                index_rows=0,
                usage_rows=0,
                checks=(),
                beyond_reach=(),
                time=dates.now(),
            )
        body = drop_none({"transcripts": transcripts or None})
        return parse_record(Receipt, self._request("POST", _note_path(kind, key, "/purge"), body, keyed=True))

    def receipts(self, id: str | None = None) -> List[Receipt]:
        if id is not None:
            return [parse_record(Receipt, self._request("GET", f"/v1/receipts/{quote(id, safe='')}"))]
        return List(self._pages(Receipt, "/v1/receipts", "receipts"))

    def clear(self, scope: str) -> Cleared:
        self._caller.require_enabled()
        kind = self._caller.scope(scope if isinstance(scope, str) else "").kind
        answer = self._request("POST", "/v1/clear", {"scope": kind}, keyed=True)
        cleared = Cleared(answer["cleared"])
        cleared.beyond_reach = tuple(answer["beyond_reach"])
        return cleared

    def retain(self, *, dry_run: bool = False) -> List[Note]:
        self._caller.require_enabled()
        body = {"dry_run": True} if dry_run else {}
        answer = self._request("POST", "/v1/retain", body, repeatable=dry_run, keyed=not dry_run)
        return parse_records(Note, answer, "archived")

    # --- provenance ----------------------------------------------------------------------------------------------

    def forget_source(self, source: str, *, revert: bool = False, dry_run: bool = False, everywhere: bool = False) -> Swept:
        self._caller.require_enabled()
        body = {"source": source, "revert": revert or None, "dry_run": dry_run or None, "everywhere": everywhere or None}
        return parse_record(Swept, self._request("POST", "/v1/forget-source", drop_none(body), keyed=True))

    def review(self, *, scope: str | None = None, everywhere: bool = False) -> List[Note]:
        if not self.config.enabled:
            return []
        query = {"scope": scope if everywhere else self._scope_kind(scope), "everywhere": everywhere or None}
        return List(self._pages(Note, "/v1/review", "notes", query))

    def approve(self, key: str, *, scope: str | Scope | None = None, expected: str | None = None) -> Note:
        return parse_record(Note, self._decide("approve", key, scope, expected))

    def reject(self, key: str, *, scope: str | Scope | None = None, expected: str | None = None) -> Forgotten:
        return parse_record(Forgotten, self._decide("reject", key, scope, expected))

    def quarantine(self, key: str, *, scope: str | Scope | None = None, expected: str | None = None) -> Note:
        return parse_record(Note, self._decide("quarantine", key, scope, expected))

    def _decide(self, decision: str, key: str, scope: str | Scope | None, expected: str | None) -> Any:
        """Send a decision about the version that was read. A whole scope also names the owner of the note."""
        if isinstance(scope, Scope):
            kind, owner = scope.kind, {scope.kind: scope.id} if scope.id else {}
            version = expected if expected is not None else self._find_version(decision, key, scope, owner)
        else:
            note = self.get(key, scope=scope)
            kind, owner, version = note.scope.kind, {}, note.version if expected is None else expected
        return self._request("POST", f"/v1/review/{kind}/{key}/{decision}", {"version": version, **owner}, keyed=True)

    def _find_version(self, decision: str, key: str, scope: Scope, owner: dict[str, str]) -> str:
        """Return the version of a note that a decision is about; one to approve or reject must wait for it."""
        if decision == "quarantine":
            return self._get_note(scope.kind, key, owner).version
        for note in self.review(everywhere=True):
            if (note.scope, note.key) == (scope, key):
                return note.version
        raise NotFound(
            f"no note {key!r} in quarantine in {scope}", Template(command("review"), " lists the notes in quarantine")
        )

    # --- relations -----------------------------------------------------------------------------------------------

    def relate(self, key: str, kind: str, target: str, *, scope: str | None = None, target_scope: str | None = None) -> Related:
        return self._change_relation("POST", "", key, kind, target, scope, target_scope)

    def unrelate(
        self, key: str, kind: str, target: str, *, scope: str | None = None, target_scope: str | None = None
    ) -> Related:
        return self._change_relation("DELETE", "", key, kind, target, scope, target_scope)

    def relations(
        self, key: str | None = None, *, scope: str | Scope | None = None, status: str | None = None, everywhere: bool = False
    ) -> List[Relation]:
        if not self.config.enabled:
            return []
        if key is None:
            kind = scope.kind if isinstance(scope, Scope) else scope
            query = {"scope": kind, "status": status, "everywhere": everywhere or None}
            return List(self._pages(Relation, "/v1/relations", "relations", query))
        path, owner = self._relation_path(key, scope)
        return List(self._pages(Relation, f"/v1/notes/{path}", "relations", {"status": status, **owner}))

    def accept_relation(
        self, key: str, kind: str, target: str, *, scope: str | Scope | None = None, target_scope: str | Scope | None = None
    ) -> Related:
        return self._change_relation("POST", "accept", key, kind, target, scope, target_scope)

    def reject_relation(
        self, key: str, kind: str, target: str, *, scope: str | Scope | None = None, target_scope: str | Scope | None = None
    ) -> Related:
        return self._change_relation("POST", "reject", key, kind, target, scope, target_scope)

    def _change_relation(
        self, method: str, decision: str, key: str, kind: str, target: str, scope: str | Scope | None,
        target_scope: str | Scope | None,
    ) -> Related:  # fmt: skip
        self._caller.require_enabled()
        validate.check_choice(kind, RELATION_KINDS, "kind of relation")
        validate.check_existing_key(target)
        path, owner = self._relation_path(key, scope)
        target_kind = target_scope.kind if isinstance(target_scope, Scope) else self._scope_kind(target_scope)
        fields = drop_none({"kind": kind, "target": target, "target_scope": target_kind}) | owner
        if method == "DELETE":
            return parse_record(Related, self._request("DELETE", f"/v1/notes/{path}", query=fields, keyed=True))
        address = f"/v1/review/{path}/{decision}" if decision else f"/v1/notes/{path}"
        return parse_record(Related, self._request("POST", address, fields, keyed=True))

    def _relation_path(self, key: str, scope: str | Scope | None) -> tuple[str, dict[str, str]]:
        """Return the end of the address of a note's relations, and what names the owner of a whole scope."""
        validate.check_existing_key(key)
        if isinstance(scope, Scope):
            return f"{scope.kind}/{key}/relations", {scope.kind: scope.id} if scope.id else {}
        kind = self._caller.find_scope(key, scope, lambda kind: self._get_note(kind, key))
        if kind is None:
            raise NotFound(f"no note {key!r}", Template(command("list"), " shows the notes there are"))
        return f"{kind}/{key}/relations", {}

    def trace(self, key: str, *, scope: str | None = None) -> Trace:
        validate.check_existing_key(key)
        path = quote(key, safe="")
        return self._caller.ask_nearest(
            scope, lambda kind: parse_record(Trace, self._request("GET", f"/v1/trace/{kind}/{path}"))
        )

    # --- reading -------------------------------------------------------------------------------------------------

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
        archived: bool | None = None,
    ) -> Answer:
        search_filter = make_filter(
            self._caller, query, scope=scope, kind=kind, type=type, tags=tags, limit=limit, as_of=as_of, known_at=known_at,
            mode=mode, sort=sort, archived=archived,
        )  # fmt: skip
        if not self.config.enabled:
            return Answer((), mode, True, "memory is disabled", True)
        kinds = kind.split(",") if kind else []
        several = len(kinds) > 1  # a request names one kind or none: request all kinds, then filter them here
        body = {
            "query": query, "scope": scope, "type": type or None, "tags": list(parse_tags(tags)) or None, "mode": mode,
            "sort": sort, "limit": _MOST_HITS if several else limit,
            "as_of": dates.parse_as_of(as_of, "as_of") if as_of is not None else None,
            "known_at": search_filter.known_at, "kind": None if several else kind or None, "explain": explain or None,
            "now": dates.parse_moment(now, "now") if now is not None else None, "archived": archived,
        }  # fmt: skip
        answer = parse_record(Answer, self._request("POST", "/v1/recall", drop_none(body), repeatable=True))
        return _keep_kinds(answer, kinds, limit) if several else answer

    def get(self, key: str, *, scope: str | None = None, as_of: When = None, known_at: When = None) -> Note:
        validate.check_existing_key(key)
        query = {
            "as_of": dates.parse_as_of(as_of, "as_of") if as_of is not None else None,
            "known_at": dates.parse_as_of(known_at, "known_at") if known_at is not None else None,
        }
        return self._caller.ask_nearest(scope, lambda kind: self._get_note(kind, key, query))

    def list(
        self, *, scope: str | None = None, type: str | None = None, tags: Tags = None, limit: int | None = None,
        source: str | None = None, archived: bool = False,
    ) -> List[Note]:  # fmt: skip
        if limit is not None and (not isinstance(limit, int) or isinstance(limit, bool) or limit < 1):
            raise UsageError(Template(field("limit"), f" must be 1 or more, not {limit!r}"), "Use 1 or more")
        if not self.config.enabled:
            return []
        if scope == "all":
            self._caller.all_folders("list every project", "list --all")
        query = {
            "scope": None if scope == "all" else self._scope_kind(scope), "type": type or None,
            "tags": list(parse_tags(tags)) or None, "source": source, "archived": archived or None,
            "everywhere": True if scope == "all" else None,
        }  # fmt: skip
        found: List[Note] = []
        for note in self._list_notes(query, min(limit or _PAGE, _PAGE)):
            found.append(note)
            if len(found) == limit:
                break
        return found

    def history(self, key: str, *, scope: str | None = None) -> List[Version]:
        validate.check_existing_key(key)
        return self._caller.ask_nearest(
            scope, lambda kind: List(self._pages(Version, _note_path(kind, key, "/history"), "versions"))
        )

    def facts(
        self,
        subject: str | None = None,
        *,
        label: str | None = None,
        as_of: When = None,
        scope: str | None = None,
        history: bool = False,
    ) -> List[Fact]:
        day = dates.parse_as_of(as_of, "as_of") if as_of is not None else None
        for name in (subject, label):
            if name is not None:
                validate.check_line(name, "subject or label")
        if not self.config.enabled:
            return []
        query = {
            "subject": subject, "label": label, "as_of": day, "scope": self._scope_kind(scope), "history": history or None,
        }  # fmt: skip
        return List(self._pages(Fact, "/v1/facts", "facts", query))

    def brief(
        self, *, prompt: str | None = None, again: bool = False, cap: int | None = None, explain: bool = False,
        mode: str = "keyword", remember: bool = True,
    ) -> Brief:  # fmt: skip
        validate.check_choice(mode, ("keyword", "hybrid"), "mode")
        if not self.config.enabled:
            return Brief("", disabled=True)
        body = {
            "prompt": prompt, "again": again or None, "cap": cap, "explain": explain or None, "mode": mode,
            "remember": None if remember else False,
        }  # fmt: skip
        repeatable = prompt is None or again or explain or not remember  # else a note that was shown is not shown again
        return parse_record(Brief, self._request("POST", "/v1/brief", drop_none(body), repeatable=repeatable))

    def boot(
        self, *, scope: str | None = None, cap: int | None = None, scaffolds: str | Iterable[str] | None = None,
        remember: bool = True,
    ) -> Boot:  # fmt: skip
        limit, wanted = check_cap(cap), parse_names(self.config.scaffolds, scaffolds)
        if not self.config.enabled:
            return Boot("", disabled=True)
        body = {
            "scope": self._scope_kind(scope), "cap": min(limit, _BOOT_CHARS), "scaffolds": List(wanted) or None,
            "remember": None if remember else False,
        }  # fmt: skip
        answer = self._request("POST", "/v1/boot", drop_none(body), repeatable=not remember)  # a message is shown once
        return parse_record(Boot, answer)

    def operator_send(
        self, text: str | bytes, *, to: str = "agent", re: str | None = None, agent: str | None = None,
        scope: str | None = None, redact: bool = False,
    ) -> Message:  # fmt: skip
        validate.check_choice(to, operator_messages.RECIPIENTS, "recipient")
        self._caller.require_enabled()
        default = None if re is not None else "agent" if agent or to == operator_messages.OPERATOR else "project"
        body = {
            "text": operator_messages.check_message(text, redact), "to": to, "re": re, "agent": agent,
            "scope": self._scope_kind(scope) or default,
        }  # fmt: skip
        return parse_record(Message, self._request("POST", "/v1/operator/messages", drop_none(body), keyed=True))

    def operator_list(self, *, agent: str | None = None, scope: str | None = None, unread: bool = False) -> List[Message]:
        if not self.config.enabled:
            return []
        query = {"agent": agent, "scope": self._scope_kind(scope), "unread": unread or None}
        return List(self._pages(Message, "/v1/operator/messages", "messages", query))

    def operator_read(self, id: str | None = None, *, agent: str | None = None, scope: str | None = None) -> List[Message]:
        self._caller.require_enabled()
        body = {"id": id, "agent": agent, "scope": self._scope_kind(scope)}
        answer = self._request("POST", "/v1/operator/messages/read", drop_none(body), keyed=True)
        return parse_records(Message, answer, "messages")

    def expand(self, of: str, *, before: int = 3, after: int = 3, session: str | None = None) -> List[Turn]:
        query = {"of": of, "before": before, "after": after, "session": session}
        return parse_records(Turn, self._request("GET", "/v1/history", query=query), "turns")

    def export(self, *, scope: str | None = None) -> Export:
        return Export(lambda left_out: self._export(scope, left_out))

    def _export(self, scope: str | None, left_out: LeftOut) -> Generator[dict[str, Any], None, None]:
        if self.config.enabled:
            query = {"scope": self._scope_kind(scope)}
            yield from bulk.export_notes(self._gateway, self._caller_headers(), query, self._caller.progress, left_out)

    def graph(self, entity: str, *, depth: int = 1, as_of: When = None, scope: str | None = None) -> Graph:
        day = dates.parse_as_of(as_of, "as_of") if as_of is not None else None
        query = {"entity": entity, "depth": depth, "as_of": day, "scope": self._scope_kind(scope)}
        return parse_record(Graph, self._request("GET", "/v1/graph", query=query))

    def path(self, start: str, end: str, *, as_of: When = None, scope: str | None = None) -> List[Edge]:
        day = dates.parse_as_of(as_of, "as_of") if as_of is not None else None
        query = {"from": start, "to": end, "as_of": day, "scope": self._scope_kind(scope)}
        return parse_records(Edge, self._request("GET", "/v1/graph/path", query=query), "path")

    def search(self, query: str, *, limit: int = 10, mode: str = "hybrid") -> Snippets:
        validate.check_choice(mode, SEARCH_MODES, "mode")
        make_filter(self._caller, query, limit=limit, mode=mode)
        if not self.config.enabled:
            return Snippets((), mode, True, "memory is disabled", True)
        body = {"query": query, "limit": limit, "mode": None if mode == "hybrid" else mode}
        answer = self._request("POST", "/v1/search", drop_none(body), repeatable=True)
        results = parse_records(Snippet, answer, "results")
        properties = {name: answer[name] for name in ("mode", "degraded", "reason", "disabled") if name in answer}
        return Snippets(results, **{"mode": "keyword", **properties})  # an older gateway sends no mode

    def read(self, path: str, start: int = 1, lines: int | None = None) -> Piece:
        return parse_record(Piece, self._request("GET", "/v1/read", query={"path": path, "from": start, "lines": lines}))

    @property
    def files(self) -> RemoteFiles:
        return RemoteFiles(self._caller, self._request)

    def scaffold(self, name: str, *, scope: str | None = None) -> Scaffolded:
        self._caller.require_enabled()
        body = {"name": name, "scope": self._caller.scope("agent" if scope is None else scope).kind}
        return parse_record(Scaffolded, self._request("POST", "/v1/scaffold", body, keyed=True))

    # --- maintenance ---------------------------------------------------------------------------------------------

    def status(self, *, whole: bool = True) -> Status:
        answer = self._request("GET", "/v1/status", query={"whole": None if whole else False})
        return parse_record(Status, {"shelf": "", **answer, "home": self.home, "project": self.project})

    def check(self) -> List[Problem]:
        return parse_records(Problem, self._request("GET", "/v1/check"), "problems") if self.config.enabled else []

    def reindex(self) -> Reindexed:
        self._caller.require_enabled()
        return parse_record(Reindexed, self._request("POST", "/v1/reindex", {}, keyed=True))

    def embed(self) -> WaitingCounts:
        self._caller.require_enabled()
        answer = self._request("POST", "/v1/embed", {}, keyed=True)
        counts = WaitingCounts(answer["left"])
        counts.failed = answer["failed"]
        return counts

    def render(self, path: str | os.PathLike[str], *, remove: bool = False) -> Rendered:
        raise _not_offered("render")

    def projects(self) -> List[KnownProject]:
        raise _not_offered("projects")

    def adopt(self, old: str, new: str | None = None) -> Adopted:
        raise _not_offered("adopt")

    def mark(self) -> str:
        raise _not_offered("mark")

    @property
    def home(self) -> str:
        return self._gateway.url

    @property
    def project(self) -> str:
        return self._caller.project

    @property
    def session(self) -> str | None:
        return self._caller.session

    @property
    def agent(self) -> str | None:
        return None

    @property
    def origin(self) -> str:
        return self._caller.origin

    def close(self) -> None:
        self._gateway.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Memory cannot be pickled; give other processes the home, and let each open its own")

    # --- requests ------------------------------------------------------------------------------------------------

    def _caller_headers(self) -> dict[str, str]:
        return drop_none({"X-Holdfast-Project": self.project, "X-Holdfast-Session": self.session})

    def _request(self, method: str, path: str, body: Any = None, **options: Any) -> Any:
        if not self.config.enabled:
            raise Disabled
        if not self._gateway.has_token:
            fix = "Set HOLDFAST_TOKEN, --token-file FILE or Memory(url, token=...)"
            raise Unauthenticated("no token is set for the gateway", fix)
        return self._gateway.request(method, path, body, headers=self._caller_headers(), **options)

    def _scope_kind(self, scope: str | None) -> str | None:
        return None if scope is None else self._caller.scope(scope).kind

    def _kinds_in_trash(self, key: str, scope: str | None) -> List[str]:
        """Return the scopes that have a key in their trash; none if the scope is named."""
        return [note.scope.kind for note in self.trash() if note.key == key] if scope is None else []

    def _get_note(self, kind: str, key: str, query: dict[str, Any] | None = None) -> Note:
        return parse_record(Note, self._request("GET", _note_path(kind, key), query=query))

    def _list_notes(self, query: dict[str, Any], page_size: int = _PAGE) -> Iterator[Note]:
        return self._pages(Note, "/v1/notes", "notes", query, page_size)

    def _pages(
        self, kind: type[R], path: str, name: str, query: dict[str, Any] | None = None, page_size: int = _PAGE
    ) -> Iterator[R]:
        """Yield the records of a list, one request a page, until the caller stops reading."""
        cursor = None
        while True:
            answer = self._request("GET", path, query={**(query or {}), "limit": page_size, "cursor": cursor})
            yield from parse_records(kind, answer, name)
            cursor = answer.get("next")
            if not cursor:
                return


Memory.register(RemoteMemory)  # `isinstance(memory, Memory)` holds for what `Memory(...)` returns


def _note_path(kind: str, key: str, suffix: str = "") -> str:
    return f"/v1/notes/{kind}/{quote(key, safe='')}{suffix}"


def _session_fields(session: object, client: object) -> dict[str, Any]:
    name, of_client = validate.check_session(session, client, required=True)
    return drop_none({"session": name, "client": of_client})


def _keep_kinds(answer: Answer, kinds: list[str], limit: int) -> Answer:
    """Return an answer with the first hits of these kinds."""
    wanted = [name for kind in kinds for name in _HIT_KINDS[kind]]
    return answer.replace(hits=tuple([hit for hit in answer.hits if hit.kind in wanted][:limit]))


def _not_offered(verb: str) -> UsageError:
    return UsageError(f"`{verb}` is not offered over HTTP: {NOT_OFFERED[verb]}", "Run it on the machine of the home")
