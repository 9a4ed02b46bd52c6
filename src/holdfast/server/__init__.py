"""The HTTP server: `holdfast serve`."""

from __future__ import annotations

from holdfast.errors import ConfigError

try:
    import msgspec  # noqa: F401  # Starlette and uvicorn are installed with the MCP SDK
except ImportError:
    raise ConfigError("the HTTP server's packages are not installed", "pip install 'holdfast[server]'") from None
