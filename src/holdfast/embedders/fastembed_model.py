"""A model that the package fastembed has downloaded; Holdfast does not download it."""

from __future__ import annotations

import threading

from holdfast.config import disable_telemetry
from holdfast.embedders.native_lock import NATIVE_LOCK
from holdfast.embedders.weights import install_hint
from holdfast.errors import ConfigError, Trouble

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from holdfast.embedders import Vectors

PACKAGE = "holdfast[fastembed]"


class FastEmbedModel:
    """A model of fastembed, by its name in the hub."""

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
        """Return the number of dimensions from fastembed's table."""
        with NATIVE_LOCK:
            return int(_describe(self._model)["dim"])

    def passages(self, texts: list[str]) -> Vectors:
        """Return one row per text that can be found."""
        return self._embed(texts, "passage_embed")

    def questions(self, texts: list[str]) -> Vectors:
        """Return one row per question."""
        return self._embed(texts, "query_embed")

    def _embed(self, texts: list[str], verb: str) -> Vectors:
        import numpy as np

        from holdfast.embedders.vectors import normalise

        rows = np.zeros((len(texts), self.dim), np.float32)
        filled = [position for position, text in enumerate(texts) if text and not text.isspace()]
        if filled:
            with NATIVE_LOCK:
                rows[filled] = np.stack(list(getattr(self._load(), verb)([texts[position] for position in filled])))
        return normalise(rows)

    def _load(self) -> Any:
        with NATIVE_LOCK, self._lock:
            if self._loaded is None:
                self._loaded = _open_downloaded(_describe(self._model)["model"], self._threads)
            return self._loaded


def _describe(model: str) -> Any:
    """Return fastembed's description of a model."""
    for description in _import_class().list_supported_models():
        if description["model"].lower() == model.lower():
            return description
    raise ConfigError(f"fastembed does not know the model {model!r}", "`TextEmbedding.list_supported_models()` lists them")


def _open_downloaded(model: str, threads: int) -> Any:
    try:
        return _import_class()(model, threads=threads, local_files_only=True)
    except (OSError, ValueError) as error:
        command = f"""python -c "from fastembed import TextEmbedding; TextEmbedding('{model}')\""""
        reason = str(error).partition("\n")[0].rstrip(".")
        raise Trouble(f"fastembed has not fetched {model}: {reason}", f"Fetch it once: `{command}`") from None


def _import_class() -> Any:
    disable_telemetry()
    try:
        from fastembed import TextEmbedding
    except ImportError:
        raise Trouble("the package fastembed is not installed", install_hint(PACKAGE)) from None
    return TextEmbedding
