"""When to say nothing: how strong a match must be before it counts as an answer.

Most prompts to an agent are about its work, but many are not: greetings, general questions ("what is recursion?"), small
tasks that need no memory ("write a regex for email addresses"). A search still finds something for them. A hit below the
threshold that this module computes is a weak hit: `recall` marks it, and a prompt brings nothing.
docs/adr/0029-abstain-from-general-requests.md has the figures.
"""

from __future__ import annotations

from math import log

from holdfast.words import COMMON

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

LEAST = 0.02  # hybrid score below which a hit is weak, whatever was asked
_SLOPE, _OFFSET = 2.2, 0.7  # how the threshold rises with the question's likeness to a general request,
_OURS_LOWER = 0.5  # and how much lower it is for a question about what "we" do

# By words alone: a match counts by the weight of the words it shares with the prompt, against the form of the prompt.
_WORD = 0.35
_GENERAL, _MAYBE_GENERAL, _OURS, _REFERENCE, _NAMED = -5.5, -4.5, 4.0, 1.5, 2.0
_MOST_REFERENCES = 3
_MOST_TERMS = 16
_LEAST_PASSAGES = 100  # in a small home every word is rare or everywhere: it counts as if it had so many passages
_GENERAL_OPENINGS = (
    "what is ", "what's ", "whats ", "what are ", "what does ", "who is ", "who was ", "who wrote ", "who invented ",
    "who created ", "who made ", "explain ", "define ", "describe ", "tell me ", "name ", "convert ", "translate ", "write a ",
    "write an ", "write me ", "write some ", "give me ", "generate ", "regex ", "difference between ", "how does ", "how to ",
    "is a ", "is an ", "show me ", "recommend ", "suggest ", "sing ", "summarize ", "calculate ", "hello ", "hi ", "hey ",
    "thank", "good morning ", "good night ", "good evening ", "bye ",
)  # fmt: skip
_MAYBE_GENERAL_OPENINGS = ("how do ", "how can i ", "how can you ", "how many ", "how much ", "which ", "what do ")
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
_AROUND = ".,;:!?\"'()[]{}`"


def threshold(question: str, likeness: float) -> float:
    """Return the hybrid score that a strong hit must reach, for a question with this likeness to general requests."""
    return max(_SLOPE * likeness - _OFFSET - _OURS_LOWER * Wording(question).ours, LEAST)


def general_requests() -> list[str]:
    """Return the examples of prompts that need no memory, as shipped."""
    from importlib.resources import files

    return files("holdfast").joinpath("general_requests.txt").read_text(encoding="utf-8").split("\n")[:-1]


class Wording:
    """The wording of a prompt, for judging matches without a model."""

    def __init__(self, prompt: str) -> None:
        text = prompt.strip().lower().replace("’", "'")
        said = [word for piece in text.split() if (word := piece.strip(_AROUND))]
        self._words = {word for word in said if word not in _SMALL_TALK and word not in _REFERENCES}
        self.small_talk = all(word in _SMALL_TALK or word in COMMON for word in said)
        surely, maybe = f"{text} ".startswith(_GENERAL_OPENINGS), f"{text} ".startswith(_MAYBE_GENERAL_OPENINGS)
        self.general = surely or maybe
        references = min(len([word for word in said if word in _REFERENCES]), _MOST_REFERENCES)
        self.ours = any(word in _OUR_WORDS for word in said)
        self._form = _GENERAL * surely + _MAYBE_GENERAL * maybe + _OURS * self.ours + _REFERENCE * references

    def is_strong(self, weight: float, key: str) -> bool:
        """Tell whether a passage that shares words of this weight with the prompt counts as an answer. One whose whole key
        is in the prompt needs less."""
        if self.small_talk or weight <= 0:
            return False
        named = self._words.issuperset(key.split("-"))
        return _WORD * weight + self._form + _NAMED * named > 0


def word_weights(terms: Iterable[str], frequencies: Mapping[str, int], passages: int) -> dict[str, float]:
    """Return how much each term tells: the rarer it is among the passages, the more."""
    every = max(passages, _LEAST_PASSAGES)
    return {term: log(1 + every / max(frequencies.get(term, 0), 0.5)) for term in terms}


def shared_weights(
    passages: Iterable[int], terms: Mapping[str, str], weights: Mapping[str, float], having: Callable[[list[str]], list[str]]
) -> dict[int, float]:
    """Return, by passage, the weight of the prompt's words that stand in it.

    `terms` maps index terms to the word as typed; `having` returns, for each term, the ids of the passages that have it, with
    commas between. Only the most telling terms are looked up.
    """
    telling = sorted(weights, key=lambda term: -weights[term])[:_MOST_TERMS]
    best: dict[str, dict[str, float]] = {str(id): {} for id in passages}
    for term, ids in zip(telling, having(telling), strict=True):
        for id in best.keys() & ids.split(","):  # a term may have thousands
            best[id][terms[term]] = max(best[id].get(terms[term], 0.0), weights[term])
    return {int(id): sum(words_of.values()) for id, words_of in best.items()}
