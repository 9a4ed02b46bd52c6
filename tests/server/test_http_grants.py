"""Grants through HTTP, on both stores: what an agent reaches, how the operator changes it, and that a denial tells nothing."""

from __future__ import annotations

import http.client
import json
from contextlib import closing

import pytest
from http_gateway import NO_GRANTS, Client
from test_http_github import github  # noqa: F401

from holdfast.access import AccessGate
from holdfast.access.grants import is_repository, make_grant, matches
from holdfast.access.policy import Caller
from holdfast.errors import UsageError
from holdfast.server import github as room

ALL = ["session", "project", "agent", "global"]
NOTE = {"text": "Harbour words.", "key": "harbour", "scope": "project"}
NDJSON = "application/x-ndjson"
REVIEW = {"owner": "acme", "repo": "shop", "pr_number": 7, "body": "Looks good."}


@pytest.fixture
def gateway(any_gateway):
    """A gateway with a role that reaches every scope, and memory in the projects `acme` and `other` and the session `s1`."""
    any_gateway.add_role("worker", ["agent.memory.read", "agent.memory.write", "memory.export", "memory.purge"], ALL)
    for project in ("acme", "other"):
        any_gateway.operator.post("/v1/notes", {**NOTE, "project": project})
    any_gateway.operator.post("/v1/notes", {**NOTE, "scope": "session", "session": "s1"})
    return any_gateway


def denials(gateway, agent):
    """Return what the audit has of an agent's denied requests, without what differs by request."""
    rows = gateway.operator.get(f"/audit?agent={agent}&outcome=denied&limit=500").json["audit"]
    kept = ("request", "token")
    return [(row["action"], {name: value for name, value in row["metadata"].items() if name not in kept}) for row in rows]


def without_id(said):
    return {name: value for name, value in said.json.items() if name != "request_id"}


@pytest.mark.promise("A9")
def test_a_new_agent_reaches_its_own_memory_and_nothing_else(gateway):
    worker = gateway.agent("worker", "worker", NO_GRANTS)
    assert worker.post("/v1/notes", {**NOTE, "scope": "agent"}).status == 201
    assert [note["key"] for note in worker.get("/v1/notes").json["notes"]] == ["harbour"]
    for session in ("worker", "worker.7"):
        assert worker.post("/v1/notes", {**NOTE, "scope": "session", "session": session}).status == 201
    for session in ("s1", "workers", "worker-7", "other.worker.7", "Worker.7"):
        said = worker.post("/v1/notes", {**NOTE, "scope": "session", "session": session})
        assert (said.status, said.code) == (403, "denied")
    for said in (
        worker.post("/v1/notes", {**NOTE, "project": "acme"}), worker.get("/v1/notes?project=acme"),
        worker.get("/v1/notes", X_Holdfast_Project="acme"), worker.get("/v1/notes/project/harbour?project=acme"),
        worker.post("/v1/recall", {"query": "harbour"}, X_Holdfast_Project="acme"),
        worker.post("/v1/recall", {"query": "harbour"}, X_Holdfast_Session="s1"),
        worker.get("/v1/export?project=acme"), worker.post("/v1/brief", {"project": "acme"}),
        worker.post("/v1/search", {"query": "harbour", "project": "acme"}), worker.get("/v1/status?project=acme"),
        worker.get("/v1/read?path=projects/acme/notes/harbour.md&project=acme"),
    ):  # fmt: skip
        assert (said.status, said.code) == (403, "denied") and b"Harbour" not in said.data
    assert len(denials(gateway, "worker")) == 16
    assert {meta["grant"] for _, meta in denials(gateway, "worker")} == {"project", "session"}


@pytest.mark.promise("A9")
def test_a_project_that_is_not_granted_is_out_of_reach_also_where_another_scope_is_named(gateway):
    worker, header = gateway.agent("worker", "worker", NO_GRANTS), {"X_Holdfast_Project": "acme", "X_Holdfast_Session": "s1"}
    stored = worker.post("/v1/notes", {"text": "Mine.", "key": "mine", "scope": "agent"}, **header)
    assert stored.status == 201 and stored.json["note"]["source"]["session"] == "s1"  # a session may be named as a source
    assert [note["key"] for note in worker.get("/v1/notes?scope=agent", **header).json["notes"]] == ["mine"]
    made = {"text": "Derived.", "scope": "agent", "made_from": ["note:harbour"]}  # there, and nowhere else, is such a note
    missing = {**made, "made_from": ["note:no-such-note"]}
    said, none = worker.post("/v1/notes", made, **header), worker.post("/v1/notes", missing, **header)
    assert said.status == none.status == 404
    lines = [json.dumps({"text": "Line.", "key": "line", "scope": scope}).encode() for scope in ("agent", "project")]
    for body, status in ((lines[0], 200), (lines[1], 403)):
        path = "/v1/import?scope=agent" if status == 200 else "/v1/import"
        said = worker("POST", path, raw=body, Content_Type=NDJSON, **header)
        assert said.status == status, said
    assert worker.post("/v1/boot", {"scope": "agent", "scaffolds": ["wiki"]}, **header).status == 200
    assert worker.post("/v1/boot", {"scope": "project", "scaffolds": ["wiki"]}, **header).code == "denied"


@pytest.mark.promise("A9")
def test_a_denial_is_the_same_whether_or_not_what_is_named_exists(gateway):
    worker = gateway.agent("worker", "worker", {"project": ["mine-*"]})
    for there, missing in (
        ({"X_Holdfast_Project": "acme"}, {"X_Holdfast_Project": "zzzz"}),
        ({"X_Holdfast_Session": "s1"}, {"X_Holdfast_Session": "s2"}),
    ):
        for method, path, body in (
            ("GET", "/v1/notes", None), ("POST", "/v1/recall", {"query": "harbour"}), ("POST", "/v1/brief", {}),
            ("GET", "/v1/notes/project/harbour", None), ("PUT", "/v1/notes/project/harbour", {"text": "x"}),
            ("GET", "/v1/notes/session/harbour", None), ("DELETE", "/v1/notes/session/harbour", None),
            ("POST", "/v1/notes/project/harbour/purge", {}), ("POST", "/v1/clear", {"scope": "project"}),
        ):  # fmt: skip
            one, other = [worker(method, path, body, **named) for named in (there, missing)]
            assert without_id(one) == without_id(other), (path, there)
            assert {**one.headers, "x-request-id": "", "date": ""} == {**other.headers, "x-request-id": "", "date": ""}
    rows = denials(gateway, "worker")
    for one, other in (("acme", "zzzz"), ("s1", "s2")):
        found = [[meta for _, meta in rows if name in (meta.get("project"), meta.get("session"))] for name in (one, other)]
        same = [[{**meta, "project": "", "session": ""} for meta in metas] for metas in found]
        assert same[0] == same[1] and same[0]


@pytest.mark.promise("A9")
def test_the_operator_grants_and_takes_back_from_the_next_request_on(gateway):
    operator, worker = gateway.operator, gateway.agent("worker", "worker", NO_GRANTS)
    assert operator.get("/agents/worker/grants").json == {"agent": "worker", "role": "worker", "grants": []}
    for pattern, reached in (("acme", 200), ("ac*e", 200), ("*", 200), ("acme-*", 403), ("ACME", 403), ("*x", 403)):
        made = operator.post("/agents/worker/grants", {"kind": "project", "pattern": pattern})
        assert made.json["grants"] == [{"kind": "project", "pattern": pattern}]
        assert operator.post("/agents/worker/grants", {"kind": "project", "pattern": pattern}).json == made.json
        assert worker.get("/v1/notes?project=acme").status == reached, pattern
        (listed,) = [one for one in operator.get("/agents").json["agents"] if one["name"] == "worker"]
        assert listed["grants"] == made.json["grants"]
        left = operator("DELETE", f"/agents/worker/grants?kind=project&pattern={pattern}")
        assert (left.status, left.json["grants"]) == (200, [])
        assert worker.get("/v1/notes?project=acme").code == "denied"
    assert operator("DELETE", "/agents/worker/grants?kind=project&pattern=acme").code == "not_found"
    for body, status in (
        ({"kind": "project", "pattern": "a/b"}, 422), ({"kind": "repository", "pattern": "acme"}, 422),
        ({"kind": "agent", "pattern": "x"}, 422), ({"kind": "project", "pattern": "a**"}, 422),
        ({"kind": "project", "pattern": "acme\n"}, 422), ({"kind": "project", "pattern": ".."}, 422),
        ({"kind": "project"}, 422),
    ):  # fmt: skip
        assert operator.post("/agents/worker/grants", body).status == status, body
    assert operator.post("/agents/nobody/grants", {"kind": "project", "pattern": "x"}).code == "not_found"
    assert worker.get("/agents/worker/grants").code == "denied"
    assert worker.post("/agents/worker/grants", {"kind": "project", "pattern": "*"}).code == "denied"
    rows = operator.get("/audit?action=agents.manage&agent=operator&limit=500").json["audit"]
    changes = [row["metadata"] for row in rows if row["metadata"].get("verb") in ("grant", "ungrant")]
    assert {(one["verb"], one["name"], one["kind"], one["pattern"]) for one in changes} >= {
        ("grant", "worker", "project", "ac*e"), ("ungrant", "worker", "project", "ac*e"),
    }  # fmt: skip
    assert gateway.gate.ledger.audit.list(limit=1)[0] and operator.get("/audit/verify").json["ok"] is True


@pytest.mark.promise("A9")
def test_an_agent_is_added_with_grants_and_comes_back_without_the_old_ones(gateway):
    operator = gateway.operator
    wanted = {"projects": ["acme", "shop-*"], "repositories": ["Acme/*"], "sessions": ["ci-*"]}
    made = operator.post("/agents", {"name": "builder", "role": "worker", **wanted})
    assert made.status == 201
    kept = [(one["kind"], one["pattern"]) for one in operator.get("/agents/builder/grants").json["grants"]]
    assert kept == [("project", "acme"), ("project", "shop-*"), ("repository", "acme/*"), ("session", "ci-*")]
    assert operator("DELETE", "/agents/builder").status == 200
    again = operator.post("/agents", {"name": "builder", "role": "worker"})
    assert again.status == 201 and operator.get("/agents/builder/grants").json["grants"] == []
    for name in ("builder.two", "Builder.x"):
        assert operator.post("/agents", {"name": name, "role": "worker"}).code == "conflict"  # their sessions would be shared
    assert operator.post("/agents", {"name": "builder-two", "role": "worker"}).status == 201
    assert operator.post("/agents", {"name": "x", "role": "worker", "projects": ["a/b"]}).status == 422


@pytest.mark.promise("A9")
def test_a_role_file_may_name_what_all_its_agents_reach(gateway):
    gateway.add_role("team", ["agent.memory.read"], ["project", "session"], projects=["acme"], sessions=["ci-*", "s*"])
    member = gateway.agent("member", "team", NO_GRANTS)
    assert member.get("/v1/notes?project=acme&session=s1").status == 200
    assert member.get("/v1/notes?project=other").code == "denied"
    assert member.get("/v1/notes?project=acme&session=x").code == "denied"
    roles = {one["name"]: one for one in gateway.operator.get("/roles").json["roles"]}
    assert roles["team"]["projects"] == ["acme"] and roles["worker"]["projects"] == []
    gateway.add_role("team", ["agent.memory.read"], ["project"], projects=["a/b"])
    assert member.get("/v1/notes?project=acme").code == "denied"  # a wrong file means nothing
    (broken,) = gateway.operator.get("/roles").json["broken"]
    assert broken["role"] == "team" and "not a pattern for a project" in broken["message"]


@pytest.mark.promise("A5")
@pytest.mark.promise("A9")
def test_dispatch_hands_an_agent_its_project(gateway):
    gateway.add_role("starter", ["dispatch", "agent.memory.read"], ["agent"])
    operator, worker = gateway.operator, gateway.agent("worker", "worker", NO_GRANTS)
    starter = gateway.agent("starter", "starter", NO_GRANTS)
    assert worker.get("/v1/notes?project=acme").code == "denied"
    refused = starter.post("/dispatch", {"task": "Look.", "project": "acme"})
    assert refused.code == "denied"  # nobody grants themselves anything
    assert operator.post("/dispatch", {"task": "Look.", "agent": "worker"}).status == 200
    assert worker.get("/v1/notes?project=acme").code == "denied"
    assert operator.post("/dispatch", {"task": "Look.", "agent": "worker", "project": "acme"}).status == 200
    assert [note["key"] for note in worker.get("/v1/notes?project=acme").json["notes"]] == ["harbour"]
    assert worker.get("/v1/notes?project=other").code == "denied"
    assert operator.post("/dispatch", {"task": "Look.", "agent": "worker", "project": "acme"}).status == 200
    assert operator.get("/agents/worker/grants").json["grants"] == [{"kind": "project", "pattern": "acme"}]
    assert operator.post("/dispatch", {"task": "Look.", "agent": "worker", "project": "a*"}).status == 422
    rows = [row["metadata"] for row in operator.get("/audit?action=agents.manage&limit=100").json["audit"]]
    granted = [row for row in rows if row.get("verb") == "grant"]
    assert [(row["name"], row["pattern"], row["route"]) for row in granted] == [("worker", "acme", "POST /dispatch")]
    assert [row["outcome"] for row in operator.get("/audit?agent=starter&action=agents.manage").json["audit"]] == ["denied"]


@pytest.mark.promise("A9")
def test_a_session_that_a_request_only_names_as_its_subject_needs_no_grant(gateway):
    worker = gateway.agent("worker", "worker", NO_GRANTS)
    turns = {"turns": [{"role": "user", "text": "The harbour opens at nine."}], "session": "7f3a", "scope": "agent"}
    assert worker.post("/v1/history", turns).json["added"] == 1
    assert worker.post("/v1/history/forget", {"session": "7f3a"}).json["deleted"] is True
    assert worker.post("/v1/history/restore", {"session": "7f3a"}).status == 200
    assert worker.post("/v1/purge", {"session": "7f3a"}).json["turns"] == 1
    assert worker.post("/v1/history", {**turns, "scope": "session"}).code == "denied"
    assert gateway.operator.get("/v1/notes?scope=session&session=s1").json["notes"]


@pytest.mark.promise("A9")
def test_a_grant_that_is_taken_back_ends_an_import_under_way(gateway):
    worker = gateway.agent("worker", "worker", {"project": ["acme"]})
    lines = b"".join(json.dumps({"text": f"Line {number}.", "key": f"k{number}"}).encode() + b"\n" for number in range(600))

    def body():
        yield lines[: len(lines) // 2]
        gateway.gate.ungrant("worker", "project", "acme")
        yield lines[len(lines) // 2 :]

    connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=60)
    headers = {"Authorization": f"Bearer {worker.token}", "Content-Type": NDJSON, "X-Holdfast-Project": "acme"}
    connection.request("POST", "/v1/import", body(), headers, encode_chunked=True)
    said = connection.getresponse()
    assert said.status == 403 and json.loads(said.read())["code"] == "denied"
    connection.close()
    assert [note["key"] for note in gateway.operator.get("/v1/notes?project=acme").json["notes"]] == ["harbour"]


# --- GitHub -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def reviews(any_gateway, github, monkeypatch):  # noqa: F811
    monkeypatch.setattr(room, "PAUSE", 0.01)
    (any_gateway.home / "config.toml").write_text(f'[serve]\nrate = 0\n[github]\napi = "{github.url}"\ntoken = "ghp_test"\n')
    return any_gateway


@pytest.mark.promise("A9")
def test_a_review_needs_a_grant_for_its_repository_and_nothing_is_sent_without(reviews, github):  # noqa: F811
    reviewer = reviews.agent("reviewer", granted=NO_GRANTS)
    one, other = reviewer.post("/github/review", REVIEW), reviewer.post("/github/review", {**REVIEW, "repo": "nothing"})
    assert (one.status, one.code) == (403, "denied") and without_id(one) == without_id(other)
    assert (github.posts, github.lists) == (0, 0)
    assert [meta["repository"] for _, meta in denials(reviews, "reviewer")] == ["acme/nothing", "acme/shop"]
    reviews.operator.post("/agents/reviewer/grants", {"kind": "repository", "pattern": "ACME/s*"})
    assert reviewer.post("/github/review", {**REVIEW, "owner": "Acme", "repo": "Shop"}).json["posted"] is True
    assert reviewer.post("/github/review", {**REVIEW, "repo": "blog"}).code == "denied"
    assert reviewer.post("/github/review", {**REVIEW, "owner": "acme2"}).code == "denied"
    assert github.posts == 1
    reviews.add_role("team", ["github.review"], [], repositories=["acme/shop"])
    member = reviews.agent("member", "team", NO_GRANTS)
    assert member.post("/github/review", REVIEW).json["posted"] is True
    assert member.post("/github/review", {**REVIEW, "repo": "blog"}).code == "denied"


@pytest.mark.promise("A2")
@pytest.mark.parametrize("event", room.EVENTS)
def test_each_event_is_an_action_of_its_own_and_the_whole_allows_all(reviews, github, event):  # noqa: F811
    action = f"github.review.{event.lower()}"
    reviews.add_role("one", [action], [])
    reviews.add_role("all", ["github.review"], [])
    one, whole = reviews.agent("one", "one"), reviews.agent("all", "all")
    for number, wanted in enumerate(room.EVENTS, 1):
        body = {**REVIEW, "pr_number": number, "event": wanted}
        assert (one.post("/github/review", body).status == 200) == (wanted == event)
        assert whole.post("/github/review", body).status == 200
    without = {name: value for name, value in REVIEW.items() if name != "event"}
    assert (one.post("/github/review", without).status == 200) == (event == "COMMENT")  # an event that is not named
    assert one.post("/github/review", {**REVIEW, "event": "DISMISS"}).status == 403
    assert whole.post("/github/review", {**REVIEW, "event": "DISMISS"}).status == 422
    rows = reviews.operator.get("/audit?agent=all&limit=50").json["audit"]
    assert {row["action"] for row in rows} == {"github.review", *[f"github.review.{one.lower()}" for one in room.EVENTS]}
    assert len(reviews.operator.get(f"/audit?agent=one&action={action}").json["audit"]) >= 1


@pytest.mark.promise("A6")
@pytest.mark.parametrize(
    "wrong",
    [
        {"owner": ""}, {"owner": "-acme"}, {"owner": "a" * 40}, {"owner": "acme/shop"}, {"owner": "acme\n"}, {"owner": ".."},
        {"owner": "ac me"}, {"owner": "acmé"}, {"owner": 7}, {"repo": ""}, {"repo": "."}, {"repo": ".."}, {"repo": "..."},
        {"repo": "a/b"}, {"repo": "shop\n"}, {"repo": "../../user"}, {"repo": "shop?x=1"}, {"repo": "shop#1"},
        {"repo": "%2e%2e"},
        {"repo": "a" * 101}, {"repo": None}, {"pr_number": 0}, {"pr_number": -1}, {"pr_number": 10**9 + 1}, {"pr_number": "7"},
        {"pr_number": 7.5}, {"pr_number": True},
    ],
)  # fmt: skip
def test_a_name_that_github_could_not_have_is_refused_before_any_call(gateway_with_github, wrong):
    gateway, fake = gateway_with_github
    said = gateway.agent("reviewer").post("/github/review", {**REVIEW, **wrong})
    assert said.status in (403, 422), said
    assert (fake.posts, fake.lists) == (0, 0)
    with pytest.raises(UsageError):  # the same without the models of the API
        room.review(gateway.gate.config, gateway.gate.ledger, "reviewer", room.Wanted(**{**REVIEW, **wrong}))
    assert (fake.posts, fake.lists) == (0, 0)


@pytest.fixture
def gateway_with_github(home, github, monkeypatch):  # noqa: F811
    from http_gateway import run_gateway

    home.mkdir(mode=0o700)
    (home / "config.toml").write_text(f'[serve]\nrate = 0\n[github]\napi = "{github.url}"\ntoken = "ghp_test"\n')
    with run_gateway(home) as one:
        yield one, github


@pytest.mark.promise("A6")
def test_an_agent_and_a_tenant_may_have_a_token_of_their_own_and_none_is_shown(reviews, github):  # noqa: F811
    reviewer, other = reviews.agent("reviewer"), reviews.agent("other")
    github.tokens |= {"ghp_tenant", "ghp_agent"}

    def review(client, number):
        return client.post("/github/review", {**REVIEW, "pr_number": number})

    def write(text, *names, mode=0o600):
        path = reviews.home.joinpath("github", "default", *names)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(mode)

    assert review(reviewer, 1).status == 200
    write("ghp_tenant\n", "token")
    assert [review(client, 2).status for client in (reviewer, other)] == [200, 200]
    write("ghp_agent\n", "agents", "reviewer")
    assert [review(client, 3).status for client in (reviewer, other)] == [200, 200]
    assert github.seen_tokens == ["ghp_test", "ghp_tenant", "ghp_tenant", "ghp_agent", "ghp_tenant"]
    for text, mode in (("ghp_agent", 0o644), ("", 0o600), ("ghp_agent two", 0o600), ("x" * 501, 0o600)):
        write(text, "agents", "reviewer", mode=mode)
        said = review(reviewer, 4)  # no other token takes the place of one that is wrong
        assert (said.status, said.code) == (500, "config"), said
        assert b"ghp_" not in said.data and str(reviews.home).encode() not in said.data
    assert github.posts == 5


@pytest.mark.promise("A6")
@pytest.mark.promise("A7")
def test_the_gateways_own_token_is_not_for_another_tenant(reviews, github):  # noqa: F811
    if not reviews.gate.config.store:
        pytest.skip("a home has one tenant")
    gate = AccessGate(reviews.gate.config.replace(tenant="rival"))
    with closing(gate):
        rival = Client(reviews.port, gate.add("chief", "operator")[1])
    said = rival.post("/github/review", REVIEW)
    assert (said.status, said.code) == (422, "usage") and (github.posts, github.lists) == (0, 0)
    folder = reviews.home / "github" / "rival"
    folder.mkdir(mode=0o700, parents=True)
    (folder / "token").touch(mode=0o600)
    (folder / "token").write_text("ghp_rival")
    github.tokens |= {"ghp_rival"}
    assert rival.post("/github/review", REVIEW).status == 200 and github.seen_tokens == ["ghp_rival"]


# --- patterns -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "fits", "fits_not"),
    [
        ("acme", ["acme"], ["acm", "acme-x", "ACME", ""]), ("*", ["a", "acme-1.x_y"], []), ("a*", ["a", "ab"], ["ba", "A"]),
        ("*a", ["a", "ba"], ["ab"]), ("a*c", ["ac", "abc", "a*c"], ["a", "acd"]), ("a*b*c", ["abc", "axbxc"], ["acb", "ac"]),
        ("ab*ba", ["abba", "abxba"], ["aba", "ab"]), ("a.c", ["a.c"], ["abc"]), ("*a*a*a*", ["aaa", "xaxaxax"], ["aa"]),
    ],
)  # fmt: skip
def test_a_pattern_fits_what_it_says_and_nothing_else(pattern, fits, fits_not):
    assert [name for name in fits if not matches(pattern, name)] == []
    assert [name for name in fits_not if matches(pattern, name)] == []


def test_a_long_pattern_takes_no_longer_than_its_length():
    assert not matches("a*" * 60 + "b", "a" * 128)


@pytest.mark.parametrize(
    ("kind", "pattern"),
    [
        ("project", ""), ("project", "a/b"), ("project", "a b"), ("project", ".a"), ("project", "a?"), ("project", "[a]"),
        ("project", "a" * 129), ("project", "**"), ("project", "é"), ("project", "a\n"), ("project", 7), ("session", "a:b"),
        ("repository", "acme"), ("repository", "acme/"), ("repository", "/shop"), ("repository", "a/b/c"),
        ("repository", "acme/.."),
        ("repository", "acme/a b"), ("repository", "-a/b"), ("repository", "a_b/c"), ("agent", "x"),
    ],
)  # fmt: skip
def test_a_pattern_that_is_not_valid_is_refused(kind, pattern):
    with pytest.raises(UsageError):
        make_grant(kind, pattern)


def test_repositories_are_folded_and_names_are_not():
    assert make_grant("repository", "Acme/Shop").pattern == "acme/shop" and make_grant("repository", "*").pattern == "*/*"
    assert make_grant("project", "Acme").pattern == "Acme"
    assert is_repository("acme", ".github") and is_repository("acme", "a.b_c-d") and not is_repository("acme", "..")
    assert Caller("a", "b").grants == ()
