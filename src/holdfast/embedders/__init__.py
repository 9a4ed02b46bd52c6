"""Models: embedders turn text into vectors, rerankers judge passages; from a package, a folder, a hub or an endpoint."""

from __future__ import annotations

from holdfast.errors import ConfigError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import NoReturn, Protocol

    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]

    class Embedder(Protocol):
        """A model that turns texts into vectors of length one, and blank texts into rows of zeros."""

        @property
        def name(self) -> str:
            """Return a stable id; vectors of different names are never compared."""

        @property
        def setting(self) -> str:
            """Return the setting that opens it again, without keys and passwords."""

        @property
        def dim(self) -> int:
            """Return the number of dimensions."""

        def passages(self, texts: list[str]) -> Vectors:
            """Return one row per text that can be found."""

        def questions(self, texts: list[str]) -> Vectors:
            """Return one row per question."""


BUNDLED = ("static", "minilm", "use")
DEFAULT = ("static", "minilm", "use")
MODEL = "model:"  # starts the name of an installed model, which may be in a list
OTHERS = {
    "model:NAME": "a model that `holdfast models install` has fetched",
    "endpoint:MODEL@URL": "an OpenAI-compatible endpoint",
    "onnx:FOLDER": "an ONNX sentence model in a folder",
    "fastembed:NAME": "a model that the package fastembed has fetched",
}

MINILM_RANGE = (0.0, 1.0)  # of cosines, for which the ranking was fitted

_bundled_cache: dict[tuple[str, int], Embedder] = {}
_OLD_ENDPOINT_SECONDS = 5.0  # how long an answer waits for an endpoint that is no longer set


def open_embedders(
    setting: str = "default", *, key: str | None = None, threads: int = 1, seconds: float = 30
) -> tuple[Embedder, ...]:
    """Return the embedders that a setting names; nothing is loaded and no request sent before the first text."""
    names = split_setting(setting)
    if not names:
        kind, _, rest = setting.strip().partition(":")
        return (_open_single(kind.strip().lower(), rest.strip(), key, threads, seconds),)
    if names == ["none"]:
        return ()
    if names == ["default"]:
        return tuple(_get_bundled(name, threads) for name in DEFAULT)
    _check_list(names)
    return tuple(_open_listed(name, threads) for name in dict.fromkeys(names))


def split_setting(setting: str) -> list[str]:
    """Return the names of a list in lower case; an empty list if it is an endpoint, a folder or a model of fastembed."""
    names = []
    for item in setting.split(","):
        kind, colon, rest = item.strip().lower().partition(":")
        names.append(f"{kind.strip()}{colon}{rest.strip()}")
    return names if all(":" not in name or name.startswith(MODEL) for name in names) else []


def _check_list(names: list[str]) -> None:
    """Raise ConfigError if a list has anything but names of bundled and installed models, or two for the same texts."""
    listed = ", ".join((*BUNDLED, "model:NAME"))
    if names == [""]:
        raise ConfigError("the setting names no embedder", _choices_hint())
    if "" in names:
        raise ConfigError("the list of embedders contains an empty name", f"Put commas only between names: {listed}")
    if "default" in names:
        fix = f"Write default alone, or list models: {listed}"
        raise ConfigError(f"default is a list itself ({','.join(DEFAULT)}) and cannot be part of another", fix)
    if "none" in names:
        raise ConfigError("none means no embedder and cannot be part of a list", "Write none alone, or remove it")
    if wrong := [name for name in names if name not in BUNDLED and not name.startswith(MODEL)]:
        raise ConfigError(f"unknown embedder {wrong[0]!r}", _choices_hint())
    if len(same := {name for name in names if name == "minilm" or name.startswith(MODEL)}) > 1:
        raise ConfigError(f"{' and '.join(sorted(same))} are for the same texts and cannot be combined", "List one of them")


def open_for_search(setting: str, key: str | None = None) -> tuple[Embedder, ...]:
    """Return the embedders for search: those of the setting, and always the static one, which also embeds single words.

    An embedder for an invalid setting raises its error when it is used, and search continues without it."""
    try:
        named = open_embedders(setting, key=key)
    except ConfigError as error:
        named = (Unusable(error),)
    return tuple(dict.fromkeys([*open_embedders("static"), *named])) if named else ()


def reopen(setting: str, current: Iterable[Embedder]) -> Embedder:
    """Return an embedder of an earlier setting, given those that are set now (`current`).

    Text is sent only to this machine and to the endpoint that is set now, and the key only to that endpoint.
    """
    kind, _, rest = setting.partition(":")
    if kind != "endpoint":
        return open_embedders(setting)[0]
    from holdfast.embedders.endpoint import Endpoint

    return Endpoint.reopen(rest, [embedder for embedder in current if isinstance(embedder, Endpoint)], _OLD_ENDPOINT_SECONDS)


def similarity_range(embedder: Embedder) -> tuple[float, float]:
    """Return the cosines of this model that mean 0 and 1 for the ranking, which was fitted to MiniLM."""
    found: tuple[float, float] = getattr(embedder, "similarity_range", MINILM_RANGE)
    return found


class Unusable:
    """Embedder of an invalid setting: using it raises the error."""

    setting = ""

    def __init__(self, error: ConfigError) -> None:
        self._error = error

    @property
    def name(self) -> str:
        self._fail()

    @property
    def dim(self) -> int:
        self._fail()

    def passages(self, texts: list[str]) -> Vectors:
        self._fail()

    questions = passages

    def _fail(self) -> NoReturn:
        raise ConfigError(self._error.text, self._error.hint)


def _get_bundled(name: str, threads: int) -> Embedder:
    """Return the model, one object per process, so that it is loaded once."""
    cached = _bundled_cache.get((name, threads))
    return cached if cached is not None else _bundled_cache.setdefault((name, threads), _new_bundled(name, threads))


def _open_listed(name: str, threads: int) -> Embedder:
    if not name.startswith(MODEL):
        return _get_bundled(name, threads)
    from holdfast.embedders.installed import InstalledModel

    return InstalledModel(name.removeprefix(MODEL), threads)


def _new_bundled(name: str, threads: int) -> Embedder:
    if name == "static":
        from holdfast.embedders.static import Static

        return Static()
    if name == "minilm":
        from holdfast.embedders.minilm import MiniLM

        return MiniLM(threads)
    from holdfast.embedders.multilingual import Multilingual

    return Multilingual(threads)


def _open_single(kind: str, rest: str, key: str | None, threads: int, seconds: float) -> Embedder:
    ends_as_list = rest.rpartition(",")[2].strip().lower() in (*BUNDLED, "default", "none")
    if "," in kind or kind == "model" or (kind == "endpoint" and ends_as_list):
        problem = "endpoint:, onnx: and fastembed: cannot be part of a list"
        raise ConfigError(problem, f"Use it alone. Only these can be listed: {', '.join((*BUNDLED, 'model:NAME'))}")
    if kind == "endpoint":
        from holdfast.embedders.endpoint import Endpoint

        return Endpoint.from_setting(rest, key=key, seconds=seconds)
    if kind == "onnx":
        from holdfast.embedders.onnx import OnnxFolder

        return OnnxFolder(rest, threads)
    if kind == "fastembed":
        from holdfast.embedders.fastembed_model import FastEmbedModel

        return FastEmbedModel(rest, threads)
    raise ConfigError(f"unknown kind of embedder {kind!r}", _choices_hint())


def _choices_hint() -> str:
    return "Choose default, none, " + ", ".join((*BUNDLED, *OTHERS))
