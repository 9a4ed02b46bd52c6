"""Spans for OpenTelemetry, from any layer. Without a tracer, which only the gateway installs, a span does nothing.

A span has names, numbers and identifiers as attributes, never text of a memory, a query or a key.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from typing import Any, Protocol, TypeVar

    T = TypeVar("T")

    class Tracer(Protocol):
        """What a tracer offers; `holdfast.server.otel` implements it with OpenTelemetry."""

        def span(self, name: str, attributes: dict[str, Any], is_client: bool) -> AbstractContextManager[Any]: ...
        def bind(self, work: Callable[[], T]) -> Callable[[], T]: ...


class NoSpan:
    """A span that is not recorded."""

    def __enter__(self) -> NoSpan:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def set_attribute(self, name: str, value: object) -> None:
        pass


_NO_SPAN = NoSpan()
_tracer: Tracer | None = None


def install(tracer: Tracer | None) -> None:
    """Record spans with this tracer from now on, or none."""
    global _tracer
    _tracer = tracer


def span(name: str, is_client: bool = False, **attributes: Any) -> AbstractContextManager[Any]:
    """Return a span for a `with`; `is_client` means that another service is called. Dots in names are written as `__`."""
    if _tracer is None:
        return _NO_SPAN
    return _tracer.span(name, {key.replace("__", "."): value for key, value in attributes.items()}, is_client)


def bind(work: Callable[[], T]) -> Callable[[], T]:
    """Return `work` so that its spans, in another thread, belong to the span that is current now."""
    return work if _tracer is None else _tracer.bind(work)
