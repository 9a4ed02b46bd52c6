"""A model of the package fastembed, as it has been fetched; Holdfast itself downloads nothing."""

from __future__ import annotations

import threading

from holdfast.config import disable_telemetry
from holdfast.embedders.native_lock import GATE
from holdfast.embedders.weights import install_hint
from holdfast.errors import ConfigError, Trouble

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.embedders import Vectors

PACKAGE = "holdfast[fastembed]"


class Hub:
    """For those who have a model hub within reach, and fetch a model from it beforehand."""

    def __init__(self, model: str, threads: int = 1) -> None:
        if not model:
            raise ConfigError("fastembed: needs the name of a model", "For example fastembed:BAAI/bge-small-en-v1.5")
        self.name = f"fastembed-{model}"
        self.setting = f"fastembed:{model}"
        self._model = model
        self._threads = threads
        self._lock = threading.Lock()
        self._loaded: Any = None

    @property
    def dim(self) -> int:
        """As fastembed's own table says."""
        with GATE:
            return int(_described(self._model)["dim"])

    def passages(self, texts: list[str]) -> Vectors:
        """One row a text that is to be found."""
        return self._rows(texts, "passage_embed")

    def questions(self, texts: list[str]) -> Vectors:
        """One row a text that somebody asks."""
        return self._rows(texts, "query_embed")

    def _rows(self, texts: list[str], verb: str) -> Vectors:
        import numpy as np

        from holdfast.embedders.vectors import normalised

        rows = np.zeros((len(texts), self.dim), np.float32)
        full = [place for place, text in enumerate(texts) if text and not text.isspace()]
        if full:
            with GATE:
                rows[full] = np.stack(list(getattr(self._load(), verb)([texts[place] for place in full])))
        return normalised(rows)

    def _load(self) -> Any:
        with GATE, self._lock:
            if self._loaded is None:
                self._loaded = _fetched(_described(self._model)["model"], self._threads)
            return self._loaded


def _described(model: str) -> Any:
    """What fastembed says of a model."""
    for one in _package().list_supported_models():
        if one["model"].lower() == model.lower():
            return one
    raise ConfigError(f"fastembed does not know the model {model!r}", "`TextEmbedding.list_supported_models()` lists them")


def _fetched(model: str, threads: int) -> Any:
    try:
        return _package()(model, threads=threads, local_files_only=True)
    except (OSError, ValueError) as error:
        fetch = f"""python -c "from fastembed import TextEmbedding; TextEmbedding('{model}')\""""
        why = str(error).partition("\n")[0].rstrip(".")
        raise Trouble(f"fastembed has not fetched {model}: {why}", f"Fetch it once: `{fetch}`") from None


def _package() -> Any:
    disable_telemetry()
    try:
        from fastembed import TextEmbedding
    except ImportError:
        raise Trouble("the package fastembed is not installed", install_hint(PACKAGE)) from None
    return TextEmbedding
