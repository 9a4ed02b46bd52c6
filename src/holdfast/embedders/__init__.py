"""Embedding models: text to vectors; each model is loaded when it is first used."""

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
        """Turns texts into vectors of length one; a text without content is a row of zeros."""

        @property
        def name(self) -> str:
            """A stable id; vectors under different names are never compared."""

        @property
        def setting(self) -> str:
            """What opens it again; no key and no password is in it."""

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
_PATIENCE = 5.0  # seconds that an answer waits for an endpoint which is no longer set


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
    _must_go_together(names)
    return tuple(_bundled(name, threads) for name in dict.fromkeys(names))


def _must_go_together(names: list[str]) -> None:
    """Refuse a list that has something else in it than bundled models, and say what is wrong with just that."""
    listed = ", ".join(BUNDLED)
    if names == [""]:
        raise ConfigError("the setting names no embedder", _choices())
    if "" in names:
        raise ConfigError("the list of embedders has an empty name in it", f"Put commas only between names: {listed}")
    if "default" in names:
        fix = f"Write default alone, or name those you want: {listed}"
        raise ConfigError(f"default is a list itself ({','.join(DEFAULT)}), so it cannot stand in one", fix)
    if "none" in names:
        raise ConfigError("none means no embedder at all, so it cannot stand in a list", "Write none alone, or leave it out")
    if wrong := [name for name in names if name not in BUNDLED]:
        raise ConfigError(f"there is no embedder {wrong[0]!r}", _choices())


def for_search(setting: str, key: str | None = None) -> tuple[Embedder, ...]:
    """Those that search uses: what the setting names, and the static one beside any other, for it also knows single words.
    Where the setting cannot be followed, whoever uses what it names is told why, and search goes on without."""
    try:
        named = chosen(setting, key=key)
    except ConfigError as error:
        named = (Unusable(error),)
    return tuple(dict.fromkeys([*chosen("static"), *named])) if named else ()


def again(setting: str, now: Iterable[Embedder]) -> Embedder:
    """An embedder that was set before, opened once more beside those set `now`. Text goes to no place but this machine and
    the endpoint that is set, and the key to that endpoint alone."""
    kind, _, rest = setting.partition(":")
    if kind != "endpoint":
        return chosen(setting)[0]
    from holdfast.embedders.endpoint import Endpoint

    return Endpoint.again(rest, [one for one in now if isinstance(one, Endpoint)], _PATIENCE)


class Unusable:
    """Stands where a setting names an embedder that there is not: whoever uses it is told why."""

    setting = ""

    def __init__(self, why: ConfigError) -> None:
        self._why = why

    @property
    def name(self) -> str:
        self._refuse()

    @property
    def dim(self) -> int:
        self._refuse()

    def passages(self, texts: list[str]) -> Vectors:
        self._refuse()

    questions = passages

    def _refuse(self) -> NoReturn:
        raise ConfigError(self._why.text, self._why.hint)


def _bundled(name: str, threads: int) -> Embedder:
    """One object a model and process, so that two callers do not load it twice."""
    known = _made.get((name, threads))
    return known if known is not None else _made.setdefault((name, threads), _make(name, threads))


def _make(name: str, threads: int) -> Embedder:
    if name == "static":
        from holdfast.embedders.static import Static

        return Static()
    if name == "minilm":
        from holdfast.embedders.minilm import MiniLM

        return MiniLM(threads)
    from holdfast.embedders.multilingual import Multilingual

    return Multilingual(threads)


def _other(kind: str, rest: str, key: str | None, threads: int, seconds: float) -> Embedder:
    if "," in kind or (kind == "endpoint" and rest.rpartition(",")[2].strip().lower() in (*BUNDLED, "default", "none")):
        what = "an endpoint, a folder and a model of fastembed stand alone, so none of them can stand in a list"
        raise ConfigError(what, f"Write it without the rest; only these can be listed: {', '.join(BUNDLED)}")
    if kind == "endpoint":
        from holdfast.embedders.endpoint import Endpoint

        return Endpoint.named(rest, key=key, seconds=seconds)
    if kind == "onnx":
        from holdfast.embedders.onnx import OnnxFolder

        return OnnxFolder(rest, threads)
    if kind == "fastembed":
        from holdfast.embedders.fastembed_model import FastEmbedModel

        return FastEmbedModel(rest, threads)
    raise ConfigError(f"there is no kind of embedder {kind!r}", _choices())


def _choices() -> str:
    return "Choose default, none, " + ", ".join((*BUNDLED, *OTHERS))
