"""Windsurf: the output of its hooks does not reach the model, so its global rules say how to use the server."""

from __future__ import annotations

import os

from holdfast.clients.base import Change, Client

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.clients.base import InstallTarget


class Windsurf(Client):
    name = "windsurf"
    title = "Windsurf"
    programs = ("windsurf",)
    injects = ()
    cap = 6000  # of a rules file
    note = "To show a project's memory in every session, run `holdfast render .windsurf/rules/holdfast.md` in the project."

    def changes(self, target: InstallTarget) -> list[Change]:
        from holdfast.clients import usage_guide
        from holdfast.clients.parts import server_entry

        folder = self.folder(target)
        return [
            Change(os.path.join(folder, "mcp_config.json"), "entry", server_entry(self, target), ("mcpServers", "holdfast")),
            Change(os.path.join(folder, "memories", "global_rules.md"), "block", usage_guide()),
        ]

    def folder(self, target: InstallTarget) -> str:
        return target.folder(".codeium/windsurf")


CLIENT = Windsurf()
