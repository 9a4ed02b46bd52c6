"""Vectors for many passages: the first are those of the models, the others changed copies."""

from __future__ import annotations

import numpy as np
import pytest

from holdfast import embedders
from holdfast_bench.reused_vectors import reuse_vectors

pytestmark = pytest.mark.xdist_group("models")


def test_the_first_texts_are_embedded_and_the_others_get_changed_copies():
    static = embedders.open_embedders("static")[0]
    texts = ["a red house", "the old harbour", "a letter from home", "rain on the roof"]
    real = static.passages(texts)
    with reuse_vectors(2):
        reused = static.passages(texts)
        assert np.allclose(static.passages(texts[:2]), real[:2], atol=1e-6)
        assert np.allclose(static.questions(texts), real, atol=1e-6)
    assert np.allclose(reused[:2], real[:2], atol=1e-6)
    assert np.allclose(np.linalg.norm(reused, axis=1), 1, atol=1e-5)
    similar = (reused[2:] @ real[:2].T).max(axis=1)
    assert np.all((similar > 0.9) & (similar < 0.999))
    assert np.array_equal(static.passages(texts), real)
