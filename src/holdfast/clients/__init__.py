"""Coding agents, one module each: detect one, list what an install changes, convert the input and output of its hooks.

Every module in this folder that defines CLIENT is a client: to add one, add its file.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.clients.base import Client, InstallTarget
    from holdfast.config import Config

_HERE = os.path.dirname(os.path.abspath(__file__))
_CLIENT_MARKER = b"\nCLIENT = "  # every module of a client has this line


def names() -> list[str]:
    """Return the names of all clients, sorted."""
    return sorted([file[:-3].replace("_", "-") for file in os.listdir(_HERE) if file.endswith(".py") and _is_client(file)])


def load(name: str) -> Client:
    """Return the client of that name; raise UsageError, with the closest name, if there is none."""
    module = name.replace("-", "_") if isinstance(name, str) else ""
    if not module.isidentifier() or not module.isascii() or "_" in name or not _is_client(f"{module}.py"):
        raise _unknown_client_error(name)
    client: Client = __import__(f"holdfast.clients.{module}", fromlist=["CLIENT"]).CLIENT
    return client


def install_target(config: Config) -> InstallTarget:
    """Return where an install of this user takes place."""
    from holdfast.clients.base import InstallTarget
    from holdfast.config import copy_environment, find_home, find_user_home

    environ, command = copy_environment(), _holdfast_command()
    if find_home(None, environ | {"HOLDFAST_HOME": ""}) != config.home:
        command = (*command, "--home", config.home)  # a program that the client starts may not have HOLDFAST_HOME
    gateway = bool(config.url or config.token or config.store)
    return InstallTarget(
        home=find_user_home(environ),
        environ=environ,
        command=command,
        memory=config.home,
        project=_working_folder(),
        gateway=gateway,
    )


def usage_guide() -> str:
    """Return the text that explains the memory to agents: when to recall, what to store, and in which scope."""
    with open(os.path.join(_HERE, "skills", "rubric.md"), encoding="utf-8") as file:
        return file.read()


def _is_client(file: str) -> bool:
    try:
        with open(os.path.join(_HERE, file), "rb") as module:
            return _CLIENT_MARKER in module.read()
    except OSError:
        return False


def _working_folder() -> str:
    """Return the working folder; empty if it was removed."""
    try:
        return os.getcwd()
    except FileNotFoundError:
        return ""


def _holdfast_command() -> tuple[str, ...]:
    """Return the absolute command that runs this Holdfast, even if its environment is not on the PATH."""
    import sys

    script = os.path.join(os.path.dirname(sys.executable), "holdfast")
    # -P: never import a module from the project's folder
    return (script,) if os.access(script, os.X_OK) else (sys.executable, "-P", "-m", "holdfast")


def _unknown_client_error(name: object) -> Exception:
    from difflib import get_close_matches

    from holdfast.errors import UsageError

    known = names()
    near = get_close_matches(str(name)[:60], known, 1, 0.5)
    fix = f"Did you mean {near[0]}?" if near else f"Use one of: {', '.join(known)}"
    error = UsageError(f"unknown client {str(name)[:60]!r}", fix)
    error.safe_to_log = True
    return error
