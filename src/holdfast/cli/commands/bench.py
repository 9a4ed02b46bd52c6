"""bench speed, bench retrieval, bench context, bench load."""

from __future__ import annotations

from holdfast.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    from holdfast.cli.runner import Invocation

    T = TypeVar("T")


def speed(call: Invocation) -> int:
    from holdfast_bench import speed

    usual = speed.QUICK if call["quick"] else speed.USUAL
    sizes, passages = _read(call, "sizes", _numbers) or usual, _read(call, "passages", _numbers_or_none)
    seed = 1 if call["seed"] is None else call["seed"]
    return speed.run(sizes, usual if passages is None else passages, seed, call.screen.json)


def retrieval(call: Invocation) -> int:
    from pathlib import Path

    from holdfast_bench import retrieval

    plot: str | None = call["plot"]
    return retrieval.run(retrieval.Options(
        tuple(map(Path, call["file"])), _chosen(call, "mode") or "hybrid", _chosen(call, "half"),
        _read(call, "limit_cases", _number), call.screen.json, Path(plot) if plot else None,
    ))  # fmt: skip


def context(call: Invocation) -> int:
    from pathlib import Path

    from holdfast_bench import context

    situation = _chosen(call, "situation") or "both"
    situations = context.SITUATIONS if situation == "both" else (situation,)
    return context.run(context.Options(tuple(map(Path, call["file"])), situations, bool(call["large"]), call.screen.json))


def load(call: Invocation) -> int:
    from holdfast_bench import load

    given: dict[str, Any] = {"notes": _read(call, "notes", _numbers), "workers": _read(call, "workers", _numbers)}
    given |= {"seconds": _read(call, "seconds", _seconds), "store": call["store"]}
    return load.run(load.Options(json=call.screen.json, **{name: value for name, value in given.items() if value}))


def _read(call: Invocation, name: str, read: Callable[[str], T]) -> T | None:
    """What was given for an option, if anything was."""
    if call[name] is None:
        return None
    try:
        return read(str(call[name]))
    except ValueError:
        named = call.words.options[f"--{name.replace('_', '-')}"]
        raise _wrong(call, name, f"{named.name} {named.value}: {named.help}") from None


def _numbers(text: str) -> tuple[int, ...]:
    """Whole numbers with commas between, smallest first."""
    numbers = {_number(one) for one in text.split(",") if one}
    if not numbers:
        raise ValueError
    return tuple(sorted(numbers))


def _numbers_or_none(text: str) -> tuple[int, ...]:
    """The same; a comma alone stands for none."""
    return () if text == "," else _numbers(text)


def _number(text: str) -> int:
    if int(text) < 1:
        raise ValueError
    return int(text)


def _seconds(text: str) -> float:
    if not float(text) > 0:
        raise ValueError
    return float(text)


def _chosen(call: Invocation, name: str) -> str | None:
    from holdfast.cli.commands.help import choices

    known = choices(call.words.options[f"--{name}"])
    if call[name] not in (None, *known):
        raise _wrong(call, name, f"One of: {', '.join(known)}")
    chosen: str | None = call[name]
    return chosen


def _wrong(call: Invocation, name: str, fix: str) -> UsageError:
    return UsageError(f"--{name.replace('_', '-')} cannot be {call[name]!r}", fix)
