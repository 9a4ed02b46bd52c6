"""The known models that `holdfast models install` has fetched."""

from __future__ import annotations

import os

from holdfast.embedders import cross_encoder, weights
from holdfast.embedders.known_models import EMBEDDER, MODEL_FILE, RERANKER, find_model
from holdfast.embedders.onnx import OnnxFolder, check_settings
from holdfast.errors import ConfigError, Damaged

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.embedders.known_models import KnownModel
    from holdfast.embedders.session import Session


class InstalledModel(OnnxFolder):
    """An embedder of the table: its digest and settings are those of this version of Holdfast, not those of its folder."""

    def __init__(self, name: str, threads: int = 1) -> None:
        self._model = _find_installed(name, EMBEDDER)
        super().__init__(self._model.folder, threads)
        self.setting = self._model.setting
        self._settings = check_settings(self._model.settings, name)

    def _digest_files(self) -> str:
        return self._model.sha256

    def _load_session(self) -> Session:
        _check_file(self._model)
        return super()._load_session()


class InstalledReranker(cross_encoder.CrossEncoder):
    """A reranker of the table: its digest and settings are those of this version of Holdfast, not those of its folder."""

    def __init__(self, name: str, threads: int = 1) -> None:
        self._model = _find_installed(name, RERANKER)
        super().__init__(self._model.folder, threads)
        self.setting = self._model.setting

    def _read_settings(self) -> dict[str, str]:
        return cross_encoder.check_settings(self._model.settings, self._model.name)

    def _load_session(self) -> Session:
        _check_file(self._model)
        return super()._load_session()


def _find_installed(name: str, kind: str) -> KnownModel:
    """Return the model of a name and kind; raise ConfigError if it is not installed."""
    model = find_model(name, kind)
    if not model.is_installed:
        raise ConfigError(f"the model {name} is not installed", f"Run `holdfast models install {name}`")
    return model


def _check_file(model: KnownModel) -> None:
    """Raise Damaged if the file is not the one that was installed."""
    path = os.path.join(model.folder, MODEL_FILE)
    if weights.digest(path) != model.sha256:
        raise Damaged(f"{path} is not the file that was installed", f"Install it again: `holdfast models install {model.name}`")
