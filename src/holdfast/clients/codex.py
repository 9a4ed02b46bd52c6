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
    cap = 8000  # 12,000 lost their middle
    transcripts = "codex"
    note = "Codex skips hooks that nobody trusts, and does not say so: start `codex`, type /hooks, and trust those of Holdfast."

    def changes(self, place: InstallTarget) -> list[Change]:
        from holdfast.clients.parts import grouped_hooks, skill_files

        folder = self.folder(place)
        hooks = [
            Change(os.path.join(folder, "hooks.json"), "item", group, ("hooks", event))
            for event, groups in grouped_hooks(self, place).items()
            for group in groups
        ]
        texts = [Change(os.path.join(folder, path), "file", text) for path, text in skill_files(place).items()]
        return [Change(os.path.join(folder, "config.toml"), "toml", self._server(place)), *hooks, *texts]

    def _server(self, place: InstallTarget) -> str:
        """The server's table. Its environment is stripped, so all that it must know stands in its words."""
        import json

        from holdfast.clients.parts import server_entry

        told = server_entry(self, place)
        return "\n".join([
            "[mcp_servers.holdfast]",
            f"command = {json.dumps(told['command'], ensure_ascii=False)}",  # TOML has no pairs of escapes
            f"args = {json.dumps(told['args'], ensure_ascii=False)}",
            'default_tools_approval_mode = "approve"',
            "startup_timeout_sec = 30",
        ])  # fmt: skip

    def plugin(self, place: InstallTarget) -> dict[str, str]:
        """A plugin of the format that Claude Code made known, which Codex loads as well."""
        from holdfast.clients.parts import grouped_hooks, manifest, server_entry, skill_files, to_json

        about = manifest()
        market = {"name": "holdfast", "owner": {"name": "Holdfast"}, "plugins": [{"name": "holdfast", "source": "./"}]}
        return {
            ".claude-plugin/plugin.json": to_json(about),
            ".claude-plugin/marketplace.json": to_json(market),
            "hooks/hooks.json": to_json({"hooks": grouped_hooks(self, place)}),
            ".mcp.json": to_json({"mcpServers": {"holdfast": server_entry(self, place)}}),
            **skill_files(place),
        }

    def find_problems(self, place: InstallTarget) -> list[tuple[str, str]]:
        """Hooks that wait for the user's trust, which Codex writes down in its config."""
        import tomllib

        from holdfast.errors import HoldfastError
        from holdfast.file_edit import file

        path = os.path.join(self.folder(place), "config.toml")
        try:
            hooks = tomllib.loads((file.read(path).bytes or b"").decode()).get("hooks")
        except (ValueError, HoldfastError):
            return [(f"{path} cannot be read", "Correct it: `codex --strict-config` says where it is wrong")]
        state = hooks.get("state") if isinstance(hooks, dict) else None
        ours = os.path.join(self.folder(place), "hooks.json")
        trusted = [key for key in state if key.startswith(f"{ours}:")] if isinstance(state, dict) else []
        if trusted:
            return []
        what = f"Codex has not been told to trust the hooks in {ours}, and skips them"
        return [(what, "Start `codex`, type /hooks, and trust them")]

    def session(self, place: InstallTarget, url: str, prompt: str, program: str) -> Session:
        """Hooks are trusted for this one run, since nobody is there to trust them."""
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
        env = {"CODEX_HOME": self.folder(place), "PROOF_KEY": "none"}
        return Session((program, *words), env, {os.path.join(self.folder(place), "config.toml"): config})

    def folder(self, place: InstallTarget) -> str:
        return place.folder(".codex", "CODEX_HOME")


CLIENT = Codex()
