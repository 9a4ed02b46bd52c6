"""The PostgreSQL backend of a memory: store, index, ledger and change detection for one caller."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from holdfast.models import Problem
from holdfast.postgres import changes, make_settings, replica_problem
from holdfast.postgres.changes import PostgresChanges
from holdfast.postgres.index import PostgresIndex
from holdfast.postgres.ledger import PostgresLedger
from holdfast.postgres.store import PostgresStore

if TYPE_CHECKING:
    from typing import Any

    from holdfast.config import Config


@dataclass(frozen=True)
class PostgresBackend:
    """The parts of a memory that PostgreSQL holds."""

    store: PostgresStore
    index: PostgresIndex
    ledger: PostgresLedger
    changes: PostgresChanges


def open_backend(config: Config, *, agent: str | None, all_agents: bool) -> PostgresBackend:
    """Return the backend that the settings name, as this caller sees it; connections are opened when they are needed."""
    settings = make_settings(config, agent, all_agents)
    store = PostgresStore(settings, config.home, config.lock_seconds)
    stored_files = changes.SQL["existing_files"]
    index = PostgresIndex(settings, config.lock_seconds, config.quarantine, stored_files=stored_files)
    ledger = PostgresLedger(settings, config.lock_seconds)
    return PostgresBackend(store, index, ledger, PostgresChanges(store, index, config.lock_seconds))


def find_problems(config: Config, index: Any) -> list[Problem]:
    """Return problems of the database itself: no search by meaning, or a read address that is not a replica."""
    vector_problem = find_vector_problem(config, index)
    problem, fix = replica_problem(make_settings(config, None, all_agents=True))
    found = (
        [Problem("vectors", f"search by meaning is off: {vector_problem[0]}", vector_problem[1])] if vector_problem[0] else []
    )
    return found + ([Problem("replica", problem, fix)] if problem else [])


def find_vector_problem(config: Config, index: Any) -> tuple[str, str]:
    """Return why no vectors are kept though an embedder is set, and what fixes that; empty texts if they are kept."""
    problem: tuple[str, str] = index.vectors.find_problem() if config.embedder.strip().lower() != "none" else ("", "")
    return problem
