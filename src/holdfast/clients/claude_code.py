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
    strict = True  # "Invalid or malformed JSON", and nothing of the file counts
    folder_env = ("CLAUDE_PROJECT_DIR",)
    session_env = ("CLAUDE_CODE_SESSION_ID",)

    def changes(self, place: InstallTarget) -> list[Change]:
        """The plugin stands in our own home; the settings name it."""
        from holdfast.clients.parts import plugin_files, plugin_folder

        settings, ours = os.path.join(self.folder(place), "settings.json"), plugin_folder(self, place)
        market = {"source": {"source": "directory", "path": ours}}
        known = os.path.join(self.folder(place), "plugins", "known_marketplaces.json")
        return [
            *plugin_files(self, place),
            Change(settings, "entry", market, ("extraKnownMarketplaces", "holdfast")),
            Change(settings, "entry", True, ("enabledPlugins", "holdfast@holdfast")),
            Change(known, "trace", None, ("holdfast",)),
        ]

    def plugin(self, place: InstallTarget) -> dict[str, str]:
        from holdfast.clients.parts import grouped_hooks, manifest, server_entry, skill_files, to_json

        about = manifest()
        market = {
            "name": "holdfast", "owner": {"name": "Holdfast"}, "metadata": {"description": about["description"]},
            "plugins": [{"name": "holdfast", "source": "./", "description": about["description"]}],
        }  # fmt: skip
        hooks = grouped_hooks(self, place, starts="startup|clear|compact")
        return {
            ".claude-plugin/plugin.json": to_json(about),
            ".claude-plugin/marketplace.json": to_json(market),
            "hooks/hooks.json": to_json({"hooks": hooks}),
            # without alwaysLoad the tools hide behind a search for tools
            ".mcp.json": to_json({"mcpServers": {"holdfast": server_entry(self, place, alwaysLoad=True)}}),
            **skill_files(place),
        }

    def auto_memory(self, place: InstallTarget, folder: str) -> list[Change]:
        """What the model writes by itself goes into a folder of ours. In the project's local settings, because those of the
        user would put every project's memory into this one's."""
        path = os.path.join(place.project, ".claude", "settings.local.json")
        return [Change(path, "entry", folder, ("autoMemoryDirectory",))]

    def session(self, place: InstallTarget, url: str, prompt: str, program: str) -> Session:
        from holdfast.clients.base import Session

        recall = "mcp__plugin_holdfast_holdfast__memory_recall"
        words = ("--output-format", "stream-json", "--verbose", "--allowedTools", recall)
        env = {
            "ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "none", "CLAUDE_CONFIG_DIR": self.folder(place),
            "DISABLE_TELEMETRY": "1", "DISABLE_AUTOUPDATER": "1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        }  # fmt: skip
        return Session((program, "-p", prompt, *words), env)

    def folder(self, place: InstallTarget) -> str:
        return place.folder(".claude", "CLAUDE_CONFIG_DIR")


CLIENT = ClaudeCode()
