"""The frameworks of adapters: importing Holdfast imports none of them, and an unsupported version gives a clear error."""

from __future__ import annotations

import pkgutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import holdfast
from holdfast.adapters import FRAMEWORKS, FrameworkError, require, requirement
from holdfast.errors import ConfigError

ROOT = Path(__file__).resolve().parents[2]
MODULES = {  # of the frameworks, and of the packages that they bring
    "langgraph", "langchain", "langchain_core", "agents", "openai", "anthropic", "pydantic_ai", "google.adk", "google.genai",
    "llama_index", "mem0",
}  # fmt: skip


def install(folder, package, version):
    """Install the metadata of a package in a folder, as pip does."""
    info = folder / f"{package.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n", encoding="utf-8")


@pytest.fixture
def packages(tmp_path, monkeypatch):
    """A folder that is the only place with installed packages."""
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    return tmp_path


def test_importing_every_module_but_the_adapters_imports_no_framework():
    names = [
        found.name
        for found in pkgutil.walk_packages(holdfast.__path__, "holdfast.")
        if not found.name.startswith("holdfast.adapters.") and not found.name.endswith("__main__")
    ]
    assert "holdfast.api.memory" in names and "holdfast.adapters" in names
    code = f"import sys\nfrom importlib import import_module\nfor name in {names}: import_module(name)\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert "holdfast.api.memory" in done.stdout.split()
    assert MODULES & set(done.stdout.split()) == set()


def test_a_missing_framework_is_named_with_the_command_that_installs_it(packages):
    with pytest.raises(FrameworkError) as raised:
        require("langgraph")
    assert raised.value.message == "langgraph>=1.0,<2 is needed and not installed"
    assert raised.value.fix == "pip install 'holdfast[langgraph]'"
    assert isinstance(raised.value, ConfigError) and isinstance(raised.value, ImportError)


@pytest.mark.parametrize("version", ["0.6.1", "2.0.0", "10.1"])
def test_an_unsupported_version_is_named_with_the_versions_that_work(packages, version):
    install(packages, "langgraph", version)
    with pytest.raises(FrameworkError, match=rf"langgraph>=1.0,<2 is needed, {version} is installed. pip install"):
        require("langgraph")


@pytest.mark.parametrize("version", ["1.0", "1", "1.0.0", "1.0.5", "1.9.9rc1", "1.10.0.post1"])
def test_a_supported_version_is_accepted(packages, version):
    install(packages, "langgraph", version)
    require("langgraph")


@pytest.mark.parametrize("extra", FRAMEWORKS)
def test_importing_an_adapter_without_its_framework_says_what_to_install(extra, tmp_path):
    module = f"holdfast.adapters.{extra.replace('-', '_')}"
    package, _, end = FRAMEWORKS[extra]
    install(tmp_path, package, end)
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import {module}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert f"{requirement(extra)} is needed, {end} is installed. pip install 'holdfast[{extra}]'" in done.stderr


def test_the_extras_name_the_versions_that_are_checked():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    assert {extra: extras[extra] for extra in FRAMEWORKS} == {extra: [requirement(extra)] for extra in FRAMEWORKS}
