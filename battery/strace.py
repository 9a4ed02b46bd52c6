"""Faults at one system call of a child, by strace: death, or a disk that says no."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from battery.lab import Lab
from battery.verbs import END, START

CALLS = (
    "write", "pwrite64", "pwritev", "pwritev2", "fsync", "fdatasync", "sync", "syncfs", "sync_file_range", "msync",
    "rename", "renameat", "renameat2", "link", "linkat", "symlink", "symlinkat", "unlink", "unlinkat", "rmdir",
    "mkdir", "mkdirat", "ftruncate", "truncate", "fallocate", "openat",
)  # fmt: skip
FULL = ("write", "pwrite64", "ftruncate", "fallocate", "mkdir", "mkdirat")  # what a full disk refuses
_LINE = re.compile(r"^(?:\d+ +)?(\w+)\((.*)\) += (-?\d+|\?)(.*)$")
_PATH = re.compile(r"<([^<>]*)>")
_SECONDS = 60


@dataclass(frozen=True)
class Call:
    """One system call of a verb: its place among the verb's calls, its name, and how often that name came before."""

    number: int
    name: str
    nth: int  # of this name since the program began: what strace counts by
    text: str


@dataclass(frozen=True)
class Line:
    """A line of the trace."""

    name: str
    arguments: str
    answer: str

    @property
    def failed(self) -> bool:
        return self.answer.startswith("-")


@dataclass(frozen=True)
class Ended:
    """How a child ended: what it said, and what the trace says."""

    said: list[str]
    killed: bool
    injected: bool
    code: int
    log: Path


def why_not() -> str:
    """Empty where strace can inject faults, else the reason why not."""
    if sys.platform != "linux" or shutil.which("strace") is None:
        return "strace is not installed here"
    rules = ["-e", "trace=openat", "-e", "inject=openat:error=EIO:when=9999"]
    probe = ["strace", *_options(), "-o", os.devnull, *rules, "true"]
    done = subprocess.run(probe, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else f"strace cannot trace here: {done.stderr.strip().splitlines()[-1:]}"


def _options(killing: bool = False) -> list[str]:
    """Stopping only at the calls that are traced is cheaper, but then strace does not deliver a signal."""
    return ["-f", "-q"] if killing else ["-f", "--seccomp-bpf", "-q"]


def traced(lab: Lab, home: Path, verb: str) -> tuple[list[Line], Ended]:
    """The verb without a fault, and every call it made."""
    log = home.parent / "trace"
    ended = _run(lab, home, verb, "end", ["-y", "-s", "0"], log)
    lines = [_parsed(line) for line in log.read_text(errors="replace").splitlines()]
    return [line for line in lines if line is not None], ended


def calls_of(lines: list[Line], home: Path) -> list[Call]:
    """The calls between the two marks that may be hit: of openat only those that can make a file."""
    seen: dict[str, int] = {}
    calls: list[Call] = []
    within = False
    for line in lines:
        seen[line.name] = seen.get(line.name, 0) + 1
        if line.name == "openat" and START in line.arguments:
            within = True
        elif line.name == "openat" and END in line.arguments:
            within = False
        elif within and (line.name != "openat" or "O_CREAT" in line.arguments):
            text = f"{line.name}({line.arguments})".replace(str(home), "")
            calls.append(Call(len(calls) + 1, line.name, seen[line.name], text))
    return calls


def hit(lab: Lab, home: Path, verb: str, call: Call | None, fault: str) -> Ended:
    """The verb with a fault at one call: SIGKILL, EIO or ENOSPC; no call means a disk that is full throughout."""
    log = home.parent / "trace"
    if call is None:
        rule = f"inject={','.join(FULL)}:error=ENOSPC"
        return _run(lab, home, verb, "end", ["-e", rule], log)
    what = "signal=SIGKILL" if fault == "SIGKILL" else f"error={fault}"
    then = "end" if fault == "SIGKILL" else "go-on"
    return _run(lab, home, verb, then, ["-e", f"inject={call.name}:{what}:when={call.nth}"], log)


def _run(lab: Lab, home: Path, verb: str, then: str, options: list[str], log: Path) -> Ended:
    child = lab.command("do", str(home), verb, then)
    killing = any("SIGKILL" in option for option in options)
    command = ["strace", *_options(killing), "-o", str(log), "-e", f"trace={','.join(CALLS)}", *options, *child]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=_SECONDS, env=lab.environment(), cwd=lab.root
    )
    trace = log.read_text(errors="replace")
    killed = "+++ killed by SIGKILL" in trace
    said = done.stdout.splitlines() + [f"stderr {line}" for line in done.stderr.splitlines()[-3:]]
    return Ended(said, killed, killed or "(INJECTED)" in trace, done.returncode, log)


def _parsed(line: str) -> Line | None:
    match = _LINE.match(line)
    return Line(match[1], match[2], match[3] + match[4]) if match else None


# --- was it flushed before it was acknowledged? -----------------------------------------------------------------------


def unflushed(lines: list[Line], home: Path) -> list[str]:
    """Changes of the shelf that a power cut could still undo when the verb came back: a file renamed into place before
    its bytes were flushed, a name whose folder was not. (index.md is made from the notes and may be lost.)"""
    pending = _Pending(str(home))
    for line in lines:
        if not line.failed:
            pending.heard(line.name, _paths(line, str(home)))
    return pending.left()


class _Pending:
    """What has been changed on the shelf and not yet flushed."""

    def __init__(self, home: str) -> None:
        self._store = os.path.join(home, "shelf")
        self._data: set[str] = set()
        self._names: set[str] = set()  # folders in which a name came or went
        self._wrong: list[str] = []

    def heard(self, name: str, paths: list[str]) -> None:
        if name in ("fsync", "fdatasync"):
            self._data.discard(paths[0])
            self._names.discard(paths[0])
        elif name in ("syncfs", "sync"):
            self._data.clear()
            self._names.clear()
        elif not paths[-1].startswith(self._store):
            return
        elif name in ("write", "pwrite64", "ftruncate"):
            self._data.add(paths[0])
        elif name.startswith("rename"):
            self._renamed(*paths)
        elif name.startswith(("unlink", "rmdir", "mkdir")) and not _is_temp(paths[0]):
            self._names.add(os.path.dirname(paths[0]))

    def _renamed(self, old: str, new: str) -> None:
        if _is_made(new):
            self._data.discard(old)
            return
        if old in self._data:
            self._wrong.append(f"renamed before it was flushed: {new}")
        self._names.update((os.path.dirname(old), os.path.dirname(new)))

    def left(self) -> list[str]:
        folders = {name for name in self._names if os.path.isdir(name)}
        return self._wrong + [f"not flushed: {path}" for path in sorted(self._data | folders) if not _is_temp(path)]


def _is_temp(path: str) -> bool:
    return os.path.basename(path).startswith(".holdfast-")


def _is_made(path: str) -> bool:
    return os.path.basename(path) == "index.md" and os.path.basename(os.path.dirname(path)) != "files"


def _paths(line: Line, home: str) -> list[str]:
    """The files a call is about, whole: strace shows `6</folder>, "name"` for a name in an open folder."""
    found = []
    for folder, name in re.findall(r'(?:(?:AT_FDCWD|\d+)<([^<>]*)>, )?"([^"]*)"', line.arguments):
        found.append(os.path.normpath(os.path.join(folder or home, name)))
    return found or _PATH.findall(line.arguments) or [""]
