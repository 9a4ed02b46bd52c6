"""Claude Code: a plugin, enabled in the user's settings or loaded for one session with `--plugin-dir`."""

from __future__ import annotations

import os

from holdfast.clients.base import Change, Client

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.clients.base import InstallTarget, Session


class ClaudeCode(Client):
    name = "claude-code"
    title = "Claude Code"
    programs = ("claude",)
    proven = "2.1.325"
    events = {
        "SessionStart": "start", "UserPromptSubmit": "prompt", "PreCompact": "compact", "Stop": "stop", "SessionEnd": "end",
    }  # fmt: skip
    transcripts = "claude"
    strict_json = True  # it reports "Invalid or malformed JSON" and ignores the whole file
    folder_env = ("CLAUDE_PROJECT_DIR",)
    session_env = ("CLAUDE_CODE_SESSION_ID",)

    def changes(self, target: InstallTarget) -> list[Change]:
        """Write the plugin into Holdfast's home, and name it in the client's settings."""
        from holdfast.clients.parts import plugin_files, plugin_folder

        settings, plugin = os.path.join(self.folder(target), "settings.json"), plugin_folder(self, target)
        market = {"source": {"source": "directory", "path": plugin}}
        marketplaces = os.path.join(self.folder(target), "plugins", "known_marketplaces.json")
        return [
            *plugin_files(self, target),
            Change(settings, "entry", market, ("extraKnownMarketplaces", "holdfast")),
            Change(settings, "entry", True, ("enabledPlugins", "holdfast@holdfast")),
            Change(marketplaces, "trace", None, ("holdfast",)),
        ]

    def plugin(self, target: InstallTarget) -> dict[str, str]:
        from holdfast.clients.parts import grouped_hooks, manifest, server_entry, skill_files, to_json

        about = manifest()
        market = {
            "name": "holdfast", "owner": {"name": "Holdfast"}, "metadata": {"description": about["description"]},
            "plugins": [{"name": "holdfast", "source": "./", "description": about["description"]}],
        }  # fmt: skip
        hooks = grouped_hooks(self, target, starts="startup|clear|compact")
        return {
            ".claude-plugin/plugin.json": to_json(about),
            ".claude-plugin/marketplace.json": to_json(market),
            "hooks/hooks.json": to_json({"hooks": hooks}),
            # without alwaysLoad, the model must search for the tools first
            ".mcp.json": to_json({"mcpServers": {"holdfast": server_entry(self, target, alwaysLoad=True)}}),
            **skill_files(target),
        }

    def auto_memory(self, target: InstallTarget, folder: str) -> list[Change]:
        """Move the model's own memory into a folder of the store. This is set in the project's local settings because the
        user's settings would put every project's memory into one folder."""
        path = os.path.join(target.project, ".claude", "settings.local.json")
        return [Change(path, "entry", folder, ("autoMemoryDirectory",))]

    def session(self, target: InstallTarget, url: str, prompt: str, program: str) -> Session:
        from holdfast.clients.base import Session

        recall = "mcp__plugin_holdfast_holdfast__memory_recall"
        words = ("--output-format", "stream-json", "--verbose", "--allowedTools", recall)
        env = {
            "ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "none", "CLAUDE_CONFIG_DIR": self.folder(target),
            "DISABLE_TELEMETRY": "1", "DISABLE_AUTOUPDATER": "1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        }  # fmt: skip
        return Session((program, "-p", prompt, *words), env)

    def folder(self, target: InstallTarget) -> str:
        return target.folder(".claude", "CLAUDE_CONFIG_DIR")


CLIENT = ClaudeCode()
