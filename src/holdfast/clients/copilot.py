"""GitHub Copilot CLI: hooks and server in the user's folder, or a plugin for one session with `--plugin-dir`."""

from __future__ import annotations

import os

from holdfast.clients.base import Change, Client, format_field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.clients.base import InstallTarget, Session


class Copilot(Client):
    name = "copilot"
    title = "GitHub Copilot CLI"
    programs = ("copilot",)
    proven = "1.0.102"
    events = {
        "sessionStart": "start", "userPromptSubmitted": "prompt", "preCompact": "compact", "agentStop": "stop",
        "sessionEnd": "end",
    }  # fmt: skip
    reads_server_instructions = False

    def format_output(self, event: str, text: str) -> str:
        """Return an object of one field: this client drops the nested form of other clients."""
        return format_field("additionalContext", text) if text and self.events.get(event, event) in self.injects else "{}"

    def changes(self, target: InstallTarget) -> list[Change]:
        from holdfast.clients.parts import skill_files, to_json

        folder = self.folder(target)
        texts = [Change(os.path.join(folder, path), "file", text) for path, text in skill_files(target).items()]
        return [
            Change(os.path.join(folder, "mcp-config.json"), "entry", self._server(target), ("mcpServers", "holdfast")),
            Change(os.path.join(folder, "hooks", "holdfast.json"), "file", to_json(self._hooks(target))),
            *texts,
        ]

    def plugin(self, target: InstallTarget) -> dict[str, str]:
        from holdfast.clients.parts import manifest, skill_files, to_json

        return {
            "plugin.json": to_json(manifest(skills=["skills"], hooks="hooks/hooks.json", mcpServers=".mcp.json")),
            "hooks/hooks.json": to_json(self._hooks(target)),
            ".mcp.json": to_json({"mcpServers": {"holdfast": self._server(target)}}),
            **skill_files(target),
        }

    def _server(self, target: InstallTarget) -> dict[str, Any]:
        from holdfast.clients.parts import server_entry

        return {"type": "local", **server_entry(self, target, tools=["*"])}

    def _hooks(self, target: InstallTarget) -> dict[str, Any]:
        from holdfast.clients.parts import SECONDS, hook_command

        hooks = {
            client_event: [{"type": "command", "bash": hook_command(self, target, client_event), "timeoutSec": SECONDS[event]}]
            for client_event, event in self.events.items()
        }
        return {"version": 1, "hooks": hooks}

    def session(self, target: InstallTarget, url: str, prompt: str, program: str) -> Session:
        from holdfast.clients.base import Session

        env = {
            "COPILOT_HOME": self.folder(target), "COPILOT_OFFLINE": "true", "COPILOT_PROVIDER_BASE_URL": f"{url}/v1",
            "COPILOT_MODEL": "holdfast-proof",
        }  # fmt: skip
        return Session((program, "-p", prompt, "--allow-all-tools"), env)

    def folder(self, target: InstallTarget) -> str:
        return target.folder(".copilot", "COPILOT_HOME")


CLIENT = Copilot()
