"""For which project somebody asks: an override, the git remote, a marker, or the place itself (P1, P2, P3).

`look` reads a folder and git's own files, and nothing else: starting git would cost more than all the rest of
a cold recall. `settle` weighs what was found against what the ledger remembers, so that memory survives a
rename, a move and a remote gained later, and never follows a path to another repository that is there now.
"""

from __future__ import annotations

import os
import re
import stat

from holdfast.digest import digest
from holdfast.errors import Conflict, HoldfastError, InvalidKey, from_os
from holdfast.note import NAME
from holdfast.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Protocol

    class Registry(Protocol):
        """What identity remembers from one call to the next; the ledger keeps it."""

        def canonical(self, alias: str) -> str | None:
            """The project that goes by this other id."""

        def link(self, alias: str, project: str, instead: str | None = None) -> None:
            """The first writer wins, unless the link still says `instead`."""

        def place(self, id: str) -> tuple[str, str] | None:
            """Nonce and path where a marker or a checkout was last seen."""

        def put_place(self, id: str, nonce: str, path: str) -> None: ...


MARKER_FOLDER, MARKER_FILE = ".holdfast", "project.json"
_OPEN_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_MARKER_BYTES = 4096
_POINTER_BYTES = 8192
_CONFIG_BYTES = 1024 * 1024
_LINE_BYTES = 64 * 1024
_PORTS = {"http": "80", "https": "443", "ssh": "22", "git": "9418", "ftp": "21"}
_ONE_CASE_HOSTS = ("github.com", "gitlab.com", "bitbucket.org")
_SAME_HOSTS = {
    "www.github.com": "github.com",
    "ssh.github.com:443": "github.com",  # ssh for those behind a firewall
    "altssh.gitlab.com:443": "gitlab.com",
    "altssh.bitbucket.org:443": "bitbucket.org",
}
_SCHEME_MARKS = {ord(mark): None for mark in "+.-"}
_ESCAPES = {"n": "\n", "t": "\t", "b": "\b"}


class Marker(Record):
    """What a `.holdfast/project.json` says, and the folder it stands in."""

    id: str
    nonce: str
    folder: str


class Candidates(Record):
    """Every id that this folder could go by, and what tells whether to believe it.

    `cloned` also holds for a repository whose beginning has faded from git's reflog: where it came from is
    then unknown, and whatever stood at this path before need not be it.
    """

    path: str
    root: str
    override: str | None = None
    remote: str | None = None
    marker: Marker | None = None
    checkout: str | None = None
    cloned: bool = False
    place: str = ""  # git's folder for all worktrees; moves with the checkout


class Project(Record):
    """The id that memory is written under, the older ones that reads cover too, and what decided."""

    id: str
    aliases: tuple[str, ...]
    how: str  # override, remote, marker, path


class _Repository(Record):
    """Where git keeps a folder's history; `common` is empty when git's own pointer to it leads nowhere."""

    root: str
    common: str = ""
    worktree: str = ""  # the name of a linked worktree

    @property
    def main(self) -> str:
        """The folder that all worktrees have in common."""
        if not self.worktree:
            return self.root
        return os.path.dirname(self.common) if os.path.basename(self.common) == ".git" else self.common


def look(cwd: str, override: str | None = None, isolate_worktrees: bool = False) -> Candidates:
    """All that a folder says about its project. Reads only; whatever cannot be read counts as absent."""
    here = _real(cwd)
    if override is not None:
        if not NAME.match(override):
            raise InvalidKey(
                f"the project id {override[:140]!r} breaks the rule",
                "Use 1 to 128 of A-Z a-z 0-9 . _ - and no dot in front",
            )
        return Candidates(path=_path_id(here), root=here, override=override)
    repository, marked = _walk(here)
    if repository is None:
        root = marked or here
        return Candidates(path=_path_id(root), root=root, marker=read_marker(root) if marked else None)
    return _look_at(repository, marked, isolate_worktrees)


def _look_at(repository: _Repository, marked: str | None, isolate: bool) -> Candidates:
    apart = isolate and bool(repository.worktree)
    own = f"-wt-{_hex(f'{repository.worktree}/{repository.common}', 8)}" if apart else ""
    own_checkout = f"-wt-{_hex(repository.worktree, 8)}" if apart else ""  # no path in it: it survives a move
    if marked is None and not apart:
        marked = repository.main  # a marker that git does not track stands in the main checkout only
    remote = _remote_id(repository) if repository.common else None
    first = _first_line(repository.common) if repository.common else None
    return Candidates(
        path=_path_id(repository.main) + own,
        root=repository.root,
        remote=remote + own if remote else None,
        marker=read_marker(marked) if marked else None,
        checkout=_checkout_id(first) + own_checkout if first else None,
        cloned=first is not None and not _began_here(first),
        place=repository.common,
    )


def settle(
    candidates: Candidates, registry: Registry, has_notes: Callable[[str], bool], *, remember: bool = True
) -> Project:
    """The project of a folder: P1's order, except where an older id of this folder has the memory already."""
    if candidates.override is not None:
        return Project(candidates.override, (), "override")
    evidence = _Evidence(candidates, registry, has_notes)
    known = evidence.known()
    id = known[0] if known else evidence.led(evidence.primary)
    if remember:
        try:
            id = evidence.remember(id)
        except HoldfastError:
            pass  # a home that cannot be written to still answers
    return Project(id, tuple(other for other in known if other != id), evidence.how)


class _Evidence:
    """What a folder says, beside what the ledger remembers of it."""

    def __init__(self, candidates: Candidates, registry: Registry, has_notes: Callable[[str], bool]) -> None:
        self.candidates, self.registry, self.has_notes = candidates, registry, has_notes
        marker = candidates.marker
        self.marker = marker if marker is not None and _honoured(marker, registry) else None
        self.checkout = self._own_checkout()
        if candidates.remote is not None:
            self.how, self.primary = "remote", candidates.remote
        elif self.marker is not None:
            self.how, self.primary = "marker", self.marker.id
        else:
            self.how, self.primary = "path", candidates.path

    def led(self, id: str) -> str:
        """The project an id leads to: itself, unless it is an alias."""
        return self.registry.canonical(id) or id

    def known(self) -> list[str]:
        """The projects with notes that the evidence leads to, the strongest first."""
        leads = [self.primary]
        followed = self.registry.canonical(self.checkout) if self.checkout is not None else None
        if followed is not None:
            leads.append(followed)
            if self.how == "path" and self.candidates.cloned and self.has_notes(followed):
                leads.remove(self.primary)  # a clone that lost its remote; the path may have been another's
        if self.marker is not None:
            leads.append(self.marker.id)
        if self._path_is_ours():
            leads.append(self.candidates.path)
        return [id for id in dict.fromkeys(map(self.led, leads)) if self.has_notes(id)]

    def remember(self, id: str) -> str:
        """Write down what is new, and give the id that stands: another process may have linked first."""
        candidates, marker = self.candidates, self.marker
        if id != self.primary and not self.has_notes(self.primary):
            id = self._link(self.primary, id)
        if self.checkout is not None:
            self._link(self.checkout, id)
            if self.checkout == candidates.checkout:
                _see(self.checkout, "", candidates.place, self.registry)
            if candidates.path in (id, self.primary):
                _see(candidates.path, "", candidates.place, self.registry)
        if marker is not None:
            _see(marker.id, marker.nonce, marker.folder, self.registry)
        return id

    def _path_is_ours(self) -> bool:
        """Whether what this path remembers is this repository's: not if it came from elsewhere, nor if a
        checkout was seen here before (were it this very one, we would know it without the path)."""
        return not self.candidates.cloned and self.registry.place(self.candidates.path) is None

    def _own_checkout(self) -> str | None:
        """A copy, or a twin made in the same second, must not pass for the checkout it equals."""
        checkout, place = self.candidates.checkout, self.candidates.place
        seen = self.registry.place(checkout) if checkout else None
        if checkout is None or seen is None or _same_folder(seen[1], place):
            return checkout
        twin = f"{checkout}-at-{_hex(place, 8)}"
        original = _first_line(seen[1])
        stands = original is not None and checkout.startswith(_checkout_id(original))
        return twin if stands or self.registry.canonical(twin) else checkout

    def _link(self, alias: str, project: str) -> str:
        now = self.registry.canonical(alias)
        if now is not None and (now == project or self.has_notes(now)):
            return now
        self.registry.link(alias, project, instead=now)
        return self.led(alias)


def _honoured(marker: Marker, registry: Registry) -> bool:
    """Whether we wrote this marker for this folder, or for one that has since moved here."""
    seen = registry.place(marker.id)
    if seen is None or seen[0] != marker.nonce:
        return False
    if _same_folder(seen[1], marker.folder):
        return True
    original = read_marker(seen[1])
    return original is None or original.nonce != marker.nonce


def _see(id: str, nonce: str, path: str, registry: Registry) -> None:
    seen = registry.place(id)
    if seen is None or seen[0] != nonce or not _same_folder(seen[1], path):
        registry.put_place(id, nonce, path)


def read_marker(folder: str) -> Marker | None:
    """The marker of a folder, if it is a well-formed plain file; links, pipes and the like count as none."""
    try:
        inside = os.open(f"{folder}/{MARKER_FOLDER}", _OPEN_FOLDER)
    except (OSError, ValueError):
        return None
    try:
        data = _read(MARKER_FILE, _MARKER_BYTES + 1, os.O_NOFOLLOW, inside)
    finally:
        os.close(inside)
    return _marker_of(data, folder) if data is not None and len(data) <= _MARKER_BYTES else None


def _marker_of(data: bytes, folder: str) -> Marker | None:
    import json

    try:
        said = json.loads(data)
    except (ValueError, RecursionError):
        return None
    if not isinstance(said, dict):
        return None
    id, nonce, created = said.get("id"), said.get("nonce"), said.get("created")
    if not (isinstance(id, str) and isinstance(nonce, str) and isinstance(created, str)):
        return None
    return Marker(id, nonce, folder) if NAME.match(id) and nonce else None


def write_marker(root: str, registry: Registry, now: str) -> str:
    """Give a folder an id that moves with it. One that is there is kept, or refused if it is another's."""
    folder = _real(root)
    if _is_marked(folder):
        return _existing_marker(folder, registry)
    nonce = os.urandom(16).hex()
    id = f"{_slug(os.path.basename(folder))}-{digest(nonce.encode())[:12]}"
    registry.put_place(id, nonce, folder)  # first: a file without its record would pass for a stranger's
    try:
        _publish_marker(folder, id, nonce, now)
    except FileExistsError:
        return _existing_marker(folder, registry)
    except OSError as error:
        raise from_os(error, f"writing the marker in {folder}") from error
    return id


def _existing_marker(folder: str, registry: Registry) -> str:
    marker = read_marker(folder)
    if marker is None or not _honoured(marker, registry):
        raise Conflict(
            f"{folder}/{MARKER_FOLDER}/{MARKER_FILE} is there already and is not this folder's",
            "Look at it, and remove it if it is a leftover",
        )
    _see(marker.id, marker.nonce, marker.folder, registry)
    return marker.id


def _publish_marker(folder: str, id: str, nonce: str, now: str) -> None:
    import json

    text = json.dumps({"id": id, "nonce": nonce, "created": now}, indent=2) + "\n"
    parent = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        try:
            os.mkdir(MARKER_FOLDER, 0o700, dir_fd=parent)
        except FileExistsError:
            pass
        inside = os.open(MARKER_FOLDER, _OPEN_FOLDER, dir_fd=parent)
        try:
            os.fchmod(inside, 0o700)
            _put_marker_file(inside, text.encode(), f".{nonce[:12]}.tmp")
            os.fsync(inside)
        finally:
            os.close(inside)
        os.fsync(parent)
    finally:
        os.close(parent)


def _put_marker_file(inside: int, data: bytes, temporary: str) -> None:
    """A complete file or none, and never over another's: linked into place, renamed where links are not."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    file = os.open(temporary, flags, 0o600, dir_fd=inside)
    try:
        try:
            os.write(file, data)
            os.fsync(file)
        finally:
            os.close(file)
        try:
            os.link(temporary, MARKER_FILE, src_dir_fd=inside, dst_dir_fd=inside, follow_symlinks=False)
        except FileExistsError:
            raise
        except OSError:
            os.rename(temporary, MARKER_FILE, src_dir_fd=inside, dst_dir_fd=inside)
    finally:
        try:
            os.unlink(temporary, dir_fd=inside)
        except FileNotFoundError:
            pass


def _is_marked(folder: str) -> bool:
    return os.path.lexists(f"{folder}/{MARKER_FOLDER}/{MARKER_FILE}")


def _walk(here: str) -> tuple[_Repository | None, str | None]:
    """The repository a folder is in, and the nearest folder up to its root that has a marker, good or bad."""
    marked = None
    for folder in _upwards(here):
        if marked is None and _is_marked(folder):
            marked = folder
        repository = _repository(folder)
        if repository is not None:
            return repository, marked
    return None, marked


def _upwards(folder: str) -> Iterator[str]:
    while True:
        yield folder
        parent = os.path.dirname(folder)
        if parent == folder or not parent:
            return
        folder = parent


def _repository(folder: str) -> _Repository | None:
    """As git does it: a `.git` folder without HEAD is nothing; a `.git` file ends the search in any case."""
    entry = f"{folder}/.git"
    try:
        kind = os.stat(entry).st_mode
    except (OSError, ValueError):
        return None
    if stat.S_ISDIR(kind):
        return _of_git_folder(folder, _real(entry)) if os.path.lexists(f"{entry}/HEAD") else None
    if not stat.S_ISREG(kind):
        return None
    target = _pointed(entry, folder, "gitdir:")
    return _of_git_folder(folder, target) if target else _Repository(folder)


def _of_git_folder(folder: str, git: str) -> _Repository:
    if not os.path.lexists(f"{git}/commondir"):
        return _Repository(folder, git)
    common = _pointed(f"{git}/commondir", git)
    return _Repository(folder, common, os.path.basename(git)) if common else _Repository(folder)


def _pointed(file: str, base: str, prefix: str = "") -> str | None:
    """The folder that one of git's pointer files names, if it is there."""
    data = _read(file, _POINTER_BYTES)
    text = os.fsdecode(data).strip() if data is not None else ""
    target = text.removeprefix(prefix).strip()
    if not target or not text.startswith(prefix):
        return None
    folder = _real(f"{base}/{target}" if not os.path.isabs(target) else target)
    return folder if os.path.isdir(folder) else None


def _first_line(common: str) -> bytes | None:
    """How this checkout began, as git noted it: empty when that has faded, None when it never was noted."""
    data = _read(f"{common}/logs/HEAD", _LINE_BYTES)
    return data.split(b"\n", 1)[0] if data is not None else None


def _checkout_id(first_line: bytes) -> str:
    return f"checkout-{digest(first_line)[:12]}"


def _began_here(first_line: bytes) -> bool:
    """A true beginning has no commit before it; a line that has one is only the oldest still kept."""
    message = first_line.partition(b"\t")[2]
    return first_line.startswith(b"0" * 40) and not message.startswith(b"clone:")


def _remote_id(repository: _Repository) -> str | None:
    config = _read(f"{repository.common}/config", _CONFIG_BYTES)
    urls = _remote_urls(os.fsdecode(config)) if config else {}
    for name in sorted(urls, key=lambda name: (name != "origin", name)):
        found = normalise(urls[name], repository.main)
        if found is not None:
            where, called = found
            return f"{_slug(called)}-{_hex(where, 12)}"
    return None


def _remote_urls(config: str) -> dict[str, str]:
    """The first url of each `[remote "name"]` of a git config."""
    urls: dict[str, str] = {}
    remote = ""
    for line in _config_lines(config):
        if line.startswith("["):
            remote, line = _remote_opened(line)
        name, _, value = line.partition("=")
        if remote and name.strip().lower() == "url":
            url = _unquoted(value)
            if url:
                urls.setdefault(remote, url)
    return urls


def _remote_opened(line: str) -> tuple[str, str]:
    """The remote whose section a line opens, and the rest of the line. By hand: its pattern compiles in 0.6 ms."""
    body = line[1:].lstrip()
    if body[:6].lower() != "remote":
        return "", ""
    body = body[6:].lstrip()
    if body.startswith("."):  # as git wrote it long ago
        name, _, rest = body[1:].partition("]")
        return name.strip(), rest
    letters, at = [], 1
    while body.startswith('"') and at < len(body) and body[at] != '"':
        at += body[at] == "\\"
        letters.append(body[at : at + 1])
        at += 1
    bracket, rest = body[at + 1 :].lstrip()[:1], body[at + 1 :].lstrip()[1:]
    return ("".join(letters), rest) if bracket == "]" else ("", "")


def _config_lines(config: str) -> Iterator[str]:
    """The lines of a git config, those that end in a backslash joined with the next, comments left out."""
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


def _unquoted(value: str) -> str:
    """A git config value: quotes dropped, escapes resolved, the comment cut off."""
    out, kept, quoted = [], 0, False
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
            out.append(letter)
        if quoted or not letter.isspace():
            kept = len(out)
    return "".join(out[:kept])


def normalise(url: str, base: str) -> tuple[str, str] | None:
    """One spelling of where a repository lives, without protocol, user and credentials; and its name."""
    fetcher = re.match(r"(?:[A-Za-z0-9]+::)+", url) if "::" in url else None
    if fetcher:  # another program fetches it; only a url in what follows can be understood
        return normalise(url[fetcher.end() :], base) if "://" in url else (url, "remote")
    scheme, separator, rest = url.partition("://")
    if separator and scheme.translate(_SCHEME_MARKS).isalnum():
        authority, _, path = rest.partition("/")
        schemes = scheme.lower().split("+")
        return _local("/" + path) if schemes == ["file"] else _at_host(authority, path, schemes)
    head, slash, tail = url.partition("/")
    if ":" in head:  # user@host:path, as ssh writes it
        host, _, path = head.rpartition("@")[2].partition("]:" if "[" in head else ":")
        return _at_host(host.lstrip("["), path + slash + tail, ["ssh"])
    return _local(url if os.path.isabs(url) else f"{base}/{url}") if url else None


def _at_host(authority: str, path: str, schemes: list[str]) -> tuple[str, str] | None:
    host = authority.rpartition("@")[2].lower()
    parts = re.fullmatch(r"(\[.*\]|[^:]*):(\d*)", host) if ":" in host else None
    if parts and parts[2] in ("", *(_PORTS.get(scheme) for scheme in schemes)):
        host = parts[1]
    host = _SAME_HOSTS.get(host, host).strip("[].")
    if "http" in schemes or "https" in schemes:
        path = path.partition("?")[0].partition("#")[0]
    if host in _ONE_CASE_HOSTS:
        path = path.lower()
    where = f"{host}/{_bare(path)}".strip("/")
    return (where, os.path.basename(where).rpartition("@")[2]) if where else None


def _local(path: str) -> tuple[str, str]:
    where = "/" + _bare(_real(path))
    return where, os.path.basename(where)


def _bare(path: str) -> str:
    return "/".join(filter(None, path.split("/"))).removesuffix(".git").rstrip("/")


def _path_id(folder: str) -> str:
    return f"{_slug(os.path.basename(folder))}-{_hex(folder, 12)}"


def _slug(name: str) -> str:
    spelled = "".join(letter if letter.isascii() and letter.isalnum() else " " for letter in name.lower())
    return "-".join(spelled.split())[:40].rstrip("-") or "project"


def _hex(text: str, length: int) -> str:
    try:
        data = os.fsencode(text)
    except UnicodeEncodeError:
        data = text.encode("utf-8", "surrogatepass")
    return digest(data)[:length]


def _real(path: str) -> str:
    try:
        return os.path.realpath(path)
    except (OSError, ValueError):
        return os.path.normpath(path)


def _same_folder(one: str, other: str) -> bool:
    if one == other:
        return True
    try:
        return os.path.samefile(one, other)
    except (OSError, ValueError):
        return False


def _read(path: str, limit: int, flags: int = 0, folder: int | None = None) -> bytes | None:
    """The beginning of a plain file. Opened without waiting, so that a planted pipe cannot hold us up."""
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
