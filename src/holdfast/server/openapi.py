"""The OpenAPI 3.1 document, generated from the routes and their models."""

from __future__ import annotations

import typing
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from holdfast import __version__, models
from holdfast.base.record import Record, computed_names, field_names
from holdfast.safety.validate import ALIASES
from holdfast.server import problem, responses
from holdfast.server.idempotency import MAX_KEY_CHARS
from holdfast.server.models import NAME_PATTERN, ORDERED_ENUM, ScopedRequest
from holdfast.server.route import JSON
from holdfast.server.validation import request_fields

if TYPE_CHECKING:
    from holdfast.server.route import Route

Schema = dict[str, Any]
_COMPONENTS = "#/components/schemas/"
_SUCCESS = {200: "Success.", 201: "Created.", 503: "The server is not ready."}
_PUBLIC_NAMES = {"TrashedNote": "Binned"}  # records whose class has another name than the document has had since 0.1
_DESCRIPTIONS = {  # of records, by their public names; not their docstrings, which are for readers of the code
    "Answer": "The hits, the search mode that was used, and whether that is less than was requested (`degraded`).",
    "Binned": "A note in the trash or in the archive, and since when.",
    "Boot": "The start-up text, the scope of its files, and what was left out. Without such files the text is empty.",
    "Brief": (
        "The briefing, the notes it contains in full, the notes it lists by title, and the number of notes left out; with"
        " `explain`, the reasons."
    ),
    "Decision": "A decision of a reviewer.",
    "Edge": "A link between two entities, valid as long as its fact.",
    "Entity": "The subject of facts: its name, its other names, and its distance from the start in links.",
    "Entry": "One row of the audit log.",
    "Fact": "A dated statement: subject, label, value, validity, and the fact that replaced it.",
    "FactSet": "The recorded fact, and the facts it closed.",
    "Forgotten": "Whether something was forgotten, and until when it can be restored.",
    "Graph": "The entities around one entity, nearest first, and the links followed. Empty if no fact names the entity.",
    "Hit": "A passage that answers the query, with its location and its source.",
    "Logged": "The result of storing a session: numbers of new, already stored and unreadable turns.",
    "Made": "A note derived from another: whether its current version still is, and what was derived from it.",
    "Message": "A message between the operator and an agent. `read`: the recipient has read or answered it.",
    "Note": "The current version of a note. Pass its `version` as `expected` to change exactly this version.",
    "Part": "One file of the text: its number of lines, and how many were left out.",
    "Piece": "Lines of a file. For a missing file the text is empty and `exists` is false.",
    "Receipt": "What a purge deleted, how the deletion was verified, and what it could not reach.",
    "Reindexed": "The result of rebuilding the index.",
    "Reviewed": "The result of a review; `posted` is false if it had been posted before.",
    "Role": "The actions and scopes of a role. An empty list allows nothing.",
    "Saying": "One version: when it was recorded, its source, its trust, and what it was derived from.",
    "Scaffolded": "The files and folders that a scaffold created, and those that already existed. Folders end in /.",
    "Scope": "Where a note belongs: to a session, a project, an agent, or everywhere (`global`).",
    "Snippet": "The location of a match, and the beginning of its text.",
    "Source": "The origin of a text: agent, client, session, and the texts it was derived from.",
    "Step": "One source of a version. For a note: its key, and its own sources.",
    "Stored": "The result of a store: created, updated or unchanged; and the rules of redacted secrets.",
    "Swept": "The notes, files and turns from a source, and what was done with each.",
    "Told": "The first time that a session was shown a version.",
    "Touched": "A note with text from a source, and the time of its last version without such text.",
    "Trace": "The sources of a note, where it was shown, and what was derived from it.",
    "Turn": "One message of a session, word for word. `number` counts the lines of its file after the header.",
    "Verdict": "The result of verifying the audit log. Keep `head` elsewhere to detect any later change of rows before it.",
    "Version": (
        "One version of a note: when it was true, and when it was recorded. `valid_to` is the end that its writer gave;"
        " `closed` is when a later version replaced it."
    ),
    "Why": "Why a briefing includes a note, or leaves it out.",
}
_TIMESTAMPS = {  # the fields of records that hold a moment in UTC, by their public names
    "Binned": ("time",),
    "Decision": ("time",),
    "Entry": ("time",),
    "Forgotten": ("restorable_until",),
    "Hit": ("updated",),
    "Note": ("created", "updated", "valid_from", "valid_to"),
    "Receipt": ("time",),
    "Reviewed": ("reviewed_at",),
    "Saying": ("recorded",),
    "Told": ("time",),
    "Version": ("recorded", "valid_from", "valid_to", "closed"),
}
_MISTAKE: Schema = {
    "type": "object",
    "description": "An error in a request.",
    "properties": {
        "pointer": {"type": "string", "description": "The field, as a JSON pointer."},
        "detail": {"type": "string", "description": "What is wrong with the field."},
        "code": {"type": "string", "description": "`unknown` if the route has no such field."},
    },
    "required": ["pointer", "detail"],
}  # fmt: skip
_PROBLEM: Schema = {
    "type": "object",
    "description": "An error (RFC 9457). `code` is stable; `fix` says what to do.",
    "properties": {
        "type": {"type": "string", "format": "uri-reference", "description": "`/problems/CODE`, which explains the code."},
        "title": {"type": "string", "description": "The meaning of the code."},
        "status": {"type": "integer", "minimum": 400, "maximum": 599},
        "detail": {"type": "string", "description": "What is wrong with this request."},
        "code": {"type": "string", "description": "Stable across versions."},
        "fix": {"type": "string", "description": "What to do; empty if nothing helps."},
        "request_id": {"type": "string", "description": "The same as in the header X-Request-Id and in the server's log."},
        "errors": {
            "type": "array", "items": {"$ref": f"{_COMPONENTS}Mistake"},
            "description": "For a request that does not match the schema: the errors, at most 8.",
        },
        "replayed": {
            "type": "boolean", "description": "True if the request was already executed and its answer cannot be repeated.",
        },
        "line": {"type": "integer", "description": "For an import: the number of the first invalid line."},
        "parts": {
            "type": "object", "additionalProperties": {},
            "description": "With `X-Holdfast-Hints: parts`: `detail` and `fix` as data.",
        },
    },
    "required": ["type", "title", "status", "detail", "code", "fix", "request_id"],
}  # fmt: skip
_NAME_OR_EMPTY = f"{NAME_PATTERN}|^$"
_REQUEST_HEADERS: dict[str, Schema] = {
    "If-Match": {
        "type": "string",
        "description": "The ETag of the version you read. If the note has changed since, the answer is 412.",
    },
    "If-None-Match": {
        "type": "string",
        "description": "Writing: `*` only creates a new note. Reading: an ETag answers 304 if the note has not changed.",
    },
    "Idempotency-Key": {
        "type": "string", "maxLength": MAX_KEY_CHARS, "pattern": r"^[\u0020-\u007e\u00a1-\u00ac\u00ae-\u00ff]*$",
        "description": "Any value that you choose. A repeated request with the same key is not executed again.",
    },
    "X-Holdfast-Project": {
        "type": "string", "pattern": _NAME_OR_EMPTY, "description": "The project, if no field names it.",
    },
    "X-Holdfast-Session": {
        "type": "string", "pattern": _NAME_OR_EMPTY, "description": "The session, if no field names it.",
    },
    "X-Holdfast-Hints": {
        "type": "string", "description": "`parts`: also return the detail and the fix of a problem as data.",
    },
    "X-Request-Id": {
        "type": "string",
        "description": "The id of this request in the log: 1 to 64 characters of A-Z a-z 0-9 . _ -. Other values are replaced.",
    },
}  # fmt: skip
_RESPONSE_HEADERS = {
    "ETag": {"description": "The version of the note, in quotes.", "schema": {"type": "string"}},
    "Idempotency-Replayed": {
        "description": "`true` if this is the answer to an earlier request with the same Idempotency-Key.",
        "schema": {"type": "string", "enum": ["true"]},
    },
    "Retry-After": {
        "description": "Seconds to wait before trying again.", "schema": {"type": "integer", "minimum": 1},
    },
    "WWW-Authenticate": {"description": "The authentication scheme.", "schema": {"type": "string"}},
    "X-Request-Id": {
        "description": "The id of the request in the log.",
        "schema": {"type": "string", "pattern": "^[A-Za-z0-9._-]{1,64}$"},
    },
}  # fmt: skip


def build_document(routes: Sequence[Route]) -> dict[str, Any]:
    """Return the document of these routes."""
    records: dict[str, Schema] = {}
    paths: dict[str, Any] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, records)
    statuses = sorted({status for route in routes for status in responses.problem_statuses(route)})
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Holdfast", "version": __version__, "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
            "description": "Durable memory for AI agents. Each request needs a token, and a role that allows its action.",
        },
        "servers": [{"url": "/"}],
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer", "bearerFormat": "hf_..."}},
            "schemas": {**records, "Mistake": _MISTAKE, "Problem": _PROBLEM},
            "responses": {f"Problem{status}": _problem_response(status, routes) for status in statuses},
            "headers": _RESPONSE_HEADERS,
        },
    }  # fmt: skip


def schema_of(model: Any, records: dict[str, Schema] | None = None) -> Schema:
    """Return the JSON Schema of a type: nested models are inlined; records go into `records`, with references to them."""
    found: dict[str, Schema] = {} if records is None else records
    (schema,), nested = msgspec.json.schema_components(
        [model], schema_hook=lambda kind: _reference(kind, found), ref_template="{name}"
    )
    tidied: Schema = _tidy(schema, nested)
    return tidied


def _reference(kind: Any, records: dict[str, Schema]) -> Schema:
    """Return a reference to a record, whose schema is added to `records`."""
    if not (isinstance(kind, type) and issubclass(kind, Record)):
        raise NotImplementedError
    name = _PUBLIC_NAMES.get(kind.__name__, kind.__name__)
    if name not in records:
        records[name] = {}  # a record may contain itself
        hints = typing.get_type_hints(kind, localns={**vars(models), "Any": Any, "ClassVar": typing.ClassVar})
        more = {extra: typing.get_type_hints(getattr(kind, extra).fget)["return"] for extra in computed_names(kind)}
        fields = {**{field: hints[field] for field in field_names(kind)}, **more}
        records[name] = {
            "type": "object",
            "description": _DESCRIPTIONS.get(name, ""),
            "properties": {
                field: _with_format(_record_field(hint, records), field in _TIMESTAMPS.get(name, ()))
                for field, hint in fields.items()
            },
            "required": list(field_names(kind)),
        }
    return {"$ref": f"{_COMPONENTS}{name}"}


def _record_field(hint: Any, records: dict[str, Schema]) -> Schema:
    schema = schema_of(hint, records)
    return {**schema, "additionalProperties": {}} if schema == {"type": "object"} else schema


def _with_format(schema: Schema, is_timestamp: bool) -> Schema:
    return {**schema, "format": "date-time"} if is_timestamp else schema


def _tidy(schema: Any, nested: dict[str, Any]) -> Any:
    """Return msgspec's schema as the document has it: models inline, no titles or defaults, choices in our order."""
    if isinstance(schema, list):
        return [_tidy(item, nested) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if schema.get("$ref") in nested:
        model = {name: value for name, value in nested[schema["$ref"]].items() if name != "description"}
        return _tidy({**{name: value for name, value in schema.items() if name != "$ref"}, **model}, nested)
    if "prefixItems" in schema:  # a tuple of fixed length is described as a list
        return {"type": "array", "items": _tidy(schema["prefixItems"][0], nested)}
    found = {name: value for name, value in schema.items() if name not in ("title", "default", ORDERED_ENUM)}
    if found.get("required") == []:
        del found["required"]
    if ORDERED_ENUM in schema:
        found["enum"] = schema[ORDERED_ENUM]
    if "properties" in found:
        found["properties"] = {name: _tidy(value, nested) for name, value in found["properties"].items()}
    for name in ("items", "anyOf", "additionalProperties"):
        if name in found:
            found[name] = _tidy(found[name], nested)
    types = [one["type"] for one in found.get("anyOf", ()) if list(one) == ["type"]]
    if types and len(types) == len(found["anyOf"]):
        del found["anyOf"]
        found["type"] = types
    return found


def _operation(route: Route, records: dict[str, Schema]) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": _operation_id(route), "summary": route.summary[0].upper() + route.summary[1:],
        "tags": [route.group], "responses": _responses(route, records),
    }  # fmt: skip
    if route.action:
        operation["description"] = f"Needs the action `{route.action}`."
    else:
        operation["security"] = []
    if parameters := [*_parameters(route), *_header_parameters(route)]:
        operation["parameters"] = parameters
    if route.reads is not None:
        schema = body_schema(route)
        example = {} if route.example is None else {"example": route.example}
        media_types = dict.fromkeys([route.reads, JSON])  # a single line is JSON too
        content = {media_type: {"schema": schema, **example} for media_type in media_types}
        is_needed = bool(schema.get("required") or route.params.schema_rules or route.is_upload)
        operation["requestBody"] = {"required": is_needed, "content": content}
    return operation


def body_schema(route: Route) -> Schema:
    """Return the schema of a JSON body, or of one line of an NDJSON body."""
    if route.line is not None:
        return schema_of(route.line)
    schema = schema_of(route.params)
    required = [name for name in route.required_fields if name not in route.path_fields]
    schema["properties"] = {name: describe_alias(name, schema["properties"][name]) for name in route.body_fields}
    others = {**{name: value for name, value in schema.items() if name != "required"}, **route.params.schema_rules}
    return {**others, "required": required} if required else others


def describe_alias(name: str, schema: Schema) -> Schema:
    """Return the schema of a field with the alias of its name, if it has one."""
    alias = next((alias for alias, of in ALIASES.items() if of == name), "")
    return {**schema, "description": f"{schema.get('description', '')} Alias: `{alias}`.".strip()} if alias else schema


def _responses(route: Route, records: dict[str, Schema]) -> dict[str, Any]:
    example = {} if route.answer_example is None else {"example": route.answer_example}
    content = {route.media_type: {"schema": schema_of(route.answers, records), **example}}
    names = ["X-Request-Id"]
    names += ["ETag"] if responses.sends_etag(route) else []
    names += ["Idempotency-Replayed"] if route.replay else []
    found: dict[int, Any] = {}
    for status in responses.success_statuses(route):
        retry = ["Retry-After"] if status in responses.RETRY_STATUSES else []
        found[status] = {"description": _SUCCESS[status], "headers": _headers(*names, *retry), "content": content}
    if responses.takes_if_changed(route):
        description = "The note has not changed."
        found[responses.NOT_MODIFIED] = {"description": description, "headers": _headers("ETag", "X-Request-Id")}
    problems = {status: {"$ref": f"#/components/responses/Problem{status}"} for status in responses.problem_statuses(route)}
    return {str(status): one for status, one in sorted({**problems, **found}.items())}


def _problem_response(status: int, routes: Sequence[Route]) -> dict[str, Any]:
    """Return the answer of this status that all routes share; its description names the codes."""
    codes = sorted({code for route in routes for code in responses.problem_statuses(route).get(status, ())})
    kinds = problem.kinds()
    names = ["X-Request-Id"]
    names += ["Retry-After"] if status in responses.RETRY_STATUSES else []
    names += ["WWW-Authenticate"] if status == 401 else []
    return {
        "description": "\n".join([f"- `{code}`: {kinds[code][1]}." for code in codes]),
        "headers": _headers(*names),
        "content": {problem.MEDIA_TYPE: {"schema": {"$ref": f"{_COMPONENTS}Problem"}}},
    }


def _headers(*names: str) -> dict[str, Any]:
    return {name: {"$ref": f"#/components/headers/{name}"} for name in sorted(names)}


def _parameters(route: Route) -> list[dict[str, Any]]:
    fields = request_fields(route.params)
    in_path = [_parameter(name, "path", schema_of(fields[name].hint), True) for name in route.path_fields]
    in_query = [
        _parameter(name, "query", describe_alias(name, schema_of(fields[name].hint)), fields[name].required)
        for name in route.query_fields
    ]
    return in_path + in_query


def _header_parameters(route: Route) -> list[dict[str, Any]]:
    names = ["Idempotency-Key"] if route.replay else []
    names += ["If-Match"] if responses.takes_precondition(route) else []
    names += ["If-None-Match"] if route.has_etag else []
    names += ["X-Holdfast-Project", "X-Holdfast-Session"] if issubclass(route.params, ScopedRequest) else []
    names += ["X-Holdfast-Hints", "X-Request-Id"]
    return [_parameter(name, "header", _REQUEST_HEADERS[name], False) for name in names]


def _parameter(name: str, where: str, schema: Schema, required: bool) -> dict[str, Any]:
    own = {key: value for key, value in schema.items() if key != "description"}
    return {"name": name, "in": where, "required": required, "description": schema.get("description", ""), "schema": own}


def _operation_id(route: Route) -> str:
    """Return `get_notes_scope_key` for `GET /v1/notes/{scope}/{key}`."""
    parts = [part.strip("{}").replace(".", "_") for part in route.path.split("/") if part and part != "v1"]
    return "_".join([route.method.lower(), *parts])
