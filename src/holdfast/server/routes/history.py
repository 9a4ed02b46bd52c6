"""History: what was said in sessions, kept and read around a hit."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from hashlib import sha256
from tempfile import TemporaryFile
from typing import IO, Any

from holdfast.errors import from_os
from holdfast.formats.importers.detect import dialects
from holdfast.formats.transcript import ROLES
from holdfast.models import Forgotten, Logged, Turn
from holdfast.server import problem
from holdfast.server.idempotency import ALL, REPLAYED, Streamed
from holdfast.server.route import EVERYWHERE, NDJSON, READ, SCOPE, WRITE, Asked, Route
from holdfast.server.routes.bulk import Aside
from holdfast.server.routes.notes import REDACT
from holdfast.server.schema import answer, fields, number, ref, rows, text
from holdfast.verbs.history import import_upload

_TURN = fields(
    {
        "role": text("Who spoke.", *ROLES), "text": text("What was said, word for word."), "id": text("Its own id."),
        "speaker": text("Their name."), "time": text("When."),
    },
    "text",
)  # fmt: skip


def log(asked: Asked) -> dict[str, Any]:
    return asked.memory.log(asked["turns"], **asked.only("scope", "client", "redact")).as_dict()


def expand(asked: Asked) -> dict[str, Any]:
    return {"turns": [turn.as_dict() for turn in asked.memory.expand(asked["of"], **asked.only("before", "after"))]}


async def upload(asked: Asked, once: Streamed, pieces: AsyncIterator[bytes], answering: Any, aside: Aside) -> None:
    """A transcript of any length: it waits in a file without a name, which is gone with the request whatever happens."""
    told = await once.before(pieces)
    again = told is not None
    if told is None:
        with await aside(lambda: _waiting_place(asked)) as file:
            digest = sha256()
            async for piece in once.pieces(pieces):
                digest.update(piece)
                await aside(lambda: _written(file, piece))  # noqa: B023
            told = await aside(lambda: _kept(asked, file, digest.hexdigest()))
            await aside(lambda: once.finish(told))
    head = {REPLAYED: "true"} if again else {}
    await answering.whole(200, head, problem.encoded(told), b"application/json")


def _waiting_place(asked: Asked) -> IO[bytes]:
    """Beside the databases: where the home is, there is room for what goes into it."""
    home, inside = asked.gateway.home, os.path.join(asked.gateway.home, "run")
    try:
        return TemporaryFile(dir=inside if os.path.isdir(inside) else home)
    except OSError as error:
        raise from_os(error) from error


def _written(file: IO[bytes], piece: bytes = b"") -> None:
    """Nothing as a piece: all that waits to be."""
    try:
        file.write(piece)
        if not piece:
            file.flush()
    except OSError as error:
        raise from_os(error) from error


def _kept(asked: Asked, file: IO[bytes], digest: str) -> dict[str, Any]:
    """A session that no line names goes by the file's name; without one, by what the file says, so that it is kept once."""
    _written(file)
    asked.must_still_be_let_in()
    name = asked.given.get("name") or asked.whose.session or digest[:16]
    where, written = asked.given.get("scope", "project"), asked.given.get("written")
    said = import_upload(
        asked.memory._context, os.dup(file.fileno()), name, client=asked.given.get("client"), scope=where, written=written
    )
    return {"sessions": [one.as_dict() for one in said]}


def forget_session(asked: Asked) -> dict[str, Any]:
    return asked.memory.forget_session(asked["session"], **asked.only("client")).as_dict()


def restore_session(asked: Asked) -> dict[str, Any]:
    return asked.memory.restore_session(asked["session"], **asked.only("client")).as_dict()


_CLIENT = text("The program it was said in.", minLength=1, maxLength=100)
_SESSION = fields({"session": text("The session's id.", minLength=1, maxLength=500), "client": _CLIENT}, "session")

ROUTES = (
    Route(
        "POST", "/v1/history", WRITE, log, "keep what was said in a session, word for word and once", "project",
        takes=fields(
            {
                "turns": rows(_TURN, "What was said, in its order.", maxItems=10_000),
                "client": _CLIENT, "scope": SCOPE,
                "redact": REDACT,
            },
            "turns",
        ),
        answers=ref(Logged),
        example={"turns": [{"role": "user", "text": "We deploy on Tuesdays."}], "session": "7f3a", "scope": "agent"},
        again=ALL, does=("log",),
    ),
    Route(
        "GET", "/v1/history", READ, expand, "what was said around a turn, by its citation or id", EVERYWHERE,
        {
            "of": text("The citation that a hit shows, or a turn's id.", minLength=1),
            "before": number("So many turns before it; otherwise 3.", 0, 1000),
            "after": number("So many turns after it; otherwise 3.", 0, 1000),
        },
        ("of",), answers=answer(turns=rows(ref(Turn))), does=("expand",),
    ),
    Route(
        "POST", "/v1/history/import", WRITE, upload, "keep the turns of another program's transcript, sent as it is", "project",
        {
            "client": text("The program it is of; otherwise told by how it is written.", minLength=1, maxLength=100),
            "written": text("How it is written, if not as that program's own.", *dialects()),
            "name": text("The file's name: a session that no line names goes by it.", pattern="^[^/\\x00-\\x1f]{1,200}$"),
            "scope": SCOPE,
        },
        takes=fields({"role": text("Who spoke; what else a line may say depends on the program.")}, closed=False), reads=NDJSON,
        answers=answer(sessions=rows(ref(Logged))), example={"role": "user", "content": "We deploy on Tuesdays."},
        again=ALL, does=("import_history",),
    ),
    Route(
        "POST", "/v1/history/forget", WRITE, forget_session, "put the transcript of a session in the trash, for 30 days",
        EVERYWHERE, takes=_SESSION, answers=ref(Forgotten), example={"session": "7f3a"}, again=ALL, does=("forget_session",),
    ),
    Route(
        "POST", "/v1/history/restore", WRITE, restore_session, "bring back the transcript of a session that was forgotten",
        EVERYWHERE, takes=_SESSION, answers=ref(Logged), example={"session": "7f3a"}, again=ALL, does=("restore_session",),
    ),
)  # fmt: skip
