"""Read from a log of strace which files and networks a child used, and find what it was not allowed to use."""

from __future__ import annotations

import os
import re
import site
import sys
import sysconfig
from dataclasses import dataclass
from functools import cache
from pathlib import Path

FILE_CALLS = (
    "open", "openat", "openat2", "creat", "rename", "renameat", "renameat2", "link", "linkat", "symlink", "symlinkat", "unlink",
    "unlinkat", "rmdir", "mkdir", "mkdirat", "truncate", "chmod", "fchmodat", "mknod", "mknodat",
)  # fmt: skip
NET_CALLS = ("socket", "connect", "bind", "listen", "accept", "accept4", "sendto", "sendmsg", "sendmmsg")
_OPEN = re.compile(r"\b(?:open|openat|openat2|creat)\((?:(?:AT_FDCWD|\d+)<.*?>, )?\"(.*?)\"(?:\.\.\.)?, (.*)\) = \d+<(.*)>")
_RESUMED = re.compile(r"\b(?:open|openat|openat2|creat) resumed>.*\) = \d+<(.*)>")
_NAME = re.compile(r'(?:(?:AT_FDCWD|\d+)<([^"]*?)>, )?"((?:[^"\\]|\\.)*)"')
_ESCAPE = re.compile(r"\\(?:([0-7]{1,3})|(.))")
_WRITE_FLAGS = ("O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC", "O_APPEND")
_SYSTEM_FILES = (
    "/proc/", "/sys/", "/dev/null", "/dev/urandom", "/dev/random", "/dev/shm/", "/usr/lib", "/lib", "/usr/share/zoneinfo",
    "/usr/share/locale", "/usr/lib/locale", "/etc/ld.so", "/etc/localtime", "/etc/nsswitch.conf", "/etc/locale.alias",
    "/etc/ssl/openssl.cnf", "/usr/local/lib", "pipe:", "anon_inode:", "socket:",
)  # fmt: skip
_PROJECT_FILES = re.compile(r"/(?:\.git(?:/.*)?|\.holdfast(?:/project\.json)?)$")  # read to find the project of a folder


@dataclass(frozen=True)
class AllowedPaths:
    """The files that a child may use: read and write in `home` and `writes`, only read in `reads` and where Python needs it."""

    home: str
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()

    def check_open(self, path: str, flags: str) -> str:
        """Return what is wrong with opening a file, given by its real path, or an empty string."""
        path = path.removesuffix("(deleted)").rstrip()
        if _is_under(path, (self.home, *self.writes)):
            return ""
        if any(flag in flags for flag in _WRITE_FLAGS):
            harmless = ("/dev/null", "/dev/shm/", "/proc/self/", "pipe:", "anon_inode:")
            return "" if path.startswith(harmless) else f"opened to write, outside: {path}"
        return "" if "O_PATH" in flags or self._may_read(path) else f"opened outside: {path}"

    def check_change(self, call: str, path: str) -> str:
        """Return what is wrong with creating, renaming or removing a name, or an empty string."""
        return "" if _is_under(path, (self.home, *self.writes)) else f"{call} outside: {path}"

    def _may_read(self, path: str) -> bool:
        readable = (*find_python_folders(), *self.reads)
        return path.startswith(_SYSTEM_FILES) or _is_under(path, readable) or bool(_PROJECT_FILES.search(path))


@cache
def find_python_folders() -> tuple[str, ...]:
    """Return the folders of Python and its packages."""
    known = [*sys.path, sys.prefix, sys.base_prefix, sysconfig.get_path("stdlib"), *site.getsitepackages()]
    return tuple({os.path.realpath(path) for path in known if path and path != "/usr"} | {"/usr/lib", "/usr/bin/python3"})


def trace_command(log: Path, child: list[str], calls: tuple[str, ...] = FILE_CALLS) -> list[str]:
    """Return the command that runs a child and writes its system calls to a log."""
    options = ["-f", "-q", "--seccomp-bpf", "-y", "-s", "4096", "-o", str(log), "-e", f"trace={','.join(calls)}"]
    return ["strace", *options, "--", *child]


def find_violations(log: Path, allowed: AllowedPaths) -> list[str]:
    """Return each access to a file that is not allowed, once."""
    with log.open(errors="replace") as lines:
        found = [problem for line in lines for problem in _check_line(line, allowed) if problem]
    return list(dict.fromkeys(found))


def count_opens(log: Path) -> int:
    """Return how many files were opened: a log without any proves nothing."""
    with log.open(errors="replace") as lines:
        return sum(bool(_OPEN.search(line)) for line in lines)


def _check_line(line: str, allowed: AllowedPaths) -> list[str]:
    opened = _OPEN.search(line)
    if opened:
        return [allowed.check_open(_unescape(opened[3]), opened[2])]
    resumed = _RESUMED.search(line)
    if resumed:  # the flags are on the line where the call began; it may not open a file outside in any case
        return [allowed.check_open(_unescape(resumed[1]), "O_RDONLY")]
    call = re.search(r"\b([a-z]+\d*(?:at2?)?)\(", line)
    if call and call[1] in FILE_CALLS and not call[1].startswith(("open", "creat")) and " = 0" in line:
        names = _NAME.findall(line)
        changed = names[1:] if call[1].startswith("symlink") else names  # the first one is what the link says
        paths = [os.path.normpath(os.path.join(_unescape(folder), _unescape(name))) for folder, name in changed]
        return [allowed.check_change(call[1], path) for path in paths]
    return []


def find_connections(log: Path, home: str, serves: bool = False) -> list[str]:
    """Return each use of a network, once; unix sockets in the home and those without a name are none.

    A child that `serves` may listen on loopback.
    """
    with log.open(errors="replace") as lines:
        return list(dict.fromkeys([line.strip()[:200] for line in lines if _is_connection(line, home, serves)]))


def _is_connection(line: str, home: str, serves: bool = False) -> bool:
    if re.search(r"\bsocket\(AF_INET6?\b", line):
        return not serves
    if serves and re.search(r"\bbind\(", line) and 'inet_addr("127.0.0.1")' in line:
        return False
    if re.search(r"\b(?:connect|bind|sendto|sendmsg|sendmmsg)\(", line) and ("AF_INET" in line or "AF_NETLINK" in line):
        return True
    unix = re.search(r"\b(?:connect|bind)\(", line) and "AF_UNIX" in line
    return bool(unix) and home not in line and "@" not in line


def _is_under(path: str, folders: tuple[str, ...]) -> bool:
    return any(path == folder or path.startswith(folder.rstrip("/") + "/") for folder in folders)


def _unescape(shown: str) -> str:
    """Return a path without the escapes that strace shows."""
    return _ESCAPE.sub(lambda match: chr(int(match[1], 8)) if match[1] else match[2], shown) if "\\" in shown else shown
