"""The verbs about where a memory came from: what waits for a person, where it was told, and all that one source touched."""

from __future__ import annotations

from holdfast.base import dates
from holdfast.config import is_store
from holdfast.context.caller import typed_errors
from holdfast.errors import UsageError
from holdfast.models import Forgotten

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn, Self

    from holdfast.config import Config
    from holdfast.context.caller import Context
    from holdfast.models import Note, Scope
    from holdfast.verbs.forget_source import Swept
    from holdfast.verbs.trace import Trace


@typed_errors
class Provenance:
    """What Memory can do besides, as far as it is about trust."""

    config: Config
    _context: Context

    def __new__(cls, home: object = None, *_: object, token: str | None = None, **__: object) -> Self:
        """A memory in a folder or in PostgreSQL; where its home is another address, one that asks a gateway."""
        if isinstance(home, str) and "://" in home and not is_store(home):
            from holdfast.api.remote import RemoteMemory

            if not issubclass(RemoteMemory, cls):
                raise UsageError("a class of your own has no address", "Make it from holdfast.api.remote.RemoteMemory")
            return object.__new__(RemoteMemory)  # type: ignore[return-value]
        if token is not None:
            raise UsageError("a token is for a gateway, and the home is none", "Give its address, or leave the token out")
        return object.__new__(cls)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a Memory is of one process: give others the home, and let each open its own")

    @property
    def origin(self) -> str:
        """Who speaks: user, agent, tool, import or web."""
        return self._context.origin

    def forget_source(
        self, source: str, *, revert: bool = False, dry_run: bool = False, everywhere: bool = False
    ) -> Swept:
        """Forget everything that came from a source, be it by way of other notes: an address or its beginning, a path,
        `session:ID`, `client:NAME`, `agent:NAME`, `origin:web`, `note:KEY`. With `revert` a note that has an older text which
        did not gets that back instead. `everywhere` is a person's: all scopes there are."""
        from holdfast.verbs import forget_source

        self._context.require_enabled()
        swept = forget_source.forget_by_source(
            self._context, source, revert=revert, dry_run=dry_run, everywhere=everywhere
        )
        return swept if dry_run else swept.replace(beyond_reach=tuple(self._render_anew()[1]))

    def review(self, *, scope: str | None = None, everywhere: bool = False) -> list[Note]:
        """What is in quarantine: too little trusted to be told, until a person approves it. `everywhere` is a person's: of
        every agent, project and session there is."""
        from holdfast.verbs import review

        return review.list_quarantined(self._context, scope, everywhere) if self.config.enabled else []

    def approve(self, key: str, *, scope: str | Scope | None = None, expected: str | None = None) -> Note:
        """Let the text of a note pass that is in quarantine. Only a person may: `Memory(origin="user")`. One that is not
        among their own is meant by its whole scope, as `review` tells it: `approve(note.key, scope=note.scope)`."""
        from holdfast.verbs import review

        self._context.require_enabled()
        return review.approve(self._context, key, scope, expected)

    def reject(self, key: str, *, scope: str | Scope | None = None, expected: str | None = None) -> Forgotten:
        """Forget a note that is in quarantine, and keep that a person decided so."""
        from holdfast.verbs import review

        self._context.require_enabled()
        return self._forgotten(key, review.reject(self._context, key, scope, expected))

    def trace(self, key: str, *, scope: str | None = None) -> Trace:
        """Where a note came from, to whom it was told, what was made from it, and what people decided about it."""
        from holdfast.verbs import trace

        return trace.trace(self._context, key, scope)

    def _forgotten(self, key: str, places: list[Scope]) -> Forgotten:
        """What became of a note that was taken away from these places."""
        if not places:
            return Forgotten(False, key)
        beyond = self._render_anew()[1]
        until = dates.timestamp(dates.clock() + self.config.trash_days * 86400)
        return Forgotten(True, key, places[0], until, tuple(beyond))

    if TYPE_CHECKING:

        def _render_anew(self) -> tuple[list[str], list[str]]: ...
