"""A home with something of everything in it: versions, facts, files, trash, an archive, and notes that have expired."""

from __future__ import annotations

import shutil
from pathlib import Path

import apsw

from battery.verbs import Verb, caller
from holdfast import Memory
from holdfast.base import dates

_DAY = 86400


def furnished(home: Path) -> None:
    """Furnish a home that does not exist yet. The clock is turned back, so that nothing was written just now."""
    real = dates.clock
    try:
        _at(real() - 200 * _DAY)
        _long_ago(home)
        for days in (10, 9, 8):
            _at(real() - days * _DAY)
            _lately(home, days)
    finally:
        dates.clock = real
    _small(home)


def copy(template: Path, home: Path, verb: Verb) -> None:
    """The home in which a verb is tried. A copy has other inodes, so its catalogue is brought up to date first."""
    if verb.empty:
        return
    shutil.copytree(template, home, symlinks=True)
    with caller(home) as memory:
        memory.list()
        memory.list()
    if verb.drop:
        (home / verb.drop).unlink()


def _small(home: Path) -> None:
    """Empty the log of the catalogue: thousands of copies are made."""
    db = apsw.Connection(str(home / "index.db"))
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    db.close()


def _at(seconds: float) -> None:
    dates.clock = lambda: seconds


def _long_ago(home: Path) -> None:
    with caller(home) as memory:
        memory.store("zq001 nobody has touched this for long", key="stale")
        memory.store("zq002 a session that is over", key="stale-too", scope="session")
        memory.store("zq003 feedback stays for ever", key="lasting", type="feedback")
        memory.store("zq004 forgotten long ago", key="ancient")
        memory.forget("ancient")


def _lately(home: Path, days: int) -> None:
    with caller(home) as memory:
        memory.store(f"zq01{days} alpha, {days} days ago", key="alpha", tags=["first", "letter"])
        memory.fact("Telegram", "status", f"zq02{days}", on=f"2026-03-{20 - days}")
        if days == 10:
            _once(memory)
        if days == 9:
            memory.store("zq034 gamma, again", key="gamma")
            memory.store("zq035 lost, again\n\n## 2026-01-01 to 2026-01-02\nnot history", key="lost")
            memory.forget("lost")


def _once(memory: Memory) -> None:
    memory.store("zq030 beta, a person's liking", key="beta", type="user")
    memory.store("zq031 gamma, to be forgotten", key="gamma")
    memory.forget("gamma")
    memory.store("zq032 gamma, once", key="gamma")
    memory.store("zq033 lost, once", key="lost")
    memory.store("zq036 for everybody", key="common", scope="global")
    memory.store("zq037 the agent's own", key="own", scope="agent")
    memory.store("zq038 of this session", key="now", scope="session")
    memory.files.create("/memories/MEMORY.md", "# Overview\nzq050 what is where\n")
    memory.files.create("/memories/plan.md", "# Plan\nzq051 first this, then that\n")
    memory.files.create("/memories/folder/one.md", "zq052 one\n")
    memory.files.create("/memories/folder/two.md", "zq053 two\n")
    memory.recall("alpha", mode="keyword")
