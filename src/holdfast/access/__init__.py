"""Who may do what: agents and their tokens, roles, and one decision for every request, written into the audit.

Nothing is allowed that a role does not name. A role that cannot be read means nothing until it is mended.
"""

from __future__ import annotations

from holdfast.access.gate import AccessGate
from holdfast.access.policy import ACTIONS, Caller, Role

__all__ = ["ACTIONS", "AccessGate", "Caller", "Role"]
