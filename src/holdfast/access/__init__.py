"""Access control: agents, tokens, roles, and one audited decision per request.

Nothing is allowed that a role does not name. A role that cannot be read means nothing until it is mended.
"""

from __future__ import annotations

from holdfast.access.gate import AccessGate
from holdfast.access.policy import ACTIONS, Caller, Role

__all__ = ["ACTIONS", "AccessGate", "Caller", "Role"]
