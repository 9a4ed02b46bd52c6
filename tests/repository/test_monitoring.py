"""The Grafana dashboard and the alert rules use metrics and labels that a real gateway exposes."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from http_gateway import Client
from prometheus_client.parser import text_string_to_metric_families
from test_postgres_gateway import on_store

from holdfast.server.metrics import METRICS

DEPLOY = Path(__file__).resolve().parents[2] / "docs" / "deploy"
OTHERS = {"job", "instance", "le"}  # labels that Prometheus adds, and that of a bucket
PROMTOOL = shutil.which("promtool")


def read_rules():
    return [rule for group in yaml.safe_load((DEPLOY / "alerts.yaml").read_text())["groups"] for rule in group["rules"]]


def read_panels():
    panels = json.loads((DEPLOY / "grafana-dashboard.json").read_text())["panels"]
    return [panel for panel in panels if panel["type"] != "row"]


def read_expressions():
    """Return the expressions of both files."""
    rules = [rule["expr"] for rule in read_rules()]
    return rules + [target["expr"] for panel in read_panels() for target in panel["targets"]]


@pytest.fixture
def exposed(home, postgres_url):
    """The text of the metrics of a gateway on PostgreSQL, after requests of several kinds."""
    with on_store(home, postgres_url) as gateway:
        gateway.operator.post("/gateway/memory", {"key": "k", "value": "Harbour words."})
        Client(gateway.port, "nothing").get("/gateway/memory")
        yield gateway.operator.get("/metrics").data.decode()


def collect_labels(text):
    """Return the names of the labels of each sample."""
    labels = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels.setdefault(sample.name, set()).update(sample.labels)
    return labels


def test_every_expression_uses_metrics_and_labels_that_exist(exposed):
    labels = collect_labels(exposed)
    expressions = read_expressions()
    assert len(expressions) > 30
    for expression in expressions:
        names = set(re.findall(r"\bholdfast_\w+", expression))
        assert names <= set(labels), (expression, names - set(labels))
        known = OTHERS.union(*[labels[name] for name in names])
        used = set(re.findall(r"(\w+)(?:=|!=|=~|!~)\"", expression))
        used |= {name for group in re.findall(r"by \(([^)]*)\)", expression) for name in re.split(r"\s*,\s*", group)}
        assert names or "up{" in expression
        assert used <= known, (expression, used - known)


def test_legends_and_texts_name_labels_that_their_expression_has(exposed):
    labels = collect_labels(exposed)
    for panel in read_panels():
        for target in panel["targets"]:
            names = re.findall(r"\bholdfast_\w+", target["expr"])
            known = OTHERS.union(*[labels[name] for name in names])
            assert set(re.findall(r"{{(\w+)}}", target["legendFormat"])) <= known, target
    for rule in read_rules():
        assert rule["annotations"]["summary"] and rule["annotations"]["description"]
        assert rule["labels"]["severity"] in ("warning", "critical") and rule["alert"].startswith("Holdfast")


def test_every_metric_is_on_the_dashboard():
    shown = set(re.findall(r"\bholdfast_\w+", " ".join([target["expr"] for one in read_panels() for target in one["targets"]])))
    assert {name for name in METRICS if not any(one.startswith(name) for one in shown)} == set()


def test_the_page_about_operations_lists_every_metric_with_its_type_and_labels(exposed):
    page = (DEPLOY / "../operations.md").read_text()
    rows = re.findall(r"^\| `(holdfast_\w+)` \| (\w+)(?: by ([\w, ]+))?: (.+) \|$", page, re.M)
    assert {name: (kind, text) for name, kind, _, text in rows} == METRICS
    labels = collect_labels(exposed)
    for name, kind, told, _ in rows:
        assert labels[f"{name}_bucket" if kind == "histogram" else name] == set(filter(None, told.split(", "))), name


def test_the_dashboard_has_no_id_twice_and_no_panel_over_another():
    panels = json.loads((DEPLOY / "grafana-dashboard.json").read_text())["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    cells = [
        (x, y)
        for place in [panel["gridPos"] for panel in panels]
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(set(cells)) == len(cells) and max(x for x, _ in cells) < 24


def test_the_scrape_configuration_uses_the_rules_and_a_token_from_a_file():
    settings = yaml.safe_load((DEPLOY / "prometheus.yaml").read_text())
    (job,) = settings["scrape_configs"]
    assert settings["rule_files"] == ["alerts.yaml"] and job["job_name"] == "holdfast"
    assert "credentials_file" in job["authorization"] and job.get("metrics_path", "/metrics") == "/metrics"


@pytest.mark.battery
@pytest.mark.skipif(not PROMTOOL, reason="no promtool here (Debian: apt-get install prometheus)")
def test_promtool_accepts_the_rules_the_configuration_and_the_metrics(exposed):
    for words, given in (
        (["check", "rules", "alerts.yaml"], None),
        (["check", "config", "--syntax-only", "prometheus.yaml"], None),
        (["check", "metrics"], exposed),
    ):
        words = [PROMTOOL, *words]
        done = subprocess.run(words, input=given, capture_output=True, text=True, cwd=DEPLOY, timeout=60, check=False)
        assert done.returncode == 0 and "error" not in done.stderr.lower(), (words, done.stdout + done.stderr)
