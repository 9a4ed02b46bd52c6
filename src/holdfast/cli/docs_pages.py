"""docs/cli.md, api.md, clients.md, errors.md and settings.md, from the code they describe: they cannot say anything else.

`python -m holdfast.cli.docs_pages docs` writes them; with no argument the first is printed.
"""

from __future__ import annotations

import os
import sys

from holdfast import errors
from holdfast.cli.command import EVERYWHERE, EXIT_CODES
from holdfast.cli.command_table import GROUPS
from holdfast.cli.commands.help import explained, sentence
from holdfast.clients import docs_page
from holdfast.config import SETTINGS, Config
from holdfast.server import api_page

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.cli.command import Command, Option
    from holdfast.config import Setting


def render() -> str:
    """docs/cli.md: every command."""
    lines = [
        "# The command line", "", _made("table.py"), "",
        "`holdfast COMMAND ... [options]`. At a terminal you get colour and tables, down a pipe plain text, with",
        "`--json` one JSON document on stdout. `-` reads a text from stdin. Options may stand anywhere.", "",
        "## Every command takes", "", *_options(EVERYWHERE), "",
        "## Exit codes", "", "| Code | Means |", "|---|---|",
        *[f"| {code} | {text} |" for code, text in EXIT_CODES], "",
        'With `--json` an error is `{"error", "message", "fix", "exit_code"}` on stdout; see [errors](errors.md).',
        "Ctrl-C is the error `interrupted`; an `import` says in `stored` how many notes are surely kept, or null.",
    ]  # fmt: skip
    for title, group in GROUPS:
        lines += ["", f"## {title}"]
        for command in group:
            lines += _command(command)
    return "\n".join(lines) + "\n"


def render_errors() -> str:
    """docs/errors.md: every way Holdfast says no."""
    assert errors.__doc__
    tree = errors.__doc__.partition("\n\n")[2].rstrip()
    rows = [
        f"| `{kind.__name__}` | `{kind.code}` | {kind.exit_code} | {kind.http_status} | {kind.__doc__} |"
        for kind in _kinds(errors.HoldfastError)
    ]
    return "\n".join([
        "# Errors", "", _made("errors.py"), "",
        "Each error has a `message` and a `fix` that says what to do. All can be imported from `holdfast`.", "",
        "```", tree, "```", "",
        "| Error | Code in JSON | Exit code | HTTP | When |", "|---|---|---|---|---|", *rows, "",
    ])  # fmt: skip


def render_settings() -> str:
    """docs/settings.md: everything that can be set."""
    return "\n".join([
        "# Settings", "", _made("config.py"), "",
        "Written to `config.toml` in the home, by hand or with `holdfast config NAME VALUE`; the name before the dot",
        "is the table. The environment wins over the file. `HOLDFAST_HOME` says where the home is; otherwise it is",
        "`~/.holdfast`.", "",
        "| Name | Default | Environment | What it does |", "|---|---|---|---|",
        *[_setting(one) for one in SETTINGS], "",
    ])  # fmt: skip


PAGES = {
    "cli.md": render, "api.md": api_page.render, "clients.md": docs_page.render, "errors.md": render_errors,
    "settings.md": render_settings,
}  # fmt: skip


def main(folder: str | None) -> None:
    """Write every page into a folder, or print the first."""
    if folder is None:
        sys.stdout.write(render())
        return
    for name, page in PAGES.items():
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(page())


def _command(command: Command) -> list[str]:
    lines = ["", f"### {command.name}", "", f"`{command.usage}`", "", sentence(command.summary), ""]
    rows = [f"- `{arg}`: {arg.help}" for arg in command.args] + _options(command.options)
    example = ["", "```sh", command.example, "```"] if command.example else []
    return [*lines, *rows, *example] if rows else [*lines[:-1], *example]


def _options(options: tuple[Option, ...]) -> list[str]:
    return [f"- `{f'{option.name} {option.value}'.rstrip()}`: {explained(option)}" for option in options]


def _setting(setting: Setting) -> str:
    default = Config._defaults[setting.field]
    shown = "" if default is None else f"`{str(default).lower()}`"
    span = f" ({setting.minimum:,} to {setting.maximum:,})" if setting.kind is int and setting.maximum < 10**9 else ""
    return f"| `{setting.name}` | {shown} | {f'`{setting.env}`' if setting.env else ''} | {setting.description}{span} |"


def _kinds(kind: type[errors.HoldfastError]) -> list[type[errors.HoldfastError]]:
    known = [child for child in kind.__subclasses__() if child.__module__ == errors.__name__]
    return [kind, *[below for child in known for below in _kinds(child)]]


def _made(source: str) -> str:
    return f"<!-- Made by `python -m holdfast.cli.docs_pages docs` from {source}; change it there. -->"


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else None)
