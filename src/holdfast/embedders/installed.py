"""A known model that `holdfast models install` has fetched."""

from __future__ import annotations

import os

from holdfast.embedders import weights
from holdfast.embedders.known_models import MODEL_FILE, find_model
from holdfast.embedders.onnx import OnnxFolder, check_settings
from holdfast.errors import ConfigError, Damaged

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.embedders.session import Session


class InstalledModel(OnnxFolder):
    """A model of the table: its digest and settings are those of this version of Holdfast, not those of its folder."""

    def __init__(self, name: str, threads: int = 1) -> None:
        self._model = find_model(name)
        self._install = f"holdfast models install {name}"
        if not self._model.is_installed:
            raise ConfigError(f"the model {name} is not installed", f"Run `{self._install}`")
        super().__init__(self._model.folder, threads)
        self.setting = self._model.setting
        self._settings = check_settings(self._model.settings, name)

    def _digest_files(self) -> str:
        return self._model.sha256

    def _load_session(self) -> Session:
        path = os.path.join(self._folder, MODEL_FILE)
        if weights.digest(path) != self._model.sha256:
            raise Damaged(f"{path} is not the file that was installed", f"Install it again: `{self._install}`")
        return super()._load_session()
