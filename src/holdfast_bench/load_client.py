"""A bounded client: so many connections, each with one request under way, for so long, in one process."""

from __future__ import annotations

import select
import socket
import time
from collections.abc import Iterator

from holdfast.base.record import Record

_CHUNK = 256 * 1024
_MOST_SECONDS = 60.0  # until every connection has had an answer


class Pressed(Record):
    """What came of it."""

    answers: int
    refused: int  # answers that were no success
    seconds: float
    p50_ms: float
    p99_ms: float

    @property
    def per_second(self) -> float:
        return self.answers / self.seconds


def request(method: str, path: str, body: bytes, token: str = "") -> bytes:
    """One request of HTTP/1.1 on a connection that stays."""
    bearer = f"Authorization: Bearer {token}\r\nX-Holdfast-Project: bench\r\n" if token else ""
    head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{bearer}"
    return f"{head}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


def press(address: tuple[str, int], requests: Iterator[bytes], clients: int, seconds: float) -> Pressed:
    """Send the next request on every connection that has its answer, until the time is over."""
    asked = {one.fileno(): one for one in (_Connection(address) for _ in range(clients))}
    waits, took, refused = select.epoll(), list[float](), 0
    try:
        for one in asked.values():
            waits.register(one.fileno(), select.EPOLLIN)
            one.ask(next(requests))
        begun = time.perf_counter()
        while (now := time.perf_counter()) - begun < (seconds if len(took) >= clients else _MOST_SECONDS):
            for number, _ in waits.poll(1):
                one = asked[number]
                try:
                    if not one.hear():
                        continue
                except ConnectionError:  # the server ended it, as it may end one that stays: the request goes on another
                    asked.pop(number)
                    one.begin_anew()
                    asked[one.fileno()] = one
                    waits.register(one.fileno(), select.EPOLLIN)
                    continue
                took.append(time.perf_counter() - one.asked)
                refused += not one.succeeded
                one.ask(next(requests))
        _hear_out(asked, waits)
    finally:
        waits.close()
        for one in asked.values():
            one.close()
    took.sort()
    middle, late = (took[len(took) // 2], took[len(took) * 99 // 100]) if took else (0.0, 0.0)
    return Pressed(len(took), refused, now - begun, middle * 1000, late * 1000)


def _hear_out(asked: dict[int, _Connection], waits: select.epoll) -> None:
    """Wait for what is under way, uncounted: else the server would still be at it while the next thing is measured."""
    under_way, end = dict(asked), time.perf_counter() + _MOST_SECONDS
    while under_way and time.perf_counter() < end:
        for number, _ in waits.poll(1):
            try:
                whole = asked[number].hear()
            except ConnectionError:
                whole = True
            if whole:
                waits.unregister(number)
                under_way.pop(number, None)


class _Connection:
    """One connection, and the answer that is on its way."""

    def __init__(self, address: tuple[str, int]) -> None:
        self._address = address
        self._socket = self._opened()
        self._sent, self._heard = b"", b""
        self.asked = 0.0
        self.succeeded = False

    def _opened(self) -> socket.socket:
        opened = socket.create_connection(self._address, timeout=30)
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return opened

    def begin_anew(self) -> None:
        """The same request on a connection of its own; the time it took so far counts."""
        self._socket.close()
        self._socket, self._heard = self._opened(), b""
        self._socket.sendall(self._sent)

    def fileno(self) -> int:
        return self._socket.fileno()

    def ask(self, data: bytes) -> None:
        self._sent, self._heard, self.asked = data, b"", time.perf_counter()
        self._socket.sendall(data)

    def hear(self) -> bool:
        """Whether the answer is whole."""
        piece = self._socket.recv(_CHUNK)
        if not piece:
            raise ConnectionError("the server hung up")
        self._heard += piece
        head, found, body = self._heard.partition(b"\r\n\r\n")
        if not found:
            return False
        self.succeeded = head[9:10] == b"2"
        length = head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0]
        return len(body) >= int(length)

    def close(self) -> None:
        self._socket.close()
