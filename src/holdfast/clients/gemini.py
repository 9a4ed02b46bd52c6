"""Gemini CLI: an extension in Holdfast's home, linked from the client's folder of extensions."""

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
        """Parse the input; a headless prompt contains the output of hooks, including ours, which is removed."""
        hook_input = super().parse_input(event, data)
        return (
            hook_input.replace(prompt=_remove_hook_context(hook_input.prompt))
            if "<hook_context>" in hook_input.prompt
            else hook_input
        )

    def format_output(self, event: str, text: str) -> str:
        return super().format_output(event, text) or "{}"  # this client accepts only JSON

    def changes(self, target: InstallTarget) -> list[Change]:
        from holdfast.clients.parts import plugin_files, plugin_folder, to_json

        link = {"source": plugin_folder(self, target), "type": "link"}
        folder = os.path.join(self.folder(target), "extensions", "holdfast")
        return [
            *plugin_files(self, target),
            Change(os.path.join(folder, ".gemini-extension-install.json"), "file", to_json(link)),
        ]

    def plugin(self, target: InstallTarget) -> dict[str, str]:
        from holdfast.clients.parts import grouped_hooks, manifest, server_entry, skill_files, to_json

        about = manifest()
        extension = {
            "name": about["name"], "version": about["version"], "description": about["description"],
            "mcpServers": {"holdfast": server_entry(self, target, cwd="${workspacePath}")},
        }  # fmt: skip
        # PreCompress is left out: it fires before every call of the model
        hooks = grouped_hooks(self, target, events=("SessionStart", "BeforeAgent", "AfterAgent", "SessionEnd"), scale=1000)
        return {
            "gemini-extension.json": to_json(extension),
            "hooks/hooks.json": to_json({"hooks": hooks}),
            **skill_files(target),
        }

    def session(self, target: InstallTarget, url: str, prompt: str, program: str) -> Session:
        from holdfast.clients.base import Session
        from holdfast.clients.parts import to_json

        settings = {
            "security": {"auth": {"selectedType": "gemini-api-key"}}, "telemetry": {"enabled": False},
            "privacy": {"usageStatisticsEnabled": False}, "general": {"enableAutoUpdate": False},
        }  # fmt: skip
        words = ("-p", prompt, "--skip-trust", "-y", "-m", "gemini-2.5-flash", "-o", "json")
        env = {
            "GOOGLE_GEMINI_BASE_URL": url, "GEMINI_API_KEY": "none", "GEMINI_CLI_HOME": os.path.dirname(self.folder(target)),
            "GEMINI_CLI_NO_RELAUNCH": "true",
        }  # fmt: skip
        return Session((program, *words), env, {os.path.join(self.folder(target), "settings.json"): to_json(settings)})

    def folder(self, target: InstallTarget) -> str:
        return os.path.join(target.environ.get("GEMINI_CLI_HOME") or target.home, ".gemini")


def _remove_hook_context(prompt: str) -> str:
    """Return the prompt as the user typed it, without the blocks of hook output."""
    kept, rest = "", prompt
    while "<hook_context>" in rest:
        before, _, rest = rest.partition("<hook_context>")
        kept += before
        rest = rest.partition("</hook_context>")[2]
    return (kept + rest).strip()


CLIENT = Gemini()
