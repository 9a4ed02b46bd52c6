"""Render docs/clients.md from the clients' modules: abilities, files that an install changes, tested versions."""

# ruff: noqa: E501  # a paragraph of the page is one line

from __future__ import annotations

from holdfast import clients
from holdfast.clients.base import InstallTarget

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.clients.base import Client

_TARGET = InstallTarget("~", {}, ("holdfast",), "~/.holdfast", "PROJECT")
_HEAD = (
    "Client", "Name", "Briefing", "With a prompt", "Before compaction", "Capture", "Tools", "Instructions", "Plugin",
    "Tested with",
)  # fmt: skip
_BEFORE = """\
Let your coding agents share one memory. Each session then starts with a [briefing](briefing.md), each prompt brings the notes that match it, and the agent stores and finds notes through [MCP](mcp.md).

```sh
holdfast install
```

The command finds the agents on this machine, shows each change as a diff, asks, and then makes it. Without a terminal it only lists the agents. Start a new session of the agent afterwards.

| To do this | Command |
|---|---|
| install for one agent | `holdfast install claude-code` |
| install without questions | `holdfast install kimi --yes`, or `holdfast install --yes` for all that are found |
| only show the changes | `holdfast install codex --dry-run`; `--diff` shows new files in full, too |
| only show what to paste, and where | `holdfast install gemini --print` |
| check that memory reaches the model | `holdfast prove claude-code`: see [proof](proof.md) |
| undo it for one agent, or for all | `holdfast uninstall claude-code`, `holdfast uninstall` |

If you answer no, nothing is changed, and the exit code is 3.

## What each agent supports
"""
_AFTER = """\
| Column | Meaning |
|---|---|
| Briefing | memory is in the context when a session starts; *with the first prompt*: the client ignores the output of its start hook; *by hand*: `--print` shows what to paste |
| With a prompt | notes that match the prompt and were not shown yet are added to it |
| Before compaction, Capture | sessions can be kept word for word, with `hooks.capture`; *no*: Holdfast cannot read this client's transcripts |
| Tools | the agent has `memory_recall` and the other tools, through the MCP server |
| Instructions | the instructions of the MCP server were seen to reach the model |
| Plugin | there is a plugin in the client's own format |
| Tested with | version of the real program that was run against a model on loopback; *by document*: the program could not be run here, and its documentation was followed |

## What happens to your files

- Holdfast prefers a plugin or your own settings to files in a repository.
- Only Holdfast's part is added. Comments, line ends, blanks, other hooks and other servers stay byte for byte.
- Either all files of an agent are changed or none. A file that cannot be read, is read-only, or changed after it was shown is not touched.
- The previous content is kept in the home, readable by you only. `holdfast uninstall` restores it. If you changed the file since, only Holdfast's part is removed.
- A file that belongs to Holdfast and that you changed is kept as `NAME.kept` before it is replaced or removed.
- If a settings file is a link, its target is changed, and the link stays.
- Without a name, a failure of one agent does not stop the others. The last line says how many failed, and the exit code is that of the worst failure.
- Files in a project (`generic`) are removed from the current project; `holdfast uninstall --all` removes them from every project.

## Load a plugin for one session

A plugin for one session changes nothing in the client's own folders. These commands write the plugin into Holdfast's home and print its path:

```sh
claude --plugin-dir "$(holdfast path plugin claude-code)"
copilot --plugin-dir "$(holdfast path plugin copilot)"
OPENCODE_CONFIG="$(holdfast path plugin opencode)/opencode.json" opencode
```

`holdfast uninstall CLIENT` removes the plugin. Other clients with a plugin load its folder with a command of their own. `holdfast path plugin generic` writes a bundle in the format of Agent Plugins 1.0 (`plugin.json`, `mcp.json`, `skills/`) for any program that accepts it.

{skills}

## Include the memory that Claude Code writes itself

```sh
holdfast install claude-code --auto-memory
```

Run it in a project. What Claude Code writes by itself, its `MEMORY.md` and other files, then goes into the [files](files.md) of the project, where every agent finds it.

It sets `autoMemoryDirectory` in `.claude/settings.local.json` of the project; Claude Code ignores it in `.claude/settings.json`. Uninstalling removes the setting, and the files stay. Tested with Claude Code 2.1.325.

## Connect any other agent

```sh
holdfast install generic            # adds a guide for agents to AGENTS.md of the current project
holdfast install generic --print    # shows the MCP settings and the hook commands to paste
```

| Your agent has | Paste |
|---|---|
| MCP | the server: `holdfast mcp --client generic` |
| hooks | `holdfast hook generic start` at the start of a session, `holdfast hook generic prompt` with each prompt; what they print is for the model |
| neither | nothing: write the briefing into a file, see below |

To add a module for a client to Holdfast itself, see [contributing](contributing.md#add-a-coding-agent-client).

## Write the briefing into a file

For an agent that has neither hooks nor MCP, put the briefing into a file that it reads:

```sh
holdfast render AGENTS.md
holdfast render AGENTS.md --remove
```

- The briefing is between `<!-- holdfast:begin -->` and `<!-- holdfast:end -->`. The rest of the file stays as it is, also the block that `holdfast install generic` adds.
- It shows notes of the project and global notes only, because everyone in the project reads the file.
- Run the command again to show new notes. What you forget is removed from the file at once; if that fails, the command says so.

## If something goes wrong

| Symptom | Reason and fix |
|---|---|
| the agent does not know your notes | `holdfast install --dry-run` shows what is not connected yet; `holdfast doctor` reports installs that were changed or are not trusted; `holdfast brief --explain` says why a note was not shown |
| the agent was running during the installation | start a new session |
| Codex shows nothing | it skips hooks that you have not trusted: type `/hooks` in Codex and trust those of Holdfast |
| an install is rejected because of comments or trailing commas in Claude Code's settings | Claude Code rejects such a file as a whole: fix it at the place that the message names |
| something else | [troubleshooting](troubleshooting.md), and `holdfast prove CLIENT` shows what reaches the model |

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
    return "\n".join(["# Connect your coding agents", "", marker, "", _BEFORE, *table, "", after, *changes]) + "\n"


def _describe_skills(loaded: list[Client]) -> str:
    """Return a paragraph on which plugins contain the skills."""
    from holdfast.clients.parts import GATEWAY_SKILL, SKILLS

    plugins = {client.title: client.plugin(_TARGET) for client in loaded}
    without = [title for title, files in plugins.items() if files and not any("SKILL.md" in path for path in files)]
    plugins_with = f"every plugin except that of {' and '.join(without)}" if without else "every plugin"
    skills = " and ".join([f"`{name}`" for name in SKILLS if name != GATEWAY_SKILL])
    return (
        f"The skill {skills} is in {plugins_with}. The skill `{GATEWAY_SKILL}`, for agents of a [gateway](gateway.md), "
        "is added if `gateway.url`, `gateway.token` or `store.url` is set, or with `holdfast install CLIENT --gateway`. "
        "`holdfast uninstall` removes both."
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
