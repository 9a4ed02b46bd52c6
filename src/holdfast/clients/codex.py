"""Codex CLI: the server in config.toml, the hooks in hooks.json, which the user must trust once."""

from __future__ import annotations

import os

from holdfast.clients.base import Change, Client

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.clients.base import InstallTarget, Session


class Codex(Client):
    name = "codex"
    title = "Codex CLI"
    programs = ("codex",)
    proven = "0.166.0"
    events = {
        "SessionStart": "start", "UserPromptSubmit": "prompt", "PreCompact": "compact", "Stop": "stop", "SessionEnd": "end",
    }  # fmt: skip
    cap = 8000  # of 12,000, the middle was lost
    transcripts = "codex"
    note = "Codex skips hooks that you have not trusted. Start `codex`, type /hooks, and trust those of Holdfast."

    def changes(self, target: InstallTarget) -> list[Change]:
        from holdfast.clients.parts import grouped_hooks, skill_files

        folder = self.folder(target)
        hooks = [
            Change(os.path.join(folder, "hooks.json"), "item", group, ("hooks", event))
            for event, groups in grouped_hooks(self, target).items()
            for group in groups
        ]
        texts = [Change(os.path.join(folder, path), "file", text) for path, text in skill_files(target).items()]
        return [Change(os.path.join(folder, "config.toml"), "toml", self._server(target)), *hooks, *texts]

    def _server(self, target: InstallTarget) -> str:
        """Return the server's TOML table. The server gets no environment variables, so its arguments hold every setting."""
        import json

        from holdfast.clients.parts import server_entry

        entry = server_entry(self, target)
        return "\n".join([
            "[mcp_servers.holdfast]",
            f"command = {json.dumps(entry['command'], ensure_ascii=False)}",  # TOML does not accept JSON's surrogate pairs
            f"args = {json.dumps(entry['args'], ensure_ascii=False)}",
            'default_tools_approval_mode = "approve"',
            "startup_timeout_sec = 30",
        ])  # fmt: skip

    def plugin(self, target: InstallTarget) -> dict[str, str]:
        """Return a plugin in Claude Code's format, which Codex loads as well."""
        from holdfast.clients.parts import grouped_hooks, manifest, server_entry, skill_files, to_json

        about = manifest()
        market = {"name": "holdfast", "owner": {"name": "Holdfast"}, "plugins": [{"name": "holdfast", "source": "./"}]}
        return {
            ".claude-plugin/plugin.json": to_json(about),
            ".claude-plugin/marketplace.json": to_json(market),
            "hooks/hooks.json": to_json({"hooks": grouped_hooks(self, target)}),
            ".mcp.json": to_json({"mcpServers": {"holdfast": server_entry(self, target)}}),
            **skill_files(target),
        }

    def find_problems(self, target: InstallTarget) -> list[tuple[str, str]]:
        """Return whether hooks wait for the user's trust, which Codex records in its config."""
        import tomllib

        from holdfast.errors import HoldfastError
        from holdfast.file_edit import file

        path = os.path.join(self.folder(target), "config.toml")
        try:
            hooks = tomllib.loads((file.read(path).bytes or b"").decode()).get("hooks")
        except (ValueError, HoldfastError):
            return [(f"{path} cannot be read", "Run `codex --strict-config` to find the mistake, and fix it")]
        state = hooks.get("state") if isinstance(hooks, dict) else None
        hooks_path = os.path.join(self.folder(target), "hooks.json")
        trusted = [key for key in state if key.startswith(f"{hooks_path}:")] if isinstance(state, dict) else []
        if trusted or not os.path.exists(hooks_path):
            return []
        problem = f"Codex skips the hooks in {hooks_path}, because you have not trusted them"
        return [(problem, "Start `codex`, type /hooks, and trust those of Holdfast")]

    def session(self, target: InstallTarget, url: str, prompt: str, program: str) -> Session:
        """Trust the hooks for this run, since no person can."""
        from holdfast.clients.base import Session

        config = "\n".join([
            'model = "holdfast-proof"',
            'model_provider = "proof"',
            "check_for_update_on_startup = false",
            "[analytics]",
            "enabled = false",
            "[model_providers.proof]",
            'name = "proof"',
            f'base_url = "{url}/v1"',
            'wire_api = "responses"',
            'env_key = "PROOF_KEY"',
            "",
        ])  # fmt: skip
        words = ("exec", "--strict-config", "--json", "--skip-git-repo-check", "--dangerously-bypass-hook-trust", prompt)
        env = {"CODEX_HOME": self.folder(target), "PROOF_KEY": "none"}
        return Session((program, *words), env, {os.path.join(self.folder(target), "config.toml"): config})

    def folder(self, target: InstallTarget) -> str:
        return target.folder(".codex", "CODEX_HOME")


CLIENT = Codex()
