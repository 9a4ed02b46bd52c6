"""The token for GitHub that a review is posted with: the agent's, else the tenant's, else the setting `github.token`, which
the gateway has for its own tenant only.

`github/TENANT/token` and `github/TENANT/agents/AGENT` in the home hold one line each, and only their owner may read them. In
a home without PostgreSQL the tenant is `default`. No message repeats a token.
"""

from __future__ import annotations

import os

from holdfast.base.ids import is_name
from holdfast.errors import ConfigError, Damaged, from_os
from holdfast.ledger.secret_file import read_secret

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.config import Config

FOLDER = "github"
_MAX_CHARS = 500


def find(config: Config, agent: str) -> str | None:
    """Return the token for this agent; None if there is none. A file that is not valid is an error, never skipped."""
    tenant = config.tenant if config.store else "default"
    folder = os.path.join(config.home, FOLDER, tenant)
    if not (is_name(tenant) and is_name(agent)):  # neither may name another folder
        return config.github_token
    for path in (os.path.join(folder, "agents", agent), os.path.join(folder, "token")):
        if os.path.lexists(path):
            return _read(path)
    return config.github_token


def _read(path: str) -> str:
    fix = f"Allow only the server's user to read it: chmod 600 {path}"
    try:
        line = read_secret(path, _MAX_CHARS + 1, fix)
    except Damaged as error:
        raise ConfigError(error.text, error.hint) from None
    except OSError as error:
        raise from_os(error, f"cannot read {path}") from error
    if not 1 <= len(line) <= _MAX_CHARS or not line.isascii() or not line.decode().isprintable() or b" " in line:
        raise ConfigError(f"{path} does not hold a token", "Write the token as its only line")
    return line.decode()
