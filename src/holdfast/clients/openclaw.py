"""OpenClaw: a plugin of ours in its config, and the server beside it."""

from __future__ import annotations

import os

from holdfast.clients.base import Change, Client

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.clients.base import Place, Session


class OpenClaw(Client):
    name = "openclaw"
    title = "OpenClaw"
    programs = ("openclaw",)
    proven = "2026.9.6"
    instructs = False
    events = {"start": "start", "prompt": "prompt", "compact": "compact", "stop": "stop", "end": "end"}  # of our plugin
    plain = True  # our own plugin reads it

    def changes(self, place: Place) -> list[Change]:
        from holdfast.clients.parts import plugin_files, plugin_folder, server

        config, ours = self._config(place), plugin_folder(self, place)
        # without this a plugin that did not come with the client may not hear or tell anything
        entry = {"enabled": True, "hooks": {"allowConversationAccess": True, "allowPromptInjection": True}}
        return [
            *plugin_files(self, place),
            Change(config, "entry", server(self, place), ("mcp", "servers", "holdfast")),
            Change(config, "item", ours, ("plugins", "load", "paths")),
            Change(config, "entry", entry, ("plugins", "entries", "holdfast")),
        ]

    def plugin(self, place: Place) -> dict[str, str]:
        from holdfast.clients.parts import manifest, script, skills, text

        about = manifest()
        own = {
            "id": "holdfast", "name": "Holdfast", "description": about["description"], "version": about["version"],
            "activation": {"onStartup": True}, "skills": ["skills"],
            "configSchema": {"type": "object", "additionalProperties": False},
        }  # fmt: skip
        package = {
            "name": "holdfast-openclaw", "version": about["version"], "private": True, "type": "module",
            "openclaw": {"extensions": ["./index.js"]},
        }  # fmt: skip
        files = {"openclaw.plugin.json": text(own), "package.json": text(package), "index.js": script(self, place)}
        return {**files, **skills(place)}

    def session(self, place: Place, url: str, prompt: str, program: str) -> Session:
        import json

        from holdfast.clients.base import Session

        model = {"id": "proof", "name": "proof", "contextWindow": 200000, "maxTokens": 8000}
        provider = {"baseUrl": f"{url}/v1", "apiKey": "none", "api": "openai-completions", "models": [model]}
        config = {
            "models": {"mode": "merge", "providers": {"proof": provider}},
            "agents": {"defaults": {"model": {"primary": "proof/proof"}, "workspace": place.project}},
            "tools": {"toolSearch": False},
        }
        words = ("agent", "--local", "--session-id", "proof", "--message", prompt, "--timeout", "90", "--json")
        env = {"OPENCLAW_STATE_DIR": self.folder(place), "OPENCLAW_DISABLE_BONJOUR": "1"}
        return Session((program, *words), env, {".openclaw/openclaw.json": json.dumps(config, indent=2)})

    def _config(self, place: Place) -> str:
        return place.environ.get("OPENCLAW_CONFIG_PATH") or os.path.join(self.folder(place), "openclaw.json")

    def folder(self, place: Place) -> str:
        return place.folder(".openclaw", "OPENCLAW_STATE_DIR")


CLIENT = OpenClaw()
