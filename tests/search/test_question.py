"""What a question asks for, as its wording shows."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.search.question import Question, asks_for_many, find_named, find_parts, find_subject


def ask(text):
    return Question(text=text, terms={}, idf={}, people=frozenset(), times=[], today=0)


@pytest.mark.parametrize(
    ("text", "subject"),
    [
        ("Can you give me a summary of my budget tracker?", "my budget tracker"),
        ("Please summarize how the release pipeline has changed over time", "the release pipeline"),
        ("In what order did we discuss the login page?", "the login page"),
        ("List the order in which I brought up different aspects of my essay, in order. Mention only three items.", "my essay"),
        ("Give me an overview of the progress bar in the CLI", "the progress bar in the CLI"),
        ("a summary of the change management process", "the change management process"),
        ("Tell me everything about the billing service", "the billing service"),
    ],
)
def test_a_question_about_a_whole_subject_is_searched_by_the_subject(text, subject):
    assert find_subject(text) == subject


@pytest.mark.parametrize(
    "text",
    [
        "Which port does the gateway use?",
        "What is the order status?",
        "Can you list every open order of the shop?",
        "Where is the list of hosts?",
        "summary",
        "",
    ],
)
def test_other_questions_are_searched_as_they_are(text):
    assert find_subject(text) == ""


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        (
            "How many days passed between the day I fixed the bike and the day I sold it to Ann?",
            ["the day I fixed the bike", "I sold it to Ann"],
        ),
        ("Which did I buy first, the dog bed or the training pads?", ["the dog bed", "the training pads"]),
        ("How long had I been a member when I joined the meetup?", ["I been a member", "joined the meetup"]),
        ("Which port does the gateway use?", []),
        ("Which is better, tea or coffee?", []),  # single words say too little
    ],
)
def test_a_question_that_compares_two_things_has_parts(text, parts):
    assert find_parts(text) == parts


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("How many books did I read?", True),
        ("What did we decide across all our sessions?", True),
        ("Give me an overview of the migration plan", True),
        ("Where is the config file?", False),
    ],
)
def test_some_answers_are_in_several_sessions(text, expected):
    assert asks_for_many(text) is expected


def test_a_request_for_work_is_not_a_question_about_the_past():
    assert ask("How should I format the changelog?").asks_for_work
    assert not ask("How did I format the changelog?").asks_for_work
    assert not ask("What did you suggest for my changelog?").asks_for_work


def test_a_question_for_a_name_is_recognized():
    assert ask("Which cities has Ann been to?").asks_name
    assert ask("Where did we meet?").asks_name
    assert not ask("How long does the build take?").asks_name


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=3000))
def test_any_text_is_understood_in_some_way(text):
    find_subject(text), find_parts(text), asks_for_many(text), ask(text)


@pytest.mark.parametrize("text", ["first, ", "in order ", "between a and ", "everything about ", "you ", "what x"])
def test_a_long_question_is_understood_in_time_in_proportion(text):
    short, long = text * (490 // len(text)), text * (100_000 // len(text))
    start = time.process_time()
    find_parts(short), find_subject(short), asks_for_many(long), ask(long)
    assert time.process_time() - start < 5  # it takes 0.1 seconds; with nested repetitions it would take minutes
    assert find_parts(long) == [] and find_subject(long) == ""


def test_a_name_is_found_as_a_whole_word():
    assert find_named("Ann's trip", ["Ann", "Annabel Lee"]) == ["Ann"]
    assert find_named("the annual report", ["Ann"]) == []
