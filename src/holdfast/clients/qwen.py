"""Qwen Code: hooks and server in the user's settings."""

from __future__ import annotations

import os

from holdfast.clients.base import Change, Client

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.clients.base import InstallTarget, Session


class Qwen(Client):
    name = "qwen"
    title = "Qwen Code"
    programs = ("qwen",)
    proven = "0.24.4"
    events = {
        "SessionStart": "start", "UserPromptSubmit": "prompt", "PreCompact": "compact", "Stop": "stop", "SessionEnd": "end",
    }  # fmt: skip

    def changes(self, place: InstallTarget) -> list[Change]:
        from holdfast.clients.parts import grouped_hooks, server_entry, skill_files

        settings = os.path.join(self.folder(place), "settings.json")
        hooks = [
            Change(settings, "item", group, ("hooks", event))
            for event, groups in grouped_hooks(self, place).items()
            for group in groups
        ]
        texts = [Change(os.path.join(self.folder(place), path), "file", text) for path, text in skill_files(place).items()]
        entry = server_entry(self, place, alwaysLoadTools=True)  # otherwise the tools hide behind a search for tools
        return [Change(settings, "entry", entry, ("mcpServers", "holdfast")), *hooks, *texts]

    def session(self, place: InstallTarget, url: str, prompt: str, program: str) -> Session:
        from holdfast.clients.base import Session
        from holdfast.clients.parts import to_json

        settings = {
            "privacy": {"usageStatisticsEnabled": False}, "telemetry": {"enabled": False},
            "general": {"enableAutoUpdate": False},
        }  # fmt: skip
        model = ("--auth-type", "openai", "--openai-base-url", f"{url}/v1", "--openai-api-key", "none", "-m", "holdfast-proof")
        files = {os.path.join(self.folder(place), "settings.json"): to_json(settings)}
        env = {"QWEN_HOME": self.folder(place), "QWEN_CODE_NO_RELAUNCH": "1"}
        return Session((program, "-p", prompt, *model, "-y"), env, files)

    def folder(self, place: InstallTarget) -> str:
        return place.folder(".qwen", "QWEN_HOME")


CLIENT = Qwen()
