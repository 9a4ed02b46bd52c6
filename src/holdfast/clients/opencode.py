"""OpenCode: the server in its config, and a small plugin that calls Holdfast from the client's own process."""

from __future__ import annotations

import os

from holdfast.clients.base import Change, Client

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.clients.base import InstallTarget, Session


class OpenCode(Client):
    name = "opencode"
    title = "OpenCode"
    programs = ("opencode",)
    proven = "1.18.33"
    events = {"start": "start", "prompt": "prompt", "compact": "compact", "stop": "stop", "end": "end"}  # of our plugin
    plain_text = True  # our own plugin reads it

    def changes(self, target: InstallTarget) -> list[Change]:
        from holdfast.clients.parts import plugin_script, skill_files

        folder = self.folder(target)
        texts = {**skill_files(target, "skill"), "plugin/holdfast.js": plugin_script(self, target)}
        return [
            Change(self._config(folder), "entry", self.server(target), ("mcp", "holdfast")),
            *[Change(os.path.join(folder, path), "file", text) for path, text in texts.items()],
        ]

    def plugin(self, target: InstallTarget) -> dict[str, str]:
        """For one session: `OPENCODE_CONFIG=DIR/opencode.json opencode`."""
        from pathlib import Path

        from holdfast.clients.parts import plugin_folder, plugin_script, skill_files, to_json

        script = Path(os.path.abspath(plugin_folder(self, target)), "holdfast.js").as_uri()
        config = {"$schema": "https://opencode.ai/config.json", "mcp": {"holdfast": self.server(target)}, "plugin": [script]}
        return {"opencode.json": to_json(config), "holdfast.js": plugin_script(self, target), **skill_files(target)}

    def server(self, target: InstallTarget) -> dict[str, object]:
        return {"type": "local", "command": [*target.command, "mcp", "--client", self.name], "enabled": True}

    def _config(self, folder: str) -> str:
        """Return the config file that exists; the client reads both names."""
        names = [os.path.join(folder, name) for name in ("opencode.jsonc", "opencode.json")]
        return next((path for path in names if os.path.lexists(path)), names[1])

    def session(self, target: InstallTarget, url: str, prompt: str, program: str) -> Session:
        from holdfast.clients.base import Session
        from holdfast.clients.parts import to_json

        model = {
            "npm": "@ai-sdk/openai-compatible", "name": "proof", "options": {"baseURL": f"{url}/v1", "apiKey": "none"},
            "models": {"holdfast-proof": {"name": "holdfast-proof"}},
        }  # fmt: skip
        config = {
            "model": "proof/holdfast-proof", "small_model": "proof/holdfast-proof", "autoupdate": False, "share": "disabled",
            "provider": {"proof": model},
        }  # fmt: skip
        env = {
            "XDG_CONFIG_HOME": os.path.dirname(self.folder(target)), "OPENCODE_DISABLE_MODELS_FETCH": "1",
            "npm_config_offline": "true",  # otherwise it tries to download a package again and again
        }  # fmt: skip
        files = {os.path.join(self.folder(target), "opencode.json"): to_json(config)}
        return Session((program, "run", prompt, "--format", "json"), env, files)

    def folder(self, target: InstallTarget) -> str:
        return os.path.join(target.folder(".config", "XDG_CONFIG_HOME"), "opencode")


CLIENT = OpenCode()
