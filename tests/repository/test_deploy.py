"""The files of docs/deploy are valid and start existing commands, and the backup script works."""

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
from holdfast.cli.parser import parse_args

DEPLOY = Path(__file__).resolve().parents[2] / "docs" / "deploy"
REQUIRED_FIELDS = {  # of Kubernetes objects of each kind
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


def read_manifests():
    return list(yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text()))


def get_field(document, path):
    """Return the field at a dotted path."""
    for part in path.split("."):
        document = document[int(part)] if part.isdecimal() else document[part]
    return document


def read_unit():
    """Return the settings of the systemd unit by section, in their order."""
    found, section = {}, None
    for line in (DEPLOY / "holdfast.service").read_text().splitlines():
        if line.startswith("["):
            section = found.setdefault(line.strip("[]"), [])
        elif line and not line.startswith("#"):
            section.append(tuple(line.split("=", 1)))
    return found


# --- the files --------------------------------------------------------------------------------------------------------------


def test_every_file_starts_the_gateway_with_valid_arguments():
    (command,) = [value for name, value in read_unit()["Service"] if name == "ExecStart"]
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]["holdfast"]["command"]
    container = get_field(read_manifests()[1], "spec.template.spec.containers.0")
    image = next(line for line in (DEPLOY / "Dockerfile").read_text().splitlines() if line.startswith("CMD "))
    for words in (shlex.split(command)[1:], compose, container["args"], json.loads(image.removeprefix("CMD "))):
        call = parse_args(list(words))
        assert call.command.name == "serve" and call.values["port"] == 8710 and call.values["json_logs"], words
    assert shlex.split(command)[3] == "127.0.0.1"


def test_compose_publishes_on_loopback_only_and_drops_privileges():
    service = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]["holdfast"]
    assert all(port.startswith("127.0.0.1:") for port in service["ports"])
    assert service["read_only"] is True and service["cap_drop"] == ["ALL"] and service["user"] != "0"
    assert (DEPLOY / service["build"]["context"] / service["build"]["dockerfile"]).resolve() == DEPLOY / "Dockerfile"
    assert service["volumes"][0].split(":")[0] in yaml.safe_load((DEPLOY / "compose.yaml").read_text())["volumes"]


def test_the_manifest_has_all_required_fields_and_they_are_consistent():
    documents = read_manifests()
    assert [one["kind"] for one in documents] == list(REQUIRED_FIELDS)
    for one in documents:
        assert one["apiVersion"] and one["metadata"]["name"] == "holdfast"
        for path in REQUIRED_FIELDS[one["kind"]]:
            assert get_field(one, path), path
    service, stateful = documents
    spec = stateful["spec"]
    assert spec["selector"]["matchLabels"] == spec["template"]["metadata"]["labels"] == service["spec"]["selector"]
    assert spec["serviceName"] == service["metadata"]["name"] and spec["replicas"] == 1
    container, pod = get_field(spec, "template.spec.containers.0"), spec["template"]["spec"]
    volumes = {one["name"] for one in pod["volumes"]} | {one["metadata"]["name"] for one in spec["volumeClaimTemplates"]}
    assert {one["name"] for one in container["volumeMounts"]} == volumes
    ports = {one["name"] for one in container["ports"]}
    assert service["spec"]["ports"][0]["targetPort"] in ports
    assert pod["securityContext"]["runAsNonRoot"] and not pod["automountServiceAccountToken"]
    assert not container["securityContext"]["allowPrivilegeEscalation"]


def test_probes_are_answered_without_a_token_under_their_host_name(home):
    container = get_field(read_manifests()[1], "spec.template.spec.containers.0")
    allowed = container["args"][container["args"].index("--allow-host") + 1]
    with run_gateway(home, hosts=(allowed,)) as gateway:
        for probe in ("readinessProbe", "livenessProbe"):
            request = container[probe]["httpGet"]
            (host,) = [one["value"] for one in request["httpHeaders"] if one["name"] == "Host"]
            assert gateway.anonymous.get(request["path"], Host=host).status == 200
        assert gateway.anonymous.get("/readyz", Host="elsewhere.example").status == 421


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="no systemd-analyze here")
def test_systemd_accepts_the_unit(tmp_path):
    text = (DEPLOY / "holdfast.service").read_text().replace("/opt/holdfast/bin/holdfast", sys.executable)
    (tmp_path / "holdfast.service").write_text(text)
    words = ["systemd-analyze", "verify", "--man=no", str(tmp_path / "holdfast.service")]
    ran = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    ours = [line for line in ran.stderr.splitlines() if "holdfast" in line]
    assert ours == [] and ran.returncode == 0, ran.stderr


# --- on PostgreSQL ----------------------------------------------------------------------------------------------------------


def read_postgres_manifests():
    return {one["kind"]: one for one in yaml.safe_load_all((DEPLOY / "kubernetes.postgres.yaml").read_text())}


def test_the_files_for_postgres_migrate_as_the_owner_and_serve_as_another_role():
    services = yaml.safe_load((DEPLOY / "compose.postgres.yaml").read_text())["services"]
    pod = get_field(read_postgres_manifests()["Deployment"], "spec.template.spec")
    for migrates, serves in (
        (services["migrate"], services["holdfast"]), (pod["initContainers"][0], pod["containers"][0]),
    ):  # fmt: skip
        assert parse_args(list(migrates.get("command") or migrates["args"])).command.name == "migrate"
        call = parse_args(list(serves.get("command") or serves["args"]))
        assert call.command.name == "serve" and call.values["port"] == 8710 and call.values["json_logs"]
    assert "//holdfast_owner:" in services["migrate"]["environment"]["HOLDFAST_STORE"]
    assert "//holdfast:" in services["holdfast"]["environment"]["HOLDFAST_STORE"]
    keys = [one["env"][1]["valueFrom"]["secretKeyRef"]["key"] for one in (pod["initContainers"][0], pod["containers"][0])]
    assert keys == ["owner-url", "url"]
    assert services["holdfast"]["depends_on"] == {"migrate": {"condition": "service_completed_successfully"}}


def test_compose_with_postgres_publishes_on_loopback_only_and_contains_no_password():
    text = (DEPLOY / "compose.postgres.yaml").read_text()
    services = yaml.safe_load(text)["services"]
    assert [port for one in services.values() for port in one.get("ports", ())] == ["127.0.0.1:8710:8710"]
    for name in ("migrate", "holdfast"):
        one = services[name]
        assert one["read_only"] is True and one["cap_drop"] == ["ALL"] and one["user"] != "0"
    values = [value for one in services.values() for name, value in one.get("environment", {}).items()]
    assert all("${HOLDFAST" in value and ":?}" in value for value in values)
    assert {one.split(":")[0] for one in services["database"]["volumes"]} == {"database", "./postgres-roles.sql"}


@pytest.mark.parametrize("path", ["../deploy.md", "compose.postgres.yaml", "kubernetes.postgres.yaml"])
def test_no_page_prints_the_first_token_to_a_log(path):
    text = (DEPLOY / path).read_text()
    commands = re.findall(r"docker compose -f \S+ (?:up(?: -d)?|run [\w -]+)|kubectl apply -f \S+|kubectl exec [\w/ -]+", text)
    for before, command, after in zip(["", *commands], commands, [*commands[1:], ""], strict=False):
        if " up" in command:  # serving creates the agent and prints its token, unless it exists
            assert before == command.replace(" up -d", " run --rm holdfast agent add operator --role operator")
        if command.startswith("kubectl apply"):
            assert after.split()[-3:] == ["agent", "rotate", "operator"] and parse_args(after.split()[-3:])
    assert commands


def test_the_deployment_has_all_required_fields_and_can_have_several_replicas():
    documents = read_postgres_manifests()
    assert list(documents) == ["Service", "PodDisruptionBudget", "Deployment"]
    spec, service = documents["Deployment"]["spec"], documents["Service"]["spec"]
    labels = spec["template"]["metadata"]["labels"]
    assert spec["selector"]["matchLabels"] == labels == service["selector"]
    assert documents["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"] == labels
    pod, container = spec["template"]["spec"], get_field(spec, "template.spec.containers.0")
    assert spec["replicas"] > 1 and not any("persistentVolumeClaim" in one for one in pod["volumes"])
    for one in (container, pod["initContainers"][0]):
        assert {mount["name"] for mount in one["volumeMounts"]} == {volume["name"] for volume in pod["volumes"]}
        assert not one["securityContext"]["allowPrivilegeEscalation"] and one["securityContext"]["readOnlyRootFilesystem"]
    assert pod["securityContext"]["runAsNonRoot"] and not pod["automountServiceAccountToken"]
    assert service["ports"][0]["targetPort"] in {one["name"] for one in container["ports"]}


def test_the_pooler_uses_transactions_and_times_out_before_a_caller_does():
    import configparser

    settings = configparser.ConfigParser(inline_comment_prefixes=None)
    settings.read(DEPLOY / "pgbouncer.ini")
    assert settings["pgbouncer"]["pool_mode"] == "transaction" and settings["databases"]["memory"]
    assert int(settings["pgbouncer"]["query_wait_timeout"]) < config.Config(home="").lock_seconds
    assert "server_reset_query_always" not in settings["pgbouncer"]


@pytest.mark.battery
def test_the_roles_of_the_script_have_exactly_the_needed_privileges(home, tmp_path, monkeypatch):
    """Use a new server: roles belong to a whole server."""
    import postgres_server

    from holdfast.errors import ConfigError
    from holdfast.postgres import migrate
    from holdfast.postgres.pool import close_pools

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
        assert server.sql("SELECT count(*) FROM holdfast_views.agent_memory", "memory", "holdfast") == [(0,)]
        close_pools()


# --- backup and restore -----------------------------------------------------------------------------------------------------


def run_backup(home, copy):
    words = [sys.executable, "-I", str(DEPLOY / "backup.py"), str(home), str(copy)]
    return subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.battery
def test_a_copy_made_while_a_writer_runs_is_a_complete_home(home, tmp_path):
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
        done = run_backup(home, tmp_path / "copy")
        assert (done.returncode, done.stderr) == (0, "")
        assert writer.poll() is None
    finally:
        writer.kill()
        writer.wait(60)
        writer.stdout.close()
    assert run_backup(home, tmp_path / "copy").returncode != 0  # it never overwrites a copy
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


def test_a_folder_that_is_not_a_home_is_not_copied(tmp_path):
    refused = run_backup(tmp_path, tmp_path / "copy")
    assert refused.returncode != 0 and "usage" in refused.stderr and not (tmp_path / "copy").exists()
