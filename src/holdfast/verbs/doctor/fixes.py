"""The shell commands that fix a home: each works as printed, and none loses what a person wrote."""

from __future__ import annotations

import os
import stat
from shlex import quote

from holdfast import config
from holdfast.base.ids import KEY_PATTERN, derive_key
from holdfast.errors import ConfigError
from holdfast.models import Problem, Scope
from holdfast.safety.validate import redact_or_withhold
from holdfast.store.layout import FILE_BYTES, NOTE_FILE_BYTES, parse_trashed_key

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from holdfast.config import Config
    from holdfast.models import Finding


_MIN_FREE = 1024 * 1024  # bytes without which nothing can be fixed


class Fixes:
    """The commands of one report on a home: no two of them move files to the same path."""

    def __init__(self, home: str) -> None:
        self._home = home
        self._taken: set[str] = set()

    # --- commands on paths ------------------------------------------------------------------------------------------

    def move_away(self, path: str) -> str:
        """Move a file or folder to `aside` in the home; delete links and pipes, which contain nothing."""
        mode = os.lstat(path).st_mode
        if stat.S_ISREG(mode) or stat.S_ISDIR(mode):
            return self._move_into(path, os.path.join(self._home, "aside"))
        return self._command("rm", path)

    def rename_to_old(self, path: str) -> str:
        """Rename it to `.old` in the same folder."""
        return self._command("mv -n", path, self._unused_path(f"{hide_secrets(path)}.old"))

    def _move_into(self, path: str, folder: str) -> str:
        """Move it into a folder, which is created if it is missing."""
        target = self._unused_path(os.path.join(folder, _replace_unprintable(hide_secrets(os.path.basename(path)))))
        return f"mkdir -p {quote(folder)} && {self._command('mv -n', path, target)}"

    def rename(self, path: str) -> str:
        """Rename it to a name that can be typed; a note gets a valid key."""
        folder, name = os.path.split(path)
        name = hide_secrets(name)
        is_note = os.path.basename(folder) == "notes" and name.endswith(".md")
        better = f"{derive_key(name[:-3])}.md" if is_note else _replace_unprintable(name)
        return self._command("mv -n", path, self._unused_path(os.path.join(folder, better)))

    def edit(self, path: str) -> str:
        """Open it in an editor: only a person knows what it should say."""
        return self._command("${EDITOR:-vi}", path)

    def edit_tree_file(self, scope: str, name: str) -> str:
        """Open a file of a scope's tree, which may be a new one."""
        return self.edit(os.path.join(self._home, "shelf", scope, "files", name))

    def grant_access(self, path: str, example: str = "") -> str:
        """Let this user read, write and enter it; change the owner first if it, or the `example` in it, is another user's."""
        if os.lstat(example or path).st_uid != os.geteuid():
            return self._command(f'sudo chown{" -R" if os.path.isdir(path) else ""} "$(id -u)"', path)
        return self._command("chmod -R u+rwX" if example else "chmod u+rwX", path)

    def _command(self, verb: str, path: str, target: str = "") -> str:
        """Return a command on one path; a path that cannot be typed, or must not be shown, is found by its inode."""
        to = f" {quote(target)}" if target else ""
        if path.isprintable() and hide_secrets(path) == path:
            return f"{verb} {quote(path)}{to}"
        return f"find {quote(self._home)} -inum {os.lstat(path).st_ino} -exec {verb} {{}}{to} ';' -quit"

    def _unused_path(self, path: str) -> str:
        """Return the path, or a numbered one that does not exist and that no other command of this report uses."""
        stem, suffix = os.path.splitext(path)
        number, unused = 1, path
        while unused in self._taken or os.path.lexists(unused):
            number += 1
            unused = f"{stem}-{number}{suffix}"
        self._taken.add(unused)
        return unused

    # --- commands on what the home contains ---------------------------------------------------------------------------

    def fix_file(self, scope: str, part: str, name: str) -> str:
        """Fix a file of a scope, decided by what kind of file it is and never by words in it."""
        path = os.path.join(self._home, "shelf", scope, part, name)
        try:
            info = os.lstat(path)
        except OSError:
            return self.holdfast("doctor")  # deleted since, or its folder is not accessible: check again
        is_note, max_bytes = part == "notes", NOTE_FILE_BYTES if part == "notes" else FILE_BYTES
        if is_note and (stat.S_ISDIR(info.st_mode) or (stat.S_ISREG(info.st_mode) and not name.endswith(".md"))):
            return self._move_into(path, os.path.join(self._home, "shelf", scope, "files"))
        if not stat.S_ISREG(info.st_mode) or info.st_size > max_bytes:
            return self.move_away(path)
        if not os.access(path, os.R_OK):
            return self.grant_access(path)
        if info.st_size == 0:
            return self._command("rm", path)
        return self.rename(path) if is_note and not KEY_PATTERN.match(name[:-3]) else self.edit(path)

    def purge_words(self, scope: Scope, key: str) -> str:
        """Return the arguments that purge a note of any scope."""
        return f"purge {key} {_scope_options(scope)}"

    def purge_returned(self, scope: str, part: str, name: str) -> str:
        """Purge a note again that came back after its purge; open a file of the tree in an editor."""
        key = parse_trashed_key(name) if part == "archive" else name[:-3]
        if part in ("notes", "archive") and KEY_PATTERN.match(key):
            return self.holdfast(self.purge_words(Scope.of_folder(scope), key))
        return self.edit(os.path.join(self._home, "shelf", scope, part, name))

    def fix_database(self, name: str) -> str:
        """Make a database writable again, or move a damaged copy to where it is not reported."""
        path = os.path.join(self._home, name)
        if any(entry.startswith(f"{name}.damaged-") for entry in os.listdir(self._home)):
            aside = quote(os.path.join(self._home, "aside"))
            return f"mkdir -p {aside} && mv -n {quote(path)}.damaged-* {aside}"
        for file in (path, f"{path}-wal", f"{path}-shm"):
            if os.path.islink(file) or (os.path.exists(file) and not os.path.isfile(file)):
                return self.move_away(file)
            if os.path.exists(file) and not os.access(file, os.R_OK | os.W_OK):
                return self.grant_access(file)
        if not os.access(self._home, os.W_OK | os.X_OK):
            return self.grant_access(self._home)
        return self.holdfast("reindex" if name == "index.db" else "doctor")

    # --- the disk -----------------------------------------------------------------------------------------------------

    def free_space_first(self) -> str:
        """Return the command that must precede any other if the disk is full; "" if it is not."""
        return self.free_space() if is_disk_full(self._home) else ""

    def free_space(self) -> str:
        """Ask for space on the home's disk."""
        return f"Free some space on the disk of {hide_secrets(self._home)}, then run `{self.holdfast('doctor')}` again"

    def remount(self, path: str) -> str:
        """Ask for a file system that can be written to."""
        again = f"then run `{self.holdfast('doctor')}` again"
        return f"Mount the file system of {hide_secrets(path)} for writing, or set HOLDFAST_HOME to another folder; {again}"

    def holdfast(self, words: str) -> str:
        """Return a Holdfast command on this home, with `--home` if it is not the default one."""
        try:
            is_default = config.find_home() == self._home
        except ConfigError:
            is_default = False
        return f"holdfast {words}" if is_default else f"holdfast --home {quote(self._home)} {words}"


class PostgresFixes(Fixes):
    """The commands of a report on PostgreSQL, where nothing in the store is a file that could be opened or moved."""

    def edit(self, path: str) -> str:
        """Purge it: a new version would leave it in the history."""
        scope, _, name = path.partition("/shelf/")[2].partition("/notes/")
        if KEY_PATTERN.match(name[:-3]):
            return self.holdfast(self.purge_words(Scope.of_folder(scope), name[:-3]))
        if "/transcripts/" in path:
            return self.holdfast("purge --text -")
        return self.holdfast("purge --text - --files") if "/files/" in path else super().edit(path)

    def edit_tree_file(self, scope: str, name: str) -> str:
        """Replace a file of a scope's tree from standard input."""
        return self.holdfast(f"file create {quote(name)} - {_scope_options(Scope.of_folder(scope))}")

    def fix_file(self, scope: str, part: str, name: str) -> str:
        """Forget a note; for anything else check again."""
        if part != "notes" or not KEY_PATTERN.match(name[:-3]):
            return self.holdfast("doctor")
        return self.holdfast(f"forget {name[:-3]} {_scope_options(Scope.of_folder(scope))}")

    def fix_database(self, name: str) -> str:
        """Rebuild the index, or check again."""
        return self.holdfast("reindex" if name == "index.db" else "doctor")

    def free_space_first(self) -> str:
        """Return "": the full disk is the server's, and its error says so."""
        return ""


def fixes_for(settings: Config) -> Fixes:
    """Return the commands for the store of these settings."""
    return (PostgresFixes if settings.store else Fixes)(settings.home)


def with_fixes(home: str, findings: Iterable[Finding]) -> list[Problem]:
    """Return these problems with the commands that fix them."""
    fixes = Fixes(home)
    return [Problem(found.code, found.message, _fix_of(fixes, found), found.path) for found in findings]


def _fix_of(fixes: Fixes, found: Finding) -> str:
    if found.action == "edit":
        return fixes.edit(found.target)
    if found.action == "move_aside":
        return fixes.move_away(found.target)
    if found.action == "run":
        tenant = f"--tenant {quote(found.tenant)} " if found.tenant else ""
        return fixes.holdfast(tenant + found.target)
    if found.action == "remove":
        return f"{found.hint}; afterwards run `rm -f {quote(found.target)}`"
    return found.hint


def is_disk_full(home: str) -> bool:
    """Return whether the home's disk has less than 1 MiB left, so that nothing that begins could finish."""
    try:
        disk = os.statvfs(home)
    except OSError:
        return False
    return disk.f_bavail * disk.f_frsize < _MIN_FREE


def hide_secrets(name: str) -> str:
    """Return a path with secrets in it masked, part by part: a report is pasted to other people."""
    return "/".join([redact_or_withhold(part)[0] for part in name.split("/")])


def _replace_unprintable(name: str) -> str:
    return "".join([char if char.isprintable() else "_" for char in name])


def _scope_options(scope: Scope) -> str:
    return f"--scope {scope.kind}" + (f" --{scope.kind} {scope.id}" if scope.id else "")
