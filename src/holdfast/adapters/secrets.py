"""Secrets in the values that an adapter stores as JSON.

In the text of JSON, quotes are escaped: a search for secrets would miss some there, and masking one could cut off an escape.
"""

from __future__ import annotations

from typing import Any

from holdfast import SecretFound
from holdfast.safety.validate import redact, reject_secrets


def check_strings(value: Any, mask: bool) -> Any:
    """Return JSON data with the names of rules in place of secrets, or raise SecretFound if they are not to be masked."""
    if isinstance(value, str):
        if mask:
            return redact(value)[0]
        reject_secrets(value, "a value")
        return value
    if isinstance(value, list | tuple):
        return [check_strings(one, mask) for one in value]
    if isinstance(value, dict):
        return {check_strings(name, mask): check_strings(one, mask) for name, one in value.items()}
    return value


def cannot_mask() -> SecretFound:
    """Return the error for a text that would no longer be readable with its secrets masked."""
    return SecretFound("a secret cannot be masked where it is, in a name or beside a quote", "Remove the secret")
