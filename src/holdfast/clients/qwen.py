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

    def changes(self, target: InstallTarget) -> list[Change]:
        from holdfast.clients.parts import grouped_hooks, server_entry, skill_files

        settings = os.path.join(self.folder(target), "settings.json")
        hooks = [
            Change(settings, "item", group, ("hooks", event))
            for event, groups in grouped_hooks(self, target).items()
            for group in groups
        ]
        texts = [Change(os.path.join(self.folder(target), path), "file", text) for path, text in skill_files(target).items()]
        entry = server_entry(self, target, alwaysLoadTools=True)  # otherwise the model must search for the tools first
        return [Change(settings, "entry", entry, ("mcpServers", "holdfast")), *hooks, *texts]

    def session(self, target: InstallTarget, url: str, prompt: str, program: str) -> Session:
        from holdfast.clients.base import Session
        from holdfast.clients.parts import to_json

        settings = {
            "privacy": {"usageStatisticsEnabled": False}, "telemetry": {"enabled": False},
            "general": {"enableAutoUpdate": False},
        }  # fmt: skip
        model = ("--auth-type", "openai", "--openai-base-url", f"{url}/v1", "--openai-api-key", "none", "-m", "holdfast-proof")
        files = {os.path.join(self.folder(target), "settings.json"): to_json(settings)}
        env = {"QWEN_HOME": self.folder(target), "QWEN_CODE_NO_RELAUNCH": "1"}
        return Session((program, "-p", prompt, *model, "-y"), env, files)

    def folder(self, target: InstallTarget) -> str:
        return target.folder(".qwen", "QWEN_HOME")


CLIENT = Qwen()
