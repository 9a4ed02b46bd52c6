"""config: the settings, where each comes from, and how one is changed without losing a person's comments."""

from __future__ import annotations

import os

from holdfast import config as configuration
from holdfast.errors import ConfigError, Refused, UsageError, from_os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.cli.output import Output
    from holdfast.cli.runner import Invocation
    from holdfast.config import Setting

_FILE = "config.toml"
_SECRET = ("search.key", "github.token", "dispatch.key", "gateway.token")  # told to whom they are for and to nobody else
_PERSONS = ("trust.", "guard.", "audit.", "memory.enabled")
_LOCK_SECONDS = 30


def config(call: Invocation) -> int:
    home = configuration.find_home(call["home"])
    if call["name"] is None:
        return call.answer(_described(home, configuration.SETTINGS), _tell_all)
    setting = configuration.find_setting(call["name"])
    if call["unset"] and call["value"] is not None:
        raise UsageError("--unset takes no value", f"Write holdfast config {setting.name} --unset")
    if call["value"] is not None or call["unset"]:
        _may_be_changed(setting)
        _change(home, setting, call["value"])
    return call.answer(_described(home, (setting,))[0], _tell_one)


def _may_be_changed(setting: Setting) -> None:
    """What keeps an agent in bounds is not an agent's to change."""
    if setting.name.startswith(_PERSONS) and configuration.runs_in_agent():
        raise Refused(f"an agent may not change {setting.name}", "A person does it, in a terminal of their own")


def _described(home: str, settings: tuple[Setting, ...]) -> list[dict[str, Any]]:
    """Settings as they stand: the value of each, and the place that decides it."""
    now = configuration.load(home)
    return [
        {
            "name": setting.name, "value": _shown(setting, getattr(now, setting.field)),
            "from": configuration.find_setting_source(setting, home),
            "env": setting.env or None, "sentence": setting.description,
        }
        for setting in settings
    ]  # fmt: skip


def _shown(setting: Setting, value: object) -> object:
    """The value, or for a secret only whether there is one."""
    if isinstance(value, str) and setting.field in configuration.ADDRESSES:
        return configuration.hide_password(value)
    return configuration.MASK if value and setting.name in _SECRET else value


def _change(folder: str, setting: Setting, value: str | None) -> None:
    """One writer at a time; the file is the old one or the new one, never half of it."""
    from holdfast.home import Lock
    from holdfast.store.atomic import open_folder

    wanted = None if value is None else configuration.parse_value(setting, value, "the command line")
    if wanted is not None and setting.name == "search.embedder":
        from holdfast import embedders

        embedders.open_embedders(wanted)  # what cannot be an embedder is refused; nothing is loaded and nobody is asked
    path = _path(folder)
    home = open_folder(folder, (), create=True)
    assert home is not None  # it was to be made
    with home, Lock(folder, "config", _LOCK_SECONDS):
        document = _document(path)
        _put(document, setting.name.split("."), wanted)
        _replace(path, document.as_string())


def _replace(path: str, text: str) -> None:
    from holdfast.store import atomic

    folder = atomic.open_folder(os.path.dirname(path), ())
    if folder is None:
        raise ConfigError(f"{path}: its folder is not there", "Repair the link, or remove it")
    with folder:
        try:
            fd, temp = atomic.write_temp(folder, text.encode())
            try:
                os.rename(temp, os.path.basename(path), src_dir_fd=folder.fd, dst_dir_fd=folder.fd)
            finally:
                atomic.discard_temp(folder, fd, temp)
            atomic.sync_folder(folder)
        except OSError as error:
            raise from_os(error, f"cannot write {path}") from error


def _path(home: str) -> str:
    """Where the file really is: people link it to where they keep their dotfiles."""
    return os.path.realpath(os.path.join(home, _FILE))


def _document(path: str) -> Any:
    """The file with its comments."""
    import tomlkit

    try:
        with open(path, "rb") as file:
            return tomlkit.parse(file.read())
    except FileNotFoundError:
        return tomlkit.document()
    except OSError as error:
        raise from_os(error, f"cannot read {path}") from error


def _put(table: Any, parts: list[str], value: object) -> None:
    """Set, or with None remove; tables that are missing on the way are made."""
    for part in parts[:-1]:
        if part not in table:
            if value is None:
                return
            import tomlkit

            table[part] = tomlkit.table()
        table = table[part]
        if not hasattr(table, "get"):
            raise ConfigError(f"{_FILE}: {part} is a value there, not a table", "Correct the file by hand")
    if value is None:
        table.pop(parts[-1], None)
    else:
        table[parts[-1]] = list(value) if isinstance(value, tuple) else value


def _tell_one(screen: Output, said: dict[str, Any]) -> None:
    screen.say(_spelled(said["value"]))
    if screen.terminal:
        screen.aside(f"{said['name']}, from {said['from']}: {said['sentence']}")


def _tell_all(screen: Output, settings: list[dict[str, Any]]) -> None:
    rows = [(said["name"], _spelled(said["value"]), said["from"], said["sentence"]) for said in settings]
    screen.table(("NAME", "VALUE", "FROM", "WHAT IT DOES"), rows, ("bold", "", "cyan", "dim"))


def _spelled(value: object) -> str:
    """As config.toml spells it."""
    if isinstance(value, tuple):
        return ", ".join(value) or "none"
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
