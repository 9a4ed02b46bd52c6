"""Hybrid recall of questions whose answer is in several places, and of what assistants said."""

from __future__ import annotations

import pytest

from holdfast.search import hybrid, vectorize

pytestmark = pytest.mark.xdist_group("models")

SESSIONS = {
    "monday": [
        ("user", "The login page shows an error if the password has a space"),
        ("assistant", "Trim the password before it is hashed, then the login page accepts it."),
        ("user", "I also want the login page to remember the user name"),
        ("assistant", "Store the user name in a cookie that lasts for thirty days."),
        ("user", "The login page needs a link to reset the password"),
        ("assistant", "Send a reset token by mail; it should expire after an hour."),
    ],
    "tuesday": [
        ("user", "We finished the design review of the billing service today"),
        ("assistant", "Congratulations. The next step is the load test."),
    ],
    "friday": [
        ("user", "The launch of the billing service went well this morning"),
        ("assistant", "Good to hear. Watch the error rate for a day."),
        ("user", "The login page is too slow on phones"),
        ("assistant", "Compress the hero image and load fonts later."),
    ],
}


@pytest.fixture(autouse=True)
def models(monkeypatch, nobody_touches_the_real_home):
    monkeypatch.setenv("HOLDFAST_EMBEDDER", "default")


@pytest.fixture
def chats(memory):
    for session, turns in SESSIONS.items():
        memory.log([{"role": role, "text": text} for role, text in turns], session=session)
    memory.embed()
    return memory


def test_a_question_about_a_whole_subject_finds_what_the_subject_finds(chats):
    asked = chats.recall("Can you give me a summary of the login page problems so far?", explain=True)
    assert "login page" in asked[0].text
    subject = chats.recall("the login page problems")
    assert {hit.citation for hit in asked.hits[:4]} & {hit.citation for hit in subject.hits[:4]}
    assert not any("billing" in hit.text for hit in asked.hits[:2])


def test_the_answer_to_how_many_comes_from_several_sessions(chats):
    answer = chats.recall("How many problems of the login page did I mention?", explain=True)
    assert len({hit.session for hit in answer.hits[:3]}) >= 2
    assert max(hit.why.get("repeat", [0.0, 0.0])[0] for hit in answer) > 0
    assert all(hit.why["repeat"][1] < 0 for hit in answer if "repeat" in hit.why)


def test_a_question_that_compares_two_things_finds_both(chats):
    answer = chats.recall("How many days passed between the design review and the launch of the billing service?", explain=True)
    first = " ".join(hit.text for hit in answer.hits[:3])
    assert "design review" in first and "launch" in first
    assert any("part" in hit.why for hit in answer)


def test_the_order_for_several_answers_does_not_decide_what_is_weak(chats):
    asked = chats.recall("How many problems of the login page did I mention?", limit=20)
    strong = {hit.citation for hit in asked if not hit.weak}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hybrid, "asks_for_many", lambda text: False)
        chats._context.hybrid_search()._results.clear()
        again = chats.recall("How many problems of the login page did I mention?", limit=20)
    assert {hit.citation for hit in again if not hit.weak} == strong


def test_a_semantic_recall_is_by_meaning_alone(chats):
    answer = chats.recall("How many days passed between the design review and the launch?", mode="semantic", explain=True)
    assert not any({"part", "repeat", "later"} & set(hit.why) for hit in answer)


def test_the_opening_of_what_an_assistant_said_has_a_vector(memory):
    memory.log(
        [
            {"role": "user", "text": "My laptop battery is empty by noon"},
            {"role": "assistant", "text": "Lower the brightness of the screen. " + "This saves energy. " * 60},
        ],
        session="one",
    )
    memory.embed()
    answer = memory.recall("what did you recommend about the display", explain=True)
    hit = next(hit for hit in answer if hit.speaker == "assistant")
    assert hit.why["c_sentence"][0] > 0.25 and hit.why["c_sentence_ra"][1] > 0


def test_a_turn_has_the_same_score_before_and_after_it_is_embedded(memory, monkeypatch):
    turns = [
        {"speaker": "Mara Lindqvist", "text": "We met Jonas by the lake last summer"},
        {"speaker": "Jonas", "text": "I met Mara Lindqvist at the harbour"},
    ]
    with monkeypatch.context() as patch:
        patch.setattr(vectorize, "_MAX_DURING_QUERY", {"static": 0, "sentence": 0, "multi": 0})
        patch.setattr(vectorize.Vectorizer, "_start_background", lambda self: None)
        memory.log(turns, session="one")
        memory.recall("Where did Jonas meet Mara Lindqvist?")
    memory.embed()
    known = [(hit.text, hit.score) for hit in memory.recall("Where did Jonas meet Mara Lindqvist?")]
    search = memory._context.hybrid_search()
    search._vocabulary, search._content = None, None
    assert [(hit.text, hit.score) for hit in memory.recall("Where did Jonas meet Mara Lindqvist?")] == known
