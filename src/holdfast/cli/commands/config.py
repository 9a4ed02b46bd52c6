"""`config`: show the settings and where each comes from, and change one without losing the comments of config.toml."""

from __future__ import annotations

from holdfast import config as settings_module
from holdfast.errors import Refused, UsageError
from holdfast.verbs.settings import change, format_value, hide_secret

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.cli.output import Output
    from holdfast.cli.runner import Invocation
    from holdfast.config import Setting

_PERSON_ONLY = ("trust.", "guard.", "audit.", "memory.enabled")  # prefixes of settings that agents cannot change


def config(call: Invocation) -> int:
    """`holdfast config`."""
    home = settings_module.find_home(call["home"])
    if call["name"] is None:
        return call.answer(_describe_settings(home, settings_module.SETTINGS), _print_settings)
    setting = settings_module.find_setting(call["name"])
    if call["unset"] and call["value"] is not None:
        raise UsageError("--unset takes no value", f"Run `holdfast config {setting.name} --unset`")
    if call["value"] is not None or call["unset"]:
        _check_may_change(setting)
        change(home, setting, call["value"], "the command line")
    return call.answer(_describe_settings(home, (setting,))[0], _print_setting)


def _check_may_change(setting: Setting) -> None:
    """Raise Refused if an agent changes a setting that limits agents."""
    if setting.name.startswith(_PERSON_ONLY) and settings_module.runs_in_agent():
        raise Refused(f"agents cannot change {setting.name}", "Change it yourself in a terminal outside the agent")


def _describe_settings(home: str, settings: tuple[Setting, ...]) -> list[dict[str, Any]]:
    """Return the current value of each setting and where it comes from."""
    current = settings_module.load(home)
    return [
        {
            "name": setting.name, "value": hide_secret(setting, getattr(current, setting.field)),
            "from": settings_module.find_setting_source(setting, home),
            "env": setting.env or None, "sentence": setting.description,
        }
        for setting in settings
    ]  # fmt: skip


def _print_setting(output: Output, setting: dict[str, Any]) -> None:
    output.print_line(format_value(setting["value"]))
    if output.is_terminal:
        output.print_message(f"{setting['name']}, from {setting['from']}: {setting['sentence']}")


def _print_settings(output: Output, settings: list[dict[str, Any]]) -> None:
    rows = [(setting["name"], format_value(setting["value"]), setting["from"], setting["sentence"]) for setting in settings]
    output.print_table(("NAME", "VALUE", "FROM", "DESCRIPTION"), rows, ("bold", "", "cyan", "dim"))
