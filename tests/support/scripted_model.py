"""A model server on loopback that gives scripted replies, for programs that use the SDK of a model provider."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast_prove.model_apis import Reply, ToolName
from holdfast_prove.model_server import ModelServer


@dataclass(frozen=True)
class NumberedReply(Reply):
    """A reply whose call has an id of its own, because a script can call a tool more than once."""

    number: int = 0

    @property
    def call_id(self):
        return f"call_{self.number}"


class ScriptedModel(ModelServer):
    """Reply with each step of a script in turn: a text, or a pair of a tool and its arguments."""

    def __init__(self, *steps):
        super().__init__(query="")
        self._replies = iter([make_reply(step, number) for number, step in enumerate(steps, 1)])
        self._count = 0

    def choose_reply(self, request):
        return next(self._replies)

    def respond(self, method, path, body):
        """Respond with items and messages that have ids of their own, as those of a real model."""
        content_type, content = super().respond(method, path, body)
        self._count += 1
        for prefix in (b"msg", b"fc", b"resp"):
            content = content.replace(prefix + b"_holdfast", prefix + b"_%d" % self._count)
        return content_type, content

    @property
    def tool_results(self):
        """Return what the program answered to each call, in order; some SDKs repeat the answers, others do not."""
        answers = [message for request in self.model_requests for message in request.messages if message.role == "tool"]
        return list({message.tool_call_id: message.text for message in answers}.values())

    def texts(self, role):
        """Return the messages of a role in the last request."""
        return [message.text for message in self.model_requests[-1].messages if message.role == role]


def make_reply(step, number):
    if isinstance(step, str):
        return NumberedReply(text=step, number=number)
    tool, arguments = step
    return NumberedReply(tool=tool, offered=ToolName("", tool), arguments=arguments, number=number)
