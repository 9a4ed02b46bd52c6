"""Generate docs/cli.md, api.md, clients.md, errors.md and settings.md from the code.

`python -m holdfast.cli.docs_pages docs` writes them; without an argument it prints docs/cli.md.
"""

from __future__ import annotations

import os
import sys

from holdfast import errors
from holdfast.cli.command import EXIT_CODES, GLOBAL_OPTIONS
from holdfast.cli.command_table import SECTIONS
from holdfast.cli.commands.help import describe_option, format_sentence
from holdfast.clients import docs_page
from holdfast.config import SETTINGS, Config
from holdfast.server import api_page

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.cli.command import Command, Option
    from holdfast.config import Setting


def render_commands() -> str:
    """Return docs/cli.md: every command."""
    lines = [
        "# CLI reference", "", _format_header("cli/command_table.py"), "",
        "`holdfast COMMAND ... [options]`. Output is coloured on a terminal, plain in a pipe, and JSON with `--json`.",
        "Options can be given before or after arguments. A text or file `-` reads stdin.", "",
        "## Global options", "", *_format_options(GLOBAL_OPTIONS), "",
        "## Exit codes", "", "| Code | Meaning |", "|---|---|",
        *[f"| {code} | {text} |" for code, text in EXIT_CODES], "",
        'With `--json`, an error is printed to stdout as `{"error", "message", "fix", "exit_code"}`; see [errors](errors.md).',
        "Ctrl-C is the error `interrupted`; for `import`, its field `stored` is the number of notes that were stored, or null.",
    ]  # fmt: skip
    for title, commands in SECTIONS:
        lines += ["", f"## {title}"]
        for command in commands:
            lines += _format_command(command)
    return "\n".join(lines) + "\n"


def render_errors() -> str:
    """Return docs/errors.md: every error."""
    assert errors.__doc__
    tree = errors.__doc__.partition("\n\n")[2].rstrip()
    rows = [
        f"| `{error.__name__}` | `{error.code}` | {error.exit_code} | {error.http_status} | {error.__doc__} |"
        for error in _list_errors(errors.HoldfastError)
    ]
    return "\n".join([
        "# Errors", "", _format_header("errors.py"), "",
        "Each error has a `message` (what is wrong) and a `fix` (what to do). All classes can be imported from `holdfast`.", "",
        "```", tree, "```", "",
        "| Error | JSON code | Exit code | HTTP status | Meaning |", "|---|---|---|---|---|", *rows, "",
    ])  # fmt: skip


def render_settings() -> str:
    """Return docs/settings.md: every setting."""
    return "\n".join([
        "# Settings", "", _format_header("config.py"), "",
        "Settings are stored in `config.toml` in the home folder. Change them by hand or with `holdfast config NAME VALUE`.",
        "The part of the name before the dot is the TOML table. An environment variable overrides the file.",
        "`HOLDFAST_HOME` sets the home folder; the default is `~/.holdfast`.",
        "",
        "| Name | Default | Environment variable | Description |", "|---|---|---|---|",
        *[_format_setting(setting) for setting in SETTINGS], "",
    ])  # fmt: skip


PAGES = {
    "cli.md": render_commands, "api.md": api_page.render, "clients.md": docs_page.render, "errors.md": render_errors,
    "settings.md": render_settings,
}  # fmt: skip


def main(folder: str | None) -> None:
    """Write every page into a folder; without one, print docs/cli.md."""
    if folder is None:
        sys.stdout.write(render_commands())
        return
    for name, page in PAGES.items():
        text = page()
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(text)


def _format_command(command: Command) -> list[str]:
    lines = ["", f"### {command.name}", "", f"`{command.usage}`", "", format_sentence(command.summary), ""]
    rows = [f"- `{arg}`: {arg.help}" for arg in command.args] + _format_options(command.options)
    example = ["", "```sh", command.example, "```"] if command.example else []
    return [*lines, *rows, *example] if rows else [*lines[:-1], *example]


def _format_options(options: tuple[Option, ...]) -> list[str]:
    return [f"- `{f'{option.name} {option.value}'.rstrip()}`: {describe_option(option)}" for option in options]


def _format_setting(setting: Setting) -> str:
    default = getattr(Config(home=""), setting.field)
    shown = "" if default is None else f"`{str(default).lower()}`"
    limits = f" ({setting.minimum:,} to {setting.maximum:,})" if setting.kind is int and setting.maximum < 10**9 else ""
    return f"| `{setting.name}` | {shown} | {f'`{setting.env}`' if setting.env else ''} | {setting.description}{limits} |"


def _list_errors(error: type[errors.HoldfastError]) -> list[type[errors.HoldfastError]]:
    """Return an error class and its subclasses, depth first."""
    children = [child for child in error.__subclasses__() if child.__module__ == errors.__name__]
    return [error, *[below for child in children for below in _list_errors(child)]]


def _format_header(source: str) -> str:
    return f"<!-- Made by `python -m holdfast.cli.docs_pages docs` from {source}; change it there. -->"


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else None)
