"""Regular expressions that are compiled when first used: compiling all at import takes longer than a cold recall may."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from typing import Any

_METHODS = ("match", "fullmatch", "search", "sub", "split", "findall", "finditer")


class _LazyPattern:
    """A regular expression that is compiled when one of its methods is first used."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __getattr__(self, name: str) -> Any:
        if name not in _METHODS:
            raise AttributeError(name)
        import re  # importing it takes a third as long as starting Python

        compiled = re.compile(self._text)
        for method in _METHODS:
            self.__dict__[method] = getattr(compiled, method)
        return self.__dict__[name]


def pattern(text: str) -> re.Pattern[str]:
    """Return a lazy `re.compile(text)`; write flags into the text, such as `(?m)`."""
    waiting: Any = _LazyPattern(text)
    return waiting  # type: ignore[no-any-return]
