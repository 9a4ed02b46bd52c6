"""Kimi Code: hooks in config.toml, the server in mcp.json. What it is told at the start of a session is lost there."""

from __future__ import annotations

import os

from holdfast.clients.base import Change, Client

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.clients.base import InstallTarget, Session


class Kimi(Client):
    name = "kimi"
    title = "Kimi Code"
    programs = ("kimi",)
    proven = "2.1.0"
    events = {
        "SessionStart": "start", "UserPromptSubmit": "prompt", "PreCompact": "compact", "Stop": "stop", "SessionEnd": "end",
    }  # fmt: skip
    plain = True  # JSON would be shown to the model as JSON
    injects = ("prompt",)  # so the briefing comes with the first prompt
    instructs = False

    def changes(self, place: InstallTarget) -> list[Change]:
        from holdfast.clients.parts import server_entry

        folder = self.folder(place)
        return [
            Change(os.path.join(folder, "mcp.json"), "entry", server_entry(self, place), ("mcpServers", "holdfast")),
            Change(os.path.join(folder, "config.toml"), "toml", self._hooks(place)),
        ]

    def _hooks(self, place: InstallTarget) -> str:
        import json

        from holdfast.clients.parts import SECONDS, hook_command

        told = {
            own: json.dumps(hook_command(self, place, own), ensure_ascii=False) for own in self.events
        }  # no pairs of escapes
        return "\n\n".join([
            f'[[hooks]]\nevent = "{own}"\ncommand = {told[own]}\ntimeout = {SECONDS[ours]}'
            for own, ours in self.events.items()
        ])  # fmt: skip

    def session(self, place: InstallTarget, url: str, prompt: str, program: str) -> Session:
        from holdfast.clients.base import Session

        env = {
            "KIMI_CODE_HOME": self.folder(place), "KIMI_MODEL_NAME": "holdfast-proof", "KIMI_MODEL_API_KEY": "none",
            "KIMI_MODEL_PROVIDER_TYPE": "openai", "KIMI_MODEL_BASE_URL": f"{url}/v1", "KIMI_DISABLE_TELEMETRY": "1",
            "KIMI_CODE_NO_AUTO_UPDATE": "1",
        }  # fmt: skip
        return Session((program, "-p", prompt), env)

    def plugin(self, place: InstallTarget) -> dict[str, str]:
        """Its plugins may name programs of the PATH only, so `env` starts ours."""
        from holdfast.clients.parts import SECONDS, hook_command, manifest, server_entry, skill_files, to_json

        told = server_entry(self, place)
        about = manifest()
        own = {
            **{name: about[name] for name in ("name", "version", "description", "license", "keywords")},
            "skills": "./skills/",
            "mcpServers": {"holdfast": {"command": "env", "args": [told["command"], *told["args"]]}},
            "hooks": [
                {"event": event, "command": hook_command(self, place, event), "timeout": SECONDS[ours]}
                for event, ours in self.events.items()
            ],
        }
        return {"kimi.plugin.json": to_json(own), **skill_files(place)}

    def folder(self, place: InstallTarget) -> str:
        return place.folder(".kimi-code", "KIMI_CODE_HOME")


CLIENT = Kimi()
