"""The caller of a gateway: checked names, the scopes that a request may name, and drafts that are checked before sending."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

from holdfast.context.caller import Context
from holdfast.errors import Denied, Disabled, HoldfastError, NoScope, NotFound, Template, UsageError, command, phrase
from holdfast.formats.versions import Draft
from holdfast.models import SCOPES, Progress, Scope, Source
from holdfast.safety import validate
from holdfast.verbs.write import check_draft

if TYPE_CHECKING:
    from holdfast.config import Config
    from holdfast.context.caller import Tags, When

T = TypeVar("T")
_DENIED_SECONDS = 60.0  # seconds before a scope that the gateway denied is requested again
_TOKEN_AGENT = "of-the-token"  # placeholder for the agent, whose name only the gateway knows


class RemoteCaller:
    """The names that go with each request, and the project of the folder that the caller works in."""

    def __init__(
        self, config: Config, *, project: str | None, session: str | None, client: str | None, origin: str, folder: str | None,
        progress: Progress,
    ) -> None:  # fmt: skip
        self.config = config
        self.session = validate.check_name(session, "session id") if session else None
        self.client = validate.check_line(client, "client's name", 100) if client else None
        self.origin = validate.check_origin(origin)
        self.progress = progress
        self._named_project = validate.check_name(project, "project id") if project is not None else None
        self._folder = folder or "."
        self._project: str | None = self._named_project
        self._names_are_checked = False
        self._denied_until: dict[str, float] = {}

    @property
    def project(self) -> str:
        """The id of the caller's project."""
        if self._project is None:
            self._project = self._find_project(self._folder)
        return self._project

    def project_of(self, folder: str) -> str:
        """Return the id of a folder's project; a project that the caller named comes first."""
        return self._named_project or self._find_project(folder)

    def _find_project(self, folder: str) -> str:
        """Ask the home on this machine, which remembers moved and renamed folders."""
        config = self.config.replace(store_read=None, agent=None)
        context = Context(
            config, project=None, session=None, agent=None, client=None, origin="agent", cwd=folder, progress=self.progress
        )
        try:
            return context.project_ids()[0]
        finally:
            context.close()

    # --- scopes --------------------------------------------------------------------------------------------------

    def scope(self, kind: str) -> Scope:
        """Return the caller's scope of a kind; raise `UsageError`, `Denied` or `NoScope` if there is none."""
        if kind not in SCOPES:
            raise UsageError(f"unknown scope {kind!r}", f"Use one of: {', '.join(SCOPES)}")
        if kind not in self.config.allowed_scopes:
            allowed = ", ".join(self.config.allowed_scopes)
            raise Denied(f"this caller cannot use the scope {kind}", f"Use one of: {allowed}")
        if kind == "session":
            return self._session_scope()
        return Scope("global") if kind == "global" else Scope(kind, self.project if kind == "project" else _TOKEN_AGENT)

    def _session_scope(self) -> Scope:
        if not self.session:
            given = "Set --session, HOLDFAST_SESSION or Memory(session=...)"
            what = "no session is known"
            raise NoScope(what, Template(phrase("session of scope", given)))
        return Scope("session", self.session)

    def scope_kinds(self, scope: str | None) -> list[str]:
        """Return the named scope, or the caller's scopes, nearest first, without those that were denied a moment ago."""
        if scope is not None:
            return [self.scope(scope).kind]
        kinds: list[str] = ["session"] if self.session else []
        kinds = [kind for kind in (*kinds, "project", "agent", "global") if kind in self.config.allowed_scopes]
        return [kind for kind in kinds if time.monotonic() >= self._denied_until.get(kind, 0.0)] or kinds

    def visible_folders(self, kind: str | None) -> tuple[str, ...]:
        """Raise if the caller may not search a scope; return no folders, which only the gateway knows."""
        if kind is not None:
            self.scope(kind)
        return ()

    def all_folders(self, what: str = "search every project", by: str = "recall --scope all") -> tuple[str, ...]:
        """Raise unless the caller is a person; return no folders, which only the gateway knows."""
        self.require_person(what, by)
        return ()

    def ask_nearest(self, scope: str | None, ask: Callable[[str], T]) -> T:
        """Return the answer of the first scope that has one."""
        failed: HoldfastError | None = None
        for kind in self.scope_kinds(scope):
            try:
                return ask(kind)
            except (NotFound, Denied) as error:
                if scope is not None:
                    raise
                self._remember_denied(kind, error)
                failed = error if failed is None or isinstance(error, NotFound) else failed
        raise failed or NotFound("no such note", Template(command("list"), " shows the notes there are"))

    def find_scope(self, key: str, scope: str | None, ask: Callable[[str], object]) -> str | None:
        """Return the one scope that has a key, or None; raise `UsageError` if several have it. `ask` raises if one has not."""
        if scope is not None:
            return self.scope_kinds(scope)[0]
        found, denied = [], 0
        kinds = self.scope_kinds(None)
        for kind in kinds:
            try:
                ask(kind)
                found.append(kind)
            except NotFound:
                pass
            except Denied as error:
                denied += 1
                self._remember_denied(kind, error)
                if denied == len(kinds):
                    raise
        if len(found) > 1:
            raise UsageError(f"{key!r} exists in several scopes: {', '.join(found)}", "Name one with scope")
        return found[0] if found else None

    def _remember_denied(self, kind: str, error: HoldfastError) -> None:
        if isinstance(error, Denied):
            self._denied_until[kind] = time.monotonic() + _DENIED_SECONDS

    # --- checks before a request -----------------------------------------------------------------------------------

    def require_enabled(self) -> None:
        """Raise `Disabled` if memory is switched off."""
        if not self.config.enabled:
            raise Disabled

    def require_person(self, what: str, by: str) -> None:
        """Raise `Denied` unless the caller is a person."""
        if self.origin != "user":
            does = phrase(f"{by} as a person", f'`holdfast {by}` in your own terminal, or Memory(origin="user")')
            raise Denied(f"only a person may {what}", Template("As a person, use ", does))

    def make_draft(
        self, text: object, *, key: str | None = None, type: str | None = None, tags: Tags = None, valid_from: When = None,
        valid_to: When = None, pinned: bool | None = None, origin: str | None = None, expected: str | None = None,
        made_from: object = None, redact: bool = False, allow_secret: str | None = None,
    ) -> Draft:  # fmt: skip
        """Check a note as a home would, so that no secret is sent. The gateway judges what it was `made_from`."""
        validate.check_note_properties(type, origin, expected)
        source = Source(validate.check_origin(self.origin if origin is None else origin), None, self.client, self.session)
        self.check_names()
        return check_draft(
            source, text, key=key, note_bytes=self.config.note_bytes, type=type, tags=tags, valid_from=valid_from,
            valid_to=valid_to, pinned=pinned, expected=expected, redact=redact, allow_secret=allow_secret,
        )  # fmt: skip

    def check_names(self) -> None:
        """Reject names that look like a secret, once: they become names of folders and are stored with each note."""
        if not self._names_are_checked:
            for name in filter(None, (self.client, self.session, self._named_project)):
                validate.reject_secrets(name, "the name of an agent, client, session or project", fix="Choose another name")
            self._names_are_checked = True

    def origin_field(self, given: str | None = None) -> str | None:
        """Return the origin to send. `user` is left out: only the token identifies a person."""
        origin = given or self.origin
        return None if origin == "user" else origin


def source_list(made_from: str | Iterable[str] | None) -> list[str] | None:
    """Return sources as a list."""
    if made_from is None:
        return None
    return [made_from] if isinstance(made_from, str) else list(made_from)


def draft_fields(draft: Draft, key: str | None) -> dict[str, Any]:
    """Return a checked draft as the fields of a request. Without a key the gateway derives the same one."""
    return {
        "text": draft.text, "key": None if key is None else draft.key, "type": draft.type,
        "tags": None if draft.tags is None else list(draft.tags), "valid_from": draft.valid_from, "valid_to": draft.valid_to,
        "pinned": draft.pinned, "expected": draft.expected,
        "origin": None if draft.source.origin == "user" else draft.source.origin,
    }  # fmt: skip


def drop_none(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the fields that have a value."""
    return {name: value for name, value in fields.items() if value is not None}
