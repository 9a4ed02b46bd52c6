"""The request models: the values they accept are those of the library, and every mistake is reported."""

from __future__ import annotations

import typing

import msgspec
import pytest

from holdfast.server.models import ORDERED_ENUM
from holdfast.server.problem import Problem
from holdfast.server.routes import ROUTES
from holdfast.server.routes.history import LogTurns, NewTurn
from holdfast.server.routes.notes import StoreNote
from holdfast.server.routes.recall import Recall
from holdfast.server.validation import decode, request_fields

MODELS = {NewTurn} | {route.params for route in ROUTES} | {route.line for route in ROUTES if isinstance(route.line, type)}
MODELS |= {route.answers for route in ROUTES if isinstance(route.answers, type) and issubclass(route.answers, msgspec.Struct)}


def test_a_field_accepts_the_very_words_that_the_document_names():
    seen = set()
    for model in MODELS:
        for name, field in request_fields(model).items():
            meta = next((one for one in getattr(field.hint, "__metadata__", ())), None)
            documented = ((meta and meta.extra_json_schema) or {}).get(ORDERED_ENUM)
            base = typing.get_args(field.hint)[0] if meta else field.hint
            if typing.get_origin(base) is typing.Literal or documented:
                assert list(typing.get_args(base)) == documented, (model, name)
                seen.add(name)
    assert seen >= {"scope", "type", "origin", "mode", "sort", "kind", "role", "action", "written", "event"}


def mistakes(model, given):
    with pytest.raises(Problem) as refused:
        decode(model, given)
    return [(one["pointer"], one["detail"]) for one in refused.value.more["errors"]]


def test_every_mistake_is_named_in_its_place():
    given = {"text": "", "key": "A", "scope": "nowhere", "tags": ["a", 1, None], "pinned": 1, "more": 2}
    found = mistakes(StoreNote, given)
    assert found[:4] == [
        ("/text", "must not be empty"),
        ("/key", "must have only a-z, 0-9 and '-', such as deploy-steps; at most 60 characters, not starting with '-'"),
        ("/scope", "must be one of: session, project, agent, global"), ("/tags/1", "must be a string"),
    ]  # fmt: skip
    assert found[4:6] == [("/tags/2", "must be a string"), ("/pinned", "must be true or false")]
    assert found[6][0] == "/more" and found[6][1].startswith("is unknown; known: ")


def test_a_text_of_the_wrong_form_is_told_the_right_one_in_words():
    found = dict(mistakes(Recall, {"query": "x", "as_of": "yesterday", "project": ".hidden"}))
    assert found["/as_of"].startswith("must be a date such as 2026-03-27")
    assert found["/project"].startswith("must have only letters, digits") and "^" not in "".join(found.values())
    shown = {"2026-03-27": "as_of", "2026-03-27T09:30:00Z": "as_of", "billing-api": "project"}  # the examples are valid
    assert [decode(Recall, {"query": "x", name: text}) for text, name in shown.items()]
    assert decode(StoreNote, {"text": "x", "key": "deploy-steps"}).key == "deploy-steps"


def test_at_most_eight_mistakes_are_named():
    assert len(mistakes(StoreNote, {"text": "x", "tags": [1] * 50})) == 8


def test_mistakes_in_objects_of_a_list_have_their_whole_path():
    turns = [{"text": "Hello."}, {"role": "nobody"}, "words", {"text": "x", "nonsense": 1}]
    found = dict(mistakes(LogTurns, {"turns": turns}))
    assert found["/turns/1/text"] == "is missing" and found["/turns/1/role"].startswith("must be one of: user")
    assert found["/turns/2"] == "must be an object" and found["/turns/3/nonsense"].startswith("is unknown")
    assert mistakes(LogTurns, {}) == [("/turns", "is missing")]


def test_a_list_that_is_too_long_says_how_long_it_may_be():
    assert mistakes(StoreNote, {"text": "x", "tags": ["a"] * 65}) == [("/tags", "must have 0 to 64 items")]
    assert mistakes(StoreNote, {"text": "x", "allow_secret": "a" * 501}) == [("/allow_secret", "may have 500 characters")]


def test_what_was_not_given_is_left_to_the_verb():
    params = decode(StoreNote, {"text": "Words.", "pinned": False})
    assert params.options() == {"pinned": False} and params.given("key", "scope") == {}
