"""OpenClaw: a plugin in its config, and the server beside it."""

from __future__ import annotations

import os

from holdfast.clients.base import Change, Client

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.clients.base import InstallTarget, Session


class OpenClaw(Client):
    name = "openclaw"
    title = "OpenClaw"
    programs = ("openclaw",)
    proven = "2026.9.6"
    reads_server_instructions = False
    events = {"start": "start", "prompt": "prompt", "compact": "compact", "stop": "stop", "end": "end"}  # of our plugin
    plain_text = True  # our own plugin reads it

    def changes(self, target: InstallTarget) -> list[Change]:
        from holdfast.clients.parts import plugin_files, plugin_folder, server_entry

        config, plugin = self._config(target), plugin_folder(self, target)
        # without this, a third-party plugin can neither read nor add to the conversation
        entry = {"enabled": True, "hooks": {"allowConversationAccess": True, "allowPromptInjection": True}}
        return [
            *plugin_files(self, target),
            Change(config, "entry", server_entry(self, target), ("mcp", "servers", "holdfast")),
            Change(config, "item", plugin, ("plugins", "load", "paths")),
            Change(config, "entry", entry, ("plugins", "entries", "holdfast")),
        ]

    def plugin(self, target: InstallTarget) -> dict[str, str]:
        from holdfast.clients.parts import manifest, plugin_script, skill_files, to_json

        about = manifest()
        plugin = {
            "id": "holdfast", "name": "Holdfast", "description": about["description"], "version": about["version"],
            "activation": {"onStartup": True}, "skills": ["skills"],
            "configSchema": {"type": "object", "additionalProperties": False},
        }  # fmt: skip
        package = {
            "name": "holdfast-openclaw", "version": about["version"], "private": True, "type": "module",
            "openclaw": {"extensions": ["./index.js"]},
        }  # fmt: skip
        files = {
            "openclaw.plugin.json": to_json(plugin),
            "package.json": to_json(package),
            "index.js": plugin_script(self, target),
        }
        return {**files, **skill_files(target)}

    def session(self, target: InstallTarget, url: str, prompt: str, program: str) -> Session:
        import json

        from holdfast.clients.base import Session

        model = {"id": "proof", "name": "proof", "contextWindow": 200000, "maxTokens": 8000}
        provider = {"baseUrl": f"{url}/v1", "apiKey": "none", "api": "openai-completions", "models": [model]}
        config = {
            "models": {"mode": "merge", "providers": {"proof": provider}},
            "agents": {"defaults": {"model": {"primary": "proof/proof"}, "workspace": target.project}},
            "tools": {"toolSearch": False},
        }
        words = ("agent", "--local", "--session-id", "proof", "--message", prompt, "--timeout", "90", "--json")
        env = {"OPENCLAW_STATE_DIR": self.folder(target), "OPENCLAW_DISABLE_BONJOUR": "1"}
        return Session((program, *words), env, {".openclaw/openclaw.json": json.dumps(config, indent=2)})

    def _config(self, target: InstallTarget) -> str:
        return target.environ.get("OPENCLAW_CONFIG_PATH") or os.path.join(self.folder(target), "openclaw.json")

    def folder(self, target: InstallTarget) -> str:
        return target.folder(".openclaw", "OPENCLAW_STATE_DIR")


CLIENT = OpenClaw()
