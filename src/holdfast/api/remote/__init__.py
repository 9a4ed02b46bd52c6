"""RemoteMemory: the verbs of `MemoryInterface`, over HTTP. `Memory("https://...", token=...)` returns one."""

from __future__ import annotations

from holdfast.api.remote.memory import RemoteMemory

__all__ = ["RemoteMemory"]
