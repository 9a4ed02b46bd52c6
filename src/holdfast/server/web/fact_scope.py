"""The scope that a page about facts reads: everywhere for a person, or one scope by kind and name."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from holdfast.models import SCOPES
from holdfast.server.web import address
from holdfast.server.web.page import Visit


class FactScope:
    """The fields `scope` and `of` of a form, and the fields of the API for them."""

    def __init__(self, visit: Visit) -> None:
        offered = (*SCOPES, "all") if visit.caller.is_person else SCOPES
        kind = visit.query.get("scope", "")
        self.kind = kind if kind in offered else "all" if visit.caller.is_person else ""
        self.of = visit.query.get("of", "").strip() if self.kind in ("project", "agent", "session") else ""
        self.fields: dict[str, Any] = {"scope": self.kind} if self.kind else {}
        if self.of:
            self.fields |= address.scope_fields({"kind": self.kind, "id": self.of}, visit.caller.agent)

    def link(self, path: str, **fields: Any) -> str:
        """Return the address of another page about facts that reads the same scope; empty fields are left out."""
        chosen = {"scope": "" if self.kind == "all" else self.kind, "of": self.of, **fields}
        query = urlencode({name: value for name, value in chosen.items() if value not in ("", None)})
        return f"{path}?{query}" if query else path
