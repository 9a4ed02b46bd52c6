"""Secrets in answers are found wherever they are, and what is surely clean is not searched twice."""

from __future__ import annotations

import pytest

from holdfast.server.redaction import _is_clean, _without_secrets

SECRET = "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a"


@pytest.mark.parametrize(
    "answer", [{"hits": [{"mode": SECRET}]}, {"mode": SECRET}, {"mode": "keyword", "hits": [[f"the token is {SECRET}"]]}]
)
def test_no_member_of_an_answer_hides_a_secret(answer):
    assert SECRET not in str(_without_secrets(answer))


def test_the_name_of_a_search_mode_makes_no_answer_suspicious():
    assert _is_clean({"mode": "keyword", "hits": [{"text": "We deploy on Tuesdays."}]})
