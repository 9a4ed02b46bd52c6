"""Base classes and field types of the request and response models.

Each route module defines its own models from these. msgspec checks requests against them, and the OpenAPI document is
generated from them, so a limit or a description is written in one place.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, TypeVar

import msgspec
from msgspec import UNSET, Meta, UnsetType

from holdfast.base.invisible import UNPRINTABLE
from holdfast.base.record import Record
from holdfast.models import AGENT_ORIGINS, SCOPES, TYPES

# Patterns of texts, in the syntax that JSON Schema and Python share. The verbs check the same rules and explain a mistake.
_CONTROL = r"\u0000-\u001f\u007f-\u009f\u2028\u2029"
_NOT_IN_PATHS = (  # hidden characters, and what looks like a slash, backslash, dot, colon, percent sign, tilde or space
    rf"{_CONTROL}\\\u00a0\u00a8\u00ad\u00af\u00b4\u00b8\u02d8-\u02dd\u034f\u037a\u0384\u0385\u061c\u115f\u1160\u17b4\u17b5"
    r"\u180b-\u180f\u1fbd-\u1fc1\u1fcd-\u1fcf\u1fdd-\u1fdf\u1fed\u1fee\u1ffd\u1ffe\u2000-\u200f\u2017\u2024-\u202f\u203e\u2044"
    r"\u205f-\u206f\u2100\u2101\u2105\u2106\u2215\u2216\u2488-\u249b\u2571\u29f5\u29f8\u29f9\u2a74\u3000\u3002\u309b\u309c\u3164"
    r"\u33c2\u33c7\u33d8\ufc5e-\ufc63\ufdfa\ufdfb\ufe13\ufe19\ufe30\ufe49-\ufe4c\ufe52\ufe55\ufe68-\ufe7e\ufeff\uff05\uff0e\uff0f"
    "\uff1a\uff3c\uff5e\uff61\uffa0\uffe3\ufff9-\ufffb\U0001f100\U000e0000-\U000e0fff"
)
# A name has at most 255 bytes, which a pattern can only say for characters of one byte.
_PATH_PART = rf"[^/.~ {_NOT_IN_PATHS}](?:[^/{_NOT_IN_PATHS}]{{0,253}}[^/. {_NOT_IN_PATHS}])?"
LINE_PATTERN = rf"^[^{_CONTROL}]*[^\s{_CONTROL}][^{_CONTROL}]*$"  # one line that is not blank
LABEL_PATTERN = rf"^(?!\s*(?:\*\*)?\s*~~)[^:{_CONTROL}]*[^\s:*{_CONTROL}][^:{_CONTROL}]*$"
PRINTABLE_PATTERN = f"^[^{UNPRINTABLE}]*[^ {UNPRINTABLE}][^{UNPRINTABLE}]*$"
TEXT_PATTERN = r"^[^\u0000]*[^\s\u0000][^\u0000]*$"  # not blank
SOURCE_PATTERN = (
    rf"^(?:[a-z0-9][a-z0-9-]{{0,59}}|[A-Za-z]+:[^ {UNPRINTABLE}][^{UNPRINTABLE}]*|[^{UNPRINTABLE}]*[/.][^{UNPRINTABLE}]*)$"
)
_NO_ESCAPE = r"(?!.*%(?:[0-9a-fA-F]{2}|[uU][0-9a-fA-F]{4}))"
FILE_PATTERN = rf"^(?!.:){_NO_ESCAPE}(?:/memories/)?{_PATH_PART}(?:/{_PATH_PART})*/?$"
PATH_PATTERN = rf"{FILE_PATTERN}|^/memories/?$"
ORDERED_ENUM = "x-ordered-enum"  # msgspec sorts the values of a Literal; the document keeps the order in which we name them


def choices(description: str, options: tuple[str, ...]) -> Meta:
    """Return the metadata of a `Literal` field; `options` are its values, in the order that documents show."""
    return Meta(description=description, extra_json_schema={"type": "string", ORDERED_ENUM: list(options)})


MOMENT_PATTERN = "^[0-9]{4}-[0-9]{2}-[0-9]{2}"
MOMENT = [{"type": "string", "format": "date"}, {"type": "string", "format": "date-time"}]


def moment(description: str) -> Meta:
    """Return the metadata of a field with a day or a moment; the verbs check more than its beginning."""
    return Meta(description=description, pattern=MOMENT_PATTERN, extra_json_schema={"anyOf": MOMENT})


class RequestModel(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """The fields of a request, wherever they are: in the path, the query or the JSON body."""

    schema_rules: ClassVar[dict[str, Any]] = {}  # what JSON Schema says about several fields together; the verbs check it

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
    str,
    Meta(description="Use this agent's `agent` scope instead of your own. Also needs `agents.manage`.", pattern=NAME_PATTERN),
]


class ScopedRequest(RequestModel, kw_only=True):
    """A request about the memory of one project and session; headers may name these instead."""

    project: Annotated[
        str, Meta(description="The project. You can send the header X-Holdfast-Project instead.", pattern=NAME_PATTERN)
    ] | UnsetType = UNSET  # fmt: skip
    session: Annotated[
        str, Meta(description="The session. You can send the header X-Holdfast-Session instead.", pattern=NAME_PATTERN)
    ] | UnsetType = UNSET  # fmt: skip


class OtherAgentRequest(ScopedRequest, kw_only=True):
    """A request that may be about another agent's memory."""

    agent: OtherAgent | UnsetType = UNSET


TARGET_FIELDS = OtherAgentRequest.__struct_fields__

# --- field types ----------------------------------------------------------------------------------------------------------

ScopeName = Literal["session", "project", "agent", "global"]
OriginName = Literal["agent", "tool", "import", "web"]
TypeName = Literal["user", "feedback", "project", "reference"]

WriteScope = Annotated[ScopeName, choices("The scope. Default: `project`.", SCOPES)]
ReadScope = Annotated[ScopeName, choices("Only this scope. Default: every scope you may read.", SCOPES)]
Everywhere = Annotated[
    bool, Meta(description="Include every agent, project and session. Operator only; also needs `agents.manage`.")
]
NoteScope = Annotated[ScopeName, choices("The scope.", SCOPES)]
FilterType = Annotated[TypeName, choices("Only notes of this type.", TYPES)]
AgentOrigin = Annotated[
    OriginName, choices("Where the text came from, if not from the agent's own work. It can only lower trust.", AGENT_ORIGINS)
]
KEY_PATTERN = "^[a-z0-9][a-z0-9-]{0,59}$"
Key = Annotated[str, Meta(description="The note's key: 1 to 60 characters of a-z, 0-9 and '-'.", pattern=KEY_PATTERN)]
Tags = Annotated[
    list[Annotated[str, Meta(pattern=f"^[^{_CONTROL}]*$")]],
    Meta(description="Tags, at most 64.", max_length=64),
]
_PATH = {"description": "A path below /memories, the root of the scope's files.", "min_length": 1, "max_length": 1024}
TreePath = Annotated[str, Meta(**_PATH, extra_json_schema={"pattern": PATH_PATTERN})]
FilePath = Annotated[str, Meta(**_PATH, extra_json_schema={"pattern": FILE_PATTERN})]  # not the root
CLIENT_PATTERN = "^[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}$"
AsOf = Annotated[str, moment("Return what was true at this time: YYYY-MM-DD or a timestamp.")]
KnownAt = Annotated[str, moment("Ignore everything recorded after this time: YYYY-MM-DD or a timestamp.")]
MadeFrom = Annotated[
    list[Annotated[str, Meta(min_length=1, max_length=2000, extra_json_schema={"pattern": SOURCE_PATTERN})]],
    Meta(
        description="The sources: URLs, paths, note:KEY or turn:CITATION. Limits the trust of the text.",
        max_length=64,
    ),
]
Timestamp = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]
Expected = Annotated[str, Meta(description="The `version` you read. If the note has changed since, nothing is written.")]
Redact = Annotated[bool, Meta(description="Replace each secret with the name of its rule instead of rejecting the text.")]

# --- pages of long lists --------------------------------------------------------------------------------------------------

PageLimit = Annotated[int, Meta(description="Rows per page. Default: 50.", ge=1, le=500)]
PageCursor = Annotated[str, Meta(description="The `next` of the previous page.", min_length=1)]
NextCursor = Annotated[
    str | None, Meta(description="Pass it as `cursor` to get the next page; null on the last page.")
]  # fmt: skip
PAGE_LIMIT = 50
