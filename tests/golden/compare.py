"""Compare results with golden files, which only `python tests/golden/write.py` writes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

GOLDEN = Path(__file__).resolve().parent
HOME = GOLDEN / "home"
WRITE = os.environ.get("GOLDEN_WRITE", "")  # set by write.py: "texts", or "homes" to write the stores as well
FILE_TIME = 1767949980  # of every file of a copied home: Git does not keep times


def check(name: str, text: str) -> None:
    """Fail with the lines that differ if a text is not that of the golden file."""
    path = GOLDEN / name
    if WRITE:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode("utf-8"))
    check_same(text, path.read_bytes().decode("utf-8"), f"tests/golden/{name}")


def check_same(text: str, expected: str, name: str) -> None:
    """Fail with the lines that differ; a diff of long texts by pytest takes minutes."""
    if text == expected:
        return
    lines, before = set(text.splitlines()), set(expected.splitlines())
    removed = [f"- {line[:300]}" for line in expected.splitlines() if line not in lines]
    added = [f"+ {line[:300]}" for line in text.splitlines() if line not in before]
    raise AssertionError("\n".join([f"not as in {name}:", *removed[:30], *added[:30]]))


def run_script(script: str, home: Path, work: Path, **env: str) -> str:
    """Run a script of this folder in a new process with its own environment and return its output."""
    inherited = {name: os.environ[name] for name in ("PATH", "TMPDIR", "LD_LIBRARY_PATH") if name in os.environ}
    result = subprocess.run(
        [sys.executable, str(GOLDEN / script), str(home), str(work)], stdin=subprocess.DEVNULL, capture_output=True,
        timeout=120, env={**inherited, "HOME": str(work), "HOLDFAST_EMBEDDER": "none", **env},
    )  # fmt: skip
    assert result.returncode == 0, result.stderr.decode(errors="replace")[-6000:]
    return result.stdout.decode("utf-8")


def copy_home(target: Path) -> Path:
    """Copy the golden home and set the permissions of a home."""
    shutil.copytree(HOME, target)
    for path in [target, *target.rglob("*")]:
        os.chmod(path, 0o700 if path.is_dir() else 0o600)
        if path.is_file():
            os.utime(path, (FILE_TIME, FILE_TIME))
    return target


def read_files(home: Path) -> dict[str, bytes]:
    """Return the content of every file of a home by its path, without databases, locks and files of running processes."""
    found = {str(path.relative_to(home)): path for path in home.rglob("*") if path.is_file()}
    excluded = ("run/", "index.db", "ledger.db", "ledger.revoked", "audit.head")  # the last one is the audit's hash
    return {name: path.read_bytes() for name, path in sorted(found.items()) if not name.startswith(excluded)}
