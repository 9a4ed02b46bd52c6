"""Where the battery works: a temporary folder on a real disk, a copy of the program under test, and clean children."""

from __future__ import annotations

import compileall
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Self

_NOT_A_DISK = ("tmpfs", "ramfs", "devtmpfs")
_PROGRAMS = Path(__file__).with_name("verbs.py")


class Lab:
    """Use it in a `with`: what it made is gone afterwards. `take` opens the same lab in another process."""

    def __init__(self, root: Path, made_here: bool) -> None:
        self.root = root
        self._made_here = made_here
        self.library = root / "program"

    @classmethod
    def make(cls) -> Lab:
        """A new one, with a copy of Holdfast: nobody's edit in the source tree disturbs a run that is under way."""
        lab = cls(Path(tempfile.mkdtemp(prefix="holdfast-battery-", dir=real_disk())), made_here=True)
        source = Path(_origin("holdfast")).parent
        shutil.copytree(source, lab.library / "holdfast", ignore=shutil.ignore_patterns("__pycache__"))
        compileall.compile_dir(lab.library, quiet=2, workers=1)
        return lab

    @classmethod
    def take(cls, root: str) -> Lab:
        """One that another process made and will clean up."""
        return cls(Path(root), made_here=False)

    def home(self, name: str) -> Path:
        """A fresh place for one home."""
        return Path(tempfile.mkdtemp(prefix=f"{name}-", dir=self.root)) / "home"

    def away(self, home: Path) -> None:
        """A home that is not needed any more."""
        shutil.rmtree(home.parent, ignore_errors=True)

    def command(self, program: str, *arguments: str) -> list[str]:
        """How a child is started: a bare interpreter that knows the copy and the database driver, nothing else."""
        libraries = os.pathsep.join((str(self.library), str(Path(_origin("apsw")).parents[_depth("apsw")])))
        return [sys.executable, "-I", "-S", "-B", str(_PROGRAMS), libraries, program, *arguments]

    def start(self, program: str, *arguments: str) -> subprocess.Popen[str]:
        """A child with pipes to talk through."""
        return subprocess.Popen(
            self.command(program, *arguments), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, env=self.environment(), cwd=self.root,
        )  # fmt: skip

    def environment(self) -> dict[str, str]:
        """No setting of whoever runs the battery leaks in."""
        return {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(self.root), "LC_ALL": "C.UTF-8"}

    def whole_environment(self) -> dict[str, str]:
        """The same for a child that runs with everything installed, and with the copy of Holdfast before it; no models."""
        settings = {"HOLDFAST_EMBEDDER": "none", "PYTHONPATH": str(self.library), "PYTHONDONTWRITEBYTECODE": "1"}
        return {**self.environment(), **settings}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._made_here:
            shutil.rmtree(self.root, ignore_errors=True)


def real_disk() -> str:
    """The first place for temporary files that is not kept in memory; there, a flush would cost and prove nothing."""
    places = [tempfile.gettempdir(), "/var/tmp", os.getcwd()]
    return next((place for place in places if os.path.isdir(place) and kind_of(place) not in _NOT_A_DISK), places[0])


def kind_of(place: str) -> str:
    """The kind of file system a folder is on, where the kernel tells."""
    best, kind = "", "unknown"
    try:
        mounts = Path("/proc/mounts").read_text().splitlines()
    except OSError:
        return kind
    real = os.path.realpath(place)
    for line in mounts:
        _, point, name, *_ = line.split()
        inside = real == point or real.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(best):
            best, kind = point, name
    return kind


def _origin(module: str) -> str:
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None:
        raise SystemExit(f"the battery needs {module}: run `make setup` first")
    return spec.origin


def _depth(module: str) -> int:
    """How far above its file the folder is from which a module is imported: a package has one step more."""
    spec = importlib.util.find_spec(module)
    return 1 if spec is not None and spec.submodule_search_locations else 0
