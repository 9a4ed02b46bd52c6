"""`agent`, `role` and `audit`: answers for people and for programs, and tokens that are printed once."""

from __future__ import annotations

import json

import apsw
import pytest

from holdfast import config
from holdfast.access import AccessGate

GOOD = "name: librarian\nskills: []\nallowed_actions: [agent.memory.read]\nscopes: [project]\n"


@pytest.fixture
def gate(home):
    gate = AccessGate(config.load(home))
    yield gate
    gate.close()


# --- agent ------------------------------------------------------------------------------------------------------------


@pytest.mark.promise("A1")
def test_agent_add_prints_only_the_token_on_stdout(holdfast, gate):
    told = holdfast("agent", "add", "reviewer", "--role", "code-review-engineer", "--days", "30", "--json").json
    assert set(told) == {"token", "agent", "role", "token_id", "expires"}
    assert (told["agent"], told["role"]) == ("reviewer", "code-review-engineer")
    assert told["expires"].endswith("Z")
    assert gate.identify(told["token"]).agent == "reviewer"
    said = holdfast("agent", "add", "other", "--role", "secretary")
    assert gate.identify(said.out.strip()).agent == "other"  # TOKEN=$(holdfast agent add ...)
    assert "shown only once" in said.err and said.out.strip() not in said.err


@pytest.mark.promise("A1")
def test_no_command_prints_a_token_again(holdfast, home):
    tokens = [
        holdfast("agent", "add", "reviewer", "--role", "operator", "--json").json["token"],
        holdfast("agent", "rotate", "reviewer", "--grace", "1", "--json").json["token"],
    ]
    for words in (["agent", "list"], ["audit", "list"], ["audit", "export"], ["doctor"], ["status"], ["role", "list"]):
        for more in ([], ["--json"]):
            said = holdfast(*words, *more)
            assert not any(token[12:] in said.out + said.err for token in tokens), words
    assert not any(token[12:].encode() in path.read_bytes() for path in home.rglob("*") if path.is_file() for token in tokens)


@pytest.mark.promise("A9")
def test_grants_are_given_shown_and_taken_back(holdfast, gate):
    token = holdfast(
        "--project", "demo", "agent", "add", "ada", "--role", "secretary", "--project", "acme-*", "--project", "shop",
        "--repository", "Acme/*", "--session", "ci-*", "--json",
    ).json["token"]  # fmt: skip
    kept = [("project", "acme-*"), ("project", "shop"), ("repository", "acme/*"), ("session", "ci-*")]
    assert sorted((grant.kind, grant.pattern) for grant in gate.identify(token).grants) == kept
    lines = holdfast("agent", "grants", "ada").out.splitlines()
    assert [line.split() for line in lines] == [["KIND", "PATTERN", "FROM"], *[[*one, "agent"] for one in kept]]
    (listed,) = holdfast("agent", "list", "--json").json
    assert [(one["kind"], one["pattern"]) for one in listed["grants"]] == kept
    told = holdfast("agent", "grant", "ada", "project", "more", "--json").json
    assert {"kind": "project", "pattern": "more"} in told["grants"] and told["everything"] is False
    for kind, pattern in [*kept, ("project", "more")]:
        assert holdfast("agent", "ungrant", "ada", kind, pattern).code == 0
    assert "ada has no grants" in holdfast("agent", "grants", "ada").err
    assert holdfast("agent", "ungrant", "ada", "project", "more").code == 1
    for wrong in (["project", "a/b"], ["agent", "x"], ["repository", "acme"]):
        assert holdfast("agent", "grant", "ada", *wrong).code == 2
    assert holdfast("agent", "grant", "nobody", "project", "x").code == 1
    holdfast("agent", "add", "chief", "--role", "operator")
    assert "has access to everything" in holdfast("agent", "grants", "chief").out
    verbs = [row["metadata"]["verb"] for row in holdfast("audit", "list", "--json").json["entries"]]
    assert (verbs.count("grant"), verbs.count("ungrant"), verbs.count("add")) == (1, 5, 2)


def test_agent_list_shows_state_and_end(holdfast):
    assert "No agents yet" in holdfast("agent", "list").err
    holdfast("agent", "add", "reviewer", "--role", "code-review-engineer")
    holdfast("agent", "add", "old", "--role", "secretary", "--days", "1")
    holdfast("agent", "revoke", "old")
    head, *lines = holdfast("agent", "list").out.splitlines()
    assert head.split() == ["AGENT", "ROLE", "STATE", "TOKEN", "EXPIRES", "SINCE"]
    assert [line.split()[:3] for line in lines] == [
        ["old", "secretary", "revoked"], ["reviewer", "code-review-engineer", "active"],
    ]  # fmt: skip
    assert [(one["agent"], one["state"]) for one in holdfast("agent", "list", "--json").json] == [
        ("old", "revoked"), ("reviewer", "active"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["agent", "add", "x"], 2, "--role"),
        (["agent", "add", "x", "--role", "nobody"], 2, "code-review-engineer"),
        (["agent", "add", "../x", "--role", "operator"], 3, "agent"),
        (["agent", "add", "x", "--role", "operator", "--days", "0"], 2, "days"),
        (["agent", "revoke", "nobody"], 1, "agent list"),
        (["agent", "rotate", "nobody"], 1, "agent list"),
        (["agent"], 2, "add, list, rotate, revoke"),
        (["agent", "lst"], 2, "holdfast agent list"),
        (["audit", "list", "--limit", "0"], 2, "1 to 1000"),
        (["audit", "list", "--outcome", "perhaps"], 2, "allowed, denied"),
        (["audit", "list", "--since", "whenever"], 2, "since"),
        (["audit", "verify", "--known", "nonsense"], 2, "head"),
        (["role", "check", "nowhere.yaml"], 1, "nowhere.yaml"),
    ],
    ids=lambda part: " ".join(part) if isinstance(part, list) else None,
)  # fmt: skip
def test_invalid_arguments_are_rejected_with_a_fix(holdfast, home, words, code, says):
    said = holdfast(*words)
    assert (said.code, says in said.out + said.err) == (code, True), said.out + said.err
    assert not (home / "ledger.db").exists()
    assert holdfast(*words, "--json").code == code


def test_disabled_memory_rejects_new_agents_but_allows_revoking(holdfast, monkeypatch):
    holdfast("agent", "add", "reviewer", "--role", "operator")
    monkeypatch.setenv("HOLDFAST_ENABLED", "0")
    assert holdfast("agent", "add", "other", "--role", "operator", "--json").json["error"] == "disabled"
    assert holdfast("agent", "rotate", "reviewer").code == 3
    assert holdfast("agent", "revoke", "reviewer").code == 0
    assert holdfast("agent", "list", "--json").json[0]["state"] == "revoked"


def test_agent_revoke_asks_only_at_a_terminal(holdfast, terminal, gate):
    token = holdfast("agent", "add", "reviewer", "--role", "operator", "--json").json["token"]
    code, shown = terminal("agent", "revoke", "reviewer", typed="n\n")
    assert code == 3 and "Revoke all tokens of 'reviewer'?" in shown
    assert gate.identify(token)
    assert terminal("agent", "revoke", "nobody")[0] == 1  # does not ask about an agent that does not exist
    code, shown = terminal("agent", "revoke", "reviewer", typed="y\n")
    assert code == 0 and "revoked" in shown
    holdfast("agent", "add", "reviewer", "--role", "operator")
    assert terminal("agent", "revoke", "reviewer", "--yes")[0] == 0
    holdfast("agent", "add", "reviewer", "--role", "operator")
    assert holdfast("agent", "revoke", "reviewer").code == 0


def test_completion_offers_the_commands_of_a_group_and_the_agents(holdfast):
    holdfast("agent", "add", "reviewer", "--role", "operator")
    assert "agent\tManage agents of the gateway" in holdfast("_complete", "").out
    assert [line.split("\t")[0] for line in holdfast("_complete", "agent", "r").out.splitlines()] == ["rotate", "revoke"]
    assert holdfast("_complete", "agent", "revoke", "").out == "reviewer\toperator\n"
    assert "denied" in holdfast("_complete", "audit", "list", "--outcome", "").out


# --- role -------------------------------------------------------------------------------------------------------------


@pytest.mark.promise("A2")
def test_role_list_prints_each_role_and_warns_of_invalid_ones(holdfast, home):
    told = {one["name"]: one for one in holdfast("role", "list", "--json").json}
    assert set(told) == {"code-review-engineer", "secretary", "operator"}
    assert told["code-review-engineer"]["skills"] == ["update-memory"]
    assert not any(one["own"] for one in told.values())
    (home / "roles").mkdir(parents=True)
    (home / "roles" / "librarian.yaml").write_text(GOOD)
    (home / "roles" / "broken.yaml").write_text("name: broken\nrole: all\n")
    said = holdfast("role", "list")
    assert "librarian" in said.out and "agent.memory.read" in said.out and "broken" not in said.out
    assert "broken.yaml:2: unknown field 'role'" in said.err
    assert {one["name"]: one["own"] for one in holdfast("role", "list", "--json").json}["librarian"] is True


@pytest.mark.promise("A2")
def test_role_check_names_file_and_line_and_exits_1(holdfast, home, tmp_path):
    assert holdfast("role", "check").code == 0
    file = tmp_path / "librarian.yaml"
    file.write_text(GOOD)
    assert holdfast("role", "check", str(file)).out == "1 role: librarian; no problems\n"
    file.write_text(GOOD.replace("agent.memory.read", "agent.memory.rede"))
    said = holdfast("role", "check", str(file), "--json")
    assert (said.code, said.json["ok"]) == (1, False)
    (problem,) = said.json["problems"]
    assert f"{file}:3: " in problem["message"] and problem["fix"] == "Did you mean agent.memory.read?"
    (home / "roles").mkdir(parents=True)
    (home / "roles" / "librarian.yaml").write_text("name: [\n")
    assert holdfast("role", "check").code == 1
    assert holdfast("doctor").code == 1
    assert "is not valid" in holdfast("doctor").out


# --- audit ------------------------------------------------------------------------------------------------------------


@pytest.mark.promise("A3")
def test_audit_list_pages_and_filters(holdfast):
    for name in ("one", "two", "three"):
        holdfast("agent", "add", name, "--role", "secretary")
    told = holdfast("audit", "list", "--limit", "2", "--json").json
    assert [one["metadata"]["name"] for one in told["entries"]] == ["three", "two"]
    rest = holdfast("audit", "list", "--before", str(told["next"]), "--json").json
    assert ([one["number"] for one in rest["entries"]], rest["next"]) == ([1], None)
    assert holdfast("audit", "list", "--outcome", "denied", "--json").json == {"entries": [], "next": None}
    said = holdfast("audit", "list", "--limit", "1")
    assert "agents.manage" in said.out and "--before 3" in said.err
    assert len(holdfast("audit", "list", "--agent", "(local)", "--action", "agents.manage", "--json").json["entries"]) == 3


@pytest.mark.promise("A3")
def test_audit_verify_reports_changes_and_compares_a_known_head(holdfast, home):
    for name in ("one", "two", "three"):
        holdfast("agent", "add", name, "--role", "secretary")
    said = holdfast("audit", "verify")
    assert said.code == 0 and said.out.startswith("verified: 3 rows")
    head = holdfast("audit", "verify", "--json").json["head"]
    assert f"head {head}" in said.out
    assert holdfast("audit", "verify", "--known", head).code == 0
    other = f"2:{'0' * 64}"
    assert "row 2 does not match the head you gave" in holdfast("audit", "verify", "--known", other).out
    db = apsw.Connection(f"{home}/ledger.db")
    db.execute("UPDATE audit SET metadata = '{}' WHERE number = 2").fetchall()
    db.close()
    said = holdfast("audit", "verify", "--json")
    assert (said.code, said.json["ok"], said.json["broken"]) == (1, False, 1)
    assert holdfast("audit", "verify").out.startswith("changed in 1 place of 3 rows\n  row 2 ")


@pytest.mark.promise("A3")
def test_audit_export_prints_a_line_of_json_per_row(holdfast):
    for name in ("one", "two"):
        holdfast("agent", "add", name, "--role", "secretary")
    lines = [json.loads(line) for line in holdfast("audit", "export").out.splitlines()]
    assert [(row["number"], row["metadata"]["name"], len(row["hash"])) for row in lines] == [(1, "one", 64), (2, "two", 64)]
    assert holdfast("audit", "export", "--json").json == lines


@pytest.mark.promise("A3")
def test_audit_verify_takes_the_line_that_it_prints(holdfast, home):
    holdfast("agent", "add", "reviewer", "--role", "operator")
    said = holdfast("audit", "verify")
    line = next(line for line in said.out.splitlines() if line.startswith("head "))
    assert "store this head" in said.err
    assert holdfast("audit", "verify", "--known", line).code == 0
    db = apsw.Connection(str(home / "ledger.db"))
    db.execute("UPDATE audit SET agent = 'x'").fetchall()
    db.close()
    broken = holdfast("audit", "verify", "--known", line)
    assert broken.code == 1 and "store this head" not in broken.err


@pytest.mark.promise("A1")
def test_agent_names_differ_by_more_than_case_and_are_not_secrets(holdfast):
    assert holdfast("agent", "add", "ada", "--role", "secretary").code == 0
    assert "'ada'" in holdfast("agent", "add", "Ada", "--role", "secretary").err
    secret = "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a"
    said = holdfast("agent", "add", secret, "--role", "secretary")
    assert said.code != 0 and secret not in said.err + said.out


@pytest.mark.promise("A1")
def test_agent_list_shows_an_old_token_while_it_is_valid(holdfast, clock):
    old = holdfast("agent", "add", "reviewer", "--role", "secretary", "--json").json["token_id"]
    new = holdfast("agent", "rotate", "reviewer", "--grace", "24", "--json").json["token_id"]
    rows = [line for line in holdfast("agent", "list").out.splitlines() if "reviewer" in line]
    assert [next(id for id in (old, new) if id in row) for row in rows] == [old, new]
    assert "2026-05-02" in rows[0] and "never" in rows[1]
    clock.forward(days=2)
    said = holdfast("agent", "list").out
    assert new in said and old not in said
    holdfast("agent", "revoke", "reviewer")
    assert [word in holdfast("agent", "list").out for word in (new, "revoked", old)] == [True, True, False]


@pytest.mark.promise("A1")
def test_agent_rotate_says_when_the_old_token_ends(holdfast, clock):
    holdfast("agent", "add", "reviewer", "--role", "secretary")
    told = holdfast("agent", "rotate", "reviewer", "--grace", "24", "--json").json
    assert told["old_token_expires"] == "2026-05-02T12:00:00Z"
    assert "old token is valid until 2026-05-03T12:00:00Z" in holdfast("agent", "rotate", "reviewer", "--grace", "48").err
    assert "old token" not in holdfast("agent", "rotate", "reviewer").err
    assert holdfast("agent", "rotate", "reviewer", "--json").json["old_token_expires"] is None


def test_a_local_command_says_so_if_the_settings_name_a_gateway(holdfast, monkeypatch, home):
    monkeypatch.setenv("HOLDFAST_URL", "http://127.0.0.1:9")
    for words in (["agent", "list"], ["role", "list"], ["audit", "list"]):
        assert f"using the home {home}, not the gateway" in holdfast(*words).err
