"""Base classes and field types of the request and response models.

Each route module defines its own models from these. msgspec checks requests against them, and the OpenAPI document is
generated from them, so a limit or a description is written in one place.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import UNSET, Meta, UnsetType

from holdfast.base.record import Record
from holdfast.models import AGENT_ORIGINS, SCOPES, TYPES

ORDERED_ENUM = "x-ordered-enum"  # msgspec sorts the values of a Literal; the document keeps the order in which we name them


def choices(description: str, options: tuple[str, ...]) -> Meta:
    """Return the metadata of a `Literal` field; `options` are its values, in the order that documents show."""
    return Meta(description=description, extra_json_schema={"type": "string", ORDERED_ENUM: list(options)})


class RequestModel(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The fields of a request, wherever they are: in the path, the query or the JSON body."""

    def given(self, *names: str) -> dict[str, Any]:
        """Return those of the named fields that the request has, so that a verb's own defaults apply to the others."""
        return {name: value for name in names if (value := getattr(self, name)) is not UNSET}


T = TypeVar("T")


def or_none(value: T | UnsetType) -> T | None:
    """Return None for a field that the request does not have."""
    return None if value is UNSET else value


class ResponseModel(msgspec.Struct, kw_only=True):
    """The members of a JSON answer."""

    def as_dict(self) -> dict[str, Any]:
        """Return plain data, as `Record.as_dict` does."""
        return {name: _plain(getattr(self, name)) for name in self.__struct_fields__}


def _plain(value: Any) -> Any:
    if isinstance(value, Record | ResponseModel):
        return value.as_dict()
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value


# --- the memory that a request is about -----------------------------------------------------------------------------------

NAME_PATTERN = "^[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}$"
AgentName = Annotated[str, Meta(description="The agent's name.", pattern=NAME_PATTERN)]
OtherAgent = Annotated[
    str, Meta(description="Whose scope `agent` is meant, if not yours; takes `agents.manage` too.", pattern=NAME_PATTERN)
]


class ScopedRequest(RequestModel, kw_only=True):
    """A request about the memory of one project and session; headers may name these instead."""

    project: Annotated[
        str, Meta(description="The project that is meant; or send X-Holdfast-Project.", pattern=NAME_PATTERN)
    ] | UnsetType = UNSET  # fmt: skip
    session: Annotated[
        str, Meta(description="The session that is meant; or send X-Holdfast-Session.", pattern=NAME_PATTERN)
    ] | UnsetType = UNSET  # fmt: skip


class OtherAgentRequest(ScopedRequest, kw_only=True):
    """A request that may be about another agent's memory."""

    agent: OtherAgent | UnsetType = UNSET


TARGET_FIELDS = OtherAgentRequest.__struct_fields__

# --- field types ----------------------------------------------------------------------------------------------------------

ScopeName = Literal["session", "project", "agent", "global"]
OriginName = Literal["agent", "tool", "import", "web"]
TypeName = Literal["user", "feedback", "project", "reference"]

WriteScope = Annotated[ScopeName, choices("Where it belongs; otherwise to the project.", SCOPES)]
ReadScope = Annotated[ScopeName, choices("Only there; otherwise everything you may see.", SCOPES)]
NoteScope = Annotated[ScopeName, choices("Where it belongs.", SCOPES)]
FilterType = Annotated[TypeName, choices("Only of this type.", TYPES)]
AgentOrigin = Annotated[OriginName, choices("Where the agent has it from, if not from its own work.", AGENT_ORIGINS)]
Key = Annotated[str, Meta(description="The note's name: a-z, 0-9 and '-', up to 60.", pattern="^[a-z0-9][a-z0-9-]{0,59}$")]
Tags = Annotated[list[str], Meta(description="A few words to find it by.", max_length=100)]
DAY_PATTERN = "^[0-9]{4}-[0-9]{2}-[0-9]{2}"
AsOf = Annotated[str, Meta(description="What was true on this day (YYYY-MM-DD, or a moment).", pattern=DAY_PATTERN)]
KnownAt = Annotated[str, Meta(description="What was recorded by this day.", pattern=DAY_PATTERN)]
MadeFrom = Annotated[
    list[Annotated[str, Meta(min_length=1, max_length=2000)]],
    Meta(
        description="What it came from: addresses, paths, note:KEY, turn:CITATION. It is trusted no more than that.",
        max_length=64,
    ),
]
Timestamp = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]
Expected = Annotated[str, Meta(description="The `version` you read; if the note has changed since, nothing is written.")]
Redact = Annotated[bool, Meta(description="Keep the names of rules in place of secrets, instead of refusing them.")]

# --- pages of long lists --------------------------------------------------------------------------------------------------

PageLimit = Annotated[int, Meta(description="So many; otherwise 50.", ge=1, le=500)]
PageCursor = Annotated[str, Meta(description="Where the page before ended.", min_length=1)]
NextCursor = Annotated[
    str | None, Meta(description="Give it back as `cursor` for the next page; null at the end.")
]  # fmt: skip
PAGE_LIMIT = 50
