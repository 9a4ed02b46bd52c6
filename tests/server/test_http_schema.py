"""The OpenAPI document is valid, and the answers to all requests and roles conform to it."""

from __future__ import annotations

import json
import secrets

import hypothesis
import pytest
import schemathesis
from http_gateway import run_gateway
from hypothesis import HealthCheck
from schemathesis import GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    positive_data_acceptance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from schemathesis.specs.openapi.definitions import OPENAPI_31_VALIDATOR
from tiers import tiered

from holdfast.access import ACTIONS
from holdfast.server import openapi, problem
from holdfast.server.routes import ROUTES
from holdfast.server.validation import decode

EXAMPLES = max(4, hypothesis.settings.default.max_examples // 40)  # of each route: the battery sends more
CHECKS = [content_type_conformance, response_headers_conformance, response_schema_conformance, status_code_conformance]
# Why a request that fits its schema may be refused: these depend on what is stored or set, or on the meaning of a text.
STATE = {
    "precondition",  # If-Match and If-None-Match name the version that is stored
    "reused_key",
    "purged",
    "secret",
    "refused",  # what only a person may do, such as to keep a secret
}
MEANING = {  # code and route: why no schema can say it
    ("usage", "GET /v1/notes"): "`source` and `archived` exclude each other, and so do others: OpenAPI has no such rule",
    ("usage", "GET /v1/review"): "`everywhere` and `agent` exclude each other: the same",
    ("usage", "GET /v1/trash"): "the same",
    ("usage", "POST /v1/trash/empty"): "the same",
    ("usage", "PUT /v1/settings/{name}"): "what fits depends on the setting",
    ("usage", "POST /agents"): "the role must be one of the gateway's, whose files may change",
    ("usage", "DELETE /agents/{name}/grants"): "`pattern` depends on `kind`: OpenAPI has no rule about two parameters",
    ("usage", "POST /github/review"): "no token for GitHub is configured",
    ("usage", "POST /v1/files/insert"): "the file has fewer lines",
    ("invalid_path", "POST /v1/files/rename"): "a folder cannot move into itself",
    ("usage", "POST /v1/history/import"): "no program writes such a transcript",
    ("usage", "POST /v1/import"): "`valid_to` must be after `valid_from`",
    ("usage", "POST /v1/notes"): "the same",
    ("usage", "PUT /v1/notes/{scope}/{key}"): "the same",
    ("usage", "POST /v1/purge"): "the text is too short once spaces and case are folded",
    ("usage", "POST /v1/recall"): "facts have no order by time or by meaning",
    ("usage", "POST /dispatch"): "no webhook is set",
    ("usage", "POST /v1/operator/messages"): "an operator must name an agent or another scope than `agent`",
}
ROLES = ("operator", "code-review-engineer", "secretary", "reader", "runner")


def test_the_document_is_valid_openapi():
    document = openapi.build_document(ROUTES)
    OPENAPI_31_VALIDATOR.validate(document)
    assert document["openapi"] == "3.1.0"
    names = [one["operationId"] for path in document["paths"].values() for one in path.values()]
    assert len(names) == len(set(names)) == len(ROUTES)


def test_every_route_names_an_action_that_there_is_and_the_open_ones_are_few():
    assert {route.action for route in ROUTES} <= {*ACTIONS, ""}
    open_to_all = [route.path for route in ROUTES if not route.action]
    assert open_to_all == ["/healthz", "/readyz", "/openapi.json", "/problems/{code}"]


def test_the_document_is_told_to_everybody_and_is_what_the_table_says(gateway):
    assert gateway.anonymous.get("/openapi.json").json == json.loads(json.dumps(openapi.build_document(ROUTES)))


@pytest.mark.parametrize("route", [route for route in ROUTES if route.reads], ids=lambda route: route.name)
def test_the_example_of_a_route_is_one(route):
    import jsonschema_rs

    jsonschema_rs.Draft202012Validator(openapi.body_schema(route)).validate(route.example)
    if not route.is_upload:
        path = {"scope": "agent", "key": "k", "name": "lock.seconds"}
        decode(route.params, {**route.example, **{name: path[name] for name in route.path_fields}})


def test_examples_of_answers_keep_to_their_schema():
    document = openapi.build_document(ROUTES)
    import jsonschema_rs

    for route in ROUTES:
        if route.answer_example is not None:
            shape = {**openapi.schema_of(route.answers), "components": document["components"]}
            jsonschema_rs.Draft202012Validator(shape).validate(route.answer_example)


def test_every_code_has_a_status_and_a_title():
    for code, (status, title) in problem.kinds().items():
        assert 400 <= status < 600 and title and code == code.lower(), code


@pytest.mark.parametrize("mode", GenerationMode)
@pytest.mark.parametrize("role", tiered(ROLES, fast=["operator", "reader"]))
@pytest.mark.filterwarnings("ignore")
@pytest.mark.hypothesis  # the battery sends many more
def test_whatever_a_role_asks_nothing_fails_and_no_answer_breaks_its_schema(home, role, mode):
    every_route_asked(home, role, mode)


def every_route_asked(home, role, mode, examples=EXAMPLES):
    """Send requests for everything that the document names to a gateway of that home, in this role."""
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text("[serve]\nrate = 0\n")
    with run_gateway(home) as gateway:
        gateway.add_role("reader", ["agent.memory.read", "done.read", "roles.read"], ["agent", "project", "session", "global"])
        gateway.add_role("runner", ["dispatch", "agent.memory.write", "done.write", "memory.export"], ["agent", "project"])
        client = gateway.agent("asker", role)
        client.post("/v1/notes", {"text": "Harbour words.", "key": "k", "scope": "agent"})
        schema = schemathesis.openapi.from_dict(json.loads(json.dumps(openapi.build_document(ROUTES))))
        counts = {}
        for result in schema.get_all_operations():
            exercised(result.ok(), gateway.port, client.token, counts, mode, examples)
        assert sum(counts.values()) > len(ROUTES)
        assert not [status for status in counts if status >= 500], counts
        assert client.get("/gateway/memory").status in (200, 403)


def give_context(case):
    """Give a valid request what only its sender knows: a project, a session, a new key; and no cursor, which a server makes."""
    for name in ("X-Holdfast-Project", "X-Holdfast-Session"):
        case.headers[name] = case.headers.get(name) or "demo"
    if "Idempotency-Key" in case.headers:
        case.headers["Idempotency-Key"] = secrets.token_hex(8)
    if isinstance(case.query, dict):
        case.query.pop("cursor", None)


def is_refused_by_state(case, said):
    if said.status_code not in (412, 422):
        return False
    code, route = said.json()["code"], f"{case.method} {case.path}"
    return code in STATE or (code, route) in MEANING


def exercised(operation, port, token, counts, mode, examples):
    """Return a few requests of one route, valid by its schema or, if anything can be wrong, invalid."""

    @hypothesis.settings(
        max_examples=examples, deadline=None, database=None, derandomize=True, suppress_health_check=list(HealthCheck),
        phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate],
    )  # fmt: skip
    @hypothesis.given(case=operation.as_strategy(mode))
    def ask(case):
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        if mode == GenerationMode.POSITIVE:
            give_context(case)
        said = case.call(base_url=f"http://127.0.0.1:{port}", headers=headers)
        counts[said.status_code] = counts.get(said.status_code, 0) + 1
        assert said.status_code < 500, (case.method, case.path, said.text)
        case.validate_response(said, checks=CHECKS)
        if said.status_code != 413:  # a refusal too, which this check does not know
            case.validate_response(said, checks=[negative_data_rejection])
        if not is_refused_by_state(case, said):
            case.validate_response(said, checks=[positive_data_acceptance])

    try:
        ask()
    except hypothesis.errors.Unsatisfiable:
        assert mode == GenerationMode.NEGATIVE
