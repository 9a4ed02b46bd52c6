"""Records, keys that are derived from texts, tags, scopes and ids."""

from __future__ import annotations

import pickle
import re

import pytest
import strategies as some
from hypothesis import example, given
from hypothesis import strategies as st

from holdfast.base.ids import KEY_PATTERN, derive_key, digest, is_name, new_id
from holdfast.base.markdown import find_title
from holdfast.base.record import Record, field_names
from holdfast.models import SCOPES, Answer, Hit, Scope, Source, Stored, Version, parse_tags

# --- keys -------------------------------------------------------------------------------------------------------------


@pytest.mark.promise("N3")
@given(some.note_texts | some.broken_texts)
@example("")
@example("-----")
@example("記憶")
@example("🧠")
@example("ذاكرة")
@example("İstanbul ß")
@example("a" * 500)
@example("-" * 47 + "a")
def test_any_text_gives_itself_a_valid_key_and_always_the_same(text):
    key = derive_key(text)
    assert KEY_PATTERN.match(key)
    assert derive_key(text) == key
    assert derive_key(str(text.encode("utf-8", "surrogatepass"), "utf-8", "surrogatepass")) == key


@pytest.mark.promise("N3")
@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("use pytest", "use-pytest"),
        ("Always use pytest; never unittest, not even in legacy modules", "always-use-pytest-never-unittest-not-"),
        ("Crème brûlée recipe", "creme-brulee-recipe"),
        ("one two three four five six seven", "one-two-three-four-five-six-"),
        ("x" * 200, "x" * 48 + "-"),
        ("日本語のメモ", ""),
    ],
    ids=["two", "long", "accents", "seven", "one long word", "another script"],
)
def test_a_key_is_made_from_the_first_six_words(text, start):
    assert derive_key(text).startswith(start)


words = st.lists(st.sampled_from(
    ["c", "c++", "c#", "-5", "5", "a.b", "ab", "a", "b", "é", "e", "E", "記憶", "憶記", "🧠", "ذ", "6", "seven",
    "x" * 50, "x" * 60, "\n", ".", "½", "1⁄2"],
), min_size=1, max_size=8)  # fmt: skip


@pytest.mark.promise("N3")
@given(words.map(" ".join), words.map(" ".join))
@example("prefer c", "prefer c++")
@example("a.b", "a b")
@example("x" * 100, "x" * 200)
@example("a " + "x" * 47, "a " + "x" * 48)
def test_different_texts_get_different_keys(one, other):
    if one.lower() != other.lower():  # upper and lower case alone do not make another text
        assert derive_key(one) != derive_key(other)


@pytest.mark.promise("N3")
@given(some.note_texts, some.note_texts)
def test_texts_whose_words_differ_get_different_keys(one, other):
    spelled = ["".join(c if c.isalnum() else " " for c in text.lower()).split() for text in (one, other)]
    if spelled[0] != spelled[1]:
        assert derive_key(one) != derive_key(other)


@pytest.mark.promise("N3")
def test_ten_thousand_texts_that_begin_alike_get_ten_thousand_keys():
    texts = [f"the release notes of version number {number} say nothing" for number in range(10_000)]
    assert len({derive_key(text) for text in texts}) == len(texts)


# --- tags -------------------------------------------------------------------------------------------------------------


@pytest.mark.promise("N5")
@pytest.mark.parametrize(
    ("given_", "tags"),
    [
        (None, ()),
        ("", ()),
        (" , ,", ()),
        ("ci-cd", ("ci-cd",)),
        (" a , b,c ", ("a", "b", "c")),
        ("a,b,a", ("a", "b")),
        (["ci-cd", " 日本語 ", "naïve"], ("ci-cd", "日本語", "naïve")),
        (("x,y", "z"), ("x", "y", "z")),
        ("two words,tab\there", ("two words", "tab here")),
        (["a", ""], ("a",)),
    ],
)
def test_tags_come_as_a_list_or_a_comma_string(given_, tags):
    assert parse_tags(given_) == tags


@pytest.mark.promise("N5")
@given(st.lists(some.raw_texts, max_size=5))
def test_tags_are_trimmed_each_once_and_stay_as_they_are(given_):
    tags = parse_tags(given_)
    assert parse_tags(tags) == parse_tags(list(tags)) == parse_tags(",".join(tags)) == tags
    assert len(set(tags)) == len(tags)
    assert all(tag and tag == tag.strip() and "," not in tag for tag in tags)


# --- records ----------------------------------------------------------------------------------------------------------


class Point(Record):
    x: int
    y: int = 2
    label: str = ""


class Point3(Point):
    z: int = 0


class Named(Point):
    name: str


def test_a_record_takes_its_fields_by_place_or_name_and_knows_its_defaults():
    assert (Point(1).x, Point(1).y, Point(1).label) == (1, 2, "")
    assert Point(1, 5) == Point(y=5, x=1) == Point(x=1, y=5, label="")
    assert Point3(1, z=7).z == 7
    assert field_names(Point3) == ("x", "y", "label", "z")
    assert Point3(1, 5) == Point3(1, 5, "", 0)
    assert Named(1, name="a") == Named(1, 2, "", "a")
    with pytest.raises(TypeError, match="Named: unknown or missing field: name"):
        Named(1)


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ((), {}),
        ((1, 2, "a", 4), {}),
        ((1,), {"nope": 1}),
        ((1, 2, "a"), {"nope": 1}),
        ((), {"y": 1}),
        ((1,), {"_fields": ()}),
    ],
)
def test_a_field_too_many_too_few_or_unknown_is_an_error(values, named):
    with pytest.raises(TypeError, match="Point"):
        Point(*values, **named)


def test_a_record_cannot_be_changed_only_replaced():
    point = Point(1)
    with pytest.raises(AttributeError, match="frozen"):
        point.x = 5
    with pytest.raises(AttributeError, match="frozen"):
        point.other = 5
    with pytest.raises(AttributeError, match="frozen"):
        del point.x
    moved = point.replace(x=5)
    assert (point.x, moved.x, moved.y) == (1, 5, 2)
    with pytest.raises(TypeError):
        point.replace(nope=1)


def test_records_are_equal_when_kind_and_fields_are():
    assert Point(1) == Point(1)
    assert Point(1) != Point(2)
    assert Point(1) != Point3(1)
    assert Point(1) != (1, 2, "")
    assert len({Point(1), Point(1), Point(2), Point3(1)}) == 3
    assert repr(Point(1, label="a'b")) == 'Point(x=1, y=2, label="a\'b")'
    assert eval(repr(Point3(1, z=3)), {"Point3": Point3}) == Point3(1, z=3)  # noqa: S307


def test_a_records_plain_form_is_plain_all_the_way_down():
    version = Version("t", tags=("a", "b"), source=Source("agent", session="s"))
    assert version.as_dict() == {
        "text": "t", "type": "project", "tags": ["a", "b"],
        "source": {"origin": "agent", "agent": None, "client": None, "session": "s", "made_from": [], "trust": None},
        "recorded": "", "valid_from": "", "valid_to": None, "closed": None, "hidden": [],
    }  # fmt: skip
    assert Stored("created", {"a": (Point(1),)}).as_dict() == {
        "action": "created", "note": {"a": [Point(1).as_dict()]}, "redacted": [],
    }  # fmt: skip


def test_a_record_survives_a_pickle():
    version = Version("t", source=Source("agent"))
    assert pickle.loads(pickle.dumps(version)) == version


@given(some.note_texts, some.tags, some.sources)
def test_replacing_nothing_gives_an_equal_record(text, tags, source):
    version = Version(text, tags=tags, source=source)
    assert version.replace() == version == Version(**{name: getattr(version, name) for name in field_names(Version)})
    assert hash(version.replace()) == hash(version)


def test_an_answer_is_also_its_hits():
    hit = Hit("note", Scope("global"), "k", None, (), "t", 1.0, "p:1-1", None, None, "", None)
    answer = Answer((hit,), "keyword")
    assert (list(answer), len(answer), answer[0]) == ([hit], 1, hit)


# --- scopes, titles, ids ----------------------------------------------------------------------------------------------


@pytest.mark.promise("N1", "N8")
@pytest.mark.parametrize("kind", SCOPES)
def test_a_scope_has_its_own_folder_and_comes_back_from_it(kind):
    scope = Scope(kind, "" if kind == "global" else "some.id")
    assert Scope.of_folder(scope.folder) == scope
    assert str(scope) == ("global" if kind == "global" else f"{kind}:some.id")
    assert len({Scope(one, "x").folder for one in SCOPES}) == 4


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("# A title\ntext", "A title"),
        ("text\n# Later ", "Later"),
        ("#hash", "key"),
        ("# \n", "key"),
        ("## Two", "key"),
        ("x\n" * 30 + "# far", "key"),
    ],
)
def test_a_title_is_the_first_heading_near_the_start_or_the_name(text, title):
    assert find_title(text, "key") == title


@given(st.lists(st.integers(0, 2**48 - 1), min_size=2, max_size=5))
def test_ids_sort_by_time(times):
    times = sorted(set(times))
    ids = [new_id(time) for time in times]
    assert ids == sorted(ids)
    assert all(len(id) == 16 and id.isalnum() for id in ids)


def test_ids_of_the_same_millisecond_differ_and_digests_name_bytes():
    assert len({new_id(5) for _ in range(100)}) > 98
    assert len(digest(b"")) == 32
    assert digest(b"a") != digest(b"b")


@given(st.one_of(st.text(max_size=8), st.text("aZ09._-", max_size=130)))
def test_a_name_is_what_the_rule_says(text):
    assert is_name(text) == bool(re.fullmatch(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,127}", text))
