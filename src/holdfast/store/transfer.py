"""Documents of a home on their way out of it or into it: known by their digests, put where none stands, with their times.

What a shelf needs for `holdfast copy`. Nothing here overwrites anything: a file is linked into place, which no race can make
take another's.
"""

from __future__ import annotations

import os
from hashlib import sha256

from holdfast.errors import Conflict, HoldfastError, from_os
from holdfast.store import atomic
from holdfast.store.batch import Batch
from holdfast.store.transcripts import SUFFIX

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.store.atomic import FileContent
    from holdfast.store.files import FileStore

    Brought = tuple[str, bytes, int]  # a name (in `files` a path), the bytes, and the second they were last changed in

PARTS = ("notes", "files", "trash", "archive")


def names(store: FileStore, scope_folder: str, part: str) -> list[str]:
    """Every document of a part, by its name; links, pipes and hidden files are none."""
    entries = store.tree(scope_folder).census() if part == "files" else store.entries(scope_folder, part)
    return sorted([entry.name for entry in entries if entry.regular])


def read(store: FileStore, scope_folder: str, part: str, name: str) -> FileContent | None:
    """One of them."""
    if part == "files":
        return store.tree(scope_folder).read(tuple(name.split("/")))
    return store.read_name(scope_folder, part, name)


def digests(store: FileStore, scope_folder: str, part: str) -> Iterator[tuple[str, str]]:
    """Each name with the SHA-256 of its bytes, or with nothing where it cannot be read."""
    for name in names(store, scope_folder, part):
        try:
            content = read(store, scope_folder, part, name)
        except HoldfastError:
            yield name, ""
            continue
        if content is not None:
            yield name, sha256(content.data).hexdigest()


def folders(store: FileStore, scope_folder: str) -> list[str]:
    """The folders of the tree of files in which nothing stands: no document would bring them along."""
    top = os.path.join(store.full(scope_folder), "files")
    return sorted([os.path.relpath(path, top) for path in store.tree(scope_folder).folders() if path != top and _bare(path)])


def _bare(path: str) -> bool:
    try:
        return not [name for name in os.listdir(path) if not name.startswith(".")]
    except OSError:
        return False  # gone since


def passed_over(store: FileStore, scope_folder: str) -> list[tuple[str, str]]:
    """What stands in a scope and is no document or transcript, each with why: it would stay behind unseen. Hidden files are
    nobody's memory, and index.md is made anew."""
    root = atomic.open_folder(store.home, ("shelf", *scope_folder.split("/")))
    if root is None:
        return []
    found = []
    with root:
        for where, inner, names_ in atomic.walk(root):
            inner[:] = [name for name in inner if not name.startswith(".") and atomic.is_utf8(name)]
            for name in names_:
                path = where + name
                if name.startswith(".") or not atomic.is_utf8(name) or path == "index.md":
                    continue
                if not os.path.isfile(full := os.path.join(store.full(scope_folder), path)) or os.path.islink(full):
                    found.append((path, "a link, or something else that is no file"))
                elif not _is_kept(path):
                    found.append((path, "stands where no memory does"))
    return sorted(found)


def _is_kept(path: str) -> bool:
    """Whether a file at such a path of a scope is a document or a transcript."""
    part, *inside = path.split("/")
    if part == "files" or (part in PARTS and len(inside) == 1):
        return bool(inside)
    return part in ("transcripts", "trash") and len(inside) == 2 and path.endswith(SUFFIX)


def bring(store: FileStore, scope_folder: str, part: str, brought: list[Brought]) -> None:
    """Put documents where none stand, flushed together; `Conflict` where one does by now."""
    inside: dict[str, list[Brought]] = {}
    for path, data, modified in brought:
        folder, _, name = path.rpartition("/")
        inside.setdefault(folder, []).append((name, data, modified))
    for folder, files in inside.items():
        _put(store, scope_folder, (part, *folder.split("/")) if folder else (part,), files)


def _put(store: FileStore, scope_folder: str, parts: tuple[str, ...], files: list[Brought]) -> None:
    there = atomic.open_folder(store.home, ("shelf", *scope_folder.split("/"), *parts), create=True)
    assert there is not None
    with there as folder:
        try:
            with Batch(folder) as batch:
                temps = [batch.write(data) for _, data, _ in files]
                for temp, (_, _, modified) in zip(temps, files, strict=True):
                    os.utime(temp, (modified, modified), dir_fd=folder.fd, follow_symlinks=False)
                batch.flush()
                with store.named_lock(scope_folder.replace("/", "+")):
                    for temp, (name, _, _) in reversed(list(zip(temps, files, strict=True))):
                        _link(folder, temp, name)
                atomic.sync_folder(folder)
        except OSError as error:
            raise from_os(error, f"cannot write to {folder.name}") from error


def _link(folder: atomic.Folder, temp: str, name: str) -> None:
    try:
        os.link(temp, name, src_dir_fd=folder.fd, dst_dir_fd=folder.fd, follow_symlinks=False)
    except FileExistsError:
        raise Conflict(f"{folder.name}/{name} was written by somebody else", "Copy again when nobody writes") from None
    os.unlink(temp, dir_fd=folder.fd)
