"""The library's public classes: Memory, AsyncMemory and RemoteMemory, and the resident process."""
