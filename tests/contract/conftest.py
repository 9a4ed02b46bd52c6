"""One suite for every store: each test runs on a folder and on PostgreSQL.

Where the two differ by design, a test checks `store` and states what each of them does; no test is skipped silently. What only
a folder has (a person's editor, `mv`, deleting index.db) is tested in tests/context/test_sync.py and
tests/index/test_index.py, what only PostgreSQL has in tests/postgres.
"""

from __future__ import annotations

from itertools import count

import pytest

from holdfast.models import Scope

STORES = ["folder", "postgres"]


TENANTS = count(1)


@pytest.fixture(scope="session")
def one_database(postgres_databases):
    """One database for all of these tests: each test is a tenant of its own and sees nothing of the others."""
    from holdfast.postgres.pool import close_pools

    url = postgres_databases.fresh()
    yield url
    close_pools(url)
    postgres_databases.drop(url)


@pytest.fixture(params=STORES)
def store(request, monkeypatch):
    """The kind of store; every process that the test starts uses the same one."""
    if request.param == "postgres":
        monkeypatch.setenv("HOLDFAST_STORE", request.getfixturevalue("one_database"))
        monkeypatch.setenv("HOLDFAST_TENANT", f"tenant-{next(TENANTS)}")
    return request.param


@pytest.fixture
def open_any(store, open_memory):
    """Open callers of one store; they are closed after the test."""
    return open_memory


@pytest.fixture
def any_memory(open_any):
    return open_any()


@pytest.fixture
def person(open_any):
    """A person in the same project."""
    return open_any(origin="user")


@pytest.fixture
def bytes_of():
    """Return the document of a note, byte for byte."""

    def read(memory, key, scope=Scope("project", "demo")):
        return memory._context.store.read_note(scope, key).data

    return read
