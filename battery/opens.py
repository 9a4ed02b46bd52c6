"""What a child opened, made, renamed and removed, seen from outside with strace; and what of that lies outside the home."""

from __future__ import annotations

import os
import re
import site
import sys
import sysconfig
from dataclasses import dataclass, field
from pathlib import Path

FILE_CALLS = (
    "open", "openat", "openat2", "creat", "rename", "renameat", "renameat2", "link", "linkat", "symlink", "symlinkat", "unlink",
    "unlinkat", "rmdir", "mkdir", "mkdirat", "truncate", "chmod", "fchmodat", "mknod", "mknodat",
)  # fmt: skip
NET_CALLS = ("socket", "connect", "bind", "listen", "accept", "accept4", "sendto", "sendmsg", "sendmmsg")
_OPENED = re.compile(r"\b(?:open|openat|openat2|creat)\((?:(?:AT_FDCWD|\d+)<.*?>, )?\"(.*?)\"(?:\.\.\.)?, (.*)\) = \d+<(.*)>")
_RESUMED = re.compile(r"\b(?:open|openat|openat2|creat) resumed>.*\) = \d+<(.*)>")
_NAMED = re.compile(r'(?:(?:AT_FDCWD|\d+)<([^"]*?)>, )?"((?:[^"\\]|\\.)*)"')
_ESCAPE = re.compile(r"\\(?:([0-7]{1,3})|(.))")
_WRITES = ("O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC", "O_APPEND")
_ALWAYS = ("/proc/", "/sys/", "/dev/null", "/dev/urandom", "/dev/random", "/dev/shm/", "/usr/lib", "/lib",
    "/usr/share/zoneinfo",
           "/usr/share/locale", "/usr/lib/locale", "/etc/ld.so", "/etc/localtime", "/etc/nsswitch.conf", "/etc/locale.alias",
           "/etc/ssl/openssl.cnf", "/usr/local/lib", "pipe:",
           "anon_inode:", "socket:")  # fmt: skip
_PROJECT = re.compile(r"/(?:\.git(?:/.*)?|\.holdfast(?:/project\.json)?)$")  # how the project of a folder is found out


@dataclass
class Allowed:
    """Where a child may go: `home` to write, `reads` besides what Python itself needs, `writes` that it was asked for."""

    home: str
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    found: list[str] = field(default_factory=list)

    def opened(self, path: str, flags: str) -> None:
        """One opened file, by where it really is."""
        path = path.removesuffix("(deleted)").rstrip()
        if _under(path, (self.home, *self.writes)):
            return
        if any(flag in flags for flag in _WRITES):
            if not path.startswith(("/dev/null", "/dev/shm/", "/proc/self/", "pipe:", "anon_inode:")):
                self.found.append(f"opened to write, outside: {path}")
        elif "O_PATH" not in flags and not self._may_read(path):
            self.found.append(f"opened outside: {path}")

    def changed(self, call: str, path: str) -> None:
        """One name made, renamed or removed."""
        if not _under(path, (self.home, *self.writes)):
            self.found.append(f"{call} outside: {path}")

    def _may_read(self, path: str) -> bool:
        return path.startswith(_ALWAYS) or _under(path, (*libraries(), *self.reads)) or bool(_PROJECT.search(path))


def libraries() -> tuple[str, ...]:
    """Where Python and its packages are."""
    known = [*sys.path, sys.prefix, sys.base_prefix, sysconfig.get_path("stdlib"), *site.getsitepackages()]
    return tuple({os.path.realpath(path) for path in known if path and path != "/usr"} | {"/usr/lib", "/usr/bin/python3"})


def command(log: Path, child: list[str], calls: tuple[str, ...] = FILE_CALLS) -> list[str]:
    """How a child is started so that its calls are written down."""
    return ["strace", "-f", "-q", "--seccomp-bpf", "-y", "-s", "4096", "-o", str(log), "-e", f"trace={','.join(calls)}",
        "--", *child]


def judged(log: Path, allowed: Allowed) -> list[str]:
    """What it did outside, each thing once."""
    with log.open(errors="replace") as lines:
        for line in lines:
            _judge(line, allowed)
    return list(dict.fromkeys(allowed.found))


def opens_in(log: Path) -> int:
    """How many files were opened: a watch that saw none has seen nothing."""
    with log.open(errors="replace") as lines:
        return sum(bool(_OPENED.search(line)) for line in lines)


def _judge(line: str, allowed: Allowed) -> None:
    opened = _OPENED.search(line)
    if opened:
        allowed.opened(_plain(opened[3]), opened[2])
        return
    resumed = _RESUMED.search(line)
    if resumed:  # its flags stand on the line where it began; whatever they were, it may not be outside
        allowed.opened(_plain(resumed[1]), "O_RDONLY")
        return
    call = re.search(r"\b([a-z]+\d*(?:at2?)?)\(", line)
    if call and call[1] in FILE_CALLS and not call[1].startswith(("open", "creat")) and " = 0" in line:
        named = _NAMED.findall(line)
        for folder, name in named[1:] if call[1].startswith("symlink") else named:
            allowed.changed(call[1], os.path.normpath(os.path.join(_plain(folder), _plain(name))))


def connections(log: Path, home: str, serves: bool = False) -> list[str]:
    """Every use of a network: anything but unix sockets in the home, and those that have no name. Who `serves` may listen on
    loopback."""
    with log.open(errors="replace") as lines:
        return list(dict.fromkeys([line.strip()[:200] for line in lines if _connects(line, home, serves)]))


def _connects(line: str, home: str, serves: bool = False) -> bool:
    if re.search(r"\bsocket\(AF_INET6?\b", line):
        return not serves
    if serves and re.search(r"\bbind\(", line) and 'inet_addr("127.0.0.1")' in line:
        return False
    if re.search(r"\b(?:connect|bind|sendto|sendmsg|sendmmsg)\(", line) and ("AF_INET" in line or "AF_NETLINK" in line):
        return True
    named = re.search(r"\b(?:connect|bind)\(", line) and "AF_UNIX" in line
    return bool(named) and home not in line and "@" not in line


def _under(path: str, places: tuple[str, ...]) -> bool:
    return any(path == place or path.startswith(place.rstrip("/") + "/") for place in places)


def _plain(shown: str) -> str:
    """A path as strace shows it, without its escapes."""
    return _ESCAPE.sub(lambda match: chr(int(match[1], 8)) if match[1] else match[2], shown) if "\\" in shown else shown
