"""Run one verb in a child under strace: record its system calls, inject a fault at one of them, and check its flushes."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from battery.child_programs import END, START
from battery.workspace import Workspace

TRACED_CALLS = (
    "write", "pwrite64", "pwritev", "pwritev2", "fsync", "fdatasync", "sync", "syncfs", "sync_file_range", "msync",
    "rename", "renameat", "renameat2", "link", "linkat", "symlink", "symlinkat", "unlink", "unlinkat", "rmdir",
    "mkdir", "mkdirat", "ftruncate", "truncate", "fallocate", "openat",
)  # fmt: skip
FULL_DISK_CALLS = ("write", "pwrite64", "ftruncate", "fallocate", "mkdir", "mkdirat")  # those that fail on a full disk
_LINE = re.compile(r"^(?:\d+ +)?(\w+)\((.*)\) += (-?\d+|\?)(.*)$")
_PATH = re.compile(r"<([^<>]*)>")
_TIMEOUT = 60  # seconds


@dataclass(frozen=True)
class SystemCall:
    """One system call of a verb."""

    number: int  # among the calls of the verb, from 1
    name: str
    nth: int  # among the calls of this name since the program started: strace counts in this way
    text: str


@dataclass(frozen=True)
class TraceLine:
    """One line of the log of strace."""

    name: str
    arguments: str
    result: str

    @property
    def failed(self) -> bool:
        return self.result.startswith("-")


@dataclass(frozen=True)
class ChildResult:
    """The output of a child, and how it ended."""

    output: list[str]
    killed: bool
    injected: bool
    exit_code: int


def unavailable_reason() -> str:
    """Return why strace cannot inject faults on this machine, or an empty string if it can."""
    if sys.platform != "linux" or shutil.which("strace") is None:
        return "strace is not installed here"
    rules = ["-e", "trace=openat", "-e", "inject=openat:error=EIO:when=9999"]
    probe = ["strace", *_options(), "-o", os.devnull, *rules, "true"]
    done = subprocess.run(probe, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else f"strace cannot trace here: {done.stderr.strip().splitlines()[-1:]}"


def _options(sends_signal: bool = False) -> list[str]:
    """Return the options of strace: --seccomp-bpf is faster, but with it strace does not deliver an injected signal."""
    return ["-f", "-q"] if sends_signal else ["-f", "--seccomp-bpf", "-q"]


def trace_verb(workspace: Workspace, home: Path, verb: str) -> tuple[list[TraceLine], ChildResult]:
    """Run a verb without a fault and return its trace."""
    log = home.parent / "trace"
    result = _run(workspace, home, verb, "end", ["-y", "-s", "0"], log)
    lines = [_parse_line(line) for line in log.read_text(errors="replace").splitlines()]
    return [line for line in lines if line is not None], result


def select_calls(lines: list[TraceLine], home: Path) -> list[SystemCall]:
    """Return the calls between the two marks that may get a fault; of openat only those that can create a file."""
    seen: dict[str, int] = {}
    calls: list[SystemCall] = []
    within = False
    for line in lines:
        seen[line.name] = seen.get(line.name, 0) + 1
        if line.name == "openat" and START in line.arguments:
            within = True
        elif line.name == "openat" and END in line.arguments:
            within = False
        elif within and (line.name != "openat" or "O_CREAT" in line.arguments):
            text = f"{line.name}({line.arguments})".replace(str(home), "")
            calls.append(SystemCall(len(calls) + 1, line.name, seen[line.name], text))
    return calls


def inject_fault(workspace: Workspace, home: Path, verb: str, call: SystemCall | None, fault: str) -> ChildResult:
    """Run a verb with SIGKILL, EIO or ENOSPC at one call; without a call, on a disk that is full all the time."""
    log = home.parent / "trace"
    if call is None:
        rule = f"inject={','.join(FULL_DISK_CALLS)}:error=ENOSPC"
        return _run(workspace, home, verb, "end", ["-e", rule], log)
    action = "signal=SIGKILL" if fault == "SIGKILL" else f"error={fault}"
    then = "end" if fault == "SIGKILL" else "go-on"
    return _run(workspace, home, verb, then, ["-e", f"inject={call.name}:{action}:when={call.nth}"], log)


def _run(workspace: Workspace, home: Path, verb: str, then: str, options: list[str], log: Path) -> ChildResult:
    child = workspace.child_command("run-verb", str(home), verb, then)
    sends_signal = any("SIGKILL" in option for option in options)
    traced = f"trace={','.join(TRACED_CALLS)}"
    command = ["strace", *_options(sends_signal), "-o", str(log), "-e", traced, *options, *child]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=_TIMEOUT, env=workspace.minimal_environment(),
        cwd=workspace.root,
    )  # fmt: skip
    trace = log.read_text(errors="replace")
    killed = "+++ killed by SIGKILL" in trace
    output = done.stdout.splitlines() + [f"stderr {line}" for line in done.stderr.splitlines()[-3:]]
    return ChildResult(output, killed, killed or "(INJECTED)" in trace, done.returncode)


def _parse_line(line: str) -> TraceLine | None:
    match = _LINE.match(line)
    return TraceLine(match[1], match[2], match[3] + match[4]) if match else None


# --- flushes ----------------------------------------------------------------------------------------------------------


def find_unflushed(lines: list[TraceLine], home: Path) -> list[str]:
    """Return the changes of the store that a power cut could still undo when the verb returned.

    These are files that were renamed before their bytes were flushed, and folders that were not flushed after a name in
    them changed. index.md is derived from the notes and may be lost.
    """
    changes = _UnflushedChanges(str(home))
    for line in lines:
        if not line.failed:
            changes.record(line.name, _parse_paths(line, str(home)))
    return changes.describe()


class _UnflushedChanges:
    """The changes of the store that were not flushed yet."""

    def __init__(self, home: str) -> None:
        self._store = os.path.join(home, "shelf")
        self._files: set[str] = set()
        self._folders: set[str] = set()  # those with a name that was added or removed
        self._early_renames: list[str] = []

    def record(self, call: str, paths: list[str]) -> None:
        """Take one successful system call into account."""
        if call in ("fsync", "fdatasync"):
            self._files.discard(paths[0])
            self._folders.discard(paths[0])
        elif call in ("syncfs", "sync"):
            self._files.clear()
            self._folders.clear()
        elif not paths[-1].startswith(self._store):
            return
        elif call in ("write", "pwrite64", "ftruncate"):
            self._files.add(paths[0])
        elif call.startswith("rename"):
            self._record_rename(*paths)
        elif call.startswith(("unlink", "rmdir", "mkdir")) and not _is_temp(paths[0]):
            self._folders.add(os.path.dirname(paths[0]))

    def _record_rename(self, old: str, new: str) -> None:
        if _is_listing(new):
            self._files.discard(old)
            return
        if old in self._files:
            self._early_renames.append(f"renamed before it was flushed: {new}")
        self._folders.update((os.path.dirname(old), os.path.dirname(new)))

    def describe(self) -> list[str]:
        """Return one line for each change."""
        folders = {path for path in self._folders if os.path.isdir(path)}
        unflushed = [path for path in sorted(self._files | folders) if not _is_temp(path)]
        return self._early_renames + [f"not flushed: {path}" for path in unflushed]


def _is_temp(path: str) -> bool:
    return os.path.basename(path).startswith(".holdfast-")


def _is_listing(path: str) -> bool:
    return os.path.basename(path) == "index.md" and os.path.basename(os.path.dirname(path)) != "files"


def _parse_paths(line: TraceLine, home: str) -> list[str]:
    """Return the absolute paths a call is about: strace shows a name in an open folder as `6</folder>, "name"`."""
    found = []
    for folder, name in re.findall(r'(?:(?:AT_FDCWD|\d+)<([^<>]*)>, )?"([^"]*)"', line.arguments):
        found.append(os.path.normpath(os.path.join(folder or home, name)))
    return found or _PATH.findall(line.arguments) or [""]
