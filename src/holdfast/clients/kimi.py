"""Kimi Code: hooks in config.toml, the server in mcp.json. It drops the output of session start hooks."""

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
    plain_text = True  # JSON would be shown to the model as JSON
    injects = ("prompt",)  # so the briefing comes with the first prompt
    reads_server_instructions = False

    def changes(self, target: InstallTarget) -> list[Change]:
        from holdfast.clients.parts import server_entry

        folder = self.folder(target)
        return [
            Change(os.path.join(folder, "mcp.json"), "entry", server_entry(self, target), ("mcpServers", "holdfast")),
            Change(os.path.join(folder, "config.toml"), "toml", self._hooks(target)),
        ]

    def _hooks(self, target: InstallTarget) -> str:
        import json

        from holdfast.clients.parts import SECONDS, hook_command

        commands = {
            client_event: json.dumps(hook_command(self, target, client_event), ensure_ascii=False)
            for client_event in self.events
        }  # TOML does not accept JSON's surrogate pairs
        return "\n\n".join([
            f'[[hooks]]\nevent = "{client_event}"\ncommand = {commands[client_event]}\ntimeout = {SECONDS[event]}'
            for client_event, event in self.events.items()
        ])  # fmt: skip

    def session(self, target: InstallTarget, url: str, prompt: str, program: str) -> Session:
        from holdfast.clients.base import Session

        env = {
            "KIMI_CODE_HOME": self.folder(target), "KIMI_MODEL_NAME": "holdfast-proof", "KIMI_MODEL_API_KEY": "none",
            "KIMI_MODEL_PROVIDER_TYPE": "openai", "KIMI_MODEL_BASE_URL": f"{url}/v1", "KIMI_DISABLE_TELEMETRY": "1",
            "KIMI_CODE_NO_AUTO_UPDATE": "1",
        }  # fmt: skip
        return Session((program, "-p", prompt), env)

    def plugin(self, target: InstallTarget) -> dict[str, str]:
        """Return a plugin. Its plugins may only start programs of the PATH, so `env` starts ours."""
        from holdfast.clients.parts import SECONDS, hook_command, manifest, server_entry, skill_files, to_json

        server = server_entry(self, target)
        about = manifest()
        plugin = {
            **{name: about[name] for name in ("name", "version", "description", "license", "keywords")},
            "skills": "./skills/",
            "mcpServers": {"holdfast": {"command": "env", "args": [server["command"], *server["args"]]}},
            "hooks": [
                {"event": client_event, "command": hook_command(self, target, client_event), "timeout": SECONDS[event]}
                for client_event, event in self.events.items()
            ],
        }
        return {"kimi.plugin.json": to_json(plugin), **skill_files(target)}

    def folder(self, target: InstallTarget) -> str:
        return target.folder(".kimi-code", "KIMI_CODE_HOME")


CLIENT = Kimi()
