"""The graph that runs MiniLM: the package's weights, multiplied as 8-bit numbers by onnxruntime's own operators.

The package's graph turns its 8-bit weights into 32-bit floats before it runs. This graph multiplies the bytes themselves, which
takes a quarter of the time and a third of the memory (docs/adr/0045-multiply-8-bit-weights.md). Each layer is: attention,
addition and normalisation, two dense layers, addition and normalisation.
"""

from __future__ import annotations

import numpy as np

from holdfast.embedders.onnx_file import MICROSOFT, GraphWriter, read_arrays

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import BinaryIO

    from holdfast.embedders.onnx_file import Array

_LAYERS, _HEADS, _DIM = 6, 12, 384
_EPSILON = 1e-12
_EMBEDDINGS = "inner.embeddings."
_FLOAT, _INT32 = 1, 6  # numbers of types in ONNX
_OPSET = 17


def write(file: BinaryIO, package_file: bytes | memoryview, max_tokens: int) -> None:
    """Write the model as an ONNX file, made from the arrays of the package's file."""
    arrays = read_arrays(package_file)
    graph = GraphWriter()
    hidden = _add_embeddings(graph, arrays, max_tokens)
    mask = graph.add("Cast", ["attention_mask"], "mask", to=_INT32)
    weights = sorted([name[:-2] for name in arrays if name.startswith("val_") and name.endswith("_q")], key=_number)
    per_layer = len(weights) // _LAYERS
    for number in range(_LAYERS):
        hidden = _Layer(graph, arrays, number, weights[number * per_layer :][:per_layer]).add(hidden, mask)
    graph.write(file, ["input_ids", "attention_mask"], hidden, ["texts", "tokens", _DIM], _OPSET)


def _number(name: str) -> int:
    """Return the number in a name such as val_105; they increase from layer to layer."""
    return int(name.removeprefix("val_"))


def _add_embeddings(graph: GraphWriter, arrays: dict[str, Array], max_tokens: int) -> str:
    """Add the vectors of tokens and of their positions, and return the name of the sum."""
    words, positions = f"{_EMBEDDINGS}word_embeddings.weight", f"{_EMBEDDINGS}position_embeddings.weight"
    token_types = arrays[f"{_EMBEDDINGS}token_type_embeddings.weight"]
    by_position = arrays[f"{positions}_q"][:max_tokens] * arrays[f"{positions}_scale"][:max_tokens] + token_types[0]
    graph.constant("words", arrays[f"{words}_q"])
    graph.constant("word_scales", arrays[f"{words}_scale"])
    graph.constant("positions", by_position.astype(np.float32))
    graph.constant("start", np.array([0], np.int64))
    graph.add("Gather", ["words", "input_ids"], "word_bytes", axis=0)
    graph.add("Cast", ["word_bytes"], "word_numbers", to=_FLOAT)
    graph.add("Gather", ["word_scales", "input_ids"], "scale", axis=0)
    graph.add("Mul", ["word_numbers", "scale"], "word_vectors")
    graph.add("Shape", ["input_ids"], "length", start=1, end=2)
    graph.add("Slice", ["positions", "start", "length", "start"], "position_vectors")
    graph.add("Add", ["word_vectors", "position_vectors"], "embeddings")
    return _add_normalisation(graph, arrays, "embeddings", f"{_EMBEDDINGS}LayerNorm", "hidden")


def _add_normalisation(graph: GraphWriter, arrays: dict[str, Array], input: str, name: str, output: str) -> str:
    scale, bias = (graph.constant(f"{name}.{part}", arrays[f"{name}.{part}"]) for part in ("weight", "bias"))
    return graph.add("LayerNormalization", [input, scale, bias], output, axis=-1, epsilon=_EPSILON)


class _Layer:
    """One layer; its weights are those of query, key, value, attention output, first and second dense layer."""

    def __init__(self, graph: GraphWriter, arrays: dict[str, Array], number: int, weights: list[str]) -> None:
        self._graph, self._arrays, self._weights = graph, arrays, weights
        self._name = f"inner.encoder.layer.{number}."

    def add(self, input: str, mask: str) -> str:
        """Add the layer and return the name of its output."""
        graph, name = self._graph, self._name
        *attention, output, first, second = self._weights
        biases = [f"attention.self.{part}" for part in ("query", "key", "value")]
        joined = self._add_dense(input, attention, biases, f"{name}joined")
        parts = [f"{name}{part}" for part in ("query", "key", "value")]
        graph.add("Split", [joined], parts, axis=-1)
        graph.add("MultiHeadAttention", [*parts, "", mask], f"{name}attended", MICROSOFT, num_heads=_HEADS)
        attended = self._add_dense(f"{name}attended", [output], ["attention.output.dense"], f"{name}projected")
        hidden = self._add_sum(attended, input, "attention.output.LayerNorm", f"{name}middle")
        dense = self._add_dense(hidden, [first], ["intermediate.dense"], f"{name}dense")
        graph.add("Gelu", [dense], f"{name}activated", MICROSOFT)
        dense = self._add_dense(f"{name}activated", [second], ["output.dense"], f"{name}reduced")
        return self._add_sum(dense, hidden, "output.LayerNorm", f"{name}output")

    def _add_dense(self, input: str, weights: list[str], biases: list[str], output: str) -> str:
        """Multiply by 8-bit weights (several side by side) and add their biases."""
        joined = np.concatenate([self._arrays[f"{name}_q"] for name in weights], axis=1)
        scale = np.concatenate([self._arrays[f"{name}_scale"].reshape(-1) for name in weights])
        bias = np.concatenate([self._arrays[f"{self._name}{name}.bias"] for name in biases])
        constants = {"weight": joined, "scale": scale, "bias": bias}
        names = {part: self._graph.constant(f"{output}.{part}", array) for part, array in constants.items()}
        inputs = [input, names["weight"], names["scale"], "", names["bias"]]
        return self._graph.add("DynamicQuantizeMatMul", inputs, output, MICROSOFT)

    def _add_sum(self, left: str, right: str, normalisation: str, output: str) -> str:
        total = self._graph.add("Add", [left, right], f"{output}.sum")
        return _add_normalisation(self._graph, self._arrays, total, f"{self._name}{normalisation}", output)
