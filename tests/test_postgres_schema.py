"""The API on PostgreSQL keeps to what it says of itself, whatever is asked by whichever role, as it does on a home."""

from __future__ import annotations

import pytest
from schemathesis import GenerationMode

from test_http_schema import ROLES, every_route_asked
from tiers import tiered

EXAMPLES = 2  # the generation is the same as on a home; what differs is what stands behind


@pytest.mark.parametrize("mode", GenerationMode)
@pytest.mark.parametrize("role", tiered(ROLES, fast=["operator"]))
@pytest.mark.filterwarnings("ignore")
def test_whatever_a_role_asks_of_a_store_nothing_fails_and_no_answer_breaks_its_schema(
    home, postgres_url, monkeypatch, role, mode
):
    monkeypatch.setenv("HOLDFAST_STORE", postgres_url)
    every_route_asked(home, role, mode, EXAMPLES)
