"""The API on PostgreSQL conforms to its OpenAPI document for every request and role, as on a home."""

from __future__ import annotations

import hypothesis
import pytest
from schemathesis import GenerationMode
from test_http_schema import ROLES, every_route_asked
from tiers import tiered

EXAMPLES = max(2, hypothesis.settings.default.max_examples // 100)  # fewer than on a home: only the store differs


@pytest.mark.parametrize("mode", GenerationMode)
@pytest.mark.parametrize("role", tiered(ROLES, fast=["operator"]))
@pytest.mark.filterwarnings("ignore")
@pytest.mark.hypothesis  # the battery sends many more
def test_whatever_a_role_asks_of_a_store_nothing_fails_and_no_answer_breaks_its_schema(
    home, postgres_url, monkeypatch, role, mode
):
    monkeypatch.setenv("HOLDFAST_STORE", postgres_url)
    every_route_asked(home, role, mode, EXAMPLES)
