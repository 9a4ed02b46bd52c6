"""The metrics of the context benchmark: all of them are comparisons of text. S is the start briefing, A is what a prompt adds.

Runs of whitespace count as one space. Case matters for answers and standing notes, not for old values and leaks.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from holdfast.base.record import Record
from holdfast_bench.corpus import STALE, Corpus, Note, Prompt

LEAK_CHARS = 40
_AGE = re.compile(r"\b(?:superseded|until|was|old)\b|->")  # on a line, these say that its value is no longer current


class Told(Record):
    """What a product said: the start briefing, and the additions to each prompt and to each unrelated prompt, in order."""

    start: str
    prompts: tuple[str, ...]
    unrelated: tuple[str, ...]


class Kind(Record):
    """Coverage of one kind of prompts."""

    prompts: int
    coverage: float
    prompt_only: float


class Scores(Record):
    """Shares are from 0 to 1, costs and noise are in characters. The last four name what went wrong."""

    coverage: float  # share of prompts with the answer in S + A
    prompt_only: float  # in A alone
    kinds: dict[str, Kind]
    always: float
    stale: float
    noise: float
    empty: float
    leaks: int
    start_chars: int
    prompt_chars: float
    missed: tuple[str, ...] = ()  # prompts without their answer
    missed_always: tuple[str, ...] = ()  # keys
    stale_prompts: tuple[str, ...] = ()
    leaked: tuple[str, ...] = ()  # keys


def score(corpus: Corpus, told: Told) -> Scores:
    """Score what was said for one corpus."""
    both = [has_answer(prompt, f"{told.start}\n{added}") for prompt, added in zip(corpus.prompts, told.prompts, strict=True)]
    alone = [has_answer(prompt, added) for prompt, added in zip(corpus.prompts, told.prompts, strict=True)]
    kinds = {}
    for kind in sorted({prompt.kind for prompt in corpus.prompts}):
        places = [place for place, prompt in enumerate(corpus.prompts) if prompt.kind == kind]
        kinds[kind] = Kind(len(places), _share([both[place] for place in places]), _share([alone[place] for place in places]))
    current = corpus.current
    always = [contains(told.start, current[key].text) for key in corpus.always]
    dated = [place for place, prompt in enumerate(corpus.prompts) if prompt.outdated or prompt.kind == STALE]
    stale = [is_stale(corpus.prompts[place], f"{told.start}\n{told.prompts[place]}") for place in dated]
    every = {told.start, *told.prompts, *told.unrelated}
    leaked = [note.key for note in corpus.other_project if any(is_leaked(note, text) for text in every)]
    return Scores(
        coverage=_share(both), prompt_only=_share(alone), kinds=kinds, always=_share(always), stale=_share(stale),
        noise=_mean(map(len, told.unrelated)), empty=_share([not added for added in told.unrelated]), leaks=len(leaked),
        start_chars=len(told.start), prompt_chars=_mean(map(len, told.prompts)),
        missed=tuple([prompt.text for prompt, found in zip(corpus.prompts, both, strict=True) if not found]),
        missed_always=tuple([key for key, found in zip(corpus.always, always, strict=True) if not found]),
        stale_prompts=tuple([corpus.prompts[place].text for place, shown in zip(dated, stale, strict=True) if shown]),
        leaked=tuple(leaked),
    )  # fmt: skip


def folded(text: str) -> str:
    """The text with every run of whitespace as one space."""
    return " ".join(text.split())


def contains(text: str, part: str) -> bool:
    """Whether the part stands whole in the text."""
    return folded(part) in folded(text)


def has_answer(prompt: Prompt, text: str) -> bool:
    """Whether any one of the prompt's answers stands in the text."""
    plain = folded(text)
    return any(folded(answer) in plain for answer in prompt.answer)


def is_stale(prompt: Prompt, text: str) -> bool:
    """Whether the text has an old value as if it were current."""
    lines = [line for line in [folded(line).casefold() for line in text.split("\n")] if line]
    return any(_is_current(folded(value).casefold(), lines) for value in prompt.outdated)


def _is_current(value: str, lines: Sequence[str]) -> bool:
    """Whether the value occurs without a mark of age on its line, or on the lines over which it is broken."""
    text = " ".join(lines)
    at = text.find(value)
    while at >= 0:
        if not any(_AGE.search(line) for line in _lines_of(lines, at, at + len(value))):
            return True
        at = text.find(value, at + 1)
    return False


def _lines_of(lines: Sequence[str], start: int, end: int) -> list[str]:
    """The lines that a range of their joined text touches."""
    found, first = [], 0
    for line in lines:
        if first < end and first + len(line) > start:
            found.append(line)
        first += len(line) + 1
    return found


def is_leaked(note: Note, text: str) -> bool:
    """Whether the key of another project's note, or a run of its text, stands in this text. A shorter text leaks as a whole."""
    shown, own = folded(text).casefold(), folded(note.text).casefold()
    runs = [own[at : at + LEAK_CHARS] for at in range(max(len(own) - LEAK_CHARS, 0) + 1)]
    return note.key.casefold() in shown or any(run in shown for run in runs)


def _share(found: Sequence[bool]) -> float:
    return sum(found) / len(found) if found else 0.0


def _mean(values: Iterable[int]) -> float:
    every = list(values)
    return sum(every) / len(every)
