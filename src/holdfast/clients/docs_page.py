"""Render docs/clients.md from the clients' modules: abilities, files that an install changes, tested versions."""

from __future__ import annotations

from holdfast import clients
from holdfast.clients.base import InstallTarget

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.clients.base import Client

_TARGET = InstallTarget("~", {}, ("holdfast",), "~/.holdfast", "PROJECT")
_HEAD = (
    "Client", "Name", "Briefing", "With a prompt", "Before compaction", "Capture", "Tools", "Server's words", "Plugin",
    "Proven with",
)  # fmt: skip
_BEFORE = """\
`holdfast install CLIENT` shows the changes, asks, and makes them; `holdfast uninstall CLIENT` makes every file what it
was. Changes to files that you have are shown first, as a diff; then each new file as one line (`--diff` shows those in full,
too). Answer no, and nothing is changed (exit code 3). Without a name it looks which clients are on this machine and asks for
each; with `--yes` it asks nobody. What fails for one does not keep the others from it: the last line says how many failed, and
the exit code is that of the worst.

```sh
holdfast install claude-code            # shows, asks, installs
holdfast install codex --dry-run        # only shows
holdfast install gemini --print         # what to paste, and where
holdfast install kimi --yes             # asks nobody
holdfast uninstall claude-code
holdfast uninstall                      # all that are installed, one after the other
```

It prefers a plugin or the user's own settings to files in a repository. Comments, line ends, blanks, other hooks and other
servers stay byte for byte. A settings file that cannot be read, is read-only, or was changed between showing and writing is
refused, and nothing is half-done: either all files are changed or none. What a file was before is kept in the home, for its
owner only; a file that is still as the install left it gets back those very bytes, and from one that you changed since, only
our part is taken out. A file that is all ours and that you changed is kept beside it, as `NAME.kept`, before it is replaced or
removed. A link to a settings file stays a link: its target is edited. Claude Code refuses settings with comments or trailing
commas as a whole, so an install refuses them, too, with their place. `holdfast doctor` says when an installed client does not
hear us, and why. What is installed in a project's own files (`generic`) is taken out of the project you stand in; `--all` means
every one.

## What each can do
"""
_AFTER = """\
**Briefing**: what is remembered stands before the model when a session starts. *with the first prompt*: the client drops what
a start says, so it comes with the first prompt. *by hand*: `--print` shows what to put where. **With a prompt**: only what
bears on it and was not shown yet. **Before compaction** and **Capture**: the session is kept word for word, if you switch that
on (`hooks.capture`); *no* means that its transcripts are not read yet. **Tools**: `memory_recall` and the others, through the
MCP server. **Server's words**: whether the guidance that the server gives about itself was seen to reach the model. **Plugin**:
a folder of its own format, for those who would rather load that. **Proven with**: the version of the real program that was run
against a model on loopback, with a note found in the bytes of its request, a changed fact with its current value only, and
`memory_recall` answered; *by document*: the program could not be run, and its documented format was followed.
`holdfast prove CLIENT` runs the program that you have.

## For one session only

A plugin that is loaded for one session leaves nothing in the client's own folders. The command writes it into Holdfast's home
and prints where; `holdfast uninstall CLIENT` removes it there:

```sh
claude --plugin-dir "$(holdfast path plugin claude-code)"
copilot --plugin-dir "$(holdfast path plugin copilot)"
OPENCODE_CONFIG="$(holdfast path plugin opencode)/opencode.json" opencode
```

The others with a plugin take its folder with a command of their own. `holdfast path plugin generic` is a bundle by the rules of
Agent Plugins 1.0 (`plugin.json`, `mcp.json`, `skills/`), for any program that takes those. {skills}

## The memory that Claude Code keeps itself

`holdfast install claude-code --auto-memory`, in a project, sets `autoMemoryDirectory` to a folder in the project's `files/` on
our shelf: what the model writes there by itself, its `MEMORY.md` and its files, is found by every agent. It is set in
`.claude/settings.local.json` of the project, because one setting for the user would put the memory of all projects into one
folder; Claude Code reads it there, and ignores it in the checked-in `.claude/settings.json`. Uninstalling takes the setting
out; the files stay. Known from version 2.1.325: the prompt names the folder, and its `MEMORY.md` is loaded from there.

## A file that an agent reads

For agents that neither take hooks nor ask a server, `holdfast render FILE` puts the briefing into a block of a file, between
`<!-- holdfast:begin -->` and `<!-- holdfast:end -->`, and `--remove` takes it out. The rest of the file is not touched, also
not the block between `<!-- holdfast:about:begin -->` and `<!-- holdfast:about:end -->` that `install generic` puts there. All
who work in the project read such a file, so it shows what is global and the project's, and nothing of one session or one agent.
What you forget is gone from such files at once; if one cannot be written or was moved, you are told. Run it again to show what
is new.

## What an install changes
"""


def render() -> str:
    """Return the text of the page."""
    loaded = [clients.load(name) for name in clients.names()]
    table = [
        _format_row(_HEAD),
        _format_row(["---"] * len(_HEAD)),
        *[_format_row(_list_capabilities(client)) for client in loaded],
    ]
    changes = [line for client in loaded for line in _list_changes(client)]
    marker = "<!-- Made by `python -m holdfast.cli.docs_pages docs` from clients/; change it there. -->"
    after = _AFTER.replace("{skills}", _describe_skills(loaded))
    return "\n".join(["# Clients", "", marker, "", _BEFORE, *table, "", after, *changes]) + "\n"


def _describe_skills(loaded: list[Client]) -> str:
    """Return a paragraph on which plugins contain the skills."""
    from holdfast.clients.parts import GATEWAY_SKILL, SKILLS

    plugins = {client.title: client.plugin(_TARGET) for client in loaded}
    without = [title for title, files in plugins.items() if files and not any("SKILL.md" in path for path in files)]
    plugins_with = f"every plugin but that of {' and '.join(without)}" if without else "every plugin"
    skills = " and ".join([f"`{name}`" for name in SKILLS if name != GATEWAY_SKILL])
    return (
        f"The skill\n{skills} is in {plugins_with}. The skill `{GATEWAY_SKILL}`, for agents of a [gateway](gateway.md), is\n"
        "added where `gateway.url`, `gateway.token` or `store.url` is set, or with `holdfast install CLIENT --gateway`;\n"
        "`holdfast uninstall` removes it in any case."
    )


def _list_capabilities(client: Client) -> list[str]:
    hooked = _find_hooked_events(client)
    briefed = "yes" if "start" in client.injects else "with the first prompt" if "prompt" in client.injects else "no"
    captured = bool(client.transcripts) and bool(hooked & {"stop", "end", "compact"})
    return [
        client.title, f"`{client.name}`", briefed if hooked or not client.injects else "by hand",
        _format_bool("prompt" in client.injects) if hooked or not client.injects else "by hand",
        _format_bool(captured and "compact" in hooked), _format_bool(captured), "yes" if _has_server(client) else "to paste",
        _format_bool(client.reads_server_instructions) if client.proven else "not known",
        _format_bool(bool(client.plugin(_TARGET))),
        client.proven or "by document",
    ]  # fmt: skip


def _find_hooked_events(client: Client) -> set[str]:
    """Return the events, by our names, for which an install adds a hook."""
    text = "\n".join([str(change.value) for change in client.changes(_TARGET)])
    calls = {event: (f"hook {client.name} {event}", f'ask("{event}"') for event in client.events}
    return {client.events[event] for event, patterns in calls.items() if any(pattern in text for pattern in patterns)}


def _has_server(client: Client) -> bool:
    """Return whether an install adds the MCP server."""
    texts = [str(change.value) for change in client.changes(_TARGET)]
    return any("mcp" in text and "--client" in text for text in texts)


def _list_changes(client: Client) -> list[str]:
    files: dict[str, list[str]] = {}
    for change in client.changes(_TARGET):
        if change.kind != "trace" and not change.path.startswith(_TARGET.memory):
            files.setdefault(change.path, []).append(".".join(change.keys))
    lines = [f"- `{path}`{_format_keys(keys)}" for path, keys in files.items()]
    if any(change.path.startswith(_TARGET.memory) for change in client.changes(_TARGET)):
        lines.append(f"- `~/.holdfast/plugins/{client.name}/`: the plugin")
    return [f"### {client.title}", "", *lines, *(["", client.note] if client.note else []), ""]


def _format_keys(keys: list[str]) -> str:
    named = [f"`{key}`" for key in dict.fromkeys(keys) if key]
    return f": {', '.join(named)}" if named else ""


def _format_bool(value: bool) -> str:
    return "yes" if value else "no"


def _format_row(cells: list[str] | tuple[str, ...]) -> str:
    return f"| {' | '.join(cells)} |"
