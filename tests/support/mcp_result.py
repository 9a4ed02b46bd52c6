"""The result of an MCP tool: the text for the model, and parts of it for assertions."""

from __future__ import annotations

import re

_ENTRY = re.compile(r"^\d+\. (?:\*\*(?P<key>.+?)\*\* )?(?P<about>.*?)\): (?P<text>.*(?:\n   .*)*)", re.MULTILINE)


class Result(str):
    """The text of a result; `project` is the project in its `_meta`."""

    project: dict

    @classmethod
    def parse(cls, result: dict) -> Result:
        """Return the result in a JSON response; it must have one text and no structured content."""
        assert "structuredContent" not in result and len(result["content"]) == 1, result
        parsed = cls(result["content"][0]["text"])
        parsed.project = result["_meta"]["holdfast/project"]
        return parsed

    @property
    def keys(self) -> list[str]:
        """Return the keys of the hits in their order."""
        return [entry["key"] for entry in _ENTRY.finditer(self)]

    @property
    def named(self) -> list[str]:
        """Return the keys of all hits, including those without a text."""
        more = re.search(r"^More: (.*) \(memory_get KEY\)$", self, re.MULTILINE)
        return self.keys + ([key.partition(" (")[0] for key in more[1].split(", ")] if more else [])

    @property
    def texts(self) -> list[str]:
        """Return the texts of the hits in their order."""
        return [entry["text"].replace("\n   ", "\n") for entry in _ENTRY.finditer(self)]

    @property
    def places(self) -> list[str]:
        """Return the paths with line numbers in the text."""
        return re.findall(r"[\w./-]+:\d+-\d+(?=[ )])", self)

    @property
    def version(self) -> str:
        """Return the version in the text."""
        return re.search(r"version ([0-9a-f]{32})", self)[1]

    @property
    def body(self) -> str:
        """Return the indented text of a note."""
        return "\n".join(line[4:] for line in self.split("\n") if line.startswith("    "))
