"""Read git's own files: repositories, branches, remotes and the reflog.

Git is never started, because that takes longer than the rest of a cold recall.
"""

from __future__ import annotations

import os
import stat

from holdfast.base.ids import digest
from holdfast.base.lazy_re import pattern
from holdfast.base.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_POINTER_BYTES = 8192
_CONFIG_BYTES = 1024 * 1024
_LINE_BYTES = 64 * 1024
_PORTS = {"http": "80", "https": "443", "ssh": "22", "git": "9418", "ftp": "21"}
_CASE_INSENSITIVE_HOSTS = ("github.com", "gitlab.com", "bitbucket.org")
_HOST_ALIASES = {
    "www.github.com": "github.com",
    "ssh.github.com:443": "github.com",  # SSH over the HTTPS port
    "altssh.gitlab.com:443": "gitlab.com",
    "altssh.bitbucket.org:443": "bitbucket.org",
}
_TRANSPORT_PREFIX = pattern(r"(?:[A-Za-z0-9]+::)+")
_PORT = pattern(r"(\[.*\]|[^:]*):(\d*)\Z")
_SCHEME_MARKS = {ord(mark): None for mark in "+.-"}
_ESCAPES = {"n": "\n", "t": "\t", "b": "\b"}


class Repository(Record):
    """A git repository; `common` is empty if the pointer to its git folder is broken."""

    root: str
    common: str = ""
    worktree: str = ""  # the name of a linked worktree

    @property
    def main(self) -> str:
        """Return the main folder of all worktrees."""
        if not self.worktree:
            return self.root
        return os.path.dirname(self.common) if os.path.basename(self.common) == ".git" else self.common


def parent_folders(folder: str) -> Iterator[str]:
    """Yield a folder and each folder above it."""
    while True:
        yield folder
        parent = os.path.dirname(folder)
        if parent == folder or not parent:
            return
        folder = parent


def find_repository(folder: str) -> Repository | None:
    """Return the repository at a folder as git does: a `.git` folder without HEAD does not count, a `.git` file always does."""
    entry = f"{folder}/.git"
    try:
        kind = os.stat(entry).st_mode
    except (OSError, ValueError):
        return None
    if stat.S_ISDIR(kind):
        return _make_repository(folder, real_path(entry)) if os.path.lexists(f"{entry}/HEAD") else None
    if not stat.S_ISREG(kind):
        return None
    target = _read_pointer(entry, folder, "gitdir:")
    return _make_repository(folder, target) if target else Repository(folder)


def _make_repository(folder: str, git: str) -> Repository:
    """Return the repository of a git folder; `commondir` in it names the folder that all worktrees share."""
    if not os.path.lexists(f"{git}/commondir"):
        return Repository(folder, git)
    common = _read_pointer(f"{git}/commondir", git)
    return Repository(folder, common, os.path.basename(git)) if common else Repository(folder)


def _read_pointer(file: str, base: str, prefix: str = "") -> str | None:
    """Return the folder that a pointer file of git names; None if it does not exist."""
    data = read_regular_file(file, _POINTER_BYTES)
    text = os.fsdecode(data).strip() if data is not None else ""
    target = text.removeprefix(prefix).strip()
    if not target or not text.startswith(prefix):
        return None
    folder = real_path(f"{base}/{target}" if not os.path.isabs(target) else target)
    return folder if os.path.isdir(folder) else None


def current_branch(folder: str) -> str:
    """Return the branch that is checked out in a folder; empty outside a repository and on a detached HEAD."""
    for parent in parent_folders(os.path.abspath(folder)):
        if repository := find_repository(parent):
            git = f"{repository.common}/worktrees/{repository.worktree}" if repository.worktree else repository.common
            data = read_regular_file(f"{git}/HEAD", _POINTER_BYTES) if repository.common else None
            reference = os.fsdecode(data).strip() if data else ""
            start = "ref: refs/heads/"
            return reference.removeprefix(start) if reference.startswith(start) else ""
    return ""


def first_reflog_line(common: str) -> bytes | None:
    """Return the first line of the reflog; empty if it expired, None if there is no reflog."""
    data = read_regular_file(f"{common}/logs/HEAD", _LINE_BYTES)
    return data.split(b"\n", 1)[0] if data is not None else None


def checkout_id(first_line: bytes) -> str:
    """Return an id of a checkout, made from the first line of its reflog."""
    return f"checkout-{digest(first_line)[:12]}"


def starts_with_first_commit(first_line: bytes) -> bool:
    """Return whether the reflog starts with the first commit of this repository."""
    message = first_line.partition(b"\t")[2]
    return first_line.startswith(b"0" * 40) and not message.startswith(b"clone:")


def starts_with_clone(first_line: bytes) -> bool:
    """Return whether the reflog starts with a clone."""
    return first_line.partition(b"\t")[2].startswith(b"clone:")


def remote_id(repository: Repository) -> str | None:
    """Return a project id made from the URL of a remote, `origin` first; None if there is none."""
    config = read_regular_file(f"{repository.common}/config", _CONFIG_BYTES)
    urls = _remote_urls(os.fsdecode(config)) if config else {}
    for name in sorted(urls, key=lambda name: (name != "origin", name)):
        location = normalize_url(urls[name], repository.main)
        if location is not None:
            address, repository_name = location
            return f"{slug(repository_name)}-{short_hex(address, 12)}"
    return None


def _remote_urls(config: str) -> dict[str, str]:
    """Return the first URL of each `[remote "name"]` in a git config."""
    urls: dict[str, str] = {}
    remote = ""
    for line in _config_lines(config):
        if line.startswith("["):
            remote, line = _parse_remote_section(line)
        name, _, value = line.partition("=")
        if remote and name.strip().lower() == "url":
            url = _unquote_value(value)
            if url:
                urls.setdefault(remote, url)
    return urls


def _parse_remote_section(line: str) -> tuple[str, str]:
    """Return the remote whose section a line opens, and the rest of the line; a regular expression takes 0.6 ms to compile."""
    body = line[1:].lstrip()
    if body[:6].lower() != "remote":
        return "", ""
    body = body[6:].lstrip()
    if body.startswith("."):  # the old syntax [remote.name]
        name, _, rest = body[1:].partition("]")
        return name.strip(), rest
    letters, position = [], 1
    while body.startswith('"') and position < len(body) and body[position] != '"':
        position += body[position] == "\\"
        letters.append(body[position : position + 1])
        position += 1
    bracket, rest = body[position + 1 :].lstrip()[:1], body[position + 1 :].lstrip()[1:]
    return ("".join(letters), rest) if bracket == "]" else ("", "")


def _config_lines(config: str) -> Iterator[str]:
    """Yield the logical lines of a git config without comments."""
    parts: list[str] = []
    for line in config.split("\n"):
        line = line.removesuffix("\r")
        if not parts and line.lstrip()[:1] in ("", "#", ";"):
            continue
        continued = (len(line) - len(line.rstrip("\\"))) % 2
        parts.append(line[:-1] if continued else line)
        if not continued:
            yield "".join(parts).strip()
            parts = []


def _unquote_value(value: str) -> str:
    """Return a git config value without quotes, escapes and comment."""
    value_letters, kept, quoted = [], 0, False
    letters = iter(value.strip())
    for letter in letters:
        if letter == '"':
            quoted = not quoted
        elif letter in "#;" and not quoted:
            break
        else:
            if letter == "\\":
                letter = next(letters, "")
                letter = _ESCAPES.get(letter, letter)
            value_letters.append(letter)
        if quoted or not letter.isspace():
            kept = len(value_letters)
    return "".join(value_letters[:kept])


def normalize_url(url: str, base: str) -> tuple[str, str] | None:
    """Return the canonical location of a repository, without protocol, user and credentials, and its name."""
    transport = _TRANSPORT_PREFIX.match(url) if "::" in url else None
    if transport:  # a remote helper fetches it; only a URL after its name can be read
        return normalize_url(url[transport.end() :], base) if "://" in url else (url, "remote")
    scheme, separator, rest = url.partition("://")
    if separator and scheme.translate(_SCHEME_MARKS).isalnum():
        authority, _, path = rest.partition("/")
        schemes = scheme.lower().split("+")
        return _locate_local("/" + path) if schemes == ["file"] else _locate_on_host(authority, path, schemes)
    head, slash, tail = url.partition("/")
    if ":" in head:  # user@host:path, the short form of SSH
        host, _, path = head.rpartition("@")[2].partition("]:" if "[" in head else ":")
        return _locate_on_host(host.lstrip("["), path + slash + tail, ["ssh"])
    return _locate_local(url if os.path.isabs(url) else f"{base}/{url}") if url else None


def _locate_on_host(authority: str, path: str, schemes: list[str]) -> tuple[str, str] | None:
    host = authority.rpartition("@")[2].lower()
    parts = _PORT.match(host) if ":" in host else None
    if parts and parts[2] in ("", *(_PORTS.get(scheme) for scheme in schemes)):
        host = parts[1]
    host = _HOST_ALIASES.get(host, host).strip("[].")
    if "http" in schemes or "https" in schemes:
        path = path.partition("?")[0].partition("#")[0]
    if host in _CASE_INSENSITIVE_HOSTS:
        path = path.lower()
    address = f"{host}/{_trim_path(path)}".strip("/")
    return (address, os.path.basename(address).rpartition("@")[2]) if address else None


def _locate_local(path: str) -> tuple[str, str]:
    address = "/" + _trim_path(real_path(path))
    return address, os.path.basename(address)


def _trim_path(path: str) -> str:
    return "/".join(filter(None, path.split("/"))).removesuffix(".git").rstrip("/")


def path_id(folder: str) -> str:
    """Return a project id made from a path."""
    return f"{slug(os.path.basename(folder))}-{short_hex(folder, 12)}"


def slug(name: str) -> str:
    """Return a name as at most 40 ASCII letters, digits and hyphens."""
    words = "".join(letter if letter.isascii() and letter.isalnum() else " " for letter in name.lower())
    return "-".join(words.split())[:40].rstrip("-") or "project"


def short_hex(text: str, length: int) -> str:
    """Return the first hexadecimal digits of the digest of a text."""
    try:
        data = os.fsencode(text)
    except UnicodeEncodeError:
        data = text.encode("utf-8", "surrogatepass")
    return digest(data)[:length]


def real_path(path: str) -> str:
    try:
        return os.path.realpath(path)
    except (OSError, ValueError):
        return os.path.normpath(path)


def is_same_folder(first: str, second: str) -> bool:
    if first == second:
        return True
    try:
        return os.path.samefile(first, second)
    except (OSError, ValueError):
        return False


def read_regular_file(path: str, limit: int, flags: int = 0, folder: int | None = None) -> bytes | None:
    """Return the first bytes of a regular file; None for anything else. Opening never blocks, even on a pipe."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | flags, dir_fd=folder)
    except (OSError, ValueError):
        return None
    try:
        return os.read(file, limit) if stat.S_ISREG(os.fstat(file).st_mode) else None
    except OSError:
        return None
    finally:
        os.close(file)
