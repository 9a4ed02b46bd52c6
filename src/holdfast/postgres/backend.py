"""The PostgreSQL backend of a memory: store, index, ledger and change detection for one caller."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from holdfast.models import Problem
from holdfast.postgres import changes, replica_problem, settings_of
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
    settings = settings_of(config, agent, all_agents)
    store = PostgresStore(settings, config.home, config.lock_seconds)
    index = PostgresIndex(settings, config.lock_seconds, config.quarantine)
    index.stored_files = changes.SQL["existing_files"]
    ledger = PostgresLedger(settings, config.lock_seconds)
    return PostgresBackend(store, index, ledger, PostgresChanges(store, index, config.lock_seconds))


def problems(config: Config, index: Any) -> list[Problem]:
    """What is wrong with the store besides what it holds: no search by meaning, or a replica that is none."""
    said = without_vectors(config, index)
    what, fix = replica_problem(settings_of(config, None, all_agents=True))
    found = [Problem("vectors", f"search by meaning is off: {said[0]}", said[1])] if said[0] else []
    return found + ([Problem("replica", what, fix)] if what else [])


def without_vectors(config: Config, index: Any) -> tuple[str, str]:
    """Return why no vectors are kept though an embedder is set, and what fixes that; empty texts if they are kept."""
    lacking: tuple[str, str] = index.vectors.lacking() if config.embedder.strip().lower() != "none" else ("", "")
    return lacking
