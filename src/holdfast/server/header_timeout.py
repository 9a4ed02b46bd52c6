"""A connection on which the head of a request has to come in time, and to end. The server below us has a limit for what comes
after an answer and none for what comes before: whoever sends a head byte by byte, or nothing, or one without an end, would
stay for ever."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from uvicorn.protocols.http.auto import AutoHTTPProtocol

SECONDS = 30.0  # from the first byte of a head, or from the beginning of the connection, to the head's end
MOST_BYTES = 64 * 1024  # of a head that has not ended
_TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"

if TYPE_CHECKING:

    class _Protocol(asyncio.Protocol):
        loop: asyncio.AbstractEventLoop
        transport: asyncio.Transport
        cycle: Any

        def __init__(self, *given: Any, **named: Any) -> None: ...
else:
    _Protocol = AutoHTTPProtocol


class HeaderTimeout(_Protocol):
    """Whichever parser there is, with a clock beside it."""

    _clock: asyncio.TimerHandle | None = None
    _bytes = 0  # of the head so far

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._start()

    def data_received(self, data: bytes) -> None:
        of_a_body = self.cycle is not None and self.cycle.more_body  # of a request that may be answered already
        super().data_received(data)
        if not self._waits():
            self._stop()
            self._bytes = 0
            return
        self._bytes += 0 if of_a_body else len(data)
        if self._bytes > MOST_BYTES:
            self.transport.write(_TOO_LARGE)
            self.transport.close()
        elif self._clock is None:
            self._start()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop()
        super().connection_lost(exc)

    def _waits(self) -> bool:
        """Whether no request is under way."""
        return self.cycle is None or self.cycle.response_complete

    def _start(self) -> None:
        self._clock = self.loop.call_later(SECONDS, self._end)

    def _stop(self) -> None:
        if self._clock is not None:
            self._clock.cancel()
            self._clock = None

    def _end(self) -> None:
        self._clock = None
        if self._waits():
            self.transport.close()
