"""The resident process: it keeps the models loaded and answers recalls of short commands over a socket in the home.

The socket belongs to the user (0600 in a home of 0700), and a connection of another user is rejected. A request is one line of
JSON, and so is the answer. No resident process is started automatically, and everything works without one.
"""

from __future__ import annotations

import os

from holdfast import config
from holdfast.base.record import field_names
from holdfast.errors import Busy, HoldfastError, UsageError, from_os
from holdfast.home import Lock
from holdfast.models import RECALL_OPTIONS, Answer, Hit, Scope, Source

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from holdfast.api.memory import Memory
    from holdfast.verbs.brief.relevance import Match

    Open = Callable[..., Memory]

SOCKET_NAME = "resident.sock"
_REQUEST_BYTES = 256 * 1024
_ANSWER_BYTES = 64 * 1024 * 1024
_RECALL_FIELDS = ("query", *RECALL_OPTIONS)
_CALLER_FIELDS = ("project", "session", "agent", "client", "cwd")
_OPEN_MEMORIES = 64
_CONNECTION_SECONDS = 30.0  # that the resident process waits for a request, or for its answer to be read
SECONDS = 10.0  # that a command waits for an answer: the process may be suspended; a rerank endpoint alone has 5


def is_running(home: str) -> bool:
    """Return whether a resident process seems to run for this home."""
    return os.path.exists(os.path.join(home, "run", SOCKET_NAME))


def recall(home: str, caller: dict[str, str | None], arguments: dict[str, Any], seconds: float = SECONDS) -> Answer | None:
    """Return the resident process's answer to a recall; None if there is no such process or it fails.

    Raise Busy if it does not answer in time.
    """
    try:
        reply = _exchange(home, {"who": caller, "asked": arguments}, seconds)
    except TimeoutError:
        fix = "If it hangs, stop it: it is an MCP server or `holdfast resident`"
        raise Busy(f"the process that has the models loaded did not answer within {seconds:g} seconds", fix) from None
    return parse_answer(reply["answer"]) if "answer" in reply else None


def find_matches(home: str, caller: dict[str, str | None], prompt: str, seconds: float = SECONDS) -> list[Match] | None:
    """Return the notes that match a prompt; None if there is no resident process or it fails."""
    from holdfast.verbs.brief.relevance import Match

    try:
        reply = _exchange(home, {"who": caller, "prompt": prompt}, seconds)
    except TimeoutError:
        return None
    return [Match(**match) for match in reply["matches"]] if "matches" in reply else None


def _exchange(home: str, request: dict[str, Any], seconds: float) -> dict[str, Any]:
    """Send a request and return the answer; empty if there is none. Raise TimeoutError if it takes too long."""
    import _socket  # not `socket`: importing it takes longer than the request
    import json

    try:
        with _socket_path(home) as path:
            connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
            try:
                connection.settimeout(seconds)
                connection.connect(path)
                connection.sendall(json.dumps(request).encode() + b"\n")
                answer = json.loads(_read_line(connection, _ANSWER_BYTES))
            finally:
                connection.close()
    except TimeoutError:
        raise
    except (OSError, ValueError):
        return {}
    return answer if isinstance(answer, dict) else {}


def parse_answer(fields: dict[str, Any]) -> Answer:
    """Return an answer from its JSON object."""
    hits = []
    for hit in fields["hits"]:
        given_source = hit["source"]
        source = Source(**{**given_source, "made_from": tuple(given_source["made_from"])}) if given_source else None
        given = {name: hit[name] for name in field_names(Hit)}  # without properties, which are computed again
        hits.append(Hit(**{**given, "scope": Scope(**hit["scope"]), "tags": tuple(hit["tags"]), "source": source}))
    return Answer(**{**fields, "hits": tuple(hits)})


class Resident:
    """Answers recalls until it is stopped. A change of config.toml applies to the next request."""

    def __init__(self, home: str, open_memory: Open) -> None:
        from holdfast.api.memory_cache import MemoryCache  # only the server needs it

        self._home = home
        self._open = open_memory
        self._memories = MemoryCache(_OPEN_MEMORIES)
        self._settings = config.read_config_file_id(home)
        self._listening: Any = None
        self._stopped = False

    def serve(self, ready: Callable[[str], object] = lambda path: None) -> None:
        """Listen in the home until stopped; raise `Busy` if another process does already."""
        import socket
        import threading

        lock = Lock(self._home, "resident", 0)
        if not lock.acquire(0):
            raise Busy("another resident process serves this home already", "Use that process, or stop it first")
        path = os.path.join(self._home, "run", SOCKET_NAME)
        try:
            with _socket_path(self._home) as socket_path, socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
                self._bind(listening, socket_path)
                self._listening = listening
                ready(path)
                while not self._stopped:
                    connection, _ = listening.accept()
                    threading.Thread(target=self._answer, args=(connection,), daemon=True).start()
        except OSError as error:
            if not self._stopped:
                raise from_os(error, "cannot listen in the home") from error
        finally:
            self._clean_up(path)
            lock.release()

    def stop(self) -> None:
        """Stop serving, from another thread; the socket is deleted."""
        import socket

        self._stopped = True
        if self._listening is not None:
            try:
                self._listening.shutdown(socket.SHUT_RDWR)  # wakes the thread that waits in accept
            except OSError:
                pass  # it has ended already

    def _bind(self, listening: Any, path: str) -> None:
        """Bind the socket so that only the user can connect: its mode is set before it listens."""
        try:
            os.unlink(path)  # of a process that died: this one has the lock
        except FileNotFoundError:
            pass
        listening.bind(path)
        os.chmod(path, 0o600)  # not by the umask, which all threads share
        listening.listen(64)

    def _clean_up(self, path: str) -> None:
        try:
            os.unlink(path)
        except OSError:
            pass
        self._memories.clear()

    def _answer(self, connection: Any) -> None:
        import json

        with connection:
            try:
                connection.settimeout(_CONNECTION_SECONDS)
                _require_same_user(connection)
                reply = self._reply(json.loads(_read_line(connection, _REQUEST_BYTES)))
            except HoldfastError as error:
                reply = error.as_dict()
            except Exception as error:  # noqa: BLE001  # the outermost frame: answer with the error and go on
                reply = {"error": "request", "message": f"{type(error).__name__}: {error}"}
            try:
                connection.sendall(json.dumps(reply).encode() + b"\n")
            except OSError:
                pass  # the client has gone

    def _reply(self, request: Any) -> dict[str, Any]:
        given, arguments = request["who"], request.get("asked", {})
        if set(given) - set(_CALLER_FIELDS) or set(arguments) - set(_RECALL_FIELDS):
            raise UsageError("unknown field in the request", "Use the same version of Holdfast in both processes")
        caller = {name: given.get(name) for name in _CALLER_FIELDS}
        settings, query = config.read_config_file_id(self._home), arguments.pop("query", "")
        if settings != self._settings:
            self._settings = settings
            self._memories.clear()  # calls that run keep their settings to the end
        with self._memories.lend((settings, *caller.values()), lambda: self._open(**caller)) as memory:
            if "prompt" in request:
                from holdfast.api.memory import context_of
                from holdfast.verbs.brief import relevance

                found = relevance.find_matches(context_of(memory), request["prompt"], "hybrid") if memory.config.enabled else []
                return {"matches": [match.as_dict() for match in found]}
            return {"answer": memory.recall(query, **arguments).as_dict()}


def _require_same_user(connection: Any) -> None:
    import socket
    import struct

    if hasattr(socket, "SO_PEERCRED"):
        credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        if struct.unpack("3i", credentials)[1] not in (os.geteuid(), 0):
            raise UsageError("this home belongs to another user", "Use a home of your own")


def _read_line(connection: Any, most: int) -> bytes:
    data = b""
    while not data.endswith(b"\n"):
        more = connection.recv(65536)
        if not more or len(data) > most:
            raise ValueError("the line is truncated or too long")
        data += more
    return data


class _socket_path:
    """A path to the socket of at most 107 bytes, the limit of the system; a long one goes through /proc/self/fd."""

    def __init__(self, home: str) -> None:
        self._path = os.path.join(home, "run", SOCKET_NAME)
        self._fd = -1

    def __enter__(self) -> str:
        if len(os.fsencode(self._path)) < 100:
            return self._path
        self._fd = os.open(os.path.dirname(self._path), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        return f"/proc/self/fd/{self._fd}/{SOCKET_NAME}"

    def __exit__(self, *_: object) -> None:
        if self._fd >= 0:
            os.close(self._fd)
