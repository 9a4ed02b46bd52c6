"""What can be read off a run: where a word stands, what a hook printed, what client and server said to each other."""

from __future__ import annotations

import json
import re
from typing import Any

from holdfast_prove.dialects.base import Ask, Said
from holdfast_prove.run import Run
from holdfast_prove.sandbox import FACT, VALUES, Called


def asks(run: Run) -> list[Ask]:
    """The requests that were for the model."""
    return [one.ask for one in run.requests if one.ask]


def hooks(run: Run) -> dict[str, Called]:
    """The last call of each hook, by the client's own name of the event."""
    return {event(call): call for call in run.calls if "hook" in call.words}


def servers(run: Run) -> list[Called]:
    """The runs of our MCP server."""
    return [call for call in run.calls if "mcp" in call.words]


def event(call: Called) -> str:
    return call.words[-1]


def holding(run: Run, word: str) -> list[Said]:
    """The pieces that hold a word, of the first request that does; a tool's answer does not count."""
    for ask in asks(run):
        if found := [one for one in ask.said if word in one.text and one.role != "tool"]:
            return found
    return []


def values(run: Run) -> set[str]:
    """The values of the staged fact that reached the model, the current and the old one; a tool's answer does not count."""
    texts = [one.text for ask in asks(run) for one in ask.said if one.role not in ("tool", "assistant")]
    stated = {value: rf"{re.escape(FACT[1])}[^\n]{{0,60}}?(?<![\d.,]){re.escape(value)}" for value in VALUES.values()}
    return {value for value, pattern in stated.items() if any(re.search(pattern, text) for text in texts)}


def greeting(run: Run) -> dict[str, Any]:
    """Who the client says it is, when it greets the server."""
    for call in servers(run):
        for one in call.asked:
            if one.get("method") == "initialize":
                return _object(_object(one.get("params")).get("clientInfo"))
    return {}


def welcome(run: Run) -> dict[str, Any]:
    """What the server answers to a greeting."""
    for call in servers(run):
        for one in call.messages:
            if "protocolVersion" in (answer := _object(one.get("result"))):
                return answer
    return {}


def block(run: Run, word: str) -> str:
    """The block with that word which a hook printed first, out of whatever its client wants around it."""
    for call in run.calls:
        if "hook" in call.words and word in call.said:
            return next(text for text in _texts(call.said) if word in text).strip()
    return ""


def arrived(run: Run, word: str, whole: str) -> int:
    """How many characters of a text, from its start, stand where the word stands."""
    return max([_common(whole, _plain(one.text)) for one in holding(run, word)], default=0)


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _texts(said: str) -> list[str]:
    """The texts of a JSON document; all that was said, where it is none."""
    try:
        value = json.loads(said)
    except ValueError:
        return [said]
    return _strings(value)


def _strings(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [text for one in value.values() for text in _strings(one)]
    return [value] if isinstance(value, str) else []


def _plain(text: str) -> str:
    """Some clients write the marks of a block so that nobody takes them for marks of their own."""
    if "&lt;" not in text:
        return text
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", '"').replace("&amp;", "&")


def _common(whole: str, text: str) -> int:
    if whole in text:
        return len(whole)
    least, most = 0, len(whole)
    while least < most:
        middle = (least + most + 1) // 2
        least, most = (middle, most) if whole[:middle] in text else (least, middle - 1)
    return least
