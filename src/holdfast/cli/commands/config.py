"""`config`: show the settings and where each comes from, and change one without losing the comments of config.toml."""

from __future__ import annotations

import os

from holdfast import config as settings_module
from holdfast.errors import ConfigError, Refused, UsageError, from_os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.cli.output import Output
    from holdfast.cli.runner import Invocation
    from holdfast.config import Setting

_FILE_NAME = "config.toml"
_SECRET_SETTINGS = ("search.key", "github.token", "dispatch.key", "audit.ship_key", "gateway.token")  # never printed
_PERSON_ONLY = ("trust.", "guard.", "audit.", "memory.enabled")  # prefixes of settings that agents cannot change
_LOCK_SECONDS = 30


def config(call: Invocation) -> int:
    """`holdfast config`."""
    home = settings_module.find_home(call["home"])
    if call["name"] is None:
        return call.answer(_describe_settings(home, settings_module.SETTINGS), _print_settings)
    setting = settings_module.find_setting(call["name"])
    if call["unset"] and call["value"] is not None:
        raise UsageError("--unset takes no value", f"Write holdfast config {setting.name} --unset")
    if call["value"] is not None or call["unset"]:
        _check_may_change(setting)
        _change_setting(home, setting, call["value"])
    return call.answer(_describe_settings(home, (setting,))[0], _print_setting)


def _check_may_change(setting: Setting) -> None:
    """Raise Refused if an agent changes a setting that limits agents."""
    if setting.name.startswith(_PERSON_ONLY) and settings_module.runs_in_agent():
        raise Refused(f"an agent may not change {setting.name}", "A person does it, in a terminal of their own")


def _describe_settings(home: str, settings: tuple[Setting, ...]) -> list[dict[str, Any]]:
    """Return the current value of each setting and where it comes from."""
    current = settings_module.load(home)
    return [
        {
            "name": setting.name, "value": _hide_secret(setting, getattr(current, setting.field)),
            "from": settings_module.find_setting_source(setting, home),
            "env": setting.env or None, "sentence": setting.description,
        }
        for setting in settings
    ]  # fmt: skip


def _hide_secret(setting: Setting, value: object) -> object:
    """Return the value, with a password removed from an address and any other secret masked."""
    if isinstance(value, str) and setting.field in settings_module.ADDRESSES:
        return settings_module.hide_password(value)
    return settings_module.MASK if value and setting.name in _SECRET_SETTINGS else value


def _change_setting(home: str, setting: Setting, text: str | None) -> None:
    """Write a setting to config.toml, or remove it if `text` is None, under a lock and in one atomic step."""
    from holdfast.home import Lock
    from holdfast.store.atomic import open_folder

    value = None if text is None else settings_module.parse_value(setting, text, "the command line")
    if value is not None and setting.name == "search.embedder":
        from holdfast import embedders

        embedders.open_embedders(value)  # rejects an unknown embedder, and loads nothing
    path = os.path.realpath(os.path.join(home, _FILE_NAME))  # the file may be a link to the user's dotfiles
    folder = open_folder(home, (), create=True)
    assert folder is not None  # because of create=True
    with folder, Lock(home, "config", _LOCK_SECONDS):
        document = _load_document(path)
        _set_value(document, setting.name.split("."), value)
        _replace_file(path, document.as_string())


def _replace_file(path: str, text: str) -> None:
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


def _load_document(path: str) -> Any:
    """Load config.toml with its comments, or an empty document if there is no file."""
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    try:
        with open(path, "rb") as file:
            return tomlkit.parse(file.read())
    except FileNotFoundError:
        return tomlkit.document()
    except (TOMLKitError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigError(f"{path} is not valid TOML: {error}", "Correct the line, or remove the file") from None
    except OSError as error:
        raise from_os(error, f"cannot read {path}") from error


def _set_value(table: Any, names: list[str], value: object) -> None:
    """Set a value by the names of its tables and its own, and create missing tables; remove it if `value` is None."""
    for name in names[:-1]:
        if name not in table:
            if value is None:
                return
            import tomlkit

            table[name] = tomlkit.table()
        table = table[name]
        if not hasattr(table, "get"):
            raise ConfigError(f"{_FILE_NAME}: {name} is a value there, not a table", "Correct the file by hand")
    if value is None:
        table.pop(names[-1], None)
    else:
        table[names[-1]] = list(value) if isinstance(value, tuple) else value


def _print_setting(output: Output, setting: dict[str, Any]) -> None:
    output.print_line(_format_value(setting["value"]))
    if output.is_terminal:
        output.print_message(f"{setting['name']}, from {setting['from']}: {setting['sentence']}")


def _print_settings(output: Output, settings: list[dict[str, Any]]) -> None:
    rows = [(setting["name"], _format_value(setting["value"]), setting["from"], setting["sentence"]) for setting in settings]
    output.print_table(("NAME", "VALUE", "FROM", "WHAT IT DOES"), rows, ("bold", "", "cyan", "dim"))


def _format_value(value: object) -> str:
    """Return a value as config.toml spells it."""
    if isinstance(value, tuple):
        return ", ".join(value) or "none"
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
