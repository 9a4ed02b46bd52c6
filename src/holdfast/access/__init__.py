"""Access control: agents, tokens, roles, and one audited decision per request.

Default deny: only what a role names is allowed. A role file that cannot be read allows nothing until it is fixed.
"""

from __future__ import annotations

from holdfast.access.gate import AccessGate
from holdfast.access.grants import NamedResources
from holdfast.access.policy import ACTIONS, Caller, Role

__all__ = ["ACTIONS", "AccessGate", "Caller", "NamedResources", "Role"]
