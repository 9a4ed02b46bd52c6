"""Read and write the marker `.holdfast/project.json`: an id that moves with its folder, written only on request."""

from __future__ import annotations

import os

from holdfast.base.ids import digest, is_name
from holdfast.base.record import Record
from holdfast.errors import Conflict, from_os
from holdfast.project.git import is_same_folder, read_regular_file, real_path, slug

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    class Location(Protocol):
        """The folder in which a marker or a checkout was last seen."""

        @property
        def nonce(self) -> str: ...
        @property
        def path(self) -> str: ...

    class Registry(Protocol):
        """Durable records about projects, kept in the ledger."""

        def find_project(self, alias: str) -> str | None:
            """Return the project of an alias."""

        def link(self, alias: str, project: str, instead: str | None = None) -> None:
            """Link an alias to a project; the first writer wins, unless the alias still leads to `instead`."""

        def find_location(self, id: str) -> Location | None:
            """Return where a marker or checkout was last seen."""

        def put_location(self, id: str, nonce: str, path: str) -> None:
            """Record where a marker or checkout is."""

        def list_adopted(self, project: str) -> list[str]:
            """Return the projects that a person joined to this one."""

        def list_links(self) -> dict[str, str]:
            """Return every alias and its project."""


MARKER_FOLDER, MARKER_FILE = ".holdfast", "project.json"
_OPEN_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_MARKER_BYTES = 4096


class Marker(Record):
    """The content of a `.holdfast/project.json`, and its folder."""

    id: str
    nonce: str
    folder: str


def is_valid_here(marker: Marker, registry: Registry) -> bool:
    """Return whether the marker was written for this folder, or for a folder that moved here."""
    location = registry.find_location(marker.id)
    if location is None or location.nonce != marker.nonce:
        return False
    if is_same_folder(location.path, marker.folder):
        return True
    original = read_marker(location.path)
    return original is None or original.nonce != marker.nonce


def record_location(id: str, nonce: str, path: str, registry: Registry) -> None:
    """Record where a marker, checkout or folder is, unless the registry has this location already."""
    known = registry.find_location(id)
    if known is not None and known.nonce == nonce and is_same_folder(known.path, path):
        return
    registry.put_location(id, nonce, path)


def read_marker(folder: str) -> Marker | None:
    """Return the marker of a folder; None if there is none or it is not a valid regular file."""
    try:
        marker_fd = os.open(f"{folder}/{MARKER_FOLDER}", _OPEN_FOLDER)
    except (OSError, ValueError):
        return None
    try:
        data = read_regular_file(MARKER_FILE, _MARKER_BYTES + 1, os.O_NOFOLLOW, marker_fd)
    finally:
        os.close(marker_fd)
    return _parse_marker(data, folder) if data is not None and len(data) <= _MARKER_BYTES else None


def _parse_marker(data: bytes, folder: str) -> Marker | None:
    import json

    try:
        fields = json.loads(data)
    except (ValueError, RecursionError):
        return None
    if not isinstance(fields, dict):
        return None
    id, nonce, created = fields.get("id"), fields.get("nonce"), fields.get("created")
    if not (isinstance(id, str) and isinstance(nonce, str) and isinstance(created, str)):
        return None
    return Marker(id, nonce, folder) if is_name(id) and nonce else None


def write_marker(root: str, registry: Registry, now: str) -> str:
    """Write a marker and return its id; keep a valid one, and raise Conflict if it belongs to another folder."""
    folder = real_path(root)
    if is_marked(folder):
        return _existing_marker(folder, registry)
    nonce = os.urandom(16).hex()
    id = f"{slug(os.path.basename(folder))}-{digest(nonce.encode())[:12]}"
    registry.put_location(id, nonce, folder)  # first, because a marker without its record counts as another home's
    try:
        _write_marker_folder(folder, id, nonce, now)
    except FileExistsError:
        return _existing_marker(folder, registry)
    except OSError as error:
        raise from_os(error, f"writing the marker in {folder}") from error
    return id


def _existing_marker(folder: str, registry: Registry) -> str:
    marker = read_marker(folder)
    if marker is None or not is_valid_here(marker, registry):
        raise Conflict(
            f"{folder}/{MARKER_FOLDER}/{MARKER_FILE} exists already and belongs to another folder",
            "Check it, and delete it if it is a leftover",
        )
    record_location(marker.id, marker.nonce, marker.folder, registry)
    return marker.id


def _write_marker_folder(folder: str, id: str, nonce: str, now: str) -> None:
    import json

    text = json.dumps({"id": id, "nonce": nonce, "created": now}, indent=2) + "\n"
    parent = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        try:
            os.mkdir(MARKER_FOLDER, 0o700, dir_fd=parent)
        except FileExistsError:
            pass
        marker_fd = os.open(MARKER_FOLDER, _OPEN_FOLDER, dir_fd=parent)
        try:
            os.fchmod(marker_fd, 0o700)
            _create_marker_file(marker_fd, text.encode(), f".{nonce[:12]}.tmp")
            os.fsync(marker_fd)
        finally:
            os.close(marker_fd)
        os.fsync(parent)
    finally:
        os.close(parent)


def _create_marker_file(marker_fd: int, data: bytes, temporary: str) -> None:
    """Create the complete file without replacing another: by a hard link, or by renaming where links do not work."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    file = os.open(temporary, flags, 0o600, dir_fd=marker_fd)
    try:
        try:
            os.write(file, data)
            os.fsync(file)
        finally:
            os.close(file)
        try:
            os.link(temporary, MARKER_FILE, src_dir_fd=marker_fd, dst_dir_fd=marker_fd, follow_symlinks=False)
        except FileExistsError:
            raise
        except OSError:
            os.rename(temporary, MARKER_FILE, src_dir_fd=marker_fd, dst_dir_fd=marker_fd)
    finally:
        try:
            os.unlink(temporary, dir_fd=marker_fd)
        except FileNotFoundError:
            pass


def is_marked(folder: str) -> bool:
    return os.path.lexists(f"{folder}/{MARKER_FOLDER}/{MARKER_FILE}")
