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
from holdfast.access.tokens import parse_token_id
from holdfast.cli.parser import parse_args

DEPLOY = Path(__file__).resolve().parents[2] / "docs" / "deploy"
KUBERNETES = ("kubernetes.yaml", "kubernetes.postgres.yaml")
COMPOSE = ("compose.yaml", "compose.postgres.yaml")
SECRET_PATH = "/run/secrets/holdfast"
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


def read_manifests(name="kubernetes.yaml"):
    """Return the Kubernetes objects of a file by kind."""
    return {one["kind"]: one for one in yaml.safe_load_all((DEPLOY / name).read_text())}


def read_pod(name="kubernetes.yaml"):
    """Return the specification of the pods of a file."""
    documents = read_manifests(name)
    return (documents.get("StatefulSet") or documents["Deployment"])["spec"]["template"]["spec"]


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
    container = read_pod()["containers"][0]
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


@pytest.mark.parametrize("name", COMPOSE)
def test_compose_files_fit_the_compose_specification(name):
    words = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", str(DEPLOY / name)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.skipif(not (Path(sys.executable).parent / "hadolint").exists(), reason="no hadolint for this platform")
def test_the_linter_of_dockerfiles_has_nothing_to_say():
    words = [str(Path(sys.executable).parent / "hadolint"), "--failure-threshold", "info", str(DEPLOY / "Dockerfile")]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, "")


def test_the_image_is_built_from_what_it_needs_and_runs_as_no_root():
    lines = (DEPLOY / "Dockerfile").read_text().splitlines()
    words = dict(line.split(" ", 1) for line in lines if line.split(" ")[0] in ("USER", "EXPOSE", "FROM"))
    assert words["USER"] == "10001" and words["EXPOSE"] == "8710" and not words["FROM"].endswith(":latest")
    sent = [line.removeprefix("!") for line in (DEPLOY / "Dockerfile.dockerignore").read_text().splitlines() if line[:1] == "!"]
    assert {"pyproject.toml", "README.md", "LICENSE", "src"} == set(sent)
    assert all((DEPLOY.parents[1] / path).exists() for path in sent)


@pytest.mark.parametrize("name", KUBERNETES)
def test_manifests_fit_the_schemas_of_kubernetes(name):
    import kubernetes_validate

    documents = list(yaml.safe_load_all((DEPLOY / name).read_text()))
    assert len(documents) == 4
    for one in documents:
        kubernetes_validate.validate(one, "1.31", strict=True)


@pytest.mark.parametrize("name", KUBERNETES)
def test_objects_of_a_manifest_are_consistent(name):
    documents, pod = read_manifests(name), read_pod(name)
    workload = "StatefulSet" if name == "kubernetes.yaml" else "Deployment"
    assert set(documents) == {"Service", "NetworkPolicy", "PodDisruptionBudget", workload}
    assert {one["metadata"]["name"] for one in documents.values()} == {"holdfast"}
    spec, service = documents[workload]["spec"], documents["Service"]["spec"]
    labels = spec["template"]["metadata"]["labels"]
    assert spec["selector"]["matchLabels"] == labels == service["selector"]
    assert documents["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"] == labels
    assert documents["NetworkPolicy"]["spec"]["podSelector"]["matchLabels"] == labels
    (container,) = pod["containers"]
    claims = {one["metadata"]["name"] for one in spec.get("volumeClaimTemplates", ())}
    assert {one["name"] for one in container["volumeMounts"]} == claims | {one["name"] for one in pod["volumes"]}
    assert service["ports"][0]["targetPort"] in {one["name"] for one in container["ports"]}
    if workload == "StatefulSet":
        assert spec["serviceName"] == "holdfast" and spec["replicas"] == 1
    else:
        assert spec["replicas"] > 1 and not any("persistentVolumeClaim" in one for one in pod["volumes"])


@pytest.mark.parametrize("name", KUBERNETES)
def test_pods_have_no_privileges_a_read_only_root_probes_and_limits(name):
    pod = read_pod(name)
    assert pod["securityContext"]["runAsNonRoot"] and pod["securityContext"]["runAsUser"] == 10001
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"} and not pod["automountServiceAccountToken"]
    for one in (*pod["containers"], *pod.get("initContainers", ())):
        context = one["securityContext"]
        assert context["readOnlyRootFilesystem"] and not context["allowPrivilegeEscalation"]
        assert context["capabilities"] == {"drop": ["ALL"]}
        assert one["resources"]["requests"]["memory"] and one["resources"]["limits"]["memory"]
    (container,) = pod["containers"]
    assert {"startupProbe", "readinessProbe", "livenessProbe"} <= set(container)


@pytest.mark.parametrize("name", KUBERNETES)
def test_the_network_policy_denies_all_but_the_gateways_port_and_its_database(name):
    policy = read_manifests(name)["NetworkPolicy"]["spec"]
    assert set(policy["policyTypes"]) == {"Ingress", "Egress"}  # what no rule allows is denied, both ways
    (ingress,) = policy["ingress"]
    assert ingress["ports"] == [{"protocol": "TCP", "port": 8710}] and ingress["from"] and all(ingress["from"])
    ports = sorted({port["port"] for rule in policy["egress"] for port in rule["ports"]})
    assert ports == ([] if name == "kubernetes.yaml" else [53, 5432])


@pytest.mark.parametrize("name", KUBERNETES)
def test_the_operators_token_and_the_database_come_from_secrets(name):
    pod = read_pod(name)
    (container,) = pod["containers"]
    call = parse_args(list(container["args"]))
    assert call.values["operator_token_file"] == f"{SECRET_PATH}/token"
    (mount,) = [one for one in container["volumeMounts"] if one["mountPath"] == SECRET_PATH]
    (volume,) = [one for one in pod["volumes"] if one["name"] == mount["name"]]
    assert mount["readOnly"] and volume["secret"] == {"secretName": "holdfast-operator", "defaultMode": 0o440}
    assert "kubectl create secret generic holdfast-operator --from-file=token=" in (DEPLOY / name).read_text()
    for one in (container, *pod.get("initContainers", ())):
        for variable in one.get("env", ()):
            assert variable["name"] == "HOLDFAST_HOME" or variable["valueFrom"]["secretKeyRef"]["name"] == "holdfast-store"


def test_memory_limits_are_above_what_was_measured():
    table = re.search(r"## Memory\n\n(.*?)\n\n", (DEPLOY / "../deploy.md").read_text(), re.S).group(1)
    rows = {cells[1].strip(): [int(cell.split()[0].replace(",", "")) for cell in cells[2:4]] for line in table.splitlines()
            if (cells := line.split("|"))[2:] and "MiB |" in line}  # fmt: skip
    assert len(rows) == 4, rows
    for number, name in enumerate(KUBERNETES):
        resources = read_pod(name)["containers"][0]["resources"]
        request, limit = [int(resources[kind]["memory"].removesuffix("Mi")) for kind in ("requests", "limits")]
        idle, *_, most = [figures[number] for figures in rows.values()]
        assert idle < request and most < request < limit and limit >= 1.5 * most


def test_the_image_and_the_unit_limit_the_arenas_of_the_allocator():
    image = (DEPLOY / "Dockerfile").read_text()
    assert re.search(r"^ENV .*\bMALLOC_ARENA_MAX=2$", image, re.M)  # as the figures were measured
    assert ("Environment", "MALLOC_ARENA_MAX=2") in read_unit()["Service"]


def test_probes_are_answered_without_a_token_under_their_host_name(home):
    (container,) = read_pod()["containers"]
    (allowed,) = parse_args(list(container["args"])).values["allow_host"]
    with run_gateway(home, hosts=(allowed,)) as gateway:
        for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
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


def test_the_files_for_postgres_migrate_as_the_owner_and_serve_as_another_role():
    services = yaml.safe_load((DEPLOY / "compose.postgres.yaml").read_text())["services"]
    pod = read_pod("kubernetes.postgres.yaml")
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
    assert {value for value in values if "${HOLDFAST" not in value or ":?}" not in value} == {"/run/secrets/operator-token"}
    assert {one.split(":")[0] for one in services["database"]["volumes"]} == {"database", "./postgres-roles.sql"}


def test_compose_with_postgres_reads_the_operators_token_from_a_secret():
    compose = yaml.safe_load((DEPLOY / "compose.postgres.yaml").read_text())
    service = compose["services"]["holdfast"]
    (name,) = service["secrets"]
    assert service["environment"]["HOLDFAST_OPERATOR_TOKEN_FILE"] == f"/run/secrets/{name}"
    assert compose["secrets"] == {name: {"environment": "HOLDFAST_OPERATOR_TOKEN"}}


@pytest.mark.parametrize("name", ["../deploy.md", *COMPOSE, *KUBERNETES])
def test_no_page_reads_a_token_from_a_log(name):
    text = (DEPLOY / name).read_text()
    assert not re.search(r"(kubectl|docker|docker compose)\b.* logs\b", text)


def test_the_token_that_the_page_makes_has_the_form_of_one(tmp_path):
    text = (DEPLOY / "../deploy.md").read_text()
    (line,) = {line for line in text.splitlines() if "> operator-token" in line}
    done = subprocess.run(["sh", "-c", line], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    file = tmp_path / "operator-token"
    assert parse_token_id(file.read_text().strip()) and file.stat().st_mode & 0o777 == 0o600


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
        with pytest.raises(ConfigError, match="cannot migrate"):
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
    assert refused.returncode != 0 and "is not a home" in refused.stderr and not (tmp_path / "copy").exists()
    (tmp_path / "shelf").mkdir()
    refused = run_backup(tmp_path, tmp_path / "shelf")
    assert refused.returncode != 0 and "exists already" in refused.stderr


def test_models_in_the_home_are_not_copied(memory, home, tmp_path):
    memory.store("harbour", key="harbour")
    (home / ".cache" / "holdfast").mkdir(parents=True)
    (home / ".cache" / "holdfast" / "weights.npy").write_bytes(b"weights")
    (home / "config.toml").write_text("[serve]\nrate = 0\n")
    assert run_backup(home, tmp_path / "copy").returncode == 0
    copied = {file.name for file in (tmp_path / "copy").iterdir()}
    assert {"config.toml", "shelf"} <= copied and ".cache" not in copied
