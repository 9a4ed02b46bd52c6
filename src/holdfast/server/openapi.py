"""The OpenAPI 3.1 document, generated from the routes and their models."""

from __future__ import annotations

import typing
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from holdfast import __version__, models
from holdfast.base.record import Record, computed_names, field_names
from holdfast.server import problem
from holdfast.server.models import ORDERED_ENUM
from holdfast.server.route import JSON
from holdfast.server.validation import request_fields

if TYPE_CHECKING:
    from holdfast.server.route import Route

Schema = dict[str, Any]
_COMPONENTS = "#/components/schemas/"
_PUBLIC_NAMES = {"TrashedNote": "Binned"}  # records whose class has another name than the document has had since 0.1
_DESCRIPTIONS = {  # of records, by their public names; not their docstrings, which are for readers of the code
    "Answer": "The hits, the mode that really ran, and whether that is less than was asked for.",
    "Binned": "A note in the trash or in the archive, and since when.",
    "Boot": "The block, whose files it was made from, and what is not in it. Without such files the text is empty.",
    "Brief": (
        "The block, the notes that are whole in it, those listed by title, and how many are not in it; asked to explain, why."
    ),
    "Decision": "What a person decided.",
    "Edge": "A link from one entity to another, for as long as its fact holds.",
    "Entity": "Something that facts speak of: its name, its other names, and how many links away from the start it is.",
    "Entry": "One decision.",
    "Fact": "A dated line: what was so, from when to when, and what ended it.",
    "FactSet": "What setting a fact did, and which facts it retired.",
    "Forgotten": "Whether there was anything to forget, and until when it can be restored.",
    "Graph": (
        "The entities around one, the nearest first, and the links that were followed. What no fact names has no entities."
    ),
    "Hit": "A passage that answers, with where it stands and why it may be believed.",
    "Logged": "What keeping a session did: how many turns are new, how many were there already, how many could not be read.",
    "Made": "A note that was made from another: whether it still says so, and what was made from it in turn.",
    "Note": "A memory as it stands. `version` names these very bytes: give it back as `expected` to edit safely.",
    "Part": "What one file has to say: how many lines, and how many of them were left out.",
    "Piece": "Some lines of a file; empty text where there is no file, and `exists` says so.",
    "Receipt": "What a purge removed, how that was checked, and what it could not reach.",
    "Reindexed": "What a rebuild found.",
    "Reviewed": "What came of it; `posted` is false if it had been before.",
    "Role": "What a role may do, and in whose memory. An empty list means nothing.",
    "Saying": (
        "One version: when it was recorded, whose words it is, how far they can be trusted, and what they were made from."
    ),
    "Scaffolded": "What a scaffold made, and what was there already and stays as it is; folders end in /.",
    "Scope": "Where a note applies and who reads it back.",
    "Snippet": "Where something was found, and a taste of it.",
    "Source": "Who said it, through what.",
    "Step": "One thing that a version was made from. Of a note it names the key, and what that one was made from.",
    "Stored": "What a store did: created, updated or unchanged; and the rules whose names stand where a secret was.",
    "Swept": "What came from a source, and what became of it.",
    "Told": "A telling: which version, to which session of which client, and when first.",
    "Touched": "A note that a source touched, by what, and since when an older text stands that it did not touch.",
    "Trace": "All that is known about where a note came from and where it went.",
    "Turn": "One thing that was said in a session, word for word. `number` counts the lines of its file after the header.",
    "Verdict": "What was found. `head` is what to keep elsewhere: no later change before it can go unnoticed then.",
    "Version": (
        "One text a note has had, on both clocks: when it was true, and when it was recorded.\n `valid_to` is the "
        "end its writer gave it; `closed` is the end that a later version put to it. "
    ),
    "Why": "Why a note is in a briefing, or is not.",
}
_PROBLEM: Schema = {
    "type": "object",
    "description": "What went wrong (RFC 9457): `code` stays the same, `fix` says what to do.",
    "properties": {
        "type": {"type": "string"}, "title": {"type": "string"}, "status": {"type": "integer"}, "detail": {"type": "string"},
        "code": {"type": "string"}, "fix": {"type": "string"}, "request_id": {"type": "string"},
        "errors": {"type": "array", "items": {"type": "object"}},
        "line": {"type": "integer", "description": "Of an import: the first line that it is about."},
    },
    "required": ["type", "title", "status", "detail", "code", "fix", "request_id"],
}  # fmt: skip
_HEADERS = {
    "If-Match": "The ETag of the version you saw; another by now is refused with 412.",
    "If-None-Match": "`*` to write only a note that is not there; an ETag to read only one that has changed.",
    "Idempotency-Key": "Made up by you: sent again with the same request, it is not done again.",
}


def build_document(routes: Sequence[Route]) -> dict[str, Any]:
    """Return the document of these routes."""
    records: dict[str, Schema] = {}
    paths: dict[str, Any] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, records)
    content = {problem.MEDIA_TYPE: {"schema": {"$ref": f"{_COMPONENTS}Problem"}}}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Holdfast", "version": __version__, "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
            "description": "Durable memory for AI agents, for whoever has a token and a role that allows it.",
        },
        "servers": [{"url": "/"}],
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer", "bearerFormat": "hf_..."}},
            "schemas": {**records, "Problem": _PROBLEM},
            "responses": {"Problem": {"description": "What went wrong.", "content": content}},
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
            "properties": {field: _record_field(hint, records) for field, hint in fields.items()},
            "required": list(field_names(kind)),
        }
    return {"$ref": f"{_COMPONENTS}{name}"}


def _record_field(hint: Any, records: dict[str, Schema]) -> Schema:
    schema = schema_of(hint, records)
    return {**schema, "additionalProperties": {}} if schema == {"type": "object"} else schema


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
        operation["requestBody"] = {"required": bool(schema.get("required")), "content": content}
    return operation


def body_schema(route: Route) -> Schema:
    """Return the schema of a JSON body, or of one line of an NDJSON body."""
    if route.line is not None:
        return schema_of(route.line)
    schema = schema_of(route.params)
    required = [name for name in route.required_fields if name not in route.path_fields]
    schema["properties"] = {name: schema["properties"][name] for name in route.body_fields}
    others = {name: value for name, value in schema.items() if name != "required"}
    return {**others, "required": required} if required else others


def _responses(route: Route, records: dict[str, Schema]) -> dict[str, Any]:
    example = {} if route.answer_example is None else {"example": route.answer_example}
    done = {"description": "Done.", "content": {route.media_type: {"schema": schema_of(route.answers, records), **example}}}
    statuses = {str(status): done for status in ((200, route.status) if route.replay or route.has_etag else (route.status,))}
    if route.has_etag:
        statuses["201"] = done
        if route.method == "GET":
            statuses["304"] = {"description": "It is still the version you named."}
    if route.path == "/readyz":
        statuses["503"] = done
    return {**statuses, "default": {"$ref": "#/components/responses/Problem"}}


def _parameters(route: Route) -> list[dict[str, Any]]:
    fields = request_fields(route.params)
    in_path = [_parameter(name, "path", schema_of(fields[name].hint), True) for name in route.path_fields]
    in_query = [_parameter(name, "query", schema_of(fields[name].hint), fields[name].required) for name in route.query_fields]
    return in_path + in_query


def _header_parameters(route: Route) -> list[dict[str, Any]]:
    names = ["Idempotency-Key"] if route.replay else []
    if route.has_etag:
        names += ["If-None-Match"] if route.method == "GET" else ["If-Match", "If-None-Match"]
    return [_parameter(name, "header", {"type": "string", "description": _HEADERS[name]}, False) for name in names]


def _parameter(name: str, where: str, schema: Schema, required: bool) -> dict[str, Any]:
    own = {key: value for key, value in schema.items() if key != "description"}
    return {"name": name, "in": where, "required": required, "description": schema.get("description", ""), "schema": own}


def _operation_id(route: Route) -> str:
    """Return `get_notes_scope_key` for `GET /v1/notes/{scope}/{key}`."""
    parts = [part.strip("{}").replace(".", "_") for part in route.path.split("/") if part and part != "v1"]
    return "_".join([route.method.lower(), *parts])
