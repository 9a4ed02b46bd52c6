"""init, path."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.cli.output import Output
    from holdfast.cli.runner import Invocation
    from holdfast.errors import UsageError

PLACES = {"home": "", "shelf": "shelf", "config": "config.toml", "index": "index.db", "ledger": "ledger.db"}
PARTS = ("notes", "files")  # of a scope


def init(call: Invocation) -> int:
    from holdfast.errors import Disabled
    from holdfast.store.atomic import open_folder

    memory = call.memory
    if not memory.config.enabled:
        raise Disabled
    store = open_folder(memory.home, () if memory.config.store else ("shelf",), create=True)
    assert store is not None  # it was to be made
    with store:
        marker = _mark(call) if call["marker"] else None
    made: dict[str, Any] = {"home": memory.home, "project": memory.project, "marker": marker}
    return call.answer(made, _tell_made)


def path(call: Invocation) -> int:
    what = call["what"] or "home"
    where = _plugin(call) if what == "plugin" and call["client"] else _where(call, what)
    found: dict[str, Any] = {"what": what, "path": where, "exists": os.path.exists(where)}
    return call.answer(found, _tell_path)


def _plugin(call: Invocation) -> str:
    """The folder of a client's plugin, written anew: it names this very Holdfast and this home."""
    from holdfast import clients, config
    from holdfast.clients.install import write_plugin

    return write_plugin(clients.load(call["client"]), clients.install_target(config.load(call["home"])))


def _mark(call: Invocation) -> str:
    """Write the marker of this folder."""
    from holdfast.project import marker

    folder = _here()
    call.memory.mark()
    return os.path.join(folder, marker.MARKER_FOLDER, marker.MARKER_FILE)


def _here() -> str:
    from holdfast.errors import NotFound

    try:
        return os.getcwd()
    except FileNotFoundError:
        raise NotFound("the folder you are in was removed", "Go to the one you want to mark") from None


def _where(call: Invocation, what: str) -> str:
    from holdfast.errors import NotFound, Template, UsageError

    memory = call.memory
    if memory.config.store and what not in ("home", "config"):
        raise UsageError("memory in a store has no files", "`holdfast get KEY` and `holdfast read PATH` show what is there")
    if what in PLACES:
        return os.path.join(memory.home, PLACES[what]).rstrip("/")
    if what in PARTS:
        return part_folder(call, memory.home, what)
    try:
        return os.path.join(memory.home, PLACES["shelf"], memory.get(what, scope=call["scope"]).path)
    except NotFound as error:
        if what == "plugin":  # a note may be called so, too
            raise _no_client_named() from None
        known = ", ".join([*PLACES, *PARTS, "plugin CLIENT"])
        raise NotFound(error.text, Template(error.hint, f"; besides notes there are {known}")) from None


def _no_client_named() -> UsageError:
    """`holdfast path plugin` without a client: name the clients that have a plugin."""
    from holdfast import clients
    from holdfast.clients.base import InstallTarget
    from holdfast.errors import UsageError

    nowhere = InstallTarget("", {}, ("holdfast",))
    known = [name for name in clients.names() if clients.load(name).plugin(nowhere)]
    return UsageError("which client's plugin?", f"Write `holdfast path plugin CLIENT`, with one of: {', '.join(known)}")


def part_folder(call: Invocation, home: str, part: str) -> str:
    """Where a scope's notes or files are."""
    return os.path.join(home, PLACES["shelf"], _scope_folder(call), part)


def _scope_folder(call: Invocation) -> str:
    from holdfast.errors import NoScope, UsageError
    from holdfast.models import SCOPES, Scope

    kind = call["scope"] or "project"
    if kind not in SCOPES:
        raise UsageError(f"unknown scope {kind!r}", f"One of: {', '.join(SCOPES)}")
    if kind == "global":
        return Scope("global").folder
    id = getattr(call.memory, kind)
    if not id:
        raise NoScope(f"no {kind} is known", f"Give one: --{kind} or HOLDFAST_{kind.upper()}")
    return Scope(kind, id).folder


def _tell_path(screen: Output, found: dict[str, Any]) -> None:
    """For a shell to use, and so byte for byte; at a terminal for eyes."""
    from holdfast.cli.output import visible

    screen.say(visible(found["path"]) if screen.terminal else found["path"], exact=True)


def _tell_made(screen: Output, made: dict[str, Any]) -> None:
    for name, value in made.items():
        if value:
            screen.say(f"{screen.paint(f'{name:<8}', 'dim')} {value}")
    screen.aside("`holdfast store TEXT` keeps the first note; `holdfast status` shows where things are")
