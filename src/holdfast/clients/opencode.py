"""OpenCode: the server in its config, and a small plugin in its folder of plugins that asks us in the client's own process."""

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
    plain = True  # our own plugin reads it

    def changes(self, place: InstallTarget) -> list[Change]:
        from holdfast.clients.parts import plugin_script, skill_files

        folder = self.folder(place)
        texts = {**skill_files(place, "skill"), "plugin/holdfast.js": plugin_script(self, place)}
        return [
            Change(self._config(folder), "entry", self.server(place), ("mcp", "holdfast")),
            *[Change(os.path.join(folder, path), "file", text) for path, text in texts.items()],
        ]

    def plugin(self, place: InstallTarget) -> dict[str, str]:
        """For one session: `OPENCODE_CONFIG=DIR/opencode.json opencode`."""
        from pathlib import Path

        from holdfast.clients.parts import plugin_folder, plugin_script, skill_files, to_json

        ours = Path(os.path.abspath(plugin_folder(self, place)), "holdfast.js").as_uri()
        config = {"$schema": "https://opencode.ai/config.json", "mcp": {"holdfast": self.server(place)}, "plugin": [ours]}
        return {"opencode.json": to_json(config), "holdfast.js": plugin_script(self, place), **skill_files(place)}

    def server(self, place: InstallTarget) -> dict[str, object]:
        return {"type": "local", "command": [*place.command, "mcp", "--client", self.name], "enabled": True}

    def _config(self, folder: str) -> str:
        """The one that is there; the client reads both names."""
        names = [os.path.join(folder, name) for name in ("opencode.jsonc", "opencode.json")]
        return next((path for path in names if os.path.lexists(path)), names[1])

    def session(self, place: InstallTarget, url: str, prompt: str, program: str) -> Session:
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
            "XDG_CONFIG_HOME": os.path.dirname(self.folder(place)), "OPENCODE_DISABLE_MODELS_FETCH": "1",
            "npm_config_offline": "true",  # it would look for a package, over and over
        }  # fmt: skip
        files = {os.path.join(self.folder(place), "opencode.json"): to_json(config)}
        return Session((program, "run", prompt, "--format", "json"), env, files)

    def folder(self, place: InstallTarget) -> str:
        return os.path.join(place.folder(".config", "XDG_CONFIG_HOME"), "opencode")


CLIENT = OpenCode()
