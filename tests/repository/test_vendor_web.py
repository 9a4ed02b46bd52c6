"""Vendored libraries of the console are exactly the pinned ones, and each has its licence."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "src" / "holdfast" / "server" / "web" / "static" / "vendor"


def test_vendored_files_have_the_pinned_digests_and_their_licences():
    command = [sys.executable, str(ROOT / "scripts" / "vendor-web"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    scripts = {path.name for path in FOLDER.glob("*.js")}
    styles = {path.name for path in FOLDER.glob("*.css")}  # each belongs to the script that its name begins with
    assert {name.partition(".")[0] for name in styles} <= {name.partition(".")[0] for name in scripts}
    assert scripts and {path.name for path in FOLDER.iterdir()} == scripts | styles | {f"{name}.LICENSE" for name in scripts}
