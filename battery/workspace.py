"""A temporary folder on a real disk with a copy of the package under test, and child processes that use this copy."""

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

REPOSITORY = Path(__file__).resolve().parents[1]
_MEMORY_FILE_SYSTEMS = ("tmpfs", "ramfs", "devtmpfs")
_CHILD_PROGRAMS = Path(__file__).with_name("child_programs.py")


class Workspace:
    """The temporary folder; a `with` block deletes it at the end. Use `attach` in a process that another one started."""

    def __init__(self, root: Path, owned: bool) -> None:
        self.root = root
        self.package_root = root / "program"
        self._owned = owned

    @classmethod
    def create(cls) -> Workspace:
        """Create a workspace with a copy of Holdfast, so that edits of the source tree do not disturb a run."""
        workspace = cls(Path(tempfile.mkdtemp(prefix="holdfast-battery-", dir=find_real_disk())), owned=True)
        source = Path(_find_origin("holdfast")).parent
        shutil.copytree(source, workspace.package_root / "holdfast", ignore=shutil.ignore_patterns("__pycache__"))
        compileall.compile_dir(workspace.package_root, quiet=2, workers=1)
        return workspace

    @classmethod
    def attach(cls, root: str) -> Workspace:
        """Return a workspace that another process created and will delete."""
        return cls(Path(root), owned=False)

    def new_home(self, name: str) -> Path:
        """Return the path of a home that does not exist yet, in a new folder of its own."""
        return Path(tempfile.mkdtemp(prefix=f"{name}-", dir=self.root)) / "home"

    def remove_home(self, home: Path) -> None:
        """Delete a home with the folder that `new_home` made for it."""
        shutil.rmtree(home.parent, ignore_errors=True)

    def child_command(self, program: str, *arguments: str) -> list[str]:
        """Return the command of a child program: a bare interpreter with the copied package and apsw, nothing else."""
        libraries = os.pathsep.join((str(self.package_root), str(_find_import_folder("apsw"))))
        return [sys.executable, "-I", "-S", "-B", str(_CHILD_PROGRAMS), libraries, program, *arguments]

    def start_child(self, program: str, *arguments: str) -> subprocess.Popen[str]:
        """Start a child program with pipes for its input and output."""
        return subprocess.Popen(
            self.child_command(program, *arguments), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, env=self.minimal_environment(), cwd=self.root,
        )  # fmt: skip

    def minimal_environment(self) -> dict[str, str]:
        """Return an environment without any setting of the user who runs the battery."""
        return {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(self.root), "LC_ALL": "C.UTF-8"}

    def full_environment(self, *, with_battery: bool = False) -> dict[str, str]:
        """Return the environment of a child with all installed packages, the copied Holdfast before them and no models."""
        folders = (self.package_root, REPOSITORY) if with_battery else (self.package_root,)
        settings = {"HOLDFAST_EMBEDDER": "none", "PYTHONDONTWRITEBYTECODE": "1"}
        return {**self.minimal_environment(), **settings, "PYTHONPATH": os.pathsep.join(map(str, folders))}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._owned:
            shutil.rmtree(self.root, ignore_errors=True)


def find_real_disk() -> str:
    """Return the first folder for temporary files that is not kept in memory, where a flush would prove nothing."""
    folders = [tempfile.gettempdir(), "/var/tmp", os.getcwd()]
    on_disk = (folder for folder in folders if os.path.isdir(folder) and file_system_of(folder) not in _MEMORY_FILE_SYSTEMS)
    return next(on_disk, folders[0])


def file_system_of(folder: str) -> str:
    """Return the type of the file system a folder is on, or "unknown" where /proc/mounts does not exist."""
    best, kind = "", "unknown"
    try:
        mounts = Path("/proc/mounts").read_text().splitlines()
    except OSError:
        return kind
    path = os.path.realpath(folder)
    for line in mounts:
        _, mount_point, name, *_ = line.split()
        inside = path == mount_point or path.startswith(mount_point.rstrip("/") + "/")
        if inside and len(mount_point) >= len(best):
            best, kind = mount_point, name
    return kind


def _find_origin(module: str) -> str:
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None:
        raise SystemExit(f"the battery needs {module}: run `make setup` first")
    return spec.origin


def _find_import_folder(module: str) -> Path:
    """Return the folder to add to sys.path to import a module or package."""
    spec = importlib.util.find_spec(module)
    is_package = spec is not None and bool(spec.submodule_search_locations)
    return Path(_find_origin(module)).parents[1 if is_package else 0]
