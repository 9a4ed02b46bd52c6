"""The commands that mend a home, as a person can paste them: each works as printed, and none loses what somebody wrote."""

from __future__ import annotations

import os
import stat

from holdfast import config
from holdfast.base.ids import KEY_PATTERN, derive_key
from holdfast.errors import ConfigError
from holdfast.models import Scope
from holdfast.safety.validate import redact_or_withhold
from holdfast.store.atomic import FILE_BYTES, NOTE_FILE_BYTES
from holdfast.store.files import key_of_trashed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.config import Config


_LEAST = 1024 * 1024  # bytes that must be free for anything to be mended


class Fix:
    """The commands of one report: no two of them move files to the same place."""

    def __init__(self, home: str) -> None:
        self._home = home
        self._taken: set[str] = set()

    def out_of_the_way(self, path: str) -> str:
        """Takes away what stands where it must not: links and pipes hold nothing, files and folders are kept aside."""
        mode = os.lstat(path).st_mode
        if stat.S_ISREG(mode) or stat.S_ISDIR(mode):
            return self.moved(path, os.path.join(self._home, "aside"))
        return self._command("rm", path)

    def beside(self, path: str) -> str:
        """Keeps it beside its place, as `.old`."""
        return self._command("mv -n", path, self._free(f"{told(path)}.old"))

    def moved(self, path: str, folder: str) -> str:
        """Moves it into a folder that may have to be made."""
        target = self._free(os.path.join(folder, typeable(told(os.path.basename(path)))))
        return f"mkdir -p {quoted(folder)} && {self._command('mv -n', path, target)}"

    def renamed(self, path: str) -> str:
        """Gives it a name that can be asked for; to a note, one that is a key."""
        folder, name = os.path.split(path)
        name = told(name)
        is_note = os.path.basename(folder) == "notes" and name.endswith(".md")
        better = f"{derive_key(name[:-3])}.md" if is_note else typeable(name)
        return self._command("mv -n", path, self._free(os.path.join(folder, better)))

    def edited(self, path: str) -> str:
        """Opens it for a person, who alone knows what it should say."""
        return self._command("${EDITOR:-vi}", path)

    def rewritten(self, scope: str, name: str) -> str:
        """Opens a file of a scope's tree, which may be a new one."""
        return self.edited(os.path.join(self._home, "shelf", scope, "files", name))

    def opened(self, path: str, like: str = "") -> str:
        """Lets this user read and write it, and enter it if it is a folder; what is somebody else's, or holds something `like`
        that, is taken over first."""
        if os.lstat(like or path).st_uid != os.geteuid():
            return self._command(f'sudo chown{" -R" if os.path.isdir(path) else ""} "$(id -u)"', path)
        return self._command("chmod -R u+rwX" if like else "chmod u+rwX", path)

    def of_file(self, scope: str, part: str, name: str) -> str:
        """Mends a file of a scope: decided by what it is, never by words in it."""
        path = os.path.join(self._home, "shelf", scope, part, name)
        try:
            info = os.lstat(path)
        except OSError:
            return self.holdfast("doctor")  # it went away meanwhile, or its folder is shut: look again
        is_note, most = part == "notes", NOTE_FILE_BYTES if part == "notes" else FILE_BYTES
        if is_note and (stat.S_ISDIR(info.st_mode) or (stat.S_ISREG(info.st_mode) and not name.endswith(".md"))):
            return self.moved(path, os.path.join(self._home, "shelf", scope, "files"))
        if not stat.S_ISREG(info.st_mode) or info.st_size > most:
            return self.out_of_the_way(path)
        if not os.access(path, os.R_OK):
            return self.opened(path)
        if info.st_size == 0:
            return self._command("rm", path)
        return self.renamed(path) if is_note and not KEY_PATTERN.match(name[:-3]) else self.edited(path)

    def purge(self, scope: Scope, key: str) -> str:
        """The words that purge a note of any scope."""
        return f"purge {key} {_whose(scope)}"

    def of_returned(self, scope: str, part: str, name: str) -> str:
        """Takes away again what was purged and came back; a file of the tree is a person's to change."""
        key = key_of_trashed(name) if part == "archive" else name[:-3]
        if part in ("notes", "archive") and KEY_PATTERN.match(key):
            return self.holdfast(self.purge(Scope.of_folder(scope), key))
        return self.edited(os.path.join(self._home, "shelf", scope, part, name))

    def of_database(self, name: str) -> str:
        """Lets a database be written again; what was set aside as damaged goes where it is not reported."""
        path = os.path.join(self._home, name)
        if any(one.startswith(f"{name}.damaged-") for one in os.listdir(self._home)):
            aside = quoted(os.path.join(self._home, "aside"))
            return f"mkdir -p {aside} && mv -n {quoted(path)}.damaged-* {aside}"
        for one in (path, f"{path}-wal", f"{path}-shm"):
            if os.path.islink(one) or (os.path.exists(one) and not os.path.isfile(one)):
                return self.out_of_the_way(one)
            if os.path.exists(one) and not os.access(one, os.R_OK | os.W_OK):
                return self.opened(one)
        if not os.access(self._home, os.W_OK | os.X_OK):
            return self.opened(self._home)
        return self.holdfast("reindex" if name == "index.db" else "doctor")

    def room(self) -> str:
        """What comes before any command of ours where the disk is full; nothing where it has room enough."""
        return self.more_room() if lacks_room(self._home) else ""

    def more_room(self) -> str:
        return f"Free some space on the disk of {told(self._home)}, then run `{self.holdfast('doctor')}` again"

    def writable(self, path: str) -> str:
        """Where a file system lets nobody write."""
        again = f"then run `{self.holdfast('doctor')}` again"
        return f"Mount the file system of {told(path)} for writing, or set HOLDFAST_HOME to a folder on another; {again}"

    def holdfast(self, words: str) -> str:
        """A command of ours on this home, also where it is not the one that is meant by default."""
        try:
            by_default = config.find_home() == self._home
        except ConfigError:
            by_default = False
        return f"holdfast {words}" if by_default else f"holdfast --home {quoted(self._home)} {words}"

    def _command(self, verb: str, path: str, target: str = "") -> str:
        """A command on one path; one that cannot be typed, or must not be shown, is found by its inode."""
        to = f" {quoted(target)}" if target else ""
        if path.isprintable() and told(path) == path:
            return f"{verb} {quoted(path)}{to}"
        return f"find {quoted(self._home)} -inum {os.lstat(path).st_ino} -exec {verb} {{}}{to} ';' -quit"

    def _free(self, path: str) -> str:
        """The path, or one like it where nothing stands and nothing else is going to be moved."""
        stem, suffix = os.path.splitext(path)
        number, free = 1, path
        while free in self._taken or os.path.lexists(free):
            number += 1
            free = f"{stem}-{number}{suffix}"
        self._taken.add(free)
        return free


class Asking(Fix):
    """The commands of a report on a store, where nothing is a file that could be opened or moved."""

    def edited(self, path: str) -> str:
        """Takes it out for good: a new version would leave it in the history."""
        scope, _, name = path.partition("/shelf/")[2].partition("/notes/")
        if KEY_PATTERN.match(name[:-3]):
            return self.holdfast(self.purge(Scope.of_folder(scope), name[:-3]))
        if "/transcripts/" in path:
            return self.holdfast("purge --text -")
        return self.holdfast("purge --text - --files") if "/files/" in path else super().edited(path)

    def rewritten(self, scope: str, name: str) -> str:
        return self.holdfast(f"file create {quoted(name)} - {_whose(Scope.of_folder(scope))}")

    def of_file(self, scope: str, part: str, name: str) -> str:
        if part != "notes" or not KEY_PATTERN.match(name[:-3]):
            return self.holdfast("doctor")
        return self.holdfast(self.purge(Scope.of_folder(scope), name[:-3]).replace("purge", "forget", 1))

    def of_database(self, name: str) -> str:
        return self.holdfast("reindex" if name == "index.db" else "doctor")

    def room(self) -> str:
        """What is full then is the server's disk, and it says so itself."""
        return ""


def _whose(scope: Scope) -> str:
    """The options that name a scope."""
    return f"--scope {scope.kind}" + (f" --{scope.kind} {scope.id}" if scope.id else "")


def lacks_room(home: str) -> bool:
    """Whether the home's disk has hardly any left, so that nothing that is begun can be ended."""
    try:
        room = os.statvfs(home)
    except OSError:
        return False
    return room.f_bavail * room.f_frsize < _LEAST


def mending(settings: Config) -> Fix:
    """The commands for wherever memory is kept."""
    return (Asking if settings.store else Fix)(settings.home)


def typeable(name: str) -> str:
    """The name with every character replaced that cannot be typed."""
    return "".join([char if char.isprintable() else "_" for char in name])


def told(name: str) -> str:
    """The name without a secret that somebody made it of, part by part: a report is pasted to others."""
    return "/".join([redact_or_withhold(part)[0] for part in name.split("/")])


def quoted(path: str) -> str:
    import shlex

    return shlex.quote(path)
