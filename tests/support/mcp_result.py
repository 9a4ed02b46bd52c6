"""A tool's result as a test reads it: the text that the model gets, and the parts of it that are asked for."""

from __future__ import annotations

import re

_ENTRY = re.compile(r"^\d+\. (?:\*\*(?P<key>.+?)\*\* )?(?P<about>.*?)\): (?P<text>.*(?:\n   .*)*)", re.MULTILINE)


class Result(str):
    """The text; `project` is what `_meta` says of the project."""

    project: dict

    @classmethod
    def of(cls, result: dict) -> Result:
        """Of a result in its JSON form: one text and nothing beside it that says the same."""
        assert "structuredContent" not in result and len(result["content"]) == 1, result
        made = cls(result["content"][0]["text"])
        made.project = result["_meta"]["holdfast/project"]
        return made

    @property
    def keys(self) -> list[str]:
        """The names of the hits, in their order."""
        return [entry["key"] for entry in _ENTRY.finditer(self)]

    @property
    def named(self) -> list[str]:
        """The names of all hits, also of those whose text is not shown."""
        more = re.search(r"^More: (.*) \(memory_get KEY\)$", self, re.MULTILINE)
        return self.keys + ([one.partition(" (")[0] for one in more[1].split(", ")] if more else [])

    @property
    def texts(self) -> list[str]:
        """The texts of the entries, in their order."""
        return [entry["text"].replace("\n   ", "\n") for entry in _ENTRY.finditer(self)]

    @property
    def places(self) -> list[str]:
        """The paths with lines that stand in the entries."""
        return re.findall(r"[\w./-]+:\d+-\d+(?=[ )])", self)

    @property
    def version(self) -> str:
        return re.search(r"version ([0-9a-f]{32})", self)[1]

    @property
    def body(self) -> str:
        """A text that is shown whole."""
        return "\n".join(line[4:] for line in self.split("\n") if line.startswith("    "))
