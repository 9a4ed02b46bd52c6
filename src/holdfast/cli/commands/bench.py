"""`bench`: run the benchmarks of holdfast_bench."""

from __future__ import annotations

from holdfast.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    from holdfast.cli.runner import Invocation

    T = TypeVar("T")


def speed(call: Invocation) -> int:
    """`holdfast bench speed`."""
    from pathlib import Path

    from holdfast_bench import speed

    default = speed.QUICK if call["quick"] else speed.USUAL
    sizes, passages = _parse(call, "sizes", _parse_integers), _parse(call, "passages", _parse_integers_or_none)
    seed = 1 if call["seed"] is None else call["seed"]
    plot = Path(call["plot"]) if call["plot"] else None
    return speed.run(sizes or default, default if passages is None else passages, seed, call.output.json, plot)


def retrieval(call: Invocation) -> int:
    """`holdfast bench retrieval`."""
    from pathlib import Path

    from holdfast_bench import retrieval

    plot: str | None = call["plot"]
    return retrieval.run(retrieval.Options(
        files=tuple(map(Path, call["file"])), mode=_parse_choice(call, "mode") or "hybrid",
        half=_parse_choice(call, "half"), cases=_parse(call, "limit_cases", _parse_integer), json=call.output.json,
        plot=Path(plot) if plot else None,
    ))  # fmt: skip


def context(call: Invocation) -> int:
    """`holdfast bench context`."""
    from pathlib import Path

    from holdfast_bench import context

    situation = _parse_choice(call, "situation") or "both"
    situations = context.SITUATIONS if situation == "both" else (situation,)
    return context.run(context.Options(tuple(map(Path, call["file"])), situations, bool(call["large"]), call.output.json))


def load(call: Invocation) -> int:
    """`holdfast bench load`."""
    from holdfast_bench import load

    options: dict[str, Any] = {
        "agents": _parse(call, "agents", _parse_integers), "notes": _parse(call, "notes", _parse_integers),
        "workers": _parse(call, "workers", _parse_integers), "seconds": _parse(call, "seconds", _parse_seconds),
        "store": call["store"],
    }  # fmt: skip
    return load.run(load.Options(json=call.output.json, **{name: value for name, value in options.items() if value}))


def console(call: Invocation) -> int:
    """`holdfast bench console`."""
    from holdfast_bench import console

    return console.run(_parse(call, "notes", _parse_integers) or (10_000,), call.output.json)


def _parse(call: Invocation, name: str, parse: Callable[[str], T]) -> T | None:
    """Parse the value of an option, or return None if it was not given; raise UsageError if `parse` raises ValueError."""
    if call[name] is None:
        return None
    try:
        return parse(str(call[name]))
    except ValueError:
        option = call.arguments.options[f"--{name.replace('_', '-')}"]
        raise _invalid_value(call, name, f"{option.name} {option.value}: {option.help}") from None


def _parse_integers(text: str) -> tuple[int, ...]:
    """Parse positive integers with commas between them; return them sorted."""
    numbers = {_parse_integer(part) for part in text.split(",") if part}
    if not numbers:
        raise ValueError
    return tuple(sorted(numbers))


def _parse_integers_or_none(text: str) -> tuple[int, ...]:
    """Parse integers like `_parse_integers`; a comma alone means no numbers."""
    return () if text == "," else _parse_integers(text)


def _parse_integer(text: str) -> int:
    if int(text) < 1:
        raise ValueError
    return int(text)


def _parse_seconds(text: str) -> float:
    if not float(text) > 0:
        raise ValueError
    return float(text)


def _parse_choice(call: Invocation, name: str) -> str | None:
    from holdfast.cli.commands.help import list_choices

    choices = list_choices(call.arguments.options[f"--{name}"])
    if call[name] not in (None, *choices):
        raise _invalid_value(call, name, f"Use one of: {', '.join(choices)}")
    choice: str | None = call[name]
    return choice


def _invalid_value(call: Invocation, name: str, fix: str) -> UsageError:
    return UsageError(f"--{name.replace('_', '-')} cannot be {call[name]!r}", fix)
