"""A cross-encoder of a few operators, which real onnxruntime runs: the logit grows with the tokens that both texts share."""

from __future__ import annotations

import numpy as np

from holdfast.embedders.onnx_file import GraphWriter

LOGITS = (-4.0, 4.0, 12.0)  # of texts that share no token, one token, two tokens
_FLOAT = 1  # number of the type in ONNX


def write_tiny_cross_encoder(path, outputs=1):
    """Write the model; with other `outputs` it gives more than one number for a pair."""
    graph = GraphWriter()
    for name, values in (("rows", [2]), ("columns", [1]), ("both", [1, 2]), ("shape", [-1, 1])):
        graph.constant(name, np.array(values, np.int64))
    for name, value in (("per_token", 8.0), ("offset", -12.0), ("outputs", [[1.0] * outputs])):
        graph.constant(name, np.array(value, np.float32))
    graph.constant("one", np.array(1, np.int64))
    graph.add("Unsqueeze", ["input_ids", "rows"], "id_rows")
    graph.add("Unsqueeze", ["input_ids", "columns"], "id_columns")
    graph.add("Equal", ["id_rows", "id_columns"], "same_token")
    graph.add("Cast", ["same_token"], "same", to=_FLOAT)
    graph.add("Sub", ["one", "token_type_ids"], "of_question")
    graph.add("Mul", ["of_question", "attention_mask"], "question_tokens")
    graph.add("Mul", ["token_type_ids", "attention_mask"], "passage_tokens")
    graph.add("Unsqueeze", ["question_tokens", "rows"], "question_rows")
    graph.add("Unsqueeze", ["passage_tokens", "columns"], "passage_columns")
    graph.add("Mul", ["question_rows", "passage_columns"], "pairs")
    graph.add("Cast", ["pairs"], "is_pair", to=_FLOAT)
    graph.add("Mul", ["same", "is_pair"], "shared_pairs")
    graph.add("ReduceSum", ["shared_pairs", "both"], "shared", keepdims=0)  # the mark at the end of both texts is shared, too
    graph.add("Mul", ["shared", "per_token"], "scaled")
    graph.add("Add", ["scaled", "offset"], "sum")
    graph.add("Reshape", ["sum", "shape"], "logit")
    graph.add("MatMul", ["logit", "outputs"], "logits")
    with open(path, "wb") as file:
        graph.write(file, ["input_ids", "attention_mask", "token_type_ids"], "logits", ["texts", outputs], 17)
