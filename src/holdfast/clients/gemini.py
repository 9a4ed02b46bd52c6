"""Gemini CLI: an extension in our home, which its folder of extensions links to."""

from __future__ import annotations

import os

from holdfast.clients.base import Change, Client

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.clients.base import HookInput, InstallTarget, Session


class Gemini(Client):
    name = "gemini"
    title = "Gemini CLI"
    programs = ("gemini",)
    proven = "0.61.0"
    events = {
        "SessionStart": "start", "BeforeAgent": "prompt", "AfterAgent": "stop", "SessionEnd": "end", "PreCompress": "compact",
    }  # fmt: skip
    transcripts = "gemini"

    def parse_input(self, event: str, data: dict[str, Any]) -> HookInput:
        """A headless prompt comes with what hooks put before it, also what we did."""
        heard = super().parse_input(event, data)
        return heard.replace(prompt=_without_context(heard.prompt)) if "<hook_context>" in heard.prompt else heard

    def format_output(self, event: str, text: str) -> str:
        return super().format_output(event, text) or "{}"  # only JSON is taken

    def changes(self, place: InstallTarget) -> list[Change]:
        from holdfast.clients.parts import plugin_files, plugin_folder, to_json

        link = {"source": plugin_folder(self, place), "type": "link"}
        folder = os.path.join(self.folder(place), "extensions", "holdfast")
        return [
            *plugin_files(self, place),
            Change(os.path.join(folder, ".gemini-extension-install.json"), "file", to_json(link)),
        ]

    def plugin(self, place: InstallTarget) -> dict[str, str]:
        from holdfast.clients.parts import grouped_hooks, manifest, server_entry, skill_files, to_json

        about = manifest()
        extension = {
            "name": about["name"], "version": about["version"], "description": about["description"],
            "mcpServers": {"holdfast": server_entry(self, place, cwd="${workspacePath}")},
        }  # fmt: skip
        # PreCompress is left out: it fires before every call of the model
        hooks = grouped_hooks(self, place, events=("SessionStart", "BeforeAgent", "AfterAgent", "SessionEnd"), scale=1000)
        return {
            "gemini-extension.json": to_json(extension),
            "hooks/hooks.json": to_json({"hooks": hooks}),
            **skill_files(place),
        }

    def session(self, place: InstallTarget, url: str, prompt: str, program: str) -> Session:
        from holdfast.clients.base import Session
        from holdfast.clients.parts import to_json

        settings = {
            "security": {"auth": {"selectedType": "gemini-api-key"}}, "telemetry": {"enabled": False},
            "privacy": {"usageStatisticsEnabled": False}, "general": {"enableAutoUpdate": False},
        }  # fmt: skip
        words = ("-p", prompt, "--skip-trust", "-y", "-m", "gemini-2.5-flash", "-o", "json")
        env = {
            "GOOGLE_GEMINI_BASE_URL": url, "GEMINI_API_KEY": "none", "GEMINI_CLI_HOME": os.path.dirname(self.folder(place)),
            "GEMINI_CLI_NO_RELAUNCH": "true",
        }  # fmt: skip
        return Session((program, *words), env, {os.path.join(self.folder(place), "settings.json"): to_json(settings)})

    def folder(self, place: InstallTarget) -> str:
        return os.path.join(place.environ.get("GEMINI_CLI_HOME") or place.home, ".gemini")


def _without_context(prompt: str) -> str:
    """What the user typed: everything but the blocks that hooks were given room in."""
    kept, rest = "", prompt
    while "<hook_context>" in rest:
        before, _, rest = rest.partition("<hook_context>")
        kept += before
        rest = rest.partition("</hook_context>")[2]
    return (kept + rest).strip()


CLIENT = Gemini()
