"""Text to vectors: models that come from the package registry, a folder, a hub, or an endpoint; loaded when first used."""

from __future__ import annotations

from holdfast.errors import ConfigError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]

    class Embedder(Protocol):
        """Turns texts into vectors of length one; a text without content is a row of zeros."""

        @property
        def name(self) -> str:
            """A stable id; vectors under different names are never compared."""

        @property
        def dim(self) -> int:
            """How many numbers a vector has."""

        def passages(self, texts: list[str]) -> Vectors:
            """One row for each text that is to be found."""

        def questions(self, texts: list[str]) -> Vectors:
            """One row for each text that somebody asks."""


BUNDLED = ("static", "minilm", "use")
DEFAULT = ("static", "minilm", "use")
OTHERS = {
    "endpoint:MODEL@URL": "an OpenAI-compatible endpoint",
    "onnx:FOLDER": "an ONNX sentence model in a folder",
    "fastembed:NAME": "a model that the package fastembed has fetched",
}

_made: dict[tuple[str, int], Embedder] = {}


def chosen(setting: str = "default", *, key: str | None = None, threads: int = 1, seconds: float = 30) -> tuple[Embedder, ...]:
    """The embedders that a setting names; nothing is loaded and nobody is asked before the first text."""
    kind, colon, rest = setting.strip().partition(":")
    if colon:
        return (_other(kind.strip().lower(), rest.strip(), key, threads, seconds),)
    names = [name.strip().lower() for name in setting.split(",")]
    if names == ["none"]:
        return ()
    if names == ["default"]:
        return tuple(_bundled(name, threads) for name in DEFAULT)
    if wrong := [name for name in names if name not in BUNDLED]:
        raise ConfigError(f"there is no embedder {wrong[0]!r}", _choices())
    return tuple(_bundled(name, threads) for name in dict.fromkeys(names))


def for_search(setting: str, key: str | None = None) -> tuple[Embedder, ...]:
    """Those that search uses: what the setting names, and the static one beside any other, for it also knows single words."""
    named = chosen(setting, key=key)
    return tuple(dict.fromkeys([*chosen("static"), *named])) if named else ()


def _bundled(name: str, threads: int) -> Embedder:
    """One object a model and process, so that two callers do not load it twice."""
    known = _made.get((name, threads))
    return known if known is not None else _made.setdefault((name, threads), _make(name, threads))


def _make(name: str, threads: int) -> Embedder:
    if name == "static":
        from holdfast.embed.static import Static

        return Static()
    if name == "minilm":
        from holdfast.embed.minilm import MiniLM

        return MiniLM(threads)
    from holdfast.embed.use import Multilingual

    return Multilingual(threads)


def _other(kind: str, rest: str, key: str | None, threads: int, seconds: float) -> Embedder:
    if kind == "endpoint":
        from holdfast.embed.endpoint import Endpoint

        return Endpoint.named(rest, key=key, seconds=seconds)
    if kind == "onnx":
        from holdfast.embed.onnx import Folder

        return Folder(rest, threads)
    if kind == "fastembed":
        from holdfast.embed.hub import Hub

        return Hub(rest, threads)
    raise ConfigError(f"there is no kind of embedder {kind!r}", _choices())


def _choices() -> str:
    return "Choose default, none, " + ", ".join((*BUNDLED, *OTHERS))
