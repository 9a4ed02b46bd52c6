"""A process that stays answers for commands that come and go: it holds the models, they ask it over a socket in the home.

The socket is the user's own (0600 in a home of 0700), and whoever asks from another user is sent away. One line of JSON
asks, one answers. Nothing starts such a process by itself, and everything works without one.
"""

from __future__ import annotations

import os

from holdfast import config
from holdfast.errors import Busy, HoldfastError, UsageError, from_os
from holdfast.home import Lock
from holdfast.models import Answer, Hit, Scope, Source

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from holdfast.api.memory import Memory
    from holdfast.verbs.brief.relevance import Match

    Open = Callable[..., Memory]

NAME = "resident.sock"
_REQUEST_BYTES = 256 * 1024
_ANSWER_BYTES = 64 * 1024 * 1024
_ASKED = ("query", "scope", "type", "tags", "limit", "as_of", "known_at", "mode", "sort", "kind", "now", "explain")
_WHO = ("project", "session", "agent", "client", "cwd")
_CALLERS = 64  # memories that are kept open
_SECONDS = 30.0


def is_there(home: str) -> bool:
    """Whether a process seems to answer for this home."""
    return os.path.exists(os.path.join(home, "run", NAME))


def ask(home: str, who: dict[str, str | None], asked: dict[str, Any], seconds: float = _SECONDS) -> Answer | None:
    """What the process that stays answers; None if there is none, or if it cannot say."""
    said = _exchange(home, {"who": who, "asked": asked}, seconds)
    return answer_of(said["answer"]) if "answer" in said else None


def matches(home: str, who: dict[str, str | None], prompt: str, seconds: float = _SECONDS) -> list[Match] | None:
    """What bears on a prompt, as the process that stays finds it; None if there is none, or if it cannot say."""
    from holdfast.verbs.brief.relevance import Match

    said = _exchange(home, {"who": who, "prompt": prompt}, seconds)
    return [Match(**match) for match in said["matches"]] if "matches" in said else None


def _exchange(home: str, request: dict[str, Any], seconds: float) -> dict[str, Any]:
    """Send a request and return the answer; empty if there is none."""
    import _socket  # the bare module: what `socket` adds costs more than asking does
    import json

    try:
        with _folder(home) as place:
            connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
            try:
                connection.settimeout(seconds)
                connection.connect(place)
                connection.sendall(json.dumps(request).encode() + b"\n")
                said = json.loads(_line(connection, _ANSWER_BYTES))
            finally:
                connection.close()
    except (OSError, ValueError):
        return {}
    return said if isinstance(said, dict) else {}


def answer_of(fields: dict[str, Any]) -> Answer:
    """An answer from its plain form."""
    hits = []
    for hit in fields["hits"]:
        said = hit["source"]
        source = Source(**{**said, "made_from": tuple(said["made_from"])}) if said else None
        given = {name: hit[name] for name in Hit._fields}  # what is only worked out from them it works out again
        hits.append(Hit(**{**given, "scope": Scope(**hit["scope"]), "tags": tuple(hit["tags"]), "source": source}))
    return Answer(**{**fields, "hits": tuple(hits)})


class Resident:
    """Answers until it is stopped; when config.toml changes, by what it says then."""

    def __init__(self, home: str, open_memory: Open) -> None:
        from holdfast.api.memory_cache import MemoryCache  # not for those that only ask

        self._home = home
        self._open = open_memory
        self._memories = MemoryCache(_CALLERS)
        self._settings = config.config_file_id(home)
        self._listening: Any = None
        self._stopped = False

    def serve(self, ready: Callable[[str], object] = lambda path: None) -> None:
        """Listen in the home. A second one for the same home is refused."""
        import socket
        import threading

        lock = Lock(self._home, "resident", 0)
        if not lock.acquire(0):
            raise Busy("another process answers for this home already", "Stop it first, or just use it")
        path = os.path.join(self._home, "run", NAME)
        try:
            with _folder(self._home) as place, socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
                self._bind(listening, place)
                self._listening = listening
                ready(path)
                while not self._stopped:
                    connection, _ = listening.accept()
                    threading.Thread(target=self._answer, args=(connection,), daemon=True).start()
        except OSError as error:
            if not self._stopped:
                raise from_os(error, "cannot listen in the home") from error
        finally:
            self._leave(path)
            lock.release()

    def stop(self) -> None:
        """End it from another thread, so that nothing is left in the home."""
        import socket

        self._stopped = True
        if self._listening is not None:
            try:
                self._listening.shutdown(socket.SHUT_RDWR)  # wakes whoever waits in accept
            except OSError:
                pass  # it has ended already

    def _bind(self, listening: Any, place: str) -> None:
        """Nobody else may connect: the folder is the user's alone, and so is the socket before anybody is listened to."""
        try:
            os.unlink(place)  # of one that died: we hold the lock
        except FileNotFoundError:
            pass
        listening.bind(place)
        os.chmod(place, 0o600)  # not by the umask: that is every thread's
        listening.listen(64)

    def _leave(self, path: str) -> None:
        try:
            os.unlink(path)
        except OSError:
            pass
        self._memories.let_go()

    def _answer(self, connection: Any) -> None:
        import json

        with connection:
            try:
                connection.settimeout(_SECONDS)
                _same_user(connection)
                said = self._said(json.loads(_line(connection, _REQUEST_BYTES)))
            except HoldfastError as error:
                said = error.as_dict()
            except Exception as error:  # noqa: BLE001  # a door too: whoever asks is told, and the others are still answered
                said = {"error": "request", "message": f"{type(error).__name__}: {error}"}
            try:
                connection.sendall(json.dumps(said).encode() + b"\n")
            except OSError:
                pass  # whoever asked has gone

    def _said(self, request: Any) -> dict[str, Any]:
        who, asked = request["who"], request.get("asked", {})
        if set(who) - set(_WHO) or set(asked) - set(_ASKED):
            raise UsageError("unknown field in the question", "Ask with the version that answers")
        whose = {name: who.get(name) for name in _WHO}
        settings, query = config.config_file_id(self._home), asked.pop("query", "")
        if settings != self._settings:
            self._settings = settings
            self._memories.let_go()  # those in use go by what they were opened with, to the end of their call
        with self._memories.lend((settings, *whose.values()), lambda: self._open(**whose)) as memory:
            if "prompt" in request:
                from holdfast.verbs.brief import relevance

                found = relevance.matches(memory._context, request["prompt"], "hybrid") if memory.config.enabled else []
                return {"matches": [match.as_dict() for match in found]}
            return {"answer": memory.recall(query, **asked).as_dict()}


def _same_user(connection: Any) -> None:
    import socket
    import struct

    if hasattr(socket, "SO_PEERCRED"):
        told = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        if struct.unpack("3i", told)[1] not in (os.geteuid(), 0):
            raise UsageError("this home belongs to another user", "Ask for a home of your own")


def _line(connection: Any, most: int) -> bytes:
    data = b""
    while not data.endswith(b"\n"):
        more = connection.recv(65536)
        if not more or len(data) > most:
            raise ValueError("the line is cut short or too long")
        data += more
    return data


class _folder:
    """The path by which the socket can be reached: a socket's path may have 107 bytes, a home's may have more."""

    def __init__(self, home: str) -> None:
        self._path = os.path.join(home, "run", NAME)
        self._fd = -1

    def __enter__(self) -> str:
        if len(os.fsencode(self._path)) < 100:
            return self._path
        self._fd = os.open(os.path.dirname(self._path), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        return f"/proc/self/fd/{self._fd}/{NAME}"

    def __exit__(self, *_: object) -> None:
        if self._fd >= 0:
            os.close(self._fd)
