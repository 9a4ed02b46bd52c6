"""The commands that people and agents are shown work as they are: the skill for agents with a token, and the first steps."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from test_http_serve import started

from holdfast.clients import parts
from holdfast.clients.base import InstallTarget
from holdfast.server.routes import ROUTES

SKILL = parts.skill_files(InstallTarget("/u", {}, ("holdfast",), gateway=True))["skills/update-memory/SKILL.md"]
MAKEFILE = Path(__file__).resolve().parents[2] / "Makefile"
pytestmark = pytest.mark.skipif(not shutil.which("curl"), reason="no curl here")


def commands():
    """Return each command of the skill's blocks, with continued lines joined."""
    blocks = re.findall(r"^```sh\n(.*?)^```$", SKILL, re.M | re.S)
    joined = "\n".join(blocks).replace("\\\n", " ")
    return [line for line in joined.splitlines() if line.strip()]


def typed(command, url, token):
    """Return the output of a shell, and the status that curl saw."""
    env = {"PATH": os.environ["PATH"], "HOLDFAST_URL": url, "HOLDFAST_TOKEN": token, "no_proxy": "127.0.0.1"}
    asked = command.replace("curl ", "curl -w '\\n%{http_code}' ", 1)
    ran = subprocess.run(["sh", "-c", asked], env=env, capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 0, ran.stderr
    body, _, status = ran.stdout.rpartition("\n")
    return body, int(status)


@pytest.mark.promise("A8")
def test_every_command_of_the_skill_works_on_a_running_gateway(gateway):
    url, agent = f"http://127.0.0.1:{gateway.port}", gateway.agent("reviewer")
    assert len(commands()) == 3
    for command in commands():
        body, status = typed(command, url, agent.token)
        assert status in (200, 201), body
    other, pair = sorted(agent.get("/gateway/memory").json["memory"], key=lambda one: one["key"] == "migrations")
    assert "quarantined" in other and "quarantined" not in pair
    assert (pair["key"], pair["value"]) == ("migrations", "Reviewers here want every migration to be reversible.")
    body, _ = typed(commands()[1], url, agent.token)
    assert '"unchanged"' in body  # the same pair again changes nothing
    assert gateway.agent("other").get("/gateway/memory").json == {"memory": []}  # and no other agent reads it


@pytest.mark.promise("A8")
def test_every_path_and_every_answer_that_the_skill_names_is_true(gateway):
    url, agent = f"http://127.0.0.1:{gateway.port}", gateway.agent("reviewer")
    paths = set(re.findall(r"\$HOLDFAST_URL(/[\w/-]+)", SKILL))
    assert paths == {"/gateway/memory", "/v1/notes"}
    assert {(route.method, route.path) for route in ROUTES} >= {(method, path) for path in paths for method in ("GET", "POST")}
    read, write = commands()[:2]
    assert typed(read, url, "hf_aaaaaaaa_" + "a" * 43)[1] == 401
    assert typed(write, url, gateway.agent("typist", "secretary").token)[1] == 403
    assert typed(write.replace("migrations", " not a key"), url, agent.token)[1] == 422
    secret = "ghp_" + "R7kQ2mX9vB4nT8cL1wZ6yH3jD5fG0sAeUoPi"
    body, status = typed(write.replace("Reviewers here", secret), url, agent.token)
    assert status == 422 and secret not in body and '"secret"' in body
    assert typed(write.replace("migrations", "a" * 60), url, agent.token)[1] == 200
    assert typed(write.replace("migrations", "a" * 201), url, agent.token)[1] == 422
    assert {"401", "403", "422", "409", "429", "503"} <= set(re.findall(r"\b[45]\d\d\b", SKILL))


def test_the_lines_that_the_first_start_prints_work_as_they_stand(home, tmp_path):
    with started(home, tmp_path, terminal=True) as one:
        one.until(lambda: sum("curl" in line for line in list(one.said)) == 2)
        lines = [line.strip() for line in one.said if line.startswith("  ")]
        assert len(lines) == 3 and lines[0].startswith("export ")
        ran = subprocess.run(["sh", "-ec", "\n".join(lines)], capture_output=True, text=True, timeout=60, check=False,
                             env={"PATH": os.environ["PATH"], "no_proxy": "127.0.0.1"})  # fmt: skip
        assert ran.returncode == 0 and ran.stdout.count("We deploy on Tuesdays.") == 2, ran
        assert one.stop() == 0
        token = re.search(r"hf_\S{8}_[A-Za-z0-9_-]{43}", "".join(one.said)).group()
        assert token not in "".join(one.log)


def test_make_run_starts_the_gateway_and_make_demo_the_tour():
    text = MAKEFILE.read_text(encoding="utf-8")
    assert re.search(r"^run: setup .*\n\t@\.venv/bin/holdfast serve \$\(ARGS\)$", text, re.M)
    assert re.search(r"^demo: setup .*\n\t@\.venv/bin/holdfast demo$", text, re.M)
