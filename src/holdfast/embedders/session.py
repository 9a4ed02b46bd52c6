"""Run a model in ONNX: from token ids to one row per text."""

from __future__ import annotations

import numpy as np

from holdfast.config import disable_telemetry
from holdfast.embedders.native_lock import NATIVE_LOCK
from holdfast.embedders.vectors import mean_pool
from holdfast.embedders.weights import install_hint
from holdfast.errors import Damaged, Trouble

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.embedders import Vectors
    from holdfast.embedders.vectors import Ints

_INPUTS = {"input_ids", "attention_mask", "token_type_ids"}
_OTHER_MODEL_HINT = "Choose a model that takes token ids and gives token or sentence vectors, or set another embedder"


class Session:
    """One loaded model, from a file or its bytes, safe for concurrent threads; load it inside the native-code lock."""

    def __init__(self, model: str | bytes, threads: int, hint: str = _OTHER_MODEL_HINT) -> None:
        disable_telemetry()
        self._hint = hint  # what to do if the model cannot be used
        try:
            import onnxruntime
        except ImportError:
            raise Trouble("onnxruntime is not installed", install_hint("onnxruntime")) from None
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 3  # its warnings are for the author of the model
        try:
            self._session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        except _runtime_errors() as error:
            raise Damaged(f"onnxruntime cannot load the model: {str(error).splitlines()[0]}", hint) from None
        self._inputs = {input.name for input in self._session.get_inputs()}
        output = self._session.get_outputs()[0]
        if not {"input_ids"} <= self._inputs <= _INPUTS or not isinstance(output.shape[-1], int):
            raise Damaged(f"the model takes {sorted(self._inputs)} and gives {output.name} {output.shape}", hint)
        self._output = output.name
        self.dim: int = output.shape[-1]

    def mean_vectors(self, ids: Ints, mask: Ints) -> Vectors:
        """Return the model's sentence vectors, or the means of its token vectors."""
        rows = self._run(ids, mask)
        return mean_pool(rows, mask) if rows.ndim == 3 else np.asarray(rows, dtype=np.float32)

    def first_vectors(self, ids: Ints, mask: Ints) -> Vectors:
        """Return the model's sentence vectors, or the vectors of the first tokens."""
        rows = self._run(ids, mask)
        return np.asarray(rows[:, 0] if rows.ndim == 3 else rows, dtype=np.float32)

    def rows(self, ids: Ints, types: Ints) -> Vectors:
        """Return the model's output for texts without padding; `types` say which tokens are of the second text of a pair."""
        return self._run(ids, np.ones_like(ids), types)

    def _run(self, ids: Ints, mask: Ints, types: Ints | None = None) -> Vectors:
        inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids) if types is None else types}
        try:
            with NATIVE_LOCK:
                rows: Vectors = self._session.run([self._output], {name: inputs[name] for name in self._inputs})[0]
        except _runtime_errors() as error:
            raise Damaged(f"the model cannot read a text: {str(error).splitlines()[0]}", self._hint) from None
        return rows


def _runtime_errors() -> tuple[type[Exception], ...]:
    """Return the errors of onnxruntime, whose only common base is Exception."""
    from onnxruntime.capi import onnxruntime_pybind11_state as state

    names = ("Fail", "InvalidArgument", "InvalidGraph", "InvalidProtobuf", "NoSuchFile", "NotImplemented", "RuntimeException")
    return tuple(getattr(state, name) for name in names)
