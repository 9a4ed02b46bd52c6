"""Amazon Q Developer CLI: an agent file with our hooks and server."""

from __future__ import annotations

import os

from holdfast.clients.base import Change, Client

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.clients.base import InstallTarget


class AmazonQ(Client):
    name = "amazon-q"
    title = "Amazon Q CLI"
    programs = ("q", "qchat")
    events = {"agentSpawn": "start", "userPromptSubmit": "prompt", "stop": "stop"}
    plain_text = True  # what is printed is added to the context as it is
    note = "Start Amazon Q with the agent of Holdfast: `q chat --agent holdfast`."

    def changes(self, target: InstallTarget) -> list[Change]:
        from holdfast.clients.parts import agent_entry, to_json

        path = os.path.join(self.folder(target), "cli-agents", "holdfast.json")
        return [Change(path, "file", to_json(agent_entry(self, target, self.events)))]

    def folder(self, target: InstallTarget) -> str:
        return target.folder(".aws/amazonq")


CLIENT = AmazonQ()
