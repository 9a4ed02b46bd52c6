"""When to say nothing: how strong a match must be before it counts as an answer.

Most prompts to an agent are about its work, but many are not: greetings, general questions ("what is recursion?"), small
tasks that need no memory ("write a regex for email addresses"). A search still finds something for them. A hit below the
threshold that this module computes is a weak hit: `recall` marks it, and a prompt brings nothing.
docs/adr/0029-abstain-from-general-requests.md has the figures.
"""

from __future__ import annotations

from math import log

from holdfast import words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

LEAST = 0.02  # hybrid score below which a hit is weak, whatever was asked
_SLOPE, _OFFSET = 2.2, 0.7  # how the threshold rises with the question's likeness to a general request

# By words alone: a match counts by the weight of the words it shares with the prompt, against the form of the prompt.
_WORD = 0.35
_GENERAL, _OURS, _REFERENCE = -5.0, 4.0, 1.5
_MOST_REFERENCES = 3
_OPENINGS = (
    "what is ", "what's ", "whats ", "what are ", "what does ", "what do ", "who is ", "who was ", "who wrote ",
    "who invented ", "who created ", "who made ", "explain ", "define ", "describe ", "tell me ", "name ", "convert ",
    "translate ", "write a ", "write an ", "write me ", "write some ", "give me ", "generate ", "regex ", "difference between ",
    "how do ", "how does ", "how can i ", "how can you ", "how to ", "how many ", "how much ", "is a ", "is an ", "which ",
    "show me ", "recommend ", "suggest ", "sing ", "summarize ", "calculate ", "hello ", "hi ", "hey ", "thank",
    "good morning ", "good night ", "good evening ", "bye ",
)  # fmt: skip
_SMALL_TALK = frozenset(
    ["a", "again", "ahead", "all", "and", "bye", "continue", "cool", "day", "do", "done", "evening", "fine", "go", "good", "great", "haha", "hello", "hey", "hi", "it", "lot", "lol", "morning", "much", "next", "nice", "night", "no", "nope", "now", "ok", "okay", "on", "perfect", "please", "right", "so", "stop", "sure", "thank", "thanks", "that", "that's", "there", "very", "well", "yeah", "yep", "yes", "you"]
)
_OUR_WORDS = ("let's", "our", "ours", "us", "we", "we'll", "we're", "we've")
_REFERENCES = (
    "he", "her", "here", "him", "his", "it", "its", "my", "she", "that", "the", "their", "them", "these", "they", "this", "those",
    "your",
)  # fmt: skip
_AROUND = ".,;:!?\"'()[]{}`"


def threshold(likeness: float) -> float:
    """Return the hybrid score that a strong hit must reach, for a question with this likeness to general requests."""
    return max(_SLOPE * likeness - _OFFSET, LEAST)


def general_requests() -> list[str]:
    """Return the examples of prompts that need no memory, as shipped."""
    from importlib.resources import files

    return files("holdfast").joinpath("general_requests.txt").read_text(encoding="utf-8").split("\n")[:-1]


class Wording:
    """The wording of a prompt, for judging matches without a model."""

    def __init__(self, prompt: str) -> None:
        text = prompt.strip().lower().replace("’", "'")
        said = [word for piece in text.split() if (word := piece.strip(_AROUND))]
        self.small_talk = all(word in _SMALL_TALK for word in said)
        self.general = f"{text} ".startswith(_OPENINGS)
        references = min(len([word for word in said if word in _REFERENCES]), _MOST_REFERENCES)
        self._form = _GENERAL * self.general + _OURS * any(word in _OUR_WORDS for word in said) + _REFERENCE * references

    def is_strong(self, weight: float) -> bool:
        """Tell whether a passage that shares words of this weight with the prompt counts as an answer."""
        return not self.small_talk and weight > 0 and _WORD * weight + self._form > 0


def word_weights(terms: Iterable[str], frequencies: Mapping[str, int], passages: int) -> dict[str, float]:
    """Return how much each term tells: the rarer it is among the passages, the more."""
    return {term: log(1 + passages / max(frequencies.get(term, 0), 0.5)) for term in terms}


def shared_weight(terms: Mapping[str, str], weights: Mapping[str, float], text: str) -> float:
    """Return the weight of the prompt's words that stand in a text; `terms` maps index terms to the word as typed."""
    there = set(words.kept(text))
    best: dict[str, float] = {}
    for term, word in terms.items():
        if term in there:
            best[word] = max(best.get(word, 0.0), weights[term])
    return sum(best.values())
