"""Parts of the clients' installs and plugins: the MCP server's entry, the hooks, the skills, JSON and JavaScript files."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.clients.base import Change, Client, InstallTarget

SKILLS = ("holdfast-memory", "update-memory")
GATEWAY_SKILL = "update-memory"  # for agents that have the URL and a token of a gateway
SECONDS = {"start": 10, "prompt": 10, "compact": 30, "stop": 10, "end": 3}  # how long a client should wait for our hook
_DESCRIPTION = "Durable memory for AI agents, in Markdown files that you own, shared by all agents on the machine."


def server_entry(client: Client, target: InstallTarget, **more: Any) -> dict[str, Any]:
    """Return the MCP server's entry in the form that most clients use."""
    return {"command": target.command[0], "args": [*target.command[1:], "mcp", "--client", client.name], **more}


def hook_command(client: Client, target: InstallTarget, event: str) -> str:
    """Return the shell command of a hook."""
    return target.shell("hook", client.name, event)


def grouped_hooks(
    client: Client, target: InstallTarget, *, events: tuple[str, ...] = (), scale: int = 1, starts: str = ""
) -> dict[str, Any]:
    """Return the hooks by event, in groups with matchers. `scale` converts seconds into the client's unit."""
    hooks: dict[str, Any] = {}
    for client_event, event in client.events.items():
        if events and client_event not in events:
            continue
        hook = {"type": "command", "command": hook_command(client, target, client_event), "timeout": SECONDS[event] * scale}
        matcher = {"matcher": starts} if starts and event == "start" else {}
        hooks[client_event] = [{**matcher, "hooks": [hook]}]
    return hooks


def agent_entry(client: Client, target: InstallTarget, events: dict[str, str]) -> dict[str, Any]:
    """Return an agent in Kiro's format, with all tools, our server and our hooks."""
    return {
        "name": "holdfast",
        "description": "The default agent, with a memory that outlives the session.",
        "tools": ["*"],
        "allowedTools": ["@holdfast"],
        "mcpServers": {"holdfast": server_entry(client, target)},
        "hooks": {
            client_event: [{"command": hook_command(client, target, client_event), "timeout_ms": SECONDS[event] * 1000}]
            for client_event, event in events.items()
        },
        "includeMcpJson": True,
    }


def manifest(**more: Any) -> dict[str, Any]:
    """Return the manifest of a plugin."""
    from holdfast import __version__

    about = {"name": "holdfast", "version": __version__, "description": _DESCRIPTION}
    return {**about, "author": {"name": "Holdfast"}, "license": "Apache-2.0", "keywords": ["memory", "mcp"], **more}


def plugin_folder(client: Client, target: InstallTarget) -> str:
    """Return the folder of the client's plugin in Holdfast's home."""
    return os.path.join(target.memory, "plugins", client.name)


def plugin_files(client: Client, target: InstallTarget) -> list[Change]:
    """Return the edits that write the plugin, for an install that refers to it."""
    from holdfast.clients.base import Change

    folder = plugin_folder(client, target)
    return [Change(os.path.join(folder, *path.split("/")), "file", text) for path, text in client.plugin(target).items()]


def skill_files(target: InstallTarget, folder: str = "skills") -> dict[str, str]:
    """Return the skills as texts by file name; the gateway's skill only if `target.gateway` is set."""
    from holdfast.clients import usage_guide

    names = [name for name in SKILLS if target.gateway or name != GATEWAY_SKILL]
    texts = {name: read_data("skills", name, "SKILL.md").replace("{rubric}", usage_guide().strip()) for name in names}
    return {f"{folder}/{name}/SKILL.md": text for name, text in texts.items()}


def plugin_script(client: Client, target: InstallTarget) -> str:
    """Return a plugin in JavaScript: the shared function that asks Holdfast, and the client's own part."""
    import json

    shared = read_data("hook_call.js").replace('["holdfast"]', json.dumps([*target.command]), 1)
    return shared.replace('client = ""', f"client = {json.dumps(client.name)}", 1) + read_data(f"{client.name}.js")


def read_data(*names: str) -> str:
    """Return a text file of this package."""
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), *names), encoding="utf-8") as file:
        return file.read()


def to_json(value: Any) -> str:
    """Return a value as the text of a JSON file."""
    import json

    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"
