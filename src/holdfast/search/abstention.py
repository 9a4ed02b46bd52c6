"""Decide when to abstain: how strong a match must be before it counts as an answer.

Most prompts to an agent are about its work, but many are not: greetings, general questions ("what is recursion?"), small
tasks that need no memory ("write a regex for email addresses"). A search still finds something for them. A hit below the
threshold that this module computes is a weak hit: `recall` marks it, and a prompt brings nothing.
docs/adr/0029-abstain-from-general-requests.md has the figures.
"""

from __future__ import annotations

import os
from itertools import pairwise
from math import log

from holdfast.index.tokenizer import COMMON

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from numpy.typing import NDArray

MIN_SCORE = 0.02  # hybrid score below which a hit is weak, whatever was asked
# By model: slope and offset of the threshold, which rises with the question's likeness to a general request.
_THRESHOLD_LINES = {"use": (2.2, 0.7), "minilm": (2.0, 0.42)}
_OURS_REDUCTION = 0.5  # of the threshold for a question about what "we" do

# By words alone: a match counts by the weight of the words it shares with the prompt, against the form of the prompt.
_WORD = 0.35
_GENERAL, _MAYBE_GENERAL, _OURS, _REFERENCE, _NAMED = -5.5, -4.5, 4.0, 1.5, 2.0
_MAX_REFERENCES = 3
_MAX_TERMS = 16
_MIN_PASSAGES = 100  # in a small home every word is either rare or common: weights assume at least this many passages
_GENERAL_OPENINGS = (
    "what is ", "what's ", "whats ", "what are ", "what does ", "who is ", "who was ", "who wrote ", "who invented ",
    "who created ", "who made ", "explain ", "define ", "describe ", "tell me ", "name ", "convert ", "translate ", "write a ",
    "write an ", "write me ", "write some ", "give me ", "generate ", "regex ", "difference between ", "how does ", "how to ",
    "is a ", "is an ", "show me ", "recommend ", "suggest ", "sing ", "summarize ", "calculate ", "hello ", "hi ", "hey ",
    "thank", "good morning ", "good night ", "good evening ", "bye ",
)  # fmt: skip
_MAYBE_GENERAL_OPENINGS = ("how do ", "how can i ", "how can you ", "how many ", "how much ", "which ", "what do ")
_POLITE = ("please ", "can you ", "could you ", "would you ", "ok ", "okay ", "so ", "now ", "and ")  # before an opening
_FUNCTION_WORDS = (  # of other languages than English: that two texts share them says nothing
    "a", "aan", "aber", "al", "als", "am", "ao", "as", "au", "auch", "auf", "aus", "aux", "avec", "bei", "bin", "bis", "ce",
    "ces", "cette", "che", "com", "comme", "como", "con", "cuando", "da", "dans", "das", "dass", "dat", "de", "del", "dem",
    "den", "der", "des", "di", "die", "do", "doch", "donde", "dos", "du", "e", "een", "ein", "eine", "einem", "einen",
    "einer", "el", "ella", "elle", "em", "en", "er", "es", "est", "esta", "este", "et", "für", "hat", "hay", "het", "hij",
    "ich", "ihr", "ik", "il", "ils", "im", "in", "is", "ist", "ja", "je", "kann", "la", "las", "le", "les", "leur", "lo",
    "los", "ma", "maar", "mais", "me", "met", "mi", "mit", "más", "na", "naar", "nach", "nas", "ne", "nicht", "niet", "no",
    "noch", "nog", "non", "nos", "nous", "não", "o", "oder", "of", "om", "on", "op", "os", "ou", "où", "par", "para", "pas",
    "per", "pero", "plus", "por", "pour", "qu", "que", "qui", "qué", "sa", "se", "sem", "ses", "seu", "si", "sich", "sie",
    "sin", "sind", "so", "son", "sono", "sont", "su", "sua", "sur", "sus", "te", "um", "uma", "un", "una", "und", "une",
    "uns", "van", "von", "voor", "vor", "vous", "war", "was", "wat", "we", "wenn", "wer", "wie", "wir", "wird", "wo", "y",
    "ya", "zij", "zu", "zum", "zur",
)  # fmt: skip
_FOREIGN_WORDS = frozenset(_FUNCTION_WORDS) - COMMON
_IDENTIFIER = 4.0  # how much more a word counts that looks like a name of code or of a product
_SMALL_TALK = (
    "a", "again", "ahead", "all", "and", "bye", "continue", "cool", "day", "do", "done", "evening", "fine", "go", "good",
    "great", "haha", "hello", "hey", "hi", "it", "lot", "lol", "morning", "much", "next", "nice", "night", "no", "nope",
    "now", "ok", "okay", "on", "perfect", "please", "right", "so", "stop", "sure", "thank", "thanks", "that", "that's",
    "there", "very", "well", "yeah", "yep", "yes", "you",
)  # fmt: skip
_OUR_WORDS = ("let's", "our", "ours", "us", "we", "we'll", "we're", "we've")
_REFERENCES = (
    "he", "her", "here", "him", "his", "it", "its", "my", "she", "that", "the", "their", "them", "these", "they", "this",
    "those", "your",
)  # fmt: skip
_PUNCTUATION = ".,;:!?\"'()[]{}`"


def threshold(question: str, likeness: float, model: str) -> float:
    """Return the hybrid score that a strong hit must reach, given a question's likeness to general requests by a model."""
    slope, offset = _THRESHOLD_LINES[model]
    return max(slope * likeness - offset - _OURS_REDUCTION * Wording(question).ours, MIN_SCORE)


def can_judge(model: str, question: str) -> bool:
    """Return whether a model can tell how general a question is: the sentence model knows English only."""
    return model == "use" or (model == "minilm" and _is_english(question))


def _is_english(question: str) -> bool:
    """Return whether a question may be English: it has no letter and no common word that only other languages have."""
    if not question.isascii():
        return False
    words = {word.strip(_PUNCTUATION) for word in question.lower().split()}
    return words.isdisjoint(_FOREIGN_WORDS)


def is_mostly_english(text: str) -> bool:
    """Return whether a text has at least as many common words of English as words that only other languages have."""
    words = [word for piece in text.lower().split() if (word := piece.strip(_PUNCTUATION))]
    foreign = [word for word in words if word in _FOREIGN_WORDS or any(char.isalpha() and char > "\x7f" for char in word)]
    return len([word for word in words if word in COMMON]) >= len(foreign)


def general_requests() -> list[str]:
    """Return the examples of prompts that need no memory, as shipped."""
    from importlib.resources import files

    return files("holdfast.search").joinpath("general_requests.txt").read_text(encoding="utf-8").split("\n")[:-1]


def read_vectors(model: str) -> NDArray[Any] | None:
    """Return a model's vectors of the general requests as `scripts/embed-general-requests` wrote them; None if it did not.

    A new process would need 150 ms to compute those of one model.
    """
    import numpy as np

    path = os.path.join(os.path.dirname(__file__), f"general_requests_{model}.npy")
    return np.load(path).astype(np.float32) if os.path.exists(path) else None


class Wording:
    """The wording of a prompt, for judging matches without a model."""

    def __init__(self, prompt: str) -> None:
        text = prompt.strip().lower().replace("’", "'")
        while polite := next((start for start in _POLITE if text.startswith(start)), ""):
            text = text.removeprefix(polite).lstrip()
        words = [word for piece in text.split() if (word := piece.strip(_PUNCTUATION))]
        self._words = {word for word in words if word not in _SMALL_TALK and word not in _REFERENCES}
        self.small_talk = all(word in _SMALL_TALK or word in COMMON for word in words)
        is_general, may_be_general = f"{text} ".startswith(_GENERAL_OPENINGS), f"{text} ".startswith(_MAYBE_GENERAL_OPENINGS)
        self.general = is_general or may_be_general
        references = min(len([word for word in words if word in _REFERENCES]), _MAX_REFERENCES)
        self.ours = any(word in _OUR_WORDS for word in words)
        self._form = _GENERAL * is_general + _MAYBE_GENERAL * may_be_general + _OURS * self.ours + _REFERENCE * references

    def is_strong(self, weight: float, key: str) -> bool:
        """Return whether a passage that shares words of this weight with the prompt counts as an answer. A passage whose whole
        key is in the prompt needs less."""
        if self.small_talk or weight <= 0:
            return False
        named = self._words.issuperset(key.split("-"))
        return _WORD * weight + self._form + _NAMED * named > 0


def word_weights(prompt: str, terms: Mapping[str, str], frequencies: Mapping[str, int], passages: int) -> dict[str, float]:
    """Return the weight of each term: the rarer it is among the passages, the more, and a name more than a plain word.

    `terms` maps index terms to the word as typed, in lower case.
    """
    total = max(passages, _MIN_PASSAGES)
    names = find_names(prompt, terms)
    return {
        term: log(1 + total / max(frequencies.get(term, 0), 0.5)) * (_IDENTIFIER if term in names else 1.0)
        for term, word in terms.items()
        if word not in _FUNCTION_WORDS
    }


def find_names(prompt: str, terms: Mapping[str, str]) -> set[str]:
    """Return the terms of words that look like names; not those of a part of one, such as Map of flatMap."""
    names = {word.lower() for piece in prompt.split() if is_name(word := piece.strip(_PUNCTUATION))}
    return {term for term, word in terms.items() if word in names and term.startswith(word[: max(len(word) - 2, 1)])}


def is_name(word: str) -> bool:
    """Return whether a word looks like a name of code or of a product: LaunchDarkly, dim_grower, E4217. Not 5th, not 10am."""
    has_both = any(letter.isdigit() for letter in word) and any(letter.isalpha() for letter in word)
    coded = has_both and (len(word) > 5 or any(letter.isupper() for letter in word))
    return "_" in word or coded or any(a.islower() and b.isupper() for a, b in pairwise(word))


def shared_weights(
    passages: Iterable[int], terms: Mapping[str, str], weights: Mapping[str, float],
    find_postings: Callable[[list[str]], list[str]],
) -> dict[int, float]:  # fmt: skip
    """Return, by passage, the weight of the prompt's words that occur in it.

    `terms` maps index terms to the word as typed; `find_postings` returns, for each term, which of the passages have it: their
    ids, separated by commas. Only the rarest terms are looked up.
    """
    rarest = sorted(weights, key=lambda term: -weights[term])[:_MAX_TERMS]
    best: dict[str, dict[str, float]] = {str(id): {} for id in passages}
    for term, ids in zip(rarest, find_postings(rarest), strict=True):
        for id in best.keys() & ids.split(","):
            best[id][terms[term]] = max(best[id].get(terms[term], 0.0), weights[term])
    return {int(id): sum(weights_of_words.values()) for id, weights_of_words in best.items()}
