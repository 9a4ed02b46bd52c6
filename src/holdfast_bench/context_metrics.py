"""The metrics of the context benchmark, all by comparison of texts. S is the start briefing, A the text added to a prompt.

Runs of whitespace count as one space. Case matters for answers and standing notes, not for old values and leaks.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from holdfast.base.record import Record
from holdfast_bench.context_corpus import STALE, Corpus, Note, Prompt

LEAK_CHARS = 40
_OUTDATED_MARK = re.compile(r"\b(?:superseded|until|was|old)\b|->")  # marks the values on its line as no longer current


class ShownTexts(Record):
    """The texts shown to the model: the start briefing, and the text added to each prompt and each unrelated prompt."""

    start: str
    prompts: tuple[str, ...]
    unrelated: tuple[str, ...]


class Kind(Record):
    """The coverage of one kind of prompt."""

    prompts: int
    coverage: float
    prompt_only: float


class Scores(Record):
    """The figures of one corpus: shares from 0 to 1, costs and noise in characters; the last four fields name the failures."""

    coverage: float  # share of prompts with the answer in S + A
    prompt_only: float  # share with the answer in A alone
    kinds: dict[str, Kind]
    always: float  # share of standing notes complete in S
    stale: float  # share of prompts with an old value shown as current
    noise: float  # mean characters of A for unrelated prompts
    empty: float  # share of unrelated prompts with an empty A
    leaks: int
    start_chars: int
    prompt_chars: float
    missed: tuple[str, ...] = ()  # prompts without their answer
    missed_always: tuple[str, ...] = ()  # keys
    stale_prompts: tuple[str, ...] = ()
    leaked: tuple[str, ...] = ()  # keys


def score(corpus: Corpus, shown: ShownTexts) -> Scores:
    """Score the texts shown for one corpus."""
    pairs = list(zip(corpus.prompts, shown.prompts, strict=True))
    answered = [has_answer(prompt, f"{shown.start}\n{added}") for prompt, added in pairs]
    answered_by_prompt = [has_answer(prompt, added) for prompt, added in pairs]
    kinds = {}
    for kind in sorted({prompt.kind for prompt in corpus.prompts}):
        places = [place for place, prompt in enumerate(corpus.prompts) if prompt.kind == kind]
        coverage, prompt_only = (_share([found[place] for place in places]) for found in (answered, answered_by_prompt))
        kinds[kind] = Kind(len(places), coverage, prompt_only)
    current = corpus.current
    always = [contains(shown.start, current[key].text) for key in corpus.always]
    checked = [place for place, prompt in enumerate(corpus.prompts) if prompt.outdated or prompt.kind == STALE]
    stale = [is_stale(corpus.prompts[place], f"{shown.start}\n{shown.prompts[place]}") for place in checked]
    all_texts = {shown.start, *shown.prompts, *shown.unrelated}
    leaked = [note.key for note in corpus.other_project if any(is_leaked(note, text) for text in all_texts)]
    return Scores(
        coverage=_share(answered), prompt_only=_share(answered_by_prompt), kinds=kinds, always=_share(always),
        stale=_share(stale), noise=_mean(map(len, shown.unrelated)), empty=_share([not added for added in shown.unrelated]),
        leaks=len(leaked), start_chars=len(shown.start), prompt_chars=_mean(map(len, shown.prompts)),
        missed=tuple([prompt.text for prompt, found in zip(corpus.prompts, answered, strict=True) if not found]),
        missed_always=tuple([key for key, found in zip(corpus.always, always, strict=True) if not found]),
        stale_prompts=tuple([corpus.prompts[place].text for place, found in zip(checked, stale, strict=True) if found]),
        leaked=tuple(leaked),
    )  # fmt: skip


def fold_whitespace(text: str) -> str:
    """Replace every run of whitespace with one space."""
    return " ".join(text.split())


def contains(text: str, part: str) -> bool:
    """Return whether the text contains the whole part."""
    return fold_whitespace(part) in fold_whitespace(text)


def has_answer(prompt: Prompt, text: str) -> bool:
    """Return whether the text contains any of the prompt's answers."""
    folded = fold_whitespace(text)
    return any(fold_whitespace(answer) in folded for answer in prompt.answer)


def is_stale(prompt: Prompt, text: str) -> bool:
    """Return whether the text shows an old value as current."""
    lines = [line for line in [fold_whitespace(line).casefold() for line in text.split("\n")] if line]
    return any(_is_current(fold_whitespace(value).casefold(), lines) for value in prompt.outdated)


def _is_current(value: str, lines: Sequence[str]) -> bool:
    """Return whether the value occurs without a mark that it is outdated on any of the lines it extends over."""
    text = " ".join(lines)
    start = text.find(value)
    while start >= 0:
        if not any(_OUTDATED_MARK.search(line) for line in _lines_in_range(lines, start, start + len(value))):
            return True
        start = text.find(value, start + 1)
    return False


def _lines_in_range(lines: Sequence[str], start: int, end: int) -> list[str]:
    """Return the lines that overlap a range of their joined text."""
    found, first = [], 0
    for line in lines:
        if first < end and first + len(line) > start:
            found.append(line)
        first += len(line) + 1
    return found


def is_leaked(note: Note, text: str) -> bool:
    """Return whether the text contains the key, or 40 characters of the text, of another project's note (or its whole text)."""
    shown, source = fold_whitespace(text).casefold(), fold_whitespace(note.text).casefold()
    excerpts = [source[start : start + LEAK_CHARS] for start in range(max(len(source) - LEAK_CHARS, 0) + 1)]
    return note.key.casefold() in shown or any(excerpt in shown for excerpt in excerpts)


def _share(values: Sequence[bool]) -> float:
    return sum(values) / len(values) if values else 0.0


def _mean(values: Iterable[int]) -> float:
    numbers = list(values)
    return sum(numbers) / len(numbers)
