"""Embedding models: list the known ones, and measure whether a model works and what it costs on this machine."""

from __future__ import annotations

import resource
import sys
import time

from holdfast.base.record import Record
from holdfast.config import hide_password
from holdfast.embedders import BUNDLED, DEFAULT, MODEL, available, open_embedders, split_setting
from holdfast.embedders.known_models import BUNDLED_MODELS, MODELS, find_model
from holdfast.errors import ConfigError, Trouble

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.config import Config
    from holdfast.embedders import Embedder
    from holdfast.embedders.known_models import Figures

_PAIRS = (  # a question and its passage
    ("When do we release the software?", "The software release is every Tuesday."),
    ("Which database does the shop use?", "The shop stores its orders in a PostgreSQL database."),
    ("Who plays the violin?", "My sister plays the violin in an orchestra."),
    ("How is the coffee machine cleaned?", "Clean the coffee machine with vinegar once a month."),
)
_TIMED_QUESTIONS, _TIMED_TEXTS = 10, 48
_TIMED_TEXT = (
    "In the meeting of {day} March the team decided to move the build to a new machine, because the old one needs an hour for "
    "every release and its second disk has been broken since January."
)


class ListedModel(Record):
    """A model with what is known of it, and whether it can be used here."""

    name: str
    title: str
    setting: str  # the value of search.embedder
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
    figures: Figures


class Measurement(Record):
    """Whether a model works, and what was measured: similarity of pairs that belong together, and of the others."""

    name: str
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
    names = split_setting(config.embedder)
    used = {*(DEFAULT if names == ["default"] else names), *([] if names == ["none"] else ["static"])}
    listed = []
    for bundled in BUNDLED_MODELS:
        problem = "; ".join([what for what, _ in available.check_packages([bundled.name])])
        listed.append(ListedModel(
            name=bundled.name, title=bundled.title, setting=bundled.name, bundled=True, source=bundled.requirement,
            licence=bundled.licence, unclear_licence="", languages=bundled.languages, bytes=bundled.bytes, download_bytes=0,
            sha256="", installed=not problem, in_use=bundled.name in used, problem=problem, figures=bundled.figures,
        ))  # fmt: skip
    for model in MODELS:
        problem = "; ".join([what for what, _ in available.check_packages(["model"])])
        listed.append(ListedModel(
            name=model.name, title=model.title, setting=model.setting, bundled=False, source=model.source.label,
            licence=model.licence, unclear_licence=model.unclear_licence, languages=model.languages, bytes=model.bytes,
            download_bytes=model.source.bytes, sha256=model.sha256, installed=model.is_installed,
            in_use=model.setting in used, problem=problem, figures=model.figures,
        ))  # fmt: skip
    return listed


def measure_models(config: Config, name: str | None) -> list[Measurement]:
    """Load and measure one model, or those of the setting; a model that fails has the reason in its result."""
    if name is None:
        embedders = open_embedders(config.embedder, key=config.embed_key)
        return [_try_measure(embedder, hide_password(embedder.setting)) for embedder in embedders]
    setting = name if name in BUNDLED else find_model(name.removeprefix(MODEL)).setting
    try:
        [embedder] = open_embedders(setting)
    except ConfigError as error:  # it is not installed
        return [Measurement(name=name, ok=False, problem=error.message, fix=error.fix)]
    return [_try_measure(embedder, name)]


def _try_measure(embedder: Embedder, name: str) -> Measurement:
    try:
        return _measure(embedder, name)
    except (Trouble, ConfigError) as error:
        return Measurement(name=name, ok=False, problem=error.message, fix=error.fix)


def _measure(embedder: Embedder, name: str) -> Measurement:
    before, start = _peak_memory(), time.perf_counter()
    embedder.questions(["a first question, for which the model is loaded"])
    load = time.perf_counter() - start
    questions = embedder.questions([question for question, _ in _PAIRS])
    similarity = questions @ embedder.passages([passage for _, passage in _PAIRS]).T
    related = [float(similarity[row, row]) for row in range(len(_PAIRS))]
    unrelated = [float(similarity[row, column]) for row in range(len(_PAIRS)) for column in range(len(_PAIRS)) if row != column]
    nearest = [int(row.argmax()) for row in similarity]
    problem = "" if nearest == [*range(len(_PAIRS))] else "a question is not most similar to its answer"
    start = time.perf_counter()
    for number in range(_TIMED_QUESTIONS):
        embedder.questions([f"{number}. {_PAIRS[number % len(_PAIRS)][0]}"])
    per_question = (time.perf_counter() - start) / _TIMED_QUESTIONS
    start = time.perf_counter()
    embedder.passages([_TIMED_TEXT.format(day=day) for day in range(_TIMED_TEXTS)])
    seconds = time.perf_counter() - start
    return Measurement(
        name=name, ok=not problem, problem=problem, fix="Set another embedder" if problem else "", dimensions=embedder.dim,
        load_ms=round(load * 1000, 1), question_ms=round(per_question * 1000, 2),
        texts_per_second=round(_TIMED_TEXTS / seconds, 1), memory_bytes=max(_peak_memory() - before, 0),
        related=round(min(related), 3), unrelated=round(max(unrelated), 3),
    )  # fmt: skip


def _peak_memory() -> int:
    """Return the peak memory of this process in bytes; the system counts in kilobytes, except macOS."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
