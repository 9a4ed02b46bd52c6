"""What the words behind a benchmark's name ask for."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from holdfast.errors import UsageError

Known = dict[str, Callable[[str], Any]]


def given(argv: list[str], name: str, usage: str, known: Known) -> dict[str, Any] | int:
    """What was given, by the name of its option; `bool` is one without a value. The exit code where the usage was told."""
    words, found = list(argv), dict[str, Any]()
    fix = f"`holdfast bench {name} --help` says what there is"
    while words:
        word = words.pop(0)
        if word in ("-h", "--help"):
            print(usage)
            return 0
        kind = known.get(word)
        if kind is None:
            raise UsageError(f"unknown argument {word!r}", fix)
        if kind is not bool and not words:
            raise UsageError(f"{word} needs a value", fix)
        found[word[2:]] = True if kind is bool else _read(kind, word, words.pop(0), fix)
    return found


def _read(kind: Callable[[str], Any], option: str, value: str, fix: str) -> Any:
    try:
        return kind(value)
    except ValueError:
        raise UsageError(f"{option} cannot be {value!r}", fix) from None


def numbers(text: str) -> tuple[int, ...]:
    """Whole numbers with commas between."""
    return tuple([int(one) for one in text.split(",") if one])


def teller(quiet: bool) -> Callable[[str], None]:
    """Says how far it is, unless nobody is to hear it."""
    return (lambda _: None) if quiet else (lambda text: print(f"  … {text}", file=sys.stderr, flush=True))
