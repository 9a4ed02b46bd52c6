"""Amazon Q Developer CLI: an agent of ours with hooks and server in it."""

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
    plain = True  # what is printed is added to the context as it is
    note = "Choose the agent: `q chat --agent holdfast`."

    def changes(self, place: InstallTarget) -> list[Change]:
        from holdfast.clients.parts import agent_entry, to_json

        path = os.path.join(self.folder(place), "cli-agents", "holdfast.json")
        return [Change(path, "file", to_json(agent_entry(self, place, self.events)))]

    def folder(self, place: InstallTarget) -> str:
        return place.folder(".aws/amazonq")


CLIENT = AmazonQ()
