"""Where the audit is shipped to: a file, syslog or a webhook. Each takes a batch of rows and raises if some may be missing."""

from __future__ import annotations

import fcntl
import json
import os
import socket
import stat
from typing import TYPE_CHECKING, Protocol

from holdfast.errors import Busy, ConfigError, Unreached, from_os

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.ledger.audit import ChainedEntry

_SECONDS = 10.0  # for one step of a connection
_FACILITY, _INFO, _WARNING = 13, 6, 4  # of syslog: log audit; allowed and denied
_TAIL_BYTES = 64 * 1024  # more than a row has
_FIX = "Write audit.ship as file:/PATH, syslog:unix:/PATH, syslog:udp://HOST:PORT or https://HOST/PATH"


class Sink(Protocol):
    """One place that takes rows."""

    def send(self, entries: Sequence[ChainedEntry]) -> None:
        """Hand over the rows, in their order; raises HoldfastError if some may be missing, Busy to try again soon."""


def open_sink(address: str, key: str | None = None) -> Sink:
    """Return the sink that `audit.ship` names; raises ConfigError if it names none. Nothing is opened yet."""
    if address.startswith("file:"):
        return FileSink(_check_path(address.removeprefix("file:")))
    if address.startswith("syslog:unix:"):
        return SyslogSink(_check_path(address.removeprefix("syslog:unix:")))
    if address.startswith("syslog:udp://"):
        return SyslogSink(_parse_udp(address.removeprefix("syslog:udp://")))
    if address.startswith(("https://", "http://")):
        return WebhookSink(address, key)
    raise ConfigError("audit.ship does not name a file, a syslog or a webhook", _FIX)


class FileSink:
    """Append rows to a file as lines of JSON, flushed. The file is opened for each batch, so that it may be rotated."""

    def __init__(self, path: str) -> None:
        self._path = path

    def send(self, entries: Sequence[ChainedEntry]) -> None:
        try:
            fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NONBLOCK, 0o600)
            try:
                if not stat.S_ISREG(os.fstat(fd).st_mode):
                    raise ConfigError(f"{self._path} is not a regular file", _FIX)
                _lock(fd)
                _append_lines(fd, b"".join([encode_line(entry) for entry in entries]))
            finally:
                os.close(fd)
        except OSError as error:
            raise from_os(error, f"cannot append to {self._path}") from error


def _lock(fd: int) -> None:
    """Lock the file until it is closed: the gateway of another store may append to it too. Raises Busy if it does just now."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise Busy("another gateway appends to the file of audit.ship", "Try again") from None


def _append_lines(fd: int, data: bytes) -> None:
    """Append and flush; a line that a crash or a full disk left unfinished is removed first: it is written again."""
    size = os.fstat(fd).st_size
    tail = os.pread(fd, _TAIL_BYTES, max(size - _TAIL_BYTES, 0))
    if tail and not tail.endswith(b"\n"):
        size -= len(tail) - (tail.rfind(b"\n") + 1)
        os.ftruncate(fd, size)
    try:
        while data:
            data = data[os.write(fd, data) :]
        os.fsync(fd)
    except OSError:
        os.ftruncate(fd, size)
        raise


class SyslogSink:
    """Send one datagram per row, in the format of RFC 5424, to a socket of this machine or a host. UDP may lose some."""

    def __init__(self, address: str | tuple[str, int]) -> None:
        self._address = address
        self._hostname = socket.gethostname() or "-"

    def send(self, entries: Sequence[ChainedEntry]) -> None:
        try:
            with self._connect() as connection:
                for entry in entries:
                    connection.send(format_syslog(entry, self._hostname))
        except OSError as error:
            raise Unreached(f"syslog cannot be reached: {error.strerror or type(error).__name__}", "Look after it") from error

    def _connect(self) -> socket.socket:
        if isinstance(self._address, str):
            family, target = socket.AF_UNIX, self._address
        else:
            family, _, _, _, target = socket.getaddrinfo(*self._address, type=socket.SOCK_DGRAM)[0]  # type: ignore[assignment]
        connection = socket.socket(family, socket.SOCK_DGRAM)
        try:
            connection.settimeout(_SECONDS)
            connection.connect(target)
        except BaseException:
            connection.close()
            raise
        return connection


class WebhookSink:
    """Post a batch as lines of JSON; any 2xx means that all rows were taken."""

    def __init__(self, url: str, key: str | None) -> None:
        from holdfast.base.http_client import check_token, parse_url  # only a gateway that ships to a webhook needs it

        self._url = parse_url(url, "audit.ship")
        self._key = check_token(key, "audit.ship_key")

    def send(self, entries: Sequence[ChainedEntry]) -> None:
        from holdfast.base.http_client import HttpClient, RequestFailed, Timeout

        headers = {
            "Content-Type": "application/x-ndjson", "User-Agent": "holdfast",
            "Idempotency-Key": f"{entries[0].number}-{entries[-1].number}-{entries[-1].hash[:32]}",
        }  # fmt: skip
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        data = b"".join([encode_line(entry) for entry in entries])
        try:
            with HttpClient(self._url, Timeout(connect=_SECONDS, read=_SECONDS, total=3 * _SECONDS)) as client:
                status = client.request("POST", self._url.path or "/", data, headers).status
        except RequestFailed as error:
            raise Unreached(f"the webhook of the audit did not answer: {error.reason}", "Look after it") from None
        if not 200 <= status < 300:
            raise Unreached(f"the webhook of the audit answered {status}", "Check the webhook and audit.ship_key")


def encode_line(entry: ChainedEntry) -> bytes:
    """Return a row as `audit export` prints it, with its line feed."""
    return json.dumps(entry.as_dict(), separators=(",", ":")).encode() + b"\n"


def format_syslog(entry: ChainedEntry, hostname: str) -> bytes:
    """Return a row as a message of RFC 5424."""
    severity = _INFO if entry.outcome == "allowed" else _WARNING
    head = f"<{_FACILITY * 8 + severity}>1 {entry.time} {hostname[:255]} holdfast {os.getpid()} audit - "
    return head.encode("ascii", "replace") + encode_line(entry).rstrip(b"\n")


def _check_path(path: str) -> str:
    if not os.path.isabs(path) or "\0" in path:
        raise ConfigError("audit.ship names a path that does not begin with /", _FIX)
    return path


def _parse_udp(text: str) -> tuple[str, int]:
    host, _, port = text.rstrip("/").rpartition(":")
    if not host or not port.isascii() or not port.isdecimal() or not 0 < int(port) < 65536:
        raise ConfigError("audit.ship names no host and port", _FIX)
    return host.strip("[]"), int(port)
