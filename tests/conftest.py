"""Fixtures of all tests: a home for each test, a clock that a test can set, and child processes that run code."""

from __future__ import annotations

import json
import os
import pwd
import subprocess
import sys
import tempfile
import textwrap
from datetime import UTC, datetime
from pathlib import Path

import hypothesis
import npm
import pytest
import ram_disk

from holdfast import Memory, config
from holdfast.base import dates

QUIETLY = {"deadline": None, "derandomize": True, "database": None}
hypothesis.settings.register_profile("holdfast", max_examples=40, **QUIETLY)
hypothesis.settings.register_profile("battery", max_examples=1000, **QUIETLY)
hypothesis.settings.load_profile("holdfast")  # `--hypothesis-profile=battery` loads the other one after this

sys.path += map(str, Path(__file__).parent.glob("*/"))  # tests of one package use cases of another

REAL_HOMES = {os.path.join(place, ".holdfast") for place in (pwd.getpwuid(os.getuid()).pw_dir, os.path.expanduser("~"))}


def pytest_addoption(parser):
    parser.addoption("--model-examples", type=int, default=8, help="how many lives the model test leads")
    parser.addoption("--model-shrink", action="store_true", help="let the model test look for the shortest life that fails")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config):
    """Keep the tests' folders on the RAM disk, unless `--basetemp` names a folder."""
    config.stash[TIERS] = Tiers()
    if not hasattr(config, "workerinput") and config.option.basetemp is None and ram_disk.find_ram_disk():
        config.option.basetemp = str(ram_disk.make_folder())  # the workers get folders below it


# --- tiers: the log says which one ran, and which tests were not run --------------------------------------------------


class Tiers:
    """Counts of collected tests: those of the battery tier are marked `battery`, the others are of the test tier."""

    def __init__(self):
        self.ran = {"test": 0, "battery": 0}
        self.left_out = {"test": 0, "battery": 0}

    @staticmethod
    def count(items, counts):
        for item in items:
            counts["battery" if item.get_closest_marker("battery") else "test"] += 1

    def line(self):
        ran = " and ".join(tier for tier, count in self.ran.items() if count) or "none"
        missing = [(tier, count) for tier, count in self.left_out.items() if count]
        return "; ".join(
            [
                f"tier: {ran}",
                *(f"{count} test{'s' * (count > 1)} of the {tier} tier not run: make {tier}" for tier, count in missing),
            ]
        )


TIERS = pytest.StashKey[Tiers]()


def pytest_deselected(items):
    if items:
        tiers = items[0].config.stash[TIERS]
        tiers.count(items, tiers.left_out)


def pytest_collection_finish(session):
    tiers = session.config.stash[TIERS]
    tiers.count(session.items, tiers.ran)


def pytest_sessionfinish(session):
    if hasattr(session.config, "workeroutput"):
        tiers = session.config.stash[TIERS]
        session.config.workeroutput["tiers"] = (tiers.ran, tiers.left_out)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node):
    """Take over the counts of a worker: each of them collects all tests."""
    if "tiers" in getattr(node, "workeroutput", {}):
        tiers = node.config.stash[TIERS]
        tiers.ran, tiers.left_out = node.workeroutput["tiers"]


def pytest_terminal_summary(terminalreporter, config):
    """Print the tier, and which tests of real programs were skipped: neither is silent."""
    reports = terminalreporter.stats.get("skipped", ())
    reasons = {report.longrepr[-1] for report in reports if isinstance(report.longrepr, tuple)}
    for reason in sorted(reason for reason in reasons if npm.SKIP_PREFIX in reason):
        terminalreporter.write_line(f"!!! {reason.removeprefix('Skipped: ')}", yellow=True, bold=True)
    terminalreporter.write_line(config.stash[TIERS].line())


def _marks(path):
    """Return a state that changes if anything is written there."""
    try:
        return os.stat(path).st_mtime_ns, sorted(os.listdir(path))
    except OSError as error:
        return error.errno


@pytest.fixture(autouse=True)
def nobody_touches_the_real_home(tmp_path_factory, monkeypatch):
    """Set HOME to a folder of the test, clear all settings, and check that the real ~/.holdfast does not change."""
    for name in [name for name in os.environ if name.startswith(("HOLDFAST_", "OTEL_")) or name in config.AGENTS]:
        monkeypatch.delenv(name)  # also the variables of coding agents: commands of the tests count as a person's
    monkeypatch.setenv("HOLDFAST_EMBEDDER", "none")  # tests about meaning request models; the others are faster without them
    monkeypatch.setenv("HOME", str(tmp_path_factory.mktemp("user")))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "cache"))  # models are prepared once only
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    before = {path: _marks(path) for path in REAL_HOMES}
    yield
    assert {path: _marks(path) for path in REAL_HOMES} == before, "this test touched the real ~/.holdfast"


@pytest.fixture(scope="session")
def disk_folder():
    """A folder on a real disk, for large files."""
    with tempfile.TemporaryDirectory(prefix="holdfast-tests-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)


@pytest.fixture
def disk_path(disk_folder):
    """A folder for the test on a real disk."""
    return Path(tempfile.mkdtemp(dir=disk_folder))


@pytest.fixture
def home(request, tmp_path):
    """The path of a home: on a real disk for tests that are marked `disk`."""
    if request.node.get_closest_marker("disk"):
        return request.getfixturevalue("disk_path") / "home"
    return tmp_path / "home"


@pytest.fixture
def open_memory(home, tmp_path):
    """Open callers of one home; they are closed after the test."""
    opened = []

    def open_(**given):
        opened.append(Memory(given.pop("home", home), **{"project": "demo", "cwd": tmp_path, **given}))
        return opened[-1]

    yield open_
    for memory in opened:
        memory.close()


@pytest.fixture
def memory(open_memory):
    return open_memory()


class Clock:
    """A clock that advances only on demand."""

    def __init__(self, moment):
        self.seconds = self._of(moment)

    def __call__(self):
        return self.seconds

    def set(self, moment):
        self.seconds = self._of(moment)

    def forward(self, seconds=0, *, minutes=0, days=0):
        self.seconds += seconds + 60 * minutes + 86400 * days

    def back(self, seconds=0, *, minutes=0, days=0):
        self.forward(-seconds, minutes=-minutes, days=-days)

    @property
    def now(self):
        return dates.format_timestamp(self.seconds)

    @staticmethod
    def _of(moment):
        return datetime.fromisoformat(moment.replace("Z", "+00:00")).replace(tzinfo=UTC).timestamp()


@pytest.fixture
def clock(monkeypatch):
    """A clock at noon of 1 May 2026, until the test changes it."""
    clock = Clock("2026-05-01T12:00:00Z")
    monkeypatch.setattr(dates, "clock", clock)
    return clock


@pytest.fixture
def truth(home):
    """Return the bytes of all files in the store that are not derived."""

    def read(where=home):
        store = Path(where) / "shelf"
        return {
            str(path.relative_to(store)): path.read_bytes()
            for path in sorted(store.rglob("*"))
            if path.is_file() and not path.is_symlink() and not _made(path.relative_to(store).parts)
        }

    def _made(parts):
        return parts[-1] == "index.md" and "files" not in parts

    return read


@pytest.fixture
def note_file(home):
    """Return the path of a note's file."""

    def path(key, scope="projects/demo"):
        return home / "shelf" / scope / "notes" / f"{key}.md"

    return path


@pytest.fixture
def no_temp_left(home):
    """Fail at the end of the test if a temporary file is left anywhere."""
    yield
    assert [str(path) for path in home.rglob(".holdfast-*")] == []


@pytest.fixture
def child(tmp_path):
    """Run code in a new Python process and return what it assigned to `answer`; the test fails if it hangs or crashes.

    As the user nobody, everything is imported first (`first` names more modules), because that user may be unable to read the
    interpreter's folders."""

    def run(code, *args, first="", as_nobody=False, timeout=60, **env):
        script = _PREFACE + first + (_BECOME_NOBODY if as_nobody else "") + textwrap.dedent(code) + _REPORT
        done = subprocess.run(
            [sys.executable, "-c", script, *map(str, args)],
            capture_output=True,
            text=True,
            timeout=timeout,
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parent / "support"), **env},
            stdin=subprocess.DEVNULL,
        )
        assert done.returncode == 0, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
        return json.loads(done.stdout.splitlines()[-1])

    return run


@pytest.fixture
def gateway(home):
    """The gateway of the test's home, on a free port."""
    from http_gateway import run_gateway

    with run_gateway(home) as one:
        yield one


@pytest.fixture(params=["home", "postgres"])
def any_gateway(request, home, monkeypatch):
    """A gateway on each kind of store, without a rate limit."""
    from http_gateway import run_gateway

    if request.param == "postgres":
        monkeypatch.setenv("HOLDFAST_STORE", request.getfixturevalue("postgres_url"))
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text("[serve]\nrate = 0\n")
    with run_gateway(home) as one:
        yield one


@pytest.fixture(scope="session")
def postgres_databases():
    """A PostgreSQL server of this run (one for each worker), with a factory of new databases."""
    import postgres_server

    with postgres_server.cluster() as server:
        yield postgres_server.Databases(server)


@pytest.fixture
def postgres_url(postgres_databases):
    """The address of a new, migrated database."""
    from holdfast.postgres.pool import close_pools

    url = postgres_databases.fresh()
    yield url
    close_pools(url)
    postgres_databases.drop(url)


@pytest.fixture
def trial_url(postgres_databases, postgres_url):
    """A new database with a table for experiments."""
    import postgres_server

    postgres_databases.server.sql(postgres_server.TRIAL, postgres_server.database_name(postgres_url))
    return postgres_url


@pytest.fixture
def open_trial(trial_url):
    """Open views of that table, for one tenant or another."""
    from postgres_server import TRIAL_SQL

    from holdfast.postgres import Database, PostgresSettings

    def open_(tenant="a", seconds=10, **given):
        return Database(PostgresSettings(url=given.pop("url", trial_url), tenant=tenant, **given), TRIAL_SQL, seconds)

    return open_


@pytest.fixture
def empty_postgres_url(postgres_databases):
    """The address of a new, empty database."""
    from holdfast.postgres.pool import close_pools

    url = postgres_databases.fresh(migrated=False)
    yield url
    close_pools(url)
    postgres_databases.drop(url)


@pytest.fixture
def folder(tmp_path):
    """A project's folder."""
    path = tmp_path / "work"
    path.mkdir()
    return path


@pytest.fixture
def note(home, folder):
    """Store a note in the project of the folder."""

    def store(text, key=None, where=folder, **given):
        with Memory(home, cwd=where, **given) as memory:
            return memory.store(text, key=key).note

    return store


@pytest.fixture
def hook(home, folder):
    """Run a hook as a client does, in another folder than the project's, and return its output."""

    def run(client, event, /, raw=None, env=(), stdin=None, **told):
        told = {"session_id": "s1", "cwd": str(folder), **told}
        done = subprocess.run(
            [sys.executable, "-m", "holdfast", "hook", client, event],
            input=None if stdin is not None else raw if raw is not None else json.dumps(told).encode(),
            stdin=stdin, capture_output=True, timeout=60, cwd=folder.parent,
            env={**os.environ, "HOLDFAST_HOME": str(home), **dict(env)},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr.decode()
        assert done.stderr == b""
        return done.stdout.decode("utf-8")

    return run


@pytest.fixture
def begun(hook, note, home):
    """A session that was briefed before these notes were stored."""
    note("The lighthouse keeper is called Ada.", "keeper")
    hook("claude-code", "SessionStart", source="startup")
    note("We deploy on Tuesdays, never on Fridays.", "deploys")
    note("Use pytest, never unittest.", "testing")


_PREFACE = """
import json, os, sys
from holdfast import HoldfastError, Memory
args, answer = sys.argv[1:], None
"""
_BECOME_NOBODY = """

import ctypes, datetime, difflib, encodings.idna, importlib, pkgutil, shlex, tomllib, traceback, unicodedata
import apsw, yaml
import holdfast
for room in pkgutil.walk_packages(holdfast.__path__, "holdfast."):
    if not room.name.startswith(("holdfast.cli", "holdfast.mcp", "holdfast.server", "holdfast.hooks", "holdfast.adapters")):
        importlib.import_module(room.name)
if os.getuid() == 0:
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
"""
_REPORT = "\nprint(json.dumps(answer))\n"
