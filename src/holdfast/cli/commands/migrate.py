"""migrate."""

from __future__ import annotations

from holdfast.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.cli.output import Output
    from holdfast.cli.runner import Invocation


def migrate(call: Invocation) -> int:
    """As whoever the address names: the schema is theirs then."""
    settings = call.settings()
    if not settings.store:
        raise UsageError("which database?", "Say it with --store postgresql://user@host/database, or set store.url")
    from holdfast.postgres import migrate, newest_version, vector_problem_at

    applied = migrate(settings.store, None if call.screen.json else lambda name: call.screen.aside(f"applied {name}"))
    what, fix = vector_problem_at(settings.store)
    if what and not call.screen.json:
        call.screen.aside(f"search by meaning is off: {what}. {fix}", "yellow")
    return call.answer({"applied": applied, "version": newest_version(), "without_vectors": what}, _tell)


def _tell(screen: Output, done: dict[str, Any]) -> None:
    if done["applied"]:
        screen.say(f"{screen.paint('migrated', 'green')} to {done['version']}")
    else:
        screen.nothing(f"nothing to do: the database is at {done['version']}")
