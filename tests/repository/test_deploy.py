"""What docs/deploy gives to copy: it parses, says what it must, and starts what there is; and a backup that was tried."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from http_gateway import Client, run_gateway
from mcp_raw import HOLDFAST

from holdfast import Memory, config
from holdfast.access import AccessGate
from holdfast.cli.parser import read

DEPLOY = Path(__file__).resolve().parents[2] / "docs" / "deploy"
NEEDED = {  # what the API of Kubernetes does without for no object of that kind
    "Service": ("spec.selector.app", "spec.ports.0.port"),
    "StatefulSet": (
        "spec.serviceName", "spec.selector.matchLabels.app", "spec.template.metadata.labels.app",
        "spec.template.spec.containers.0.name", "spec.template.spec.containers.0.image",
        "spec.volumeClaimTemplates.0.metadata.name", "spec.volumeClaimTemplates.0.spec.accessModes.0",
        "spec.volumeClaimTemplates.0.spec.resources.requests.storage",
    ),
}  # fmt: skip
WRITER = """
import sys
from holdfast import Memory
with Memory(sys.argv[1], agent="busy", project="demo", session="s1") as memory:
    number = 0
    while True:
        memory.store(f"Version {number} of a note that is written all the time.", key=f"n{number % 50}")
        memory.log([{"role": "user", "text": f"Said number {number}."}])
        if number % 5 == 0:
            memory.forget(f"n{number % 50}")
            memory.restore(f"n{number % 50}")
        number += 1
        print(number, flush=True)
"""


def manifests():
    return list(yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text()))


def at(document, path):
    for part in path.split("."):
        document = document[int(part)] if part.isdecimal() else document[part]
    return document


def unit():
    """The unit's settings by section, in their order."""
    found, section = {}, None
    for line in (DEPLOY / "holdfast.service").read_text().splitlines():
        if line.startswith("["):
            section = found.setdefault(line.strip("[]"), [])
        elif line and not line.startswith("#"):
            section.append(tuple(line.split("=", 1)))
    return found


# --- the files --------------------------------------------------------------------------------------------------------------


def test_every_file_starts_the_gateway_with_words_that_it_knows():
    (command,) = [value for name, value in unit()["Service"] if name == "ExecStart"]
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]["holdfast"]["command"]
    container = at(manifests()[1], "spec.template.spec.containers.0")
    image = next(line for line in (DEPLOY / "Dockerfile").read_text().splitlines() if line.startswith("CMD "))
    for words in (shlex.split(command)[1:], compose, container["args"], json.loads(image.removeprefix("CMD "))):
        call = read(list(words))
        assert call.command.name == "serve" and call.values["port"] == 8710 and call.values["json_logs"], words
    assert shlex.split(command)[3] == "127.0.0.1"


def test_compose_publishes_on_loopback_only_and_gives_nothing_away():
    service = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]["holdfast"]
    assert all(port.startswith("127.0.0.1:") for port in service["ports"])
    assert service["read_only"] is True and service["cap_drop"] == ["ALL"] and service["user"] != "0"
    assert (DEPLOY / service["build"]["context"] / service["build"]["dockerfile"]).resolve() == DEPLOY / "Dockerfile"
    assert service["volumes"][0].split(":")[0] in yaml.safe_load((DEPLOY / "compose.yaml").read_text())["volumes"]


def test_the_manifest_has_every_field_that_kubernetes_requires_and_they_fit_together():
    documents = manifests()
    assert [one["kind"] for one in documents] == list(NEEDED)
    for one in documents:
        assert one["apiVersion"] and one["metadata"]["name"] == "holdfast"
        for path in NEEDED[one["kind"]]:
            assert at(one, path), path
    service, stateful = documents
    spec = stateful["spec"]
    assert spec["selector"]["matchLabels"] == spec["template"]["metadata"]["labels"] == service["spec"]["selector"]
    assert spec["serviceName"] == service["metadata"]["name"] and spec["replicas"] == 1
    container, pod = at(spec, "template.spec.containers.0"), spec["template"]["spec"]
    volumes = {one["name"] for one in pod["volumes"]} | {one["metadata"]["name"] for one in spec["volumeClaimTemplates"]}
    assert {one["name"] for one in container["volumeMounts"]} == volumes
    ports = {one["name"] for one in container["ports"]}
    assert service["spec"]["ports"][0]["targetPort"] in ports
    assert pod["securityContext"]["runAsNonRoot"] and not pod["automountServiceAccountToken"]
    assert not container["securityContext"]["allowPrivilegeEscalation"]


def test_probes_are_answered_without_a_token_under_the_name_they_use(home):
    container = at(manifests()[1], "spec.template.spec.containers.0")
    allowed = container["args"][container["args"].index("--allow-host") + 1]
    with run_gateway(home, hosts=(allowed,)) as gateway:
        for probe in ("readinessProbe", "livenessProbe"):
            asked = container[probe]["httpGet"]
            (host,) = [one["value"] for one in asked["httpHeaders"] if one["name"] == "Host"]
            assert gateway.anonymous.get(asked["path"], Host=host).status == 200
        assert gateway.anonymous.get("/readyz", Host="elsewhere.example").status == 421


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="no systemd-analyze here")
def test_systemd_has_nothing_to_say_against_the_unit(tmp_path):
    text = (DEPLOY / "holdfast.service").read_text().replace("/opt/holdfast/bin/holdfast", sys.executable)
    (tmp_path / "holdfast.service").write_text(text)
    words = ["systemd-analyze", "verify", "--man=no", str(tmp_path / "holdfast.service")]
    ran = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    ours = [line for line in ran.stderr.splitlines() if "holdfast" in line]
    assert ours == [] and ran.returncode == 0, ran.stderr


# --- on PostgreSQL ----------------------------------------------------------------------------------------------------------


def hosted():
    return {one["kind"]: one for one in yaml.safe_load_all((DEPLOY / "kubernetes.postgres.yaml").read_text())}


def test_the_files_for_postgres_migrate_as_the_owner_and_serve_as_somebody_who_is_not():
    services = yaml.safe_load((DEPLOY / "compose.postgres.yaml").read_text())["services"]
    pod = at(hosted()["Deployment"], "spec.template.spec")
    for migrates, serves in (
        (services["migrate"], services["holdfast"]), (pod["initContainers"][0], pod["containers"][0]),
    ):  # fmt: skip
        assert read(list(migrates.get("command") or migrates["args"])).command.name == "migrate"
        call = read(list(serves.get("command") or serves["args"]))
        assert call.command.name == "serve" and call.values["port"] == 8710 and call.values["json_logs"]
    assert "//holdfast_owner:" in services["migrate"]["environment"]["HOLDFAST_STORE"]
    assert "//holdfast:" in services["holdfast"]["environment"]["HOLDFAST_STORE"]
    keys = [one["env"][1]["valueFrom"]["secretKeyRef"]["key"] for one in (pod["initContainers"][0], pod["containers"][0])]
    assert keys == ["owner-url", "url"]
    assert services["holdfast"]["depends_on"] == {"migrate": {"condition": "service_completed_successfully"}}


def test_compose_with_postgres_publishes_on_loopback_only_and_has_no_password_in_it():
    text = (DEPLOY / "compose.postgres.yaml").read_text()
    services = yaml.safe_load(text)["services"]
    assert [port for one in services.values() for port in one.get("ports", ())] == ["127.0.0.1:8710:8710"]
    for name in ("migrate", "holdfast"):
        one = services[name]
        assert one["read_only"] is True and one["cap_drop"] == ["ALL"] and one["user"] != "0"
    told = [value for one in services.values() for name, value in one.get("environment", {}).items()]
    assert all("${HOLDFAST" in value and ":?}" in value for value in told)
    assert {one.split(":")[0] for one in services["database"]["volumes"]} == {"database", "./postgres-roles.sql"}


@pytest.mark.parametrize("path", ["../deploy.md", "compose.postgres.yaml", "kubernetes.postgres.yaml"])
def test_no_page_leaves_the_first_token_in_a_log(path):
    told = (DEPLOY / path).read_text()
    commands = re.findall(r"docker compose -f \S+ (?:up(?: -d)?|run [\w -]+)|kubectl apply -f \S+|kubectl exec [\w/ -]+", told)
    for before, command, after in zip(["", *commands], commands, [*commands[1:], ""], strict=False):
        if " up" in command:  # serving makes the agent and prints its token, unless it is there
            assert before == command.replace(" up -d", " run --rm holdfast agent add operator --role operator")
        if command.startswith("kubectl apply"):
            assert after.split()[-3:] == ["agent", "rotate", "operator"] and read(after.split()[-3:])
    assert commands


def test_the_deployment_has_every_field_that_kubernetes_requires_and_can_be_any_number():
    documents = hosted()
    assert list(documents) == ["Service", "PodDisruptionBudget", "Deployment"]
    spec, service = documents["Deployment"]["spec"], documents["Service"]["spec"]
    labels = spec["template"]["metadata"]["labels"]
    assert spec["selector"]["matchLabels"] == labels == service["selector"]
    assert documents["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"] == labels
    pod, container = spec["template"]["spec"], at(spec, "template.spec.containers.0")
    assert spec["replicas"] > 1 and not any("persistentVolumeClaim" in one for one in pod["volumes"])
    for one in (container, pod["initContainers"][0]):
        assert {mount["name"] for mount in one["volumeMounts"]} == {volume["name"] for volume in pod["volumes"]}
        assert not one["securityContext"]["allowPrivilegeEscalation"] and one["securityContext"]["readOnlyRootFilesystem"]
    assert pod["securityContext"]["runAsNonRoot"] and not pod["automountServiceAccountToken"]
    assert service["ports"][0]["targetPort"] in {one["name"] for one in container["ports"]}


def test_the_pooler_works_by_transactions_and_gives_up_before_a_caller_does():
    import configparser

    told = configparser.ConfigParser(inline_comment_prefixes=None)
    told.read(DEPLOY / "pgbouncer.ini")
    assert told["pgbouncer"]["pool_mode"] == "transaction" and told["databases"]["memory"]
    assert int(told["pgbouncer"]["query_wait_timeout"]) < config.Config(home="").lock_seconds
    assert "server_reset_query_always" not in told["pgbouncer"]


@pytest.mark.battery
def test_the_roles_of_the_script_are_enough_and_no_more(home, tmp_path, monkeypatch):
    """On a server of its own: roles belong to the whole of one."""
    import postgres_server

    from holdfast.errors import ConfigError
    from holdfast.postgres import migrate
    from holdfast.postgres.pool import hang_up

    for name in ("HOLDFAST_OWNER_PASSWORD", "HOLDFAST_PASSWORD", "HOLDFAST_BACKUP_PASSWORD"):
        monkeypatch.setenv(name, 'it\'s a "password"')
    with postgres_server.cluster() as server:
        script = server.folder / "roles.sql"
        script.write_text((DEPLOY / "postgres-roles.sql").read_text())
        server.run("psql", "-h", "127.0.0.1", "-p", server.port, "-U", "postgres", "-d", "postgres", "-f", script)
        owner, app = server.url("memory", "holdfast_owner"), server.url("memory", "holdfast")
        with pytest.raises(ConfigError, match="may not migrate"):
            migrate(app)
        assert migrate(owner)
        roles = "SELECT rolname FROM pg_roles WHERE rolname LIKE 'holdfast%' AND (rolsuper OR rolbypassrls)"
        assert server.sql(roles) == [("holdfast_backup",)]
        owners = "SELECT DISTINCT tableowner FROM pg_tables WHERE schemaname = 'holdfast'"
        assert server.sql(owners, "memory") == [("holdfast_owner",)]
        with pytest.raises(Exception, match="permission denied"):
            server.sql("CREATE TABLE holdfast.mine (a int)", "memory", "holdfast")
        assert server.sql("SELECT count(*) FROM holdfast.document", "memory", "holdfast_owner") == [(0,)]
        with Memory(config=config.load(home).replace(store=app), project="demo", cwd=tmp_path) as memory:
            memory.store("the harbour opens at six", key="harbour")
            assert [hit.key for hit in memory.recall("harbour", mode="keyword")] == ["harbour"]
            assert memory.purge("harbour").state == "done"
        hang_up()


# --- backup and restore -----------------------------------------------------------------------------------------------------


def backed_up(home, copy):
    words = [sys.executable, "-I", str(DEPLOY / "backup.py"), str(home), str(copy)]
    return subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.battery
def test_a_copy_made_while_a_writer_runs_is_a_whole_home(home, tmp_path):
    with Memory(home, agent="a", project="demo", origin="user") as memory:
        memory.store("Harbour words that must be in the copy.", key="harbour")
        memory.store("These words are purged for good before it.", key="gone")
        memory.purge("gone")
    gate = AccessGate(config.load(home))
    token = gate.first_token()
    gate.close()
    (home / "config.toml").write_text("[serve]\nrate = 0\n")
    writer = subprocess.Popen([sys.executable, "-c", WRITER, str(home)], stdout=subprocess.PIPE, text=True)
    try:
        while int(writer.stdout.readline()) < 60:
            pass
        done = backed_up(home, tmp_path / "copy")
        assert (done.returncode, done.stderr) == (0, "")
        assert writer.poll() is None
    finally:
        writer.kill()
        writer.wait(60)
        writer.stdout.close()
    assert backed_up(home, tmp_path / "copy").returncode != 0  # never over an older one
    restored = tmp_path / "restored"
    shutil.copytree(tmp_path / "copy", restored)
    assert not (restored / "index.db").exists() and (restored / "config.toml").exists()
    with Memory(restored, agent="busy", project="demo", session="s1") as memory:
        every = {"harbour", *[f"n{number}" for number in range(50)]}
        for key in every - {note.key for note in memory.list()}:
            memory.restore(key)  # the copy was made between the writer's forget and its restore
        assert {note.key for note in memory.list()} == every
        assert memory.recall("harbour words")[0].key == "harbour"
        assert [one.text for one in memory.recall("said number", kind="turn", mode="keyword")]
        with pytest.raises(Exception, match="purged"):
            memory.store("These words are purged for good before it.", key="again")
    doctor, verified = [
        subprocess.run([*HOLDFAST, *words, "--home", str(restored)], capture_output=True, text=True, check=False)
        for words in (("doctor", "--json"), ("audit", "verify"))
    ]
    assert json.loads(doctor.stdout)["problems"] == [], doctor.stdout
    assert verified.returncode == 0, verified.stdout + verified.stderr
    with run_gateway(restored) as gateway:
        assert Client(gateway.port, token).get("/gateway/memory").status == 200


def test_nothing_is_copied_from_what_is_no_home(tmp_path):
    refused = backed_up(tmp_path, tmp_path / "copy")
    assert refused.returncode != 0 and "usage" in refused.stderr and not (tmp_path / "copy").exists()
