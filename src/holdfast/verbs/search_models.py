"""Models of search: list the known embedders and rerankers, and measure whether one works and what it costs on this machine."""

from __future__ import annotations

import resource
import sys
import time
from functools import partial

from holdfast.base.record import Record
from holdfast.config import hide_password
from holdfast.embedders import BUNDLED, DEFAULT, MODEL, available, open_embedders, split_setting
from holdfast.embedders.known_models import BUNDLED_MODELS, EMBEDDER, MODELS, RERANKER, find_model
from holdfast.embedders.rerankers import NONE, open_installed, open_reranker
from holdfast.errors import ConfigError, Trouble

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from holdfast.config import Config
    from holdfast.embedders import Embedder
    from holdfast.embedders.known_models import Figures as KnownFigures
    from holdfast.embedders.rerankers import Reranker

    Figures = dict[str, Any]  # fields of Measurement

_PAIRS = (  # a question and its passage
    ("When do we release the software?", "The software release is every Tuesday."),
    ("Which database does the shop use?", "The shop stores its orders in a PostgreSQL database."),
    ("Who plays the violin?", "My sister plays the violin in an orchestra."),
    ("How is the coffee machine cleaned?", "Clean the coffee machine with vinegar once a month."),
)
_TIMED_QUESTIONS, _TIMED_TEXTS, _TIMED_PAIRS = 10, 48, 20
_TIMED_TEXT = (
    "In the meeting of {day} March the team decided to move the build to a new machine, because the old one needs an hour for "
    "every release and its second disk has been broken since January."
)


class ListedModel(Record):
    """A model with what is known of it, and whether it can be used here."""

    name: str
    kind: str  # embedder or reranker
    title: str
    setting: str  # the value of search.embedder or search.reranker
    bundled: bool
    source: str  # package and version
    licence: str
    unclear_licence: str  # why the licence must be accepted first
    languages: str
    bytes: int
    download_bytes: int
    sha256: str
    installed: bool
    in_use: bool
    problem: str  # why it cannot be used on this machine
    figures: KnownFigures


class Measurement(Record):
    """Whether a model works, and what was measured: similarity of pairs that belong together, and of the others.

    Of a reranker: relevance in place of similarity, and the time of a question with 20 passages.
    """

    name: str
    kind: str
    ok: bool
    problem: str = ""
    fix: str = ""
    dimensions: int = 0
    load_ms: float = 0.0
    question_ms: float = 0.0
    texts_per_second: float = 0.0
    memory_bytes: int = 0  # by which the peak memory of the process grew
    related: float = 0.0  # the lowest similarity of a question and its passage
    unrelated: float = 0.0  # the highest similarity of a question and another passage


def list_models(config: Config) -> list[ListedModel]:
    """Return the bundled models, then those that can be installed."""
    reranker = config.reranker.strip().lower()
    names = split_setting(config.embedder)
    used = {*(DEFAULT if names == ["default"] else names), *([] if names == ["none"] else ["static"])}
    listed = []
    for bundled in BUNDLED_MODELS:
        problem = "; ".join([what for what, _ in available.check_packages([bundled.name])])
        listed.append(ListedModel(
            name=bundled.name, kind=EMBEDDER, title=bundled.title, setting=bundled.name, bundled=True,
            source=bundled.requirement, licence=bundled.licence, unclear_licence="", languages=bundled.languages,
            bytes=bundled.bytes, download_bytes=0, sha256="", installed=not problem, in_use=bundled.name in used,
            problem=problem, figures=bundled.figures,
        ))  # fmt: skip
    for model in MODELS:
        problem = "; ".join([what for what, _ in available.check_packages(["model"])])
        listed.append(ListedModel(
            name=model.name, kind=model.kind, title=model.title, setting=model.setting, bundled=False,
            source=model.source.label, licence=model.licence, unclear_licence=model.unclear_licence, languages=model.languages,
            bytes=model.bytes, download_bytes=model.source.bytes, sha256=model.sha256, installed=model.is_installed,
            in_use=model.setting in (used if model.kind == EMBEDDER else {reranker}), problem=problem, figures=model.figures,
        ))  # fmt: skip
    return listed


def measure_models(config: Config, name: str | None) -> list[Measurement]:
    """Load and measure one model, or those of the settings; a model that fails has the reason in its result."""
    if name is None:
        return _measure_settings(config)
    if name in BUNDLED:
        return [_measure(EMBEDDER, name, lambda: _measure_embedder(open_embedders(name)[0]))]
    model = find_model(name.removeprefix(MODEL))
    if model.kind == RERANKER:
        return [_measure(RERANKER, name, lambda: _measure_reranker(open_installed(model.name)))]
    return [_measure(EMBEDDER, name, lambda: _measure_embedder(open_embedders(model.setting)[0]))]


def _measure_settings(config: Config) -> list[Measurement]:
    """Measure each model of the settings, also if another one is missing."""
    names = split_setting(config.embedder) or [config.embedder]
    if names == ["default"]:
        names = [*DEFAULT]
    elif names == ["none"]:
        names = []
    measured = [_measure(EMBEDDER, hide_password(name), partial(_open_and_measure, name, config.embed_key)) for name in names]
    if config.reranker.strip().lower() != NONE:
        measure = partial(_open_and_measure_reranker, config.reranker, config.rerank_key)
        measured.append(_measure(RERANKER, hide_password(config.reranker), measure))
    return measured


def _open_and_measure(name: str, key: str | None) -> Figures:
    (embedder,) = open_embedders(name, key=key)
    return _measure_embedder(embedder)


def _open_and_measure_reranker(setting: str, key: str | None) -> Figures:
    reranker = open_reranker(setting, key=key)
    assert reranker is not None  # the setting is not none
    return _measure_reranker(reranker)


def _measure(kind: str, name: str, measure: Callable[[], Figures]) -> Measurement:
    """Return what was measured, or why the model does not work: it may be damaged, not installed or not reachable."""
    try:
        figures = measure()
    except (Trouble, ConfigError) as error:
        return Measurement(name=name, kind=kind, ok=False, problem=error.message, fix=error.fix)
    fix = f"Set another {kind}" if figures["problem"] else ""
    return Measurement(name=name, kind=kind, ok=not figures["problem"], fix=fix, **figures)


def _measure_embedder(embedder: Embedder) -> Figures:
    before, start = _peak_memory(), time.perf_counter()
    embedder.questions(["a first question, for which the model is loaded"])
    load = time.perf_counter() - start
    questions = embedder.questions([question for question, _ in _PAIRS])
    similarity = questions @ embedder.passages([passage for _, passage in _PAIRS]).T
    start = time.perf_counter()
    for number in range(_TIMED_QUESTIONS):
        embedder.questions([f"{number}. {_PAIRS[number % len(_PAIRS)][0]}"])
    per_question = (time.perf_counter() - start) / _TIMED_QUESTIONS
    start = time.perf_counter()
    embedder.passages([_TIMED_TEXT.format(day=day) for day in range(_TIMED_TEXTS)])
    seconds = time.perf_counter() - start
    return {
        **_compare_pairs(similarity.tolist(), "a question is not most similar to its answer"), "dimensions": embedder.dim,
        "load_ms": round(load * 1000, 1), "question_ms": round(per_question * 1000, 2),
        "texts_per_second": round(_TIMED_TEXTS / seconds, 1), "memory_bytes": max(_peak_memory() - before, 0),
    }  # fmt: skip


def _measure_reranker(reranker: Reranker) -> Figures:
    before, start = _peak_memory(), time.perf_counter()
    reranker.relevance("a first question, for which the model is loaded", ["It is loaded."])
    load = time.perf_counter() - start
    passages = [passage for _, passage in _PAIRS]
    relevance = [reranker.relevance(question, passages) for question, _ in _PAIRS]
    start = time.perf_counter()
    reranker.relevance(_PAIRS[0][0], [_TIMED_TEXT.format(day=day) for day in range(_TIMED_PAIRS)])
    seconds = time.perf_counter() - start
    return {
        **_compare_pairs(relevance, "a question's answer is not the most relevant passage"),
        "load_ms": round(load * 1000, 1), "question_ms": round(seconds * 1000, 2),
        "texts_per_second": round(_TIMED_PAIRS / seconds, 1), "memory_bytes": max(_peak_memory() - before, 0),
    }  # fmt: skip


def _compare_pairs(rows: list[list[float]], problem: str) -> Figures:
    """Return how near each question is to its passage and to the others, and the problem if another is nearer."""
    related = [row[number] for number, row in enumerate(rows)]
    unrelated = [value for number, row in enumerate(rows) for other, value in enumerate(row) if other != number]
    is_nearest = all(max(row) == row[number] for number, row in enumerate(rows))
    return {
        "problem": "" if is_nearest else problem, "related": round(min(related), 3), "unrelated": round(max(unrelated), 3)
    }  # fmt: skip


def _peak_memory() -> int:
    """Return the peak memory of this process in bytes; the system counts in kilobytes, except macOS."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
