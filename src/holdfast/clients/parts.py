"""What the clients' installs and plugins are made of: the server's entry, the hooks, the skills, the texts of JSON files."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.clients.base import Change, Client, InstallTarget

SKILLS = ("holdfast-memory", "update-memory")
GATEWAY_SKILL = "update-memory"  # for agents that have the URL and a token of a gateway
SECONDS = {"start": 10, "prompt": 10, "compact": 30, "stop": 10, "end": 3}  # how long a client waits for a hook of ours
_DESCRIPTION = "Durable memory for AI agents: plain markdown that people own, shared by every agent on the machine."


def server_entry(client: Client, place: InstallTarget, **more: Any) -> dict[str, Any]:
    """The MCP server as most clients want it."""
    return {"command": place.command[0], "args": [*place.command[1:], "mcp", "--client", client.name], **more}


def hook_command(client: Client, place: InstallTarget, event: str) -> str:
    """A hook as a shell runs it."""
    return place.shell("hook", client.name, event)


def grouped_hooks(
    client: Client, place: InstallTarget, *, events: tuple[str, ...] = (), scale: int = 1, starts: str = ""
) -> dict[str, Any]:
    """Hooks by event, in groups with matchers, as several clients want them; `scale` turns seconds into their unit."""
    hooks: dict[str, Any] = {}
    for own, ours in client.events.items():
        if events and own not in events:
            continue
        one = {"type": "command", "command": hook_command(client, place, own), "timeout": SECONDS[ours] * scale}
        matcher = {"matcher": starts} if starts and ours == "start" else {}
        hooks[own] = [{**matcher, "hooks": [one]}]
    return hooks


def agent_entry(client: Client, place: InstallTarget, events: dict[str, str]) -> dict[str, Any]:
    """An agent of Kiro's format, which remembers: every tool there is, our server, our hooks."""
    return {
        "name": "holdfast",
        "description": "The default agent, with a memory that outlives the session.",
        "tools": ["*"],
        "allowedTools": ["@holdfast"],
        "mcpServers": {"holdfast": server_entry(client, place)},
        "hooks": {
            own: [{"command": hook_command(client, place, own), "timeout_ms": SECONDS[ours] * 1000}]
            for own, ours in events.items()
        },
        "includeMcpJson": True,
    }


def manifest(**more: Any) -> dict[str, Any]:
    """What a plugin says of itself."""
    from holdfast import __version__

    about = {"name": "holdfast", "version": __version__, "description": _DESCRIPTION}
    return {**about, "author": {"name": "Holdfast"}, "license": "Apache-2.0", "keywords": ["memory", "mcp"], **more}


def plugin_folder(client: Client, place: InstallTarget) -> str:
    """Where the client's plugin stands in our home."""
    return os.path.join(place.memory, "plugins", client.name)


def plugin_files(client: Client, place: InstallTarget) -> list[Change]:
    """The plugin, as part of an install that points at it."""
    from holdfast.clients.base import Change

    folder = plugin_folder(client, place)
    return [Change(os.path.join(folder, *path.split("/")), "file", text) for path, text in client.plugin(place).items()]


def skill_files(place: InstallTarget, folder: str = "skills") -> dict[str, str]:
    """The skills, as files of a plugin; that of the gateway only where there is one."""
    from holdfast.clients import usage_guide

    names = [name for name in SKILLS if place.gateway or name != GATEWAY_SKILL]
    texts = {name: read_data("skills", name, "SKILL.md").replace("{rubric}", usage_guide().strip()) for name in names}
    return {f"{folder}/{name}/SKILL.md": text for name, text in texts.items()}


def plugin_script(client: Client, place: InstallTarget) -> str:
    """A plugin in JavaScript: how to ask, then what this client does with it."""
    import json

    asking = read_data("asking.js").replace('["holdfast"]', json.dumps([*place.command]), 1)
    return asking.replace('client = ""', f"client = {json.dumps(client.name)}", 1) + read_data(f"{client.name}.js")


def read_data(*names: str) -> str:
    """A text that comes with the package."""
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), *names), encoding="utf-8") as file:
        return file.read()


def to_json(value: Any) -> str:
    """A JSON file."""
    import json

    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"
