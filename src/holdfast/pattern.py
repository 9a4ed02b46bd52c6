"""Regular expressions that are compiled when first used: compiling all of ours takes longer than a cold recall may."""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_METHODS = ("match", "fullmatch", "search", "sub", "split", "findall", "finditer")


class _Waiting:
    def __init__(self, text: str, flags: int) -> None:
        self._made_of = text, flags

    def __getattr__(self, name: str) -> Any:
        if name not in _METHODS:
            raise AttributeError(name)
        compiled = re.compile(*self._made_of)
        for method in _METHODS:
            self.__dict__[method] = getattr(compiled, method)
        return self.__dict__[name]


def pattern(text: str, flags: int = 0) -> re.Pattern[str]:
    """Stands for `re.compile(text, flags)`."""
    waiting: Any = _Waiting(text, flags)
    return waiting  # type: ignore[no-any-return]
