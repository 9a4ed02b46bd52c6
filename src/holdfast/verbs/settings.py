"""Settings: describe each with its value and source, and change one in config.toml without losing its comments."""

from __future__ import annotations

import os

from holdfast import config
from holdfast.base.record import Record
from holdfast.errors import ConfigError, from_os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from holdfast.config import Setting

FILE_NAME = "config.toml"
SECRETS = ("search.key", "search.rerank_key", "github.token", "dispatch.key", "audit.ship_key", "gateway.token")  # never shown
COMMAND_LINE = "command line"
_KINDS = {bool: "boolean", int: "number", str: "text", tuple: "list"}
_RESTART = ("serve.rate", "serve.at_once", "serve.operator_token_file", "otel.", "audit.ship")  # read once, at the start
# These say where memory is kept, whom the server believes, which limits hold, which origins wait for review, where data is
# sent, or what the audit keeps. They are changed on the server's machine only: a stolen browser session must not weaken them.
_AT_THE_MACHINE = (
    "store.", "gateway.", "audit.", "github.", "dispatch.", "otel.", "search.", "serve.", "quota.", "trust.",
)  # fmt: skip
_LOCK_SECONDS = 30


class SettingValue(Record):
    """A setting with its current value as config.toml spells it, and where the value comes from."""

    name: str
    value: str
    default: str
    source: str  # default, config.toml, command line, or the environment variable
    description: str
    kind: str  # boolean, number, text or list
    choices: tuple[str, ...] = ()
    minimum: int | None = None
    maximum: int | None = None
    env: str = ""
    is_secret: bool = False
    needs_restart: bool = False
    at_the_machine: bool = False  # whether it is changed by command or file only
    command: str = ""


def describe(home: str, given: Mapping[str, object] | None = None) -> list[SettingValue]:
    """Return every setting; `given` are values of the command line by their fields, which override the others."""
    current, default = config.load(home), config.Config(home=home)
    return [
        _describe(setting, home, current=current.replace(**given) if given else current, default=default, given=given or {})
        for setting in config.SETTINGS
    ]


def _describe(
    setting: Setting, home: str, *, current: config.Config, default: config.Config, given: Mapping[str, object]
) -> SettingValue:
    is_number = setting.kind is int
    return SettingValue(
        name=setting.name,
        value=_to_text(hide_secret(setting, getattr(current, setting.field))),
        default=_to_text(getattr(default, setting.field)),
        source=COMMAND_LINE if setting.field in given else config.find_setting_source(setting, home),
        description=setting.description,
        kind=_KINDS[setting.kind],
        choices=setting.choices,
        minimum=setting.minimum if is_number else None,
        maximum=setting.maximum if is_number else None,
        env=setting.env,
        is_secret=setting.name in SECRETS,
        needs_restart=setting.name.startswith(_RESTART),
        at_the_machine=setting.name.startswith(_AT_THE_MACHINE),
        command=f"holdfast config {setting.name} VALUE",
    )


def _to_text(value: object) -> str:
    """Return a value as `config.parse_value` reads it."""
    return format_value(value) if value != () else ""


def hide_secret(setting: Setting, value: object) -> object:
    """Return the value, with a password removed from an address and any other secret masked."""
    if isinstance(value, str) and setting.field in config.ADDRESSES:
        return config.hide_password(value)
    return config.MASK if value and setting.name in SECRETS else value


def format_value(value: object) -> str:
    """Return a value as config.toml spells it."""
    if isinstance(value, tuple):
        return ", ".join(value) or "none"
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def change(home: str, setting: Setting, text: str | None, where: str) -> None:
    """Write a setting to config.toml, or remove it if `text` is None, under a lock and in one atomic step.

    `where` names the place that the text comes from, for messages.
    """
    from holdfast.home import Lock
    from holdfast.store.atomic import open_folder

    value = None if text is None else config.parse_value(setting, text, where)
    if value is not None:
        _check_model(setting.name, value)
    path = os.path.realpath(os.path.join(home, FILE_NAME))  # the file may be a link to the user's dotfiles
    folder = open_folder(home, (), create=True)
    assert folder is not None  # because of create=True
    with folder, Lock(home, "config", _LOCK_SECONDS):
        document = _load_document(path)
        _set_value(document, setting.name.split("."), value)
        _replace_file(path, document.as_string())


def _check_model(name: str, value: Any) -> None:
    """Raise ConfigError for an unknown embedder or reranker; load nothing."""
    if name == "search.embedder":
        from holdfast import embedders

        embedders.open_embedders(value)
    elif name == "search.reranker":
        from holdfast.embedders import rerankers

        rerankers.open_reranker(value)


def _replace_file(path: str, text: str) -> None:
    from holdfast.store import atomic

    folder = atomic.open_folder(os.path.dirname(path), ())
    if folder is None:
        raise ConfigError(f"{path}: its folder does not exist", "Fix the link, or delete it")
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
        raise ConfigError(f"{path} is not valid TOML: {error}", "Correct the line, or delete the file") from None
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
            raise ConfigError(f"{FILE_NAME}: {name} is a value in the file, not a table", "Correct the file by hand")
    if value is None:
        table.pop(names[-1], None)
    else:
        table[names[-1]] = list(value) if isinstance(value, tuple) else value
