"""Coding agents, one file each: how to detect one, what an install changes, and the format of its hooks.

Which there are is what stands in this folder: to add one, add its file.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.clients.base import Client, InstallTarget
    from holdfast.config import Config

_HERE = os.path.dirname(os.path.abspath(__file__))
_MARK = b"\nCLIENT = "  # what makes a module of this folder a client's


def names() -> list[str]:
    """Every client we know."""
    return sorted([file[:-3].replace("_", "-") for file in os.listdir(_HERE) if file.endswith(".py") and _is_client(file)])


def load(name: str) -> Client:
    """The client of that name; or an error that offers the nearest one."""
    module = name.replace("-", "_") if isinstance(name, str) else ""
    if not module.isidentifier() or not module.isascii() or "_" in name or not _is_client(f"{module}.py"):
        raise _unknown(name)
    client: Client = __import__(f"holdfast.clients.{module}", fromlist=["CLIENT"]).CLIENT
    return client


def install_target(config: Config) -> InstallTarget:
    """Where an install of this user takes place."""
    from holdfast.clients.base import InstallTarget
    from holdfast.config import copy_environment, find_home, find_user_home

    environ, command = copy_environment(), _command()
    if find_home(None, environ | {"HOLDFAST_HOME": ""}) != config.home:
        command = (*command, "--home", config.home)  # what the client starts does not know of our variable
    gateway = bool(config.url or config.token or config.store)
    return InstallTarget(find_user_home(environ), environ, command, config.home, _folder(), gateway)


def usage_guide() -> str:
    """What an agent should know about memory (D3): what to keep, where, and when to ask. One text for every door."""
    with open(os.path.join(_HERE, "skills", "rubric.md"), encoding="utf-8") as file:
        return file.read()


def _is_client(file: str) -> bool:
    try:
        with open(os.path.join(_HERE, file), "rb") as module:
            return _MARK in module.read()
    except OSError:
        return False


def _folder() -> str:
    """The folder somebody works in; nothing if it was removed."""
    try:
        return os.getcwd()
    except FileNotFoundError:
        return ""


def _command() -> tuple[str, ...]:
    """The absolute command that runs this very Holdfast, also from an environment that is not on the PATH."""
    import sys

    script = os.path.join(os.path.dirname(sys.executable), "holdfast")
    # -P: a folder of the project must never be taken for a module of Python's or ours
    return (script,) if os.access(script, os.X_OK) else (sys.executable, "-P", "-m", "holdfast")


def _unknown(name: object) -> Exception:
    from difflib import get_close_matches

    from holdfast.errors import UsageError

    known = names()
    near = get_close_matches(str(name)[:60], known, 1, 0.5)
    fix = f"Did you mean {near[0]}?" if near else f"One of: {', '.join(known)}"
    error = UsageError(f"there is no client {str(name)[:60]!r}", fix)
    error.safe_to_log = True
    return error
