"""The access gate: token authentication, decisions by role, and decisions that cannot be written to the audit."""

from __future__ import annotations

import itertools
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import apsw
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from holdfast import Memory, config
from holdfast.access import ACTIONS, AccessGate, Caller, Role, health, role_file
from holdfast.access import roles as roles_module
from holdfast.access.policy import STRICT, denial_reason
from holdfast.access.roles import Roles
from holdfast.errors import (
    Busy,
    ConfigError,
    Conflict,
    Denied,
    InvalidKey,
    NotFound,
    Trouble,
    Unauthenticated,
    Unrecorded,
    UsageError,
)
from holdfast.ledger.audit_verify import verify
from holdfast.models import SCOPES
from holdfast.verbs.doctor.fixes import with_fixes

ROLE = """\
name: {name}
skills: [update-memory]
allowed_actions: [{actions}]
scopes: [{scopes}]
"""


def problems(settings):
    """Return the problems of the gateway with their fixes, as `doctor` shows them."""
    return with_fixes(settings.home, health.find_problems(settings))


@pytest.fixture
def settings(home):
    return config.load(home).replace(lock_seconds=1)


@pytest.fixture
def open_gate(settings):
    """Gates of one home; they are closed after the test."""
    opened = []

    def open_(**changes):
        opened.append(AccessGate(settings.replace(**changes)))
        return opened[-1]

    yield open_
    for gate in opened:
        gate.close()


@pytest.fixture
def gate(open_gate):
    return open_gate()


@pytest.fixture
def reviewer(gate):
    return gate.identify(gate.add("reviewer", "code-review-engineer")[1])


@pytest.fixture
def write_role(home):
    def write(name, actions="", scopes="", text=None):
        (home / "roles").mkdir(parents=True, exist_ok=True)
        path = home / "roles" / f"{name}.yaml"
        path.write_text(text if text is not None else ROLE.format(name=name, actions=actions, scopes=scopes))
        return path

    return write


def rows(gate):
    return [(row.agent, row.action, row.outcome, row.metadata) for row in gate.ledger.audit.iterate_entries()]


# --- tokens (A1) ------------------------------------------------------------------------------------------------------


@pytest.mark.promise("A1")
def test_the_token_alone_says_who_calls(gate):
    agent, token = gate.add("reviewer", "code-review-engineer")
    assert (agent.name, agent.role, agent.state(0)) == ("reviewer", "code-review-engineer", "active")
    caller = gate.identify(token)
    assert caller == Caller("reviewer", "code-review-engineer", "default", token[3:11])
    assert token[12:] not in repr(caller)


@pytest.mark.promise("A1")
def test_many_tokens_are_looked_up_with_one_question_each_for_itself(gate):
    one, other = gate.add("one", "operator")[1], gate.add("other", "secretary")[1]
    gate.revoke("other")
    found = gate.ledger.agents.find_tokens([one[3:11], other[3:11], "unknown0", one[3:11], "'; --", "%"])
    assert {id: (kept.agent, kept.revoked is None) for id, kept in found.items()} == {
        one[3:11]: ("one", True), other[3:11]: ("other", False),
    }  # fmt: skip
    assert gate.ledger.agents.find_tokens([]) == {}


@pytest.mark.promise("A1")
def test_a_token_is_shown_once_and_stands_nowhere_in_the_home(gate, home):
    tokens = [gate.add("reviewer", "operator")[1], gate.rotate("reviewer")[1], gate.first_token() or ""]
    gate.close()
    kept = b"".join(path.read_bytes() for path in home.rglob("*") if path.is_file())
    for token in filter(None, tokens):
        assert len(token) == 55 and token.startswith("hf_")
        assert token.encode() not in kept and token[12:].encode() not in kept
        assert token[3:11].encode() in kept  # its public part


@pytest.mark.promise("A1")
def test_a_token_is_checked_to_its_last_character(gate):
    _, token = gate.add("reviewer", "operator")
    last, first = ("A" if one != "A" else "B" for one in (token[-1], token[12]))
    for wrong in (token[:-1] + last, token[:12] + first + token[13:], token + "A", token[:-1], token.upper(), f" {token}"):
        with pytest.raises(Unauthenticated):
            gate.identify(wrong)
    assert gate.identify(token).agent == "reviewer"


@pytest.mark.promise("A1")
@pytest.mark.parametrize(
    "token",
    ["", "x", "hf_", "hf_12345678_" + "a" * 43, "hf_' OR 1=1_" + "a" * 43, "hf_12345678_" + "é" * 43, "\0" * 55, None, b"hf_"],
)
def test_what_is_no_token_is_refused_with_how_to_get_one(gate, token):
    gate.add("reviewer", "operator")
    with pytest.raises(Unauthenticated) as refused:
        gate.identify(token)
    assert refused.value.http_status == 401
    assert "holdfast agent add" in refused.value.fix


@pytest.mark.promise("A1")
def test_a_token_ends_when_its_days_are_over(gate, clock):
    _, token = gate.add("reviewer", "operator", days=30)
    clock.forward(days=30, seconds=-1)
    assert gate.identify(token).agent == "reviewer"
    clock.forward(1)
    with pytest.raises(Unauthenticated, match="expired"):
        gate.identify(token)
    assert gate.agent("reviewer").state(clock()) == "expired"
    _, again = gate.rotate("reviewer")
    clock.forward(days=29)
    assert gate.identify(again)  # it lasts as long as the previous one
    clock.forward(days=1)
    with pytest.raises(Unauthenticated):
        gate.identify(again)


@pytest.mark.promise("A1")
def test_a_rotated_token_ends_the_old_one_at_once_or_after_a_grace(gate, clock):
    _, first = gate.add("reviewer", "operator")
    _, second = gate.rotate("reviewer")
    with pytest.raises(Unauthenticated, match=r"revoked.*`holdfast agent rotate NAME`"):
        gate.identify(first)
    _, third = gate.rotate("reviewer", grace_hours=2)
    assert gate.identify(second) and gate.identify(third)
    clock.forward(minutes=121)
    with pytest.raises(Unauthenticated, match="expired"):
        gate.identify(second)
    assert gate.identify(third)
    gate.rotate("reviewer", grace_hours=2)
    gate.revoke("reviewer")  # also ends the one in its grace period
    with pytest.raises(Unauthenticated):
        gate.identify(third)


REVOKE = "from holdfast import config; from holdfast.access import AccessGate; AccessGate(config.load(args[0])).revoke(args[1])"


@pytest.mark.promise("A1")
def test_a_revocation_by_another_process_counts_at_once(gate, child, home):
    _, token = gate.add("reviewer", "operator")
    _, other = gate.add("other", "operator")
    assert gate.identify(token)
    child(REVOKE, home, "reviewer")
    with pytest.raises(Unauthenticated, match="revoked"):
        gate.identify(token)
    assert gate.identify(other)
    assert gate.agent("reviewer").state(0) == "revoked"


def test_a_revoked_agent_can_be_let_in_again_and_its_old_token_stays_dead(gate):
    _, old = gate.add("reviewer", "operator")
    gate.revoke("reviewer")
    with pytest.raises(Conflict, match="revoked"):
        gate.rotate("reviewer")
    agent, new = gate.add("reviewer", "secretary")
    assert (agent.role, gate.identify(new).role) == ("secretary", "secretary")
    with pytest.raises(Unauthenticated):
        gate.identify(old)


def test_an_agent_is_added_once_and_only_with_a_name_and_a_role_that_there_are(gate, home, write_role):
    gate.add("reviewer", "operator")
    with pytest.raises(Conflict, match="already"):
        gate.add("reviewer", "operator")
    for name in ("../x", "", ".hidden", "a/b", "(local)", "x" * 129):
        with pytest.raises(InvalidKey):
            gate.add(name, "operator")
    with pytest.raises(UsageError, match="unknown role"):
        gate.add("other", "nobody")
    write_role("broken", text="name: broken\nallowed: []\n")
    with pytest.raises(ConfigError, match=r"broken\.yaml:2"):
        gate.add("other", "broken")
    for days in (0, -1, 10**6):
        with pytest.raises(UsageError):
            gate.add("other", "operator", days=days)
    for verb in (gate.rotate, gate.revoke, gate.agent):
        with pytest.raises(NotFound):
            verb("other")
    assert [agent.name for agent in gate.agents()] == ["reviewer"]


@pytest.mark.promise("A3")
def test_every_change_of_tokens_is_in_the_audit_with_who_did_what(gate):
    gate.first_token()
    gate.add("reviewer", "secretary")
    gate.rotate("reviewer")
    gate.revoke("reviewer")
    told = rows(gate)
    assert {(agent, action, outcome) for agent, action, outcome, _ in told} == {("(local)", "agents.manage", "allowed")}
    assert [(meta["verb"], meta["name"]) for *_, meta in told] == [
        ("add", "operator"), ("add", "reviewer"), ("rotate", "reviewer"), ("revoke", "reviewer"),
    ]  # fmt: skip
    assert all(meta["role"] == "operator" for *_, meta in told)
    chief = gate.identify(gate.add("chief", "operator")[1])
    with gate.permit(chief, "agents.manage", request="r1") as permit:
        gate.add("other", "secretary", permit=permit)
    with pytest.raises(Conflict), gate.permit(chief, "agents.manage", request="r2") as permit:
        gate.add("other", "secretary", permit=permit)
    (done, failed) = rows(gate)[-2:]
    assert done[0] == failed[0] == "chief" and (done[3]["request"], done[3]["verb"]) == ("r1", "add")
    assert (failed[3]["request"], failed[3]["failed"]) == ("r2", "conflict") and "verb" not in failed[3]
    assert len(rows(gate)) == 7
    assert verify(gate.ledger.audit).ok


FIRST = """
import sys
from holdfast import config
from holdfast.access import AccessGate
porter = AccessGate(config.load(sys.argv[1]))
sys.stdin.readline()
print(porter.first_token())
"""


@pytest.mark.promise("A1")
def test_of_many_servers_that_start_at_once_one_shows_the_first_token(gate, home):
    starts = [
        subprocess.Popen([sys.executable, "-c", FIRST, str(home)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(8)
    ]
    said = [start.communicate("go\n", timeout=60)[0].strip() for start in starts]
    (token,) = [line for line in said if line != "None"]
    assert gate.identify(token) == Caller("operator", "operator", "default", token[3:11])
    assert gate.first_token() is None
    gate.revoke("operator")
    assert gate.first_token() is None  # there is an agent, although it is revoked


# --- roles (A2) -------------------------------------------------------------------------------------------------------


@pytest.mark.promise("A2")
def test_the_roles_that_come_with_it_are_these(gate):
    reviewing = ("agent.memory.read", "agent.memory.write", "github.review")
    assert gate.roles() == (
        Role("code-review-engineer", ("update-memory",), reviewing, ("agent",)),
        Role("operator", ("update-memory",), ("*",), SCOPES),
        Role("secretary"),
    )
    assert gate.role_problems() == ()


REVIEWS = ("github.review", "github.review.comment", "github.review.approve", "github.review.request_changes")
MATRIX = {  # what each role allows
    "code-review-engineer": (("agent.memory.read", "agent.memory.write", *REVIEWS), ("agent",)),
    "secretary": ((), ()),
    "operator": (ACTIONS, SCOPES),
    "librarian": (("agent.memory.read", "memory.export", "done.read"), ("project", "global")),
    "clerk": (("agent.memory.read", "done.write", "github.review.comment"), ()),
    "nobody": ((), ()),
}
MEMORY = {"agent.memory.read", "agent.memory.write", "memory.purge", "memory.review", "memory.export"}


@pytest.mark.promise("A2")
@pytest.mark.promise("A3")
@pytest.mark.parametrize("name", MATRIX)
def test_every_action_in_every_scope_is_allowed_or_denied_as_the_role_says(gate, write_role, name):
    for own in ("librarian", "clerk"):
        actions, scopes = MATRIX[own]
        write_role(own, ", ".join(actions), ", ".join(scopes))
    actions, scopes = MATRIX[name]
    caller, expected = Caller("somebody", name, token="12345678"), []
    for action, scope in itertools.product([*ACTIONS, "no.such.action", "*"], [None, *SCOPES, "elsewhere"]):
        may = action in actions and (scope is None or scope in scopes) and (action not in MEMORY or bool(scopes))
        expected.append((action, scope, may))
        if may:
            gate.allow(caller, action, scope)
        else:
            with pytest.raises(Denied) as denied:
                gate.allow(caller, action, scope)
            assert (denied.value.http_status, denied.value.exit_code) == (403, 3)
    told = [(action, meta.get("scope"), outcome == "allowed") for _, action, outcome, meta in rows(gate)]
    assert told == expected  # one row for each, and no other
    assert {meta["role"] for *_, meta in rows(gate)} == {name}
    assert {meta["token"] for *_, meta in rows(gate)} == {"12345678"}


@pytest.mark.promise("A2")
def test_a_denied_scope_is_answered_with_the_scopes_of_the_role():
    role = Role("own", (), ("agent.memory.read",), ("project", "agent"))
    reason = denial_reason(role, "agent.memory.read", "global")
    assert reason == "its role does not reach the scope global, only project, agent"
    assert denial_reason(role.replace(scopes=()), "agent.memory.read", "global") == "its role reaches no scope"


@pytest.mark.promise("A2")
def test_everything_is_the_operators_alone():
    forged = Role("almost", (), ("*",), SCOPES)
    assert all(denial_reason(forged, action, None) for action in ACTIONS)
    assert not any(denial_reason(Role("operator", (), ("*",), SCOPES), action, None) for action in ACTIONS)


WRONG = {
    "unknown field": ("name: own\nallowed_actions: []\npowers: [all]\n", 3, "unknown field 'powers'"),
    "unknown action": ("name: own\nallowed_actions:\n  - agent.memory.read\n  - agent.memory.reed\n", 4, "agent.memory.reed"),
    "all for another": ('name: own\nallowed_actions: ["*"]\n', 2, "reserved for the operator"),
    "part of all": ("name: own\nallowed_actions: [agent.*]\n", 2, "there is no action"),
    "unknown scope": ("name: own\nallowed_actions: []\nscopes: [agent, everywhere]\n", 3, "there is no scope"),
    "another name": ("name: other\nallowed_actions: []\n", 1, "named 'own'"),
    "bad name": ("\nname: Own Role\nallowed_actions: []\n", 2, "not a name"),
    "bad skill": ("name: own\nskills: [../x]\nallowed_actions: []\n", 2, "not a name of a skill"),
    "no name": ("allowed_actions: []\n", 1, "name is missing"),
    "no actions": ("name: own\n", 1, "allowed_actions is missing"),
    "twice": ("name: own\nallowed_actions: []\nallowed_actions: [dispatch]\n", 3, "twice"),
    "no list": ("name: own\nallowed_actions: dispatch\n", 2, "must be a list"),
    "a list in a list": ("name: own\nallowed_actions: [[dispatch]]\n", 2, "must be one word"),
    "an object": ("name: own\nallowed_actions:\n  - !!python/object/apply:os.system [x]\n", 3, "must be one word"),
    "no mapping": ("- own\n", 1, "not a role"),
    "empty": ("", 1, "not a role"),
    "no yaml": ("name: own\nallowed_actions: [\n", 3, "not YAML"),
    "two documents": ("name: own\nallowed_actions: []\n---\nname: b\n", 3, "not YAML"),
    "too large": ("name: own\nallowed_actions: []\n#" + "x" * 20_000, 1, "larger"),
    "too deep": ("name: own\nallowed_actions: " + "[" * 5000, 1, "too large"),
    "not text": (b"name: own\n\xff\xfe\n", 2, "not UTF-8"),
}


@pytest.mark.promise("A2")
@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_file_is_named_with_its_line_and_its_role_means_nothing(gate, write_role, home, what):
    text, line, message = WRONG[what]
    path = write_role("own", "agent.memory.read", "agent")
    caller = Caller("somebody", "own")
    gate.allow(caller, "agent.memory.read", "agent")
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(Denied, match="unknown or cannot be read"):
        gate.allow(caller, "agent.memory.read", "agent")
    (fault,) = gate.role_problems()
    assert fault.message.startswith(f"{path}:{line}: ") and message in fault.message
    assert fault.fix
    with pytest.raises(ConfigError):
        role_file.read(str(path))
    assert "own" not in [role.name for role in gate.roles()]
    assert gate.role("own") == Role("own")


PIECES = [
    "name: own\n", "allowed_actions: ", "[", "]", "dispatch", "- ", '"*"', "*", "&a ", "*a", "<<: ", "!!binary ", "{", "}",
    ": ", "\n", "  ", "\t", "'", "|", "> ", "? ", "%YAML 9.9\n", "---\n", "scopes: ", "agent", "\x00", "\ud800", "\u2028", "é",
]  # fmt: skip


@pytest.mark.promise("A2")
@given(st.lists(st.sampled_from(PIECES)).map("".join) | st.text())
@example("name: own\nallowed_actions: &a [*a]\n")
@example("name: own\nallowed_actions: []\nskills: *b\n")
def test_whatever_stands_in_a_file_it_is_a_role_or_named_as_wrong(text):
    try:
        role = role_file.parse(text)
    except ConfigError as error:
        assert error.message.startswith("role:") and error.fix
    else:
        assert set(role.allowed_actions) <= set(ACTIONS) and set(role.scopes) <= set(SCOPES)


@pytest.mark.promise("A2")
def test_a_file_of_the_home_goes_over_a_shipped_role_and_a_broken_one_never_widens_it_back(gate, write_role):
    caller = Caller("somebody", "code-review-engineer")
    gate.allow(caller, "github.review")
    path = write_role("code-review-engineer", "agent.memory.read", "agent")
    gate.allow(caller, "agent.memory.read", "agent")
    for text in (None, "name: code-review-engineer\nallowed_actions: [\n"):
        if text:
            path.write_text(text)
        with pytest.raises(Denied):
            gate.allow(caller, "github.review")
    path.unlink()
    gate.allow(caller, "github.review")


@pytest.mark.promise("A2")
def test_a_role_that_changes_counts_from_the_next_decision_on(gate, write_role):
    caller = Caller("somebody", "own")
    for allowed in (True, False, True, False):
        write_role("own", "dispatch" if allowed else "")
        if allowed:
            gate.allow(caller, "dispatch")
        else:
            with pytest.raises(Denied):
                gate.allow(caller, "dispatch")


@pytest.mark.promise("A2")
def test_a_folder_of_roles_that_is_not_listed_again_still_shows_every_change(home, write_role, monkeypatch):
    roles, listed, listing = Roles(str(home)), [], roles_module._list_files
    monkeypatch.setattr(roles_module, "_list_files", lambda folder: listed.append(folder) or listing(folder))
    monkeypatch.setattr(roles_module, "_SETTLED_NS", -(10**12))  # as if every change were long ago
    tick = itertools.count(1)

    def turn_clock():
        os.utime(home / "roles", (1000 + next(tick),) * 2)  # a later change has a later time

    write_role("own", "dispatch")
    turn_clock()
    assert roles.get("own").allowed_actions == ("dispatch",)
    assert roles.get("own") is roles.get("own") and roles.get("operator") and len(listed) == 1

    write_role("own", "done.read, done.write")
    assert roles.get("own").allowed_actions == ("done.read", "done.write")
    assert roles.get("other") is None
    write_role("other", "dispatch")
    turn_clock()
    assert roles.get("other").allowed_actions == ("dispatch",)
    (home / "roles" / "other").write_text("no role")
    turn_clock()
    assert roles.get("other") is not None and roles.get("own") is not None
    (home / "roles" / "own.yaml").unlink()
    turn_clock()
    assert roles.get("own") is None


def test_without_a_word_about_scopes_a_role_reaches_its_agents_own_memory(gate, write_role):
    write_role("own", text="name: own\nallowed_actions: [agent.memory.read]\n")
    assert gate.role("own").scopes == ("agent",)
    write_role("own", text="name: own\nallowed_actions: [agent.memory.read]\nscopes: []\n")
    assert gate.role("own").scopes == ()


@pytest.mark.parametrize("how", ["link", "pipe", "folder", "wrong suffix"])
def test_only_a_plain_yaml_file_is_a_role(gate, write_role, home, tmp_path, how):
    path = write_role("own", "dispatch")
    path.unlink()
    if how == "link":
        (tmp_path / "elsewhere.yaml").write_text(ROLE.format(name="own", actions="dispatch", scopes=""))
        path.symlink_to(tmp_path / "elsewhere.yaml")
    elif how == "pipe":
        os.mkfifo(path)
    elif how == "folder":
        path.mkdir()
    else:
        path.with_suffix(".yml").write_text(ROLE.format(name="own", actions="dispatch", scopes=""))
    with pytest.raises(Denied):
        gate.allow(Caller("somebody", "own"), "dispatch")
    assert len(gate.role_problems()) == 1
    assert len(gate.roles()) == 3
    (problem,) = problems(gate.config)
    subprocess.run(problem.fix, shell=True, check=True, timeout=30)
    assert problems(gate.config) == []


def test_where_the_folder_of_roles_cannot_be_read_nothing_is_allowed(gate, home):
    home.mkdir()
    (home / "roles").write_text("not a folder")
    with pytest.raises(Denied):
        gate.allow(Caller("somebody", "operator"), "dispatch")
    assert gate.roles() == ()
    assert len(gate.role_problems()) == 1
    (problem,) = problems(gate.config)
    assert problem.message.startswith("no role is valid: ")
    subprocess.run(problem.fix, shell=True, check=True, timeout=30)
    gate.allow(Caller("somebody", "operator"), "dispatch")
    assert problems(gate.config) == []


def test_what_an_editor_leaves_beside_a_role_is_no_role(gate, write_role, home):
    write_role("own", "dispatch")
    (home / "roles" / ".own.yaml.swp").write_text("x")
    (home / "roles" / "own.yaml~").write_text("x")
    assert gate.role_problems() == ()
    assert "own" in [role.name for role in gate.roles()]


# --- a decision that cannot be written to the audit (A3) --------------------------------------------------------------


class Locked:
    """Hold the ledger's lock from another process."""

    def __init__(self, home):
        self.db = apsw.Connection(f"{home}/ledger.db")
        self.db.execute("BEGIN IMMEDIATE")

    def mend(self):
        self.db.execute("ROLLBACK")
        self.db.close()


class Headless:
    """Delete the head of the chain."""

    def __init__(self, home):
        self.db = apsw.Connection(f"{home}/ledger.db")
        self.head = self.db.execute("SELECT * FROM audit_head").fetchall()
        self.db.execute("DELETE FROM audit_head").fetchall()

    def mend(self):
        self.db.execute("INSERT INTO audit_head VALUES (?, ?, ?, ?)", self.head[0]).fetchall()
        self.db.close()


class Occupied:
    """Insert a row with the number of the next row."""

    def __init__(self, home):
        self.db = apsw.Connection(f"{home}/ledger.db")
        rows = self.db.execute("SELECT * FROM audit").fetchall()
        self.db.executemany("INSERT INTO audit VALUES (?, ?, ?, ?, ?, ?, ?, ?)", [(1000 + row[0], *row[1:]) for row in rows])
        self.db.execute("UPDATE audit_head SET count = 1000").fetchall()

    def mend(self):
        self.db.execute("DELETE FROM audit WHERE number > 1000; UPDATE audit_head SET count = (SELECT max(number) FROM audit)")
        self.db.close()


TROUBLES = [Locked, Headless, Occupied]


def test_one_missing_decision_is_told_as_one(gate, reviewer, settings, home):
    injected = Locked(home)
    gate.allow(reviewer, "agent.memory.read", "agent")
    injected.mend()
    assert [one.message[:30] for one in problems(settings)] == ["1 decision is not in the audit"]


@pytest.mark.promise("A3")
@pytest.mark.parametrize("trouble", TROUBLES)
def test_by_default_a_row_that_cannot_be_written_changes_no_decision_and_is_logged_counted_and_shown(
    gate, reviewer, settings, home, trouble
):
    injected = trouble(home)
    gate.allow(reviewer, "agent.memory.read", "agent")
    with pytest.raises(Denied):
        gate.allow(reviewer, "dispatch")
    assert gate.unrecorded == 2
    injected.mend()
    (problem,) = [one for one in problems(settings) if one.code == "audit"]
    assert "2 decisions are not in the audit" in problem.message
    assert "reviewer, dispatch" in problem.message and problem.fix
    assert stat.S_IMODE((home / "run" / "audit.log").stat().st_mode) == 0o600
    gate.allow(reviewer, "agent.memory.write", "agent")
    assert rows(gate)[-1][3]["unrecorded"] == 2  # and the audit itself reports that two are missing
    gate.allow(reviewer, "agent.memory.write", "agent")
    assert "unrecorded" not in rows(gate)[-1][3]
    assert verify(gate.ledger.audit).ok


@pytest.mark.promise("A3")
@pytest.mark.parametrize("trouble", TROUBLES)
def test_in_strict_mode_nothing_is_done_that_cannot_be_written_down(open_gate, reviewer, home, trouble):
    strict = open_gate(audit_mode="strict")
    strict.allow(reviewer, "agent.memory.write", "agent")
    injected = trouble(home)
    with pytest.raises(Unrecorded) as refused:
        strict.allow(reviewer, "agent.memory.write", "agent")
    assert (refused.value.http_status, refused.value.code) == (503, "unrecorded")
    with pytest.raises(Denied):
        strict.allow(reviewer, "dispatch")
    injected.mend()
    strict.allow(reviewer, "agent.memory.write", "agent")
    assert strict.unrecorded == 2


@pytest.mark.promise("A3")
@pytest.mark.parametrize("action", STRICT)
def test_purge_export_and_tokens_are_strict_in_every_mode(gate, home, action):
    operator = gate.identify(gate.first_token())
    gate.allow(operator, action)
    injected = Locked(home)
    with pytest.raises(Unrecorded):
        gate.allow(operator, action)
    injected.mend()
    gate.allow(operator, action)


@pytest.mark.promise("A3")
@pytest.mark.parametrize("trouble", TROUBLES)
def test_a_token_is_not_made_changed_or_revoked_without_its_row(gate, home, trouble):
    _, token = gate.add("reviewer", "operator")
    injected = trouble(home)
    for verb, *words in ((gate.add, "other", "operator"), (gate.rotate, "reviewer"), (gate.revoke, "reviewer")):
        with pytest.raises((Busy, Trouble)):
            verb(*words)
    injected.mend()
    assert gate.identify(token)
    assert [agent.name for agent in gate.agents()] == ["reviewer"]
    assert len(rows(gate)) == 1


@pytest.mark.promise("A3")
@pytest.mark.parametrize("how", ["garbage", "a folder", "nothing"])
def test_a_ledger_that_is_replaced_between_two_steps_of_a_request_lets_nobody_in_and_hides_nothing(gate, reviewer, home, how):
    gate.allow(reviewer, "agent.memory.read", "agent")
    gate.ledger.audit.save_mark()
    token = gate.rotate("reviewer")[1]
    gate.ledger.close()
    for name in ("ledger.db", "ledger.db-wal", "ledger.db-shm"):
        (home / name).unlink(missing_ok=True)
    if how == "garbage":
        (home / "ledger.db").write_bytes(b"not a database at all" * 500)
    elif how == "a folder":
        (home / "ledger.db").mkdir()
    gate.allow(reviewer, "agent.memory.read", "agent")  # the decision is in a new ledger
    with pytest.raises(Unauthenticated):
        gate.identify(token)
    verdict = verify(gate.ledger.audit)
    assert not verdict.ok and "audit.head refers to it" in verdict.problems[0]
    assert [one.code for one in problems(gate.config)] == ["audit_chain"]


FULL = """
import resource, signal
from holdfast import config
from holdfast.access import Caller, AccessGate
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
answer = []
for mode in ("best-effort", "strict"):
    porter = AccessGate(config.load(args[0]).replace(audit_mode=mode))
    caller = porter.identify(args[1])
    porter.allow(caller, "agent.memory.write", "agent")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))  # as a full disk is: no file may grow
    try:
        porter.allow(caller, "agent.memory.write", "agent")
        answer.append("allowed")
    except HoldfastError as error:
        answer.append(error.code)
    answer.append(porter.unrecorded)
    answer.append(porter.identify(args[1]).agent)  # reading goes on
    resource.setrlimit(resource.RLIMIT_FSIZE, before)
    porter.allow(caller, "agent.memory.write", "agent")
    porter.close()
"""


@pytest.mark.promise("A3")
def test_a_disk_that_fills_up_in_the_middle_of_a_request_fails_it_only_in_strict_mode(gate, child, home):
    _, token = gate.add("reviewer", "code-review-engineer")
    assert child(FULL, home, token) == ["allowed", 1, "reviewer", "unrecorded", 1, "reviewer"]
    told = [meta.get("unrecorded") for *_, meta in rows(gate)[1:]]
    assert told == [None, 1, None, 1]
    assert verify(gate.ledger.audit).ok


READ_ONLY = """
from holdfast import config
from holdfast.access import AccessGate
home, answer = args[0] + "/home", []
for mode in ("best-effort", "strict"):
    porter = AccessGate(config.load(home).replace(audit_mode=mode))
    caller = porter.identify(porter.add(mode, "code-review-engineer")[1])
    porter.close()
    places = [home, *[os.path.join(folder, name) for folder, _, names in os.walk(home) for name in names]]
    for place in places:
        os.chmod(place, 0o500 if os.path.isdir(place) else 0o400)
    try:
        porter.allow(caller, "agent.memory.write", "agent")
        answer.append("allowed")
    except HoldfastError as error:
        answer.append(error.code)
    for place in places:
        os.chmod(place, 0o700 if os.path.isdir(place) else 0o600)
    answer.append(porter.unrecorded)
    porter.allow(caller, "agent.memory.write", "agent")
"""


@pytest.mark.promise("A3")
def test_a_home_that_turns_read_only_in_the_middle_of_a_request_fails_it_only_in_strict_mode(child):
    place = Path(tempfile.mkdtemp(prefix="holdfast-test-"))  # other users cannot enter pytest's own folders
    try:
        place.chmod(0o777)
        assert child(READ_ONLY, place, as_nobody=True) == ["allowed", 1, "unrecorded", 1]
    finally:
        shutil.rmtree(place)


def test_a_mode_that_there_is_not_is_refused_with_those_there_are(home):
    assert config.load(home).audit_mode == "best-effort"
    assert config.load(home, {"HOLDFAST_AUDIT_MODE": "strict", "HOME": str(home)}).audit_mode == "strict"
    with pytest.raises(ConfigError, match="best-effort or strict"):
        config.load(home, {"HOLDFAST_AUDIT_MODE": "loose", "HOME": str(home)})
    home.mkdir()
    (home / "config.toml").write_text('[audit]\nmode = "off"\n')
    with pytest.raises(ConfigError, match="best-effort or strict"):
        config.load(home)


def test_a_request_does_not_wait_for_the_ledger_as_long_as_a_person_would(settings):
    assert AccessGate(settings.replace(lock_seconds=30)).ledger.database.file._seconds == 5


# --- doctor -----------------------------------------------------------------------------------------------------------


@pytest.mark.promise("D1")
def test_doctor_names_roles_that_mean_nothing_and_agents_that_have_none(gate, settings, write_role):
    assert problems(settings) == []
    path = write_role("own", "dispatch")
    gate.add("first", "own")
    write_role("other", "dispatch")
    gate.add("second", "other")
    assert problems(settings) == []
    path.write_text("name: own\npowers: []\n")
    (home_role := path.with_name("other.yaml")).unlink()
    role, agent = sorted(problems(settings), key=lambda one: one.code, reverse=True)
    assert (role.code, role.path) == ("role", str(path)) and "own.yaml:2" in role.message
    assert agent.code == "agent" and "second" in agent.message and "agent revoke second" in agent.fix
    assert not home_role.exists()


def test_a_home_without_a_gateway_is_not_touched_by_looking(settings, home):
    assert problems(settings) == []
    assert not home.exists()


def test_memory_of_an_agent_is_its_own_scope(gate, reviewer, settings):
    """What a caller is for Memory: the agent's scope, and the origin says that an agent wrote."""
    with Memory(config=settings, agent=reviewer.agent, project="none", client="http", origin="agent") as memory:
        note = memory.store("kept for the reviewer", key="k", scope="agent").note
    assert (note.scope.kind, note.scope.id, note.source.origin) == ("agent", "reviewer", "agent")
