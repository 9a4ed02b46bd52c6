"""Stores written by version 0.1.0 give the same results, and the same calls write the same bytes.

`tests/golden/write.py` says how the golden files are written.
"""

from __future__ import annotations

import shutil
import sqlite3

import pytest

from golden import compare, database_rows
from holdfast.ledger.sqlite import SqliteLedger

POSTGRES_ROWS = compare.GOLDEN / "postgres.jsonl"


@pytest.fixture(scope="module")
def filled_home(tmp_path_factory):
    """A home filled by the current code."""
    home = tmp_path_factory.mktemp("written") / "home"
    compare.run_script("fill_home.py", home, tmp_path_factory.mktemp("work"))
    if compare.WRITE == "homes":
        _replace_golden_home(home)
    return home


def _replace_golden_home(home):
    """Replace the golden home."""
    for name in ("index.db", "ledger.db"):
        with sqlite3.connect(home / name) as db:
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        db.close()
    shutil.rmtree(compare.HOME, ignore_errors=True)
    shutil.copytree(home, compare.HOME, ignore=shutil.ignore_patterns("run", "*.db-wal", "*.db-shm"))


def query_home(home, tmp_path, **env):
    work = tmp_path / "work"
    work.mkdir()
    return compare.run_script("query_home.py", home, work, **env)


def test_the_same_calls_write_the_same_files(filled_home):
    assert compare.read_files(filled_home) == compare.read_files(compare.HOME)


def test_the_same_calls_write_the_same_ledger(filled_home, tmp_path):
    before = compare.copy_home(tmp_path / "home")
    ledger = SqliteLedger(str(before))
    ledger.database.write(lambda transaction: None)  # brings the file to the version of the other
    ledger.close()
    compare.check_same(
        database_rows.dump_ledger(filled_home / "ledger.db"), database_rows.dump_ledger(before / "ledger.db"), "ledger.db"
    )


def test_a_home_of_version_0_1_gives_the_same_results(filled_home, tmp_path):
    compare.check("answers.json", query_home(compare.copy_home(tmp_path / "home"), tmp_path))


def test_a_home_of_version_0_1_without_its_index_gives_the_same_results(tmp_path):
    home = compare.copy_home(tmp_path / "home")
    (home / "index.db").unlink()
    compare.check("answers.json", query_home(home, tmp_path))


def test_the_same_calls_write_the_same_rows(postgres_url, tmp_path):
    work = tmp_path / "work"
    work.mkdir()
    compare.run_script("fill_home.py", tmp_path / "home", work, HOLDFAST_STORE=postgres_url)
    text = database_rows.dump_postgres(postgres_url)
    if compare.WRITE == "homes":
        POSTGRES_ROWS.write_text(text, encoding="utf-8")
    compare.check_same(
        database_rows.remove_varying_columns(text),
        database_rows.remove_varying_columns(POSTGRES_ROWS.read_text(encoding="utf-8")),
        POSTGRES_ROWS.name,
    )


def test_rows_of_version_0_1_give_the_same_results(postgres_url, tmp_path):
    database_rows.load_postgres(postgres_url, POSTGRES_ROWS.read_text(encoding="utf-8"))
    home = tmp_path / "home"
    compare.check("answers-postgres.json", query_home(home, tmp_path, HOLDFAST_STORE=postgres_url))
