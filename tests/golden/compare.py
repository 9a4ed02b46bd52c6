"""Compare with a golden file. The files are written only by `python tests/golden/write.py`."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

GOLDEN = Path(__file__).resolve().parent
HOME = GOLDEN / "home"
WRITE = os.environ.get("GOLDEN_WRITE", "")  # set by write.py: "texts", or "homes" for what an older version wrote as well
MOMENT = 1767949980  # of every file of a copied home: git keeps no times


def check(name: str, text: str) -> None:
    """Fail with a diff if a text is not what the golden file says."""
    path = GOLDEN / name
    if WRITE:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode("utf-8"))
    same(text, path.read_bytes().decode("utf-8"), f"tests/golden/{name}")


def same(text: str, expected: str, name: str) -> None:
    """Fail with the lines that differ; a diff of long texts by pytest takes minutes."""
    if text == expected:
        return
    lines, before = set(text.splitlines()), set(expected.splitlines())
    gone = [f"- {line[:300]}" for line in expected.splitlines() if line not in lines]
    come = [f"+ {line[:300]}" for line in text.splitlines() if line not in before]
    raise AssertionError("\n".join([f"not as in {name}:", *gone[:30], *come[:30]]))


def run(script: str, home: Path, work: Path, **env: str) -> str:
    """Run a script of this folder in a process of its own, with an environment of its own, and return what it printed."""
    kept = {name: os.environ[name] for name in ("PATH", "TMPDIR", "LD_LIBRARY_PATH") if name in os.environ}
    done = subprocess.run(
        [sys.executable, str(GOLDEN / script), str(home), str(work)], stdin=subprocess.DEVNULL, capture_output=True,
        timeout=120, env={**kept, "HOME": str(work), "HOLDFAST_EMBEDDER": "none", **env},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr.decode(errors="replace")[-6000:]
    return done.stdout.decode("utf-8")


def copy_home(target: Path) -> Path:
    """Copy the golden home with the permissions that a home has."""
    shutil.copytree(HOME, target)
    for path in [target, *target.rglob("*")]:
        os.chmod(path, 0o700 if path.is_dir() else 0o600)
        if path.is_file():
            os.utime(path, (MOMENT, MOMENT))
    return target


def files_of(home: Path) -> dict[str, bytes]:
    """Return the bytes of every file of a home, except databases, locks and other files of running processes."""
    found = {str(path.relative_to(home)): path for path in home.rglob("*") if path.is_file()}
    passing = ("run/", "index.db", "ledger.db")
    return {name: path.read_bytes() for name, path in sorted(found.items()) if not name.startswith(passing)}
