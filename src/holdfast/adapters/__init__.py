"""Adapters: Holdfast as the memory of an agent framework, one module and one extra for each framework.

An adapter is imported by its own name (`from holdfast.adapters.langgraph import HoldfastStore`). It stores and reads only
through the public interface of `holdfast`; from inside the package it uses helpers of `safety`, to find secrets and to escape
text for a model, and the dates of `base`. An adapter that imports its framework calls `require` first, so that a missing or
unsupported framework is named before anything else.
"""

from __future__ import annotations

from importlib import metadata

from holdfast.errors import ConfigError

FRAMEWORKS = {  # by extra: the package, the first supported version, and the first one that is not; pyproject.toml has the same
    "langgraph": ("langgraph", "1.0", "2"),
    "langchain": ("langchain", "1.1", "2"),
    "openai-agents": ("openai-agents", "0.20", "1"),
    "anthropic": ("anthropic", "2.0", "3"),
    "pydantic-ai": ("pydantic-ai-slim", "2.0", "3"),
    "google-adk": ("google-adk", "2.0", "3"),
    "llama-index": ("llama-index-core", "0.14", "0.15"),
}


class FrameworkError(ConfigError, ImportError):
    """The framework of an adapter is not installed, or its version is not supported. It is also an `ImportError`."""


def require(extra: str) -> None:
    """Raise FrameworkError unless the framework of this extra is installed in a supported version."""
    package, first, end = FRAMEWORKS[extra]
    fix = f"pip install 'holdfast[{extra}]'"
    try:
        installed = metadata.version(package)
    except metadata.PackageNotFoundError:
        raise FrameworkError(f"{requirement(extra)} is needed and not installed", fix) from None
    if not _numbers(first) <= _numbers(installed) < _numbers(end):
        raise FrameworkError(f"{requirement(extra)} is needed, {installed} is installed", fix)


def requirement(extra: str) -> str:
    """Return the requirement of an extra as pip reads it."""
    package, first, end = FRAMEWORKS[extra]
    return f"{package}>={first},<{end}"


def _numbers(version: str) -> tuple[int, ...]:
    """Return the numbers of a version, up to the first part that is not only digits: 1.2.0rc1 is (1, 2)."""
    numbers = []
    for part in version.split("."):
        if not part.isdecimal():
            break
        numbers.append(int(part))
    while numbers and numbers[-1] == 0:
        numbers.pop()  # 2.0 is 2
    return tuple(numbers)
