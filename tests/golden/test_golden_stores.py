"""Stores that version 0.1.0 wrote are read with the same answers, and the same calls write the same bytes.

`tests/golden/write.py` says how the golden files are written.
"""

from __future__ import annotations

import shutil
import sqlite3

import pytest

from golden import compare, rows

ROWS = compare.GOLDEN / "postgres.jsonl"


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A home that the present code filled."""
    home = tmp_path_factory.mktemp("written") / "home"
    compare.run("life.py", home, tmp_path_factory.mktemp("work"))
    if compare.WRITE == "homes":
        _keep(home)
    return home


def _keep(home):
    """Replace the golden home."""
    for name in ("index.db", "ledger.db"):
        with sqlite3.connect(home / name) as db:
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        db.close()
    shutil.rmtree(compare.HOME, ignore_errors=True)
    shutil.copytree(home, compare.HOME, ignore=shutil.ignore_patterns("run", "*.db-wal", "*.db-shm"))


def answers(home, tmp_path, **env):
    work = tmp_path / "work"
    work.mkdir()
    return compare.run("answers.py", home, work, **env)


def test_the_same_calls_write_the_same_files(written):
    assert compare.files_of(written) == compare.files_of(compare.HOME)


def test_the_same_calls_write_the_same_ledger(written, tmp_path):
    before = compare.copy_home(tmp_path / "home")
    compare.same(rows.of_ledger(written / "ledger.db"), rows.of_ledger(before / "ledger.db"), "ledger.db")


def test_a_home_of_version_0_1_answers_the_same(written, tmp_path):
    compare.check("answers.json", answers(compare.copy_home(tmp_path / "home"), tmp_path))


def test_a_home_of_version_0_1_without_its_index_answers_the_same(tmp_path):
    home = compare.copy_home(tmp_path / "home")
    (home / "index.db").unlink()
    compare.check("answers.json", answers(home, tmp_path))


def test_the_same_calls_write_the_same_rows(postgres_url, tmp_path):
    work = tmp_path / "work"
    work.mkdir()
    compare.run("life.py", tmp_path / "home", work, HOLDFAST_STORE=postgres_url)
    text = rows.dump(postgres_url)
    if compare.WRITE == "homes":
        ROWS.write_text(text, encoding="utf-8")
    compare.same(rows.comparable(text), rows.comparable(ROWS.read_text(encoding="utf-8")), ROWS.name)


def test_rows_of_version_0_1_answer_the_same(postgres_url, tmp_path):
    rows.load(postgres_url, ROWS.read_text(encoding="utf-8"))
    home = tmp_path / "home"
    compare.check("answers-postgres.json", answers(home, tmp_path, HOLDFAST_STORE=postgres_url))
