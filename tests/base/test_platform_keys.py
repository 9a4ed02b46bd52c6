"""Platform keys: each has a note key of its own, and a name is believed only if the note key was derived from it."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.base.ids import KEY_PATTERN
from holdfast.base.platform_keys import is_derived, is_name_of, normalize, to_note_key
from holdfast.errors import InvalidKey, InvalidText
from holdfast.safety import validate

SIMILAR = ("build_cmd", "build-cmd", "buildcmd", "BuildCmd", "BUILDCMD", "build cmd", "build.cmd", "build:cmd", "buildсmd")


@given(st.text(min_size=1, max_size=200))
def test_every_key_gets_a_valid_note_key(text):
    key = to_note_key(normalize(text.encode("utf-8", "replace").decode()))
    assert KEY_PATTERN.match(key) and len(key) <= 60


@pytest.mark.parametrize("key", ["testing", "a", "0", "build-cmd", "a--b", "x" * 60, "md5-d41d8cd98f00b204e9800998ecf8427e"])
def test_a_note_key_stands_for_itself(key):
    assert to_note_key(key) == key
    assert not is_name_of(key, key)


def test_similar_keys_have_different_note_keys():
    assert len({to_note_key(key) for key in SIMILAR}) == len(SIMILAR)


def test_a_derived_key_is_no_key_of_another_platform_key():
    derived = to_note_key("BuildCmd")
    again = to_note_key(derived)
    assert is_derived(derived) and is_derived(again) and again != derived
    assert is_name_of("BuildCmd", derived) and is_name_of(derived, again)


@pytest.mark.parametrize("name", ["buildcmd", "BuildCmd ", "buildCmd", "", "\udcff", unicodedata.normalize("NFD", "é")])
def test_a_name_that_does_not_fit_the_note_key_is_not_believed(name):
    assert not is_name_of(name, to_note_key("BuildCmd"))
    assert not is_name_of(name, "testing")


def test_both_spellings_of_a_character_are_one_key():
    composed, decomposed = unicodedata.normalize("NFC", "café"), unicodedata.normalize("NFD", "café")
    assert composed != decomposed
    assert validate.check_platform_key(composed) == validate.check_platform_key(decomposed) == composed


@pytest.mark.parametrize(
    "key", ["Deploy Steps", "日本語", "می‌خواهم", "⚠️ alarms", "👩‍💻", "a/b\\c", "../../etc", "'; --", "<b>", "x" * 200]
)
def test_any_printable_text_is_a_key(key):
    assert validate.check_platform_key(key) == unicodedata.normalize("NFC", key)


@pytest.mark.parametrize(
    "key",
    ["", "x" * 201, " ", " a", "a ", "a\n", "a\tb", "a\x00b", "a\x1b[31mb", "a\u202eb", "a\u200bb", "a\u2066b", "\ufeffa",
     "a\u00a0b",
     "a\u00adb", "a\u3000b", "a\U000e0041b", "a\ufe0fb", "a\u2028b", "a\ue000b", 7, None],
)  # fmt: skip
def test_hidden_characters_and_odd_spaces_are_rejected(key):
    with pytest.raises(InvalidKey):
        validate.check_platform_key(key)


def test_a_lone_surrogate_is_rejected():
    with pytest.raises(InvalidText):
        validate.check_platform_key("a\ud800b")
