"""The operator's token at the first start: at a terminal, from a file or a Secret, and never in a log; on both stores."""

from __future__ import annotations

import os
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from http_gateway import Client
from mcp_raw import HOLDFAST
from test_http_serve import started

from holdfast import config
from holdfast.access import AccessGate
from holdfast.access.operator_token import ensure_operator
from holdfast.access.tokens import make_token

TOKEN = re.compile(r"hf_[0-9a-z]{8}_[A-Za-z0-9_-]{43}")


@pytest.fixture(params=["embedded", "postgres"])
def store(request):
    """Words for the command line that name the store."""
    return () if request.param == "embedded" else ("--store", request.getfixturevalue("postgres_url"))


def status(one, token):
    return Client(one.port, token).get("/gateway/memory").status


def everything(one):
    return "".join([*one.log, *one.said])


def test_at_a_terminal_the_token_is_printed_once_and_the_second_start_says_how_to_get_another(home, tmp_path, store):
    with started(home, tmp_path, *store, terminal=True) as one:
        shown = one.until(lambda: TOKEN.search("".join(one.said))).group()
        assert status(one, shown) == 200 and one.stop() == 0
    assert everything(one).count(shown) == 2 and not (home / "operator-token").exists()  # as such, and in the example
    with started(home, tmp_path, *store, terminal=True) as one:
        said = one.line("agent rotate operator")
        assert "was shown at the first start" in said and f"--home {home}" in said
        assert one.stop() == 0
    assert not TOKEN.search(everything(one))


def test_a_token_from_a_secret_is_the_operators_at_every_start(home, tmp_path, store):
    token, secret = make_token().token, tmp_path / "secret"
    (tmp_path / "data").write_text(f"{token}\n")
    secret.symlink_to(tmp_path / "data")  # as Kubernetes mounts it
    for _ in range(2):
        with started(home, tmp_path, *store, "--operator-token-file", str(secret)) as one:
            assert status(one, token) == 200 and one.stop() == 0
        assert not TOKEN.search(everything(one)) and not (home / "operator-token").exists()


def test_a_token_of_another_tenant_ends_the_start(home, tmp_path, postgres_url):
    token, file = make_token().token, tmp_path / "token"
    file.write_text(token)
    with started(home, tmp_path, "--store", postgres_url, "--operator-token-file", str(file)) as one:
        assert status(one, token) == 200 and one.stop() == 0
    command = [*HOLDFAST, "serve", "--port", "0", "--store", postgres_url, "--operator-token-file", str(file)]
    environment = {**os.environ, "HOLDFAST_HOME": str(home), "HOLDFAST_TENANT": "other"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60, check=False)
    assert done.returncode != 0 and "of another tenant" in done.stderr and token not in done.stdout + done.stderr


def test_a_missing_file_is_written_for_its_owner_alone_and_the_log_names_it(home, tmp_path, store):
    file = tmp_path / "run" / "token"
    file.parent.mkdir()
    with started(home, tmp_path, *store, env={"HOLDFAST_OPERATOR_TOKEN_FILE": str(file)}) as one:
        assert str(file) in one.line("operator token")
        assert file.stat().st_mode & 0o777 == 0o600 and os.listdir(file.parent) == ["token"]
        assert status(one, file.read_text().strip()) == 200 and one.stop() == 0
    assert not TOKEN.search(everything(one))


def test_a_token_that_came_too_late_is_said_to_be_invalid(home, tmp_path, store):
    with started(home, tmp_path, *store) as one:
        one.stop()
    file = tmp_path / "token"
    file.write_text(make_token().token)
    with started(home, tmp_path, *store, "--operator-token-file", str(file)) as one:
        assert "agents exist already" in one.line("operator token") and "agent rotate operator" in one.line("operator token")
        assert one.stop() == 0


def test_a_file_that_holds_something_else_or_cannot_be_written_ends_the_start(home, tmp_path):
    wrong = tmp_path / "wrong"
    wrong.write_text("hunter2-hunter2")
    for path, says in ((wrong, "does not hold a token"), (tmp_path / "none" / "token", "cannot write the operator's token")):
        words = [*HOLDFAST, "serve", "--port", "0", "--home", str(home), "--operator-token-file", str(path)]
        done = subprocess.run(words, capture_output=True, text=True, timeout=60, cwd=tmp_path)
        assert done.returncode == 2 and says in done.stderr and "hunter2" not in done.stdout + done.stderr
    gate = AccessGate(config.load(home))
    assert not gate.has_agents()
    gate.close()


def test_of_many_that_start_at_once_all_end_with_the_one_token_that_is_valid(home, tmp_path, store):
    settings = config.load(home)
    settings = settings.replace(store=store[1]) if store else settings
    gates = [AccessGate(settings) for _ in range(8)]
    folders = [tmp_path / f"replica{number % 4}" for number in range(8)]  # two of each share a folder
    for folder in folders:
        folder.mkdir(exist_ok=True)
    with ThreadPoolExecutor(8) as crowd:
        results = list(
            crowd.map(lambda pair: ensure_operator(pair[0], str(pair[1] / "token")), zip(gates, folders, strict=True))
        )
    left = {path.read_text().strip() for path in tmp_path.glob("replica*/*")}
    assert len(left) == 1 and gates[0].identify(left.pop()).agent == "operator"
    assert sum(one.written for one in results) == 1 and [agent.name for agent in gates[0].agents()] == ["operator"]
    for gate in gates:
        gate.close()


def test_a_start_that_died_after_it_wrote_the_file_is_completed_by_the_next(home, tmp_path):
    gate = AccessGate(config.load(home))
    file = Path(tmp_path / "token")
    file.write_text(make_token().token)  # and no agent was made
    assert ensure_operator(gate, str(file)).valid and not ensure_operator(gate, str(file)).written
    gate.close()
