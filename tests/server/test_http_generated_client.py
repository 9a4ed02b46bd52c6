"""A client that openapi-python-client generates from the OpenAPI document works against a running gateway."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from datetime import datetime

import pytest

from holdfast.server import openapi, responses
from holdfast.server.route import NDJSON
from holdfast.server.routes import ROUTES

PACKAGE = "generated_holdfast_client"


@pytest.fixture(scope="session")
def generated(tmp_path_factory):
    """Generate the client; return the folder of its package and what the generator said."""
    folder = tmp_path_factory.mktemp("client")
    document = folder / "openapi.json"
    document.write_text(json.dumps(openapi.build_document(ROUTES)))
    settings = folder / "settings.json"
    settings.write_text(json.dumps({"post_hooks": []}))
    command = [
        sys.executable, "-m", "openapi_python_client", "generate", "--path", document, "--config", settings, "--meta", "none",
        "--output-path", folder / PACKAGE,
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "NO_COLOR": "1"}, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    sys.path.insert(0, str(folder))
    yield folder / PACKAGE, done.stdout + done.stderr
    sys.path.remove(str(folder))


@pytest.fixture
def call(generated, gateway):
    """Call an operation of the client as a new agent: group, operation id and arguments."""
    client = importlib.import_module(f"{PACKAGE}.client")
    token = gateway.agent("generated").token
    address = f"http://127.0.0.1:{gateway.port}"
    caller = client.AuthenticatedClient(base_url=address, token=token, raise_on_unexpected_status=True)

    def ask(group, operation, *path, **fields):
        module = importlib.import_module(f"{PACKAGE}.api.{group}.{operation}")
        body = fields.pop("body", None)
        if body is not None:
            name = "".join([word.capitalize() for word in operation.split("_")]) + "Body"
            fields["body"] = getattr(importlib.import_module(f"{PACKAGE}.models"), name).from_dict(body)
        return module.sync_detailed(*path, client=caller, **fields)

    yield ask
    caller.get_httpx_client().close()


def scope(operation):
    """Return the scope `agent` as the generated client spells it for one operation."""
    name = "".join([word.capitalize() for word in operation.split("_")]) + "Scope"
    return getattr(importlib.import_module(f"{PACKAGE}.models"), name)("agent")


def test_every_operation_is_generated_and_only_streams_of_lines_are_left_out(generated):
    folder, said = generated
    made = {path.stem for path in (folder / "api").glob("*/*.py")} - {"__init__"}
    paths = openapi.build_document(ROUTES)["paths"].values()
    assert made == {one["operationId"].replace("-", "_") for path in paths for one in path.values()}
    warnings = [line for line in said.splitlines() if "parsing" in line and "WARNING" in line]
    streams = {route.path for route in ROUTES if NDJSON in (route.reads, route.media_type)}
    assert {line.split(" within ")[0].split()[-1] for line in warnings} == streams


def test_a_problem_of_every_status_is_parsed(generated):
    folder, _ = generated
    text = (folder / "api" / "notes" / "put_notes_scope_key.py").read_text()
    (route,) = [route for route in ROUTES if route.name == "PUT /v1/notes/{scope}/{key}"]
    for status in responses.all_statuses(route):
        assert f"response.status_code == {status}" in text


def test_the_generated_client_stores_gets_recalls_lists_and_forgets(call):
    body = {"text": "Use pytest.", "key": "testing", "scope": "agent", "valid_from": "2026-05-02"}
    stored = call("notes", "post_notes", body=body, idempotency_key="once")
    assert stored.status_code == 201 and stored.parsed.action == "created"
    assert stored.headers["etag"] == f'"{stored.parsed.note.version}"'
    again = call("notes", "post_notes", body=body, idempotency_key="once")
    assert again.headers["idempotency-replayed"] == "true"

    found = call("notes", "get_notes_scope_key", scope("get_notes_scope_key"), "testing")
    note = found.parsed
    assert found.status_code == 200 and (note.key, note.text, note.name) == ("testing", "Use pytest.", None)
    assert isinstance(note.created, datetime) and note.created.tzinfo is not None

    answer = call("recall", "post_recall", body={"query": "pytest", "mode": "keyword"}).parsed
    assert [hit.key for hit in answer.hits] == ["testing"] and isinstance(answer.hits[0].updated, datetime)
    listed = call("notes", "get_notes", scope=scope("get_notes")).parsed
    assert [one.key for one in listed.notes] == ["testing"] and listed.next_ is None

    unchanged = call(
        "notes", "get_notes_scope_key", scope("get_notes_scope_key"), "testing", if_none_match=found.headers["etag"]
    )
    assert unchanged.status_code == 304
    forgotten = call("notes", "delete_notes_scope_key", scope("delete_notes_scope_key"), "testing").parsed
    assert forgotten.deleted is True and isinstance(forgotten.restorable_until, datetime)


def test_the_generated_client_uses_platform_keys(call):
    stored = call("memory", "post_gateway_memory", body={"key": "Deploy Steps", "value": "Push the tag."}).parsed
    assert (stored.key, stored.action.value) == ("Deploy Steps", "created") and isinstance(stored.updated_at, datetime)
    (pair,) = call("memory", "get_gateway_memory", key="Deploy Steps").parsed.memory
    assert (pair.key, pair.value, pair.note) == ("Deploy Steps", "Push the tag.", stored.note)


def test_the_generated_client_reads_problems(call):
    missing = call("notes", "get_notes_scope_key", scope("get_notes_scope_key"), "nothing", x_request_id="mine")
    assert missing.status_code == 404 and missing.parsed.code == "not_found" and missing.parsed.fix
    assert missing.parsed.request_id == missing.headers["x-request-id"] == "mine"
    invalid = call("notes", "post_notes", body={"text": "x", "key": "Not A Key", "scope": "agent"})
    assert invalid.status_code == 422 and invalid.parsed.code == "invalid_request" and invalid.parsed.fix
    assert [one.pointer for one in invalid.parsed.errors] == ["/key"] and "a-z, 0-9 and '-'" in invalid.parsed.errors[0].detail
