"""Durable memory for AI agents: plain markdown that people own, found in milliseconds.

The public names are imported when first used, so that a cold command loads only what it needs.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.api.aio import AsyncMemory
    from holdfast.api.memory import Memory
    from holdfast.errors import (
        Busy,
        ConfigError,
        Conflict,
        Contended,
        Damaged,
        Denied,
        Disabled,
        DiskTrouble,
        HoldfastError,
        InvalidKey,
        InvalidPath,
        InvalidText,
        NoScope,
        NotFound,
        Purged,
        QuotaExceeded,
        Refused,
        SecretFound,
        TooLarge,
        TooMany,
        Trouble,
        Unauthenticated,
        Unreached,
        Unrecorded,
        Unsure,
        UsageError,
    )
    from holdfast.models import Answer, Fact, Hit, Logged, Note, Receipt, Scope, Source, Stored, Turn, Version

__version__ = "0.1.0"

_MODULES = {
    "api.aio": ("AsyncMemory",),
    "api.memory": ("Memory",),
    "models": ("Answer", "Fact", "Hit", "Logged", "Note", "Receipt", "Scope", "Source", "Stored", "Turn", "Version"),
    "errors": (
        "Busy", "ConfigError", "Conflict", "Contended", "Damaged", "Denied", "Disabled", "DiskTrouble", "HoldfastError",
        "InvalidKey", "InvalidPath", "InvalidText", "NoScope", "NotFound", "Purged", "QuotaExceeded", "Refused", "SecretFound",
        "TooLarge", "TooMany", "Trouble", "Unauthenticated", "Unreached", "Unrecorded", "Unsure", "UsageError",
    ),
}  # fmt: skip
_WHERE = {name: module for module, names in _MODULES.items() for name in names}
__all__ = [
    "Answer", "AsyncMemory", "Busy", "ConfigError", "Conflict", "Contended", "Damaged", "Denied", "Disabled",
    "DiskTrouble", "Fact", "Hit", "HoldfastError", "InvalidKey", "InvalidPath", "InvalidText", "Logged", "Memory",
    "NoScope", "NotFound", "Note", "Purged", "QuotaExceeded", "Receipt", "Refused", "Scope", "SecretFound", "Source",
    "Stored", "TooLarge", "TooMany", "Trouble", "Turn", "Unauthenticated", "Unreached", "Unrecorded", "Unsure",
    "UsageError", "Version", "__version__",
]  # fmt: skip


def __getattr__(name: str) -> object:
    if name not in _WHERE:
        raise AttributeError(f"module 'holdfast' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"holdfast.{_WHERE[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
