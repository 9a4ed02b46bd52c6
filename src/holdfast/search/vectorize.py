"""Embed passages: a few during a query, the rest in the background, all of them on request.

Each model embeds the passages in the order in which they were added, and the index records how far it got: it can stop at any
moment and continue in this process or another. While a newly set model lacks vectors, the previous model answers with its own,
if it can still be opened. Vectors of two models are never compared.
"""

from __future__ import annotations

import time
from _thread import allocate_lock

from holdfast import embedders as embedders_module
from holdfast.base.lru import LruCache
from holdfast.base.record import Record
from holdfast.errors import Busy, ConfigError, DiskTrouble, Trouble
from holdfast.index import tokenizer
from holdfast.index.vectors import PIECES, Model, WaitingPassage
from holdfast.models import Progress
from holdfast.search import abstention, chunking
from holdfast.search.question import to_first_person

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from numpy.typing import NDArray

    from holdfast.embedders import Embedder
    from holdfast.index.interface import Index

_BATCH_PASSAGES = 16  # passages that are embedded at once; 32 times as many with the static model, which is fast
_MAX_DURING_QUERY = {"static": 20_000, "sentence": 64, "multi": 64}  # passages that a query waits for
_CACHED_QUESTIONS = 256  # vectors of questions
MAX_CACHED_CHARS = 4_000  # of a question whose vectors and results are cached
_RETRY_SECONDS = 30.0  # before a model that failed is tried again


class QuestionVector(Record):
    """The vector of a question by one model, and the cosines that mean 0 and 1 for it."""

    model: Model
    vector: NDArray[Any]
    similarity_range: tuple[float, float]


class WaitingCounts(dict[str, int]):
    """By role: how many passages have no vectors yet."""

    failed: dict[str, str]  # by role: why a model could not be used


class Vectorizer:
    """The models of one process; embed passages and questions with them."""

    def __init__(self, index: Index, embedders: tuple[Embedder, ...]) -> None:
        self._index = index
        self.by_role = by_role(embedders)
        self.failed: dict[str, str] = {}  # by role: why a model could not be used,
        self._retry_at: dict[str, float] = {}  # and when it is tried again
        self._waiting: dict[str, int] = {}  # by role: passages without vectors, as of the last query
        self._older: dict[str, tuple[Model, Embedder]] = {}  # by role: a previously set model that has all its vectors
        self._reopened: dict[str, tuple[Embedder | None, float]] = {}  # previous models, or when to try to open them again
        self.older: tuple[str, ...] = ()  # the settings of previous models that embedded the last question
        self._background = allocate_lock()  # held while a thread works in the background
        self._stopped = False
        self._settled: object = None  # the content of the index and the models when all passages had their vectors
        self._questions = LruCache(_CACHED_QUESTIONS)  # vectors, by the name of the model and the text

    def model(self, role: str) -> Model:
        """Return the model of a role, as the index has it."""
        embedder = self.by_role[role]
        return self._index.vectors.ensure_model(embedder.name, embedder.dim, role, embedder.setting)

    def catch_up(self, progress: Progress, everything: bool = False) -> WaitingCounts:
        """Embed passages and return, by role, how many are still waiting; the rest of the work continues in the background.
        With `everything`, embed all of them now."""
        waiting = WaitingCounts()
        waiting.failed = {}
        if not self.by_role:
            return waiting
        state = self._read_state()
        if state is not None and state == self._settled and not self.failed and not everything:
            waiting.update(dict.fromkeys(self.by_role, 0))
            return waiting
        for role in self._list_roles():
            if role in self.failed and time.monotonic() < self._retry_at[role] and not everything:
                continue  # every query would wait for it in vain
            if "static" in self.failed and role != "static" and not everything:
                continue  # keyword search runs: no other model would help
            try:
                waiting[role] = self._catch_up_role(role, progress, everything)
                self.failed.pop(role, None)
            except DiskTrouble:
                raise
            except (Trouble, ConfigError) as error:
                self._record_failure(role, error)
        if not any(waiting.values()):
            self.failed.pop("background", None)
        waiting.failed = {role: self.failed[role] for role in self.by_role if role in self.failed}
        if everything and not self.failed:
            self._remove_models(self._list_other_models())
        elif not everything:
            self._waiting, self._older = waiting, self._find_stand_ins(waiting)
            outdated = self._find_outdated()
            if any(waiting.values()) or (outdated and not self.failed):
                self._start_background()
            is_settled = not any(waiting.values()) and not outdated and not self.failed
            self._settled = state if is_settled else None
        return waiting

    def _read_state(self) -> object:
        """Return the content of the index and the names of the models, by which `catch_up` knows that nothing changed."""
        try:
            content = self._index.content_version()
            return None if content is None else (content, [embedder.name for embedder in self.by_role.values()])
        except (Trouble, ConfigError):
            return None  # without a name a model has no vectors here

    def embed_question(self, text: str, folders: list[int]) -> dict[str, QuestionVector]:
        """Return, by role, the question's vector by the model that is set, or by the previous one in its place.

        The multilingual model is left out where the folders that are searched have no vector of it, such as transcripts.
        """
        vectors, older = {}, []
        for role in dict.fromkeys([*self.by_role, *self._older]) if "static" not in self.failed else ():
            embedded = self._embed_with_current(role, text, folders)
            if embedded is None and (embedded := self._embed_with_older(role, text)):
                older.append(embedded.model.setting)
            if embedded is not None:
                vectors[role] = embedded
        self.older = tuple(dict.fromkeys(older))
        return vectors

    def compute_threshold(self, question: str, people: list[str], vectors: dict[str, QuestionVector]) -> float | None:
        """Return the score that a strong hit must reach; None where no model can tell, so that words must.

        The sentence model judges English; for other languages the multilingual model embeds the question if it did not
        already. `vectors` are those of the search, which may be of the subject of the question only.
        """
        spoken = to_first_person(question, people)
        for role in ("multi", "sentence"):
            embedder = self.by_role.get(role)
            if embedder is None or role in self.failed or role not in vectors or vectors[role].model.name != embedder.name:
                continue
            if abstention.can_judge(embedder.setting, question):
                return self._judge(role, embedder, question, spoken)
        multi = self.by_role.get("multi")
        if multi is None or "sentence" not in vectors or "multi" in self.failed or self._waiting.get("multi") != 0:
            return None
        return self._judge("multi", multi, question, spoken)

    def _judge(self, role: str, embedder: Embedder, question: str, spoken: str) -> float | None:
        """Return the score that a strong hit must reach, by one model; None if the model fails."""
        try:
            vector = self._embed_cached(embedder, spoken)
        except (Trouble, ConfigError) as error:
            self._record_failure(role, error)
            return None
        return abstention.threshold(question, self._measure_likeness(embedder, vector), embedder.setting)

    def _measure_likeness(self, embedder: Embedder, vector: NDArray[Any]) -> float:
        """Return how much a question is like a general request."""
        return float((self._embed_general_requests(embedder) @ vector).max())

    def _embed_general_requests(self, embedder: Embedder) -> NDArray[Any]:
        """Return a model's vectors of the examples of general requests, as shipped or computed once in a process."""
        vectors = _general_requests.get(embedder.name)
        if vectors is None:
            vectors = abstention.read_vectors(embedder.name)
            if vectors is None:  # of another version of the model
                vectors = embedder.questions(abstention.general_requests())
            _general_requests[embedder.name] = vectors
        return vectors

    def _embed_with_current(self, role: str, text: str, folders: list[int]) -> QuestionVector | None:
        """Embed a question with the model that is set; the static one answers even while passages wait for it."""
        if role not in self.by_role or role in self.failed or (role != "static" and self._waiting.get(role) != 0):
            return None
        try:
            embedder, model = self.by_role[role], self.model(role)
            if role == "multi" and not self._index.vectors.has_vectors(model, folders):
                return None
            return QuestionVector(model, self._embed_cached(embedder, text), embedders_module.similarity_range(embedder))
        except DiskTrouble:
            raise
        except (Trouble, ConfigError) as error:
            self._record_failure(role, error)
        return None

    def _embed_cached(self, embedder: Embedder, text: str) -> NDArray[Any]:
        """Return the vector of a question, embedded once."""
        key = embedder.name, text
        vector = self._questions.get(key)
        if vector is None:
            vector = embedder.questions([text])[0]
            if len(text) <= MAX_CACHED_CHARS:
                self._questions.put(key, vector)
        found: NDArray[Any] = vector
        return found

    def _record_failure(self, role: str, error: Trouble | ConfigError) -> None:
        self.failed[role], self._retry_at[role] = error.message, time.monotonic() + _RETRY_SECONDS

    def _list_roles(self) -> list[str]:
        """Return the roles, static first: without it the others are not used."""
        return sorted(self.by_role, key=lambda role: role != "static")

    # --- previous models ------------------------------------------------------------------------------------------------------

    def _find_stand_ins(self, waiting: WaitingCounts) -> dict[str, tuple[Model, Embedder]]:
        """Return, by role, a previous model that has all its vectors, where the one that is set lacks some or fails."""
        if "static" in self.failed or all(waiting.get(role) == 0 for role in self.by_role if role != "static"):
            return {}
        found = {}
        for role in ("sentence", "multi"):  # also where no model of the role is set any more, until the others are complete
            if waiting.get(role) != 0 and (older := self._find_complete(role)):
                found[role] = older
        return found

    def _find_complete(self, role: str) -> tuple[Model, Embedder] | None:
        """Return the previous model of a role that lacks the fewest vectors, once it has them; None if there is none."""
        models = [model for model in self._list_other_models() if model.role == role]
        older = [(self._index.vectors.count_waiting(model), -model.id, model) for model in models]
        for waiting, _, model in sorted(older, key=lambda row: row[:2]):
            embedder = self._reopen(model) if waiting <= _MAX_DURING_QUERY[role] else None
            if embedder is None:
                continue
            try:
                self._embed(model, embedder, waiting, Progress())
                return model, embedder
            except DiskTrouble:
                raise
            except (Trouble, ConfigError):
                self._postpone(model)
        return None

    def _embed_with_older(self, role: str, text: str) -> QuestionVector | None:
        if role not in self._older:
            return None
        model, embedder = self._older[role]
        try:
            vector = self._embed_cached(embedder, text)
        except (Trouble, ConfigError):
            self._postpone(model)
            return None
        if vector.shape[0] != model.dim:
            return None
        return QuestionVector(model, vector, embedders_module.similarity_range(embedder))

    def _reopen(self, model: Model) -> Embedder | None:
        """Return the embedder of a previous model, if it can be opened and is still the same."""
        embedder, retry_at = self._reopened.get(model.name, (None, 0.0))
        if embedder is None and time.monotonic() >= retry_at:
            try:
                embedder = embedders_module.reopen(model.setting, self.by_role.values())
                if (embedder.name, embedder.dim) != (model.name, model.dim):
                    embedder = None
            except (Trouble, ConfigError):
                embedder = None
            self._reopened[model.name] = embedder, time.monotonic() + _RETRY_SECONDS
        return embedder

    def _postpone(self, model: Model) -> None:
        self._reopened[model.name] = None, time.monotonic() + _RETRY_SECONDS

    def _list_other_models(self) -> list[Model]:
        """Return the models that have vectors here and are not set."""
        own = self._list_own_models()
        return [model for model in self._index.vectors.list_models() if (model.name, model.role) not in own]

    def _list_own_models(self) -> set[tuple[str, str]]:
        """Return name and role of the models that are set."""
        own = set()
        for role, embedder in self.by_role.items():
            try:
                own.add((embedder.name, role))
            except (Trouble, ConfigError):
                pass  # without a name it has no vectors here
        return own

    def _find_outdated(self) -> list[Model]:
        """Return the models that no process has used since the newest model that is set was added.

        Processes with different models set may take turns: then neither removes the vectors of the other.
        """
        own, models = self._list_own_models(), self._index.vectors.list_models()
        own_models = [model for model in models if (model.name, model.role) in own]
        others = [model for model in models if (model.name, model.role) not in own]
        newest = max([model.id for model in others], default=0)
        for model in own_models:
            if max(model.id, model.asked) < newest:
                self._mark_used(model, newest)
        latest = max([model.id for model in own_models], default=0)
        return [model for model in others if max(model.id, model.asked) < latest]

    def _mark_used(self, model: Model, newest: int) -> None:
        try:
            self._index.vectors.mark_used(model, newest)
        except (Busy, DiskTrouble):
            pass  # an index that cannot be written can still be searched

    def _remove_models(self, models: list[Model]) -> None:
        for model in models:
            self._index.vectors.remove_model(model)

    # --- embedding passages ---------------------------------------------------------------------------------------------------

    def stop(self) -> None:
        """Wait until the background thread has finished its batch, and stop it."""
        self._stopped = True
        with self._background:
            pass

    def _catch_up_role(self, role: str, progress: Progress, everything: bool) -> int:
        model = self.model(role)
        waiting = self._index.vectors.count_waiting(model)
        if not waiting or (not everything and waiting > _MAX_DURING_QUERY[role]):
            return waiting  # a part of them would slow this query and not help it
        if everything:
            progress.start(f"embedding ({role})", waiting)
        try:
            self._embed(model, self.by_role[role], waiting, progress)
            return self._index.vectors.count_waiting(self.model(role))
        finally:
            if everything:
                progress.end()

    def _start_background(self) -> None:
        if not self._background.acquire(blocking=False):
            return
        from threading import Thread

        try:
            Thread(target=self._run_background, name="holdfast-embedding", daemon=True).start()
        except RuntimeError as error:  # no more threads can be started; queries catch up by themselves
            self.failed["background"] = str(error)
            self._background.release()

    def after_fork(self) -> None:
        """Replace the lock, which the background thread of the parent process may have held."""
        self._background = allocate_lock()

    def _run_background(self) -> None:
        self.failed.pop("background", None)
        try:
            for role in [role for role in self._list_roles() if role not in self.failed]:
                while not self._stopped and self._embed(self.model(role), self.by_role[role], _BATCH_PASSAGES, Progress()):
                    pass
            if not self._stopped and not self.failed:
                self._remove_models(self._find_outdated())  # every model that is set has all its vectors now
        except Exception as error:  # noqa: BLE001
            self.failed["background"] = str(error)  # the next query reports it
        finally:
            self._background.release()

    def _embed(self, model: Model, embedder: Embedder, limit: int, progress: Progress) -> int:
        """Embed up to `limit` waiting passages; return how many were embedded."""
        done, role = 0, model.role
        speakers: dict[int, tuple[str, ...]] = {}
        batch = _BATCH_PASSAGES if role != "static" else 32 * _BATCH_PASSAGES
        while (
            done < limit and not self._stopped and (rows := self._index.vectors.next_waiting(model, min(batch, limit - done)))
        ):
            units, owners, pieces = self._make_units(rows, role, speakers)
            vectors: Any = embedder.passages(units) if units else []
            vector_rows = [(*owner, vector) for owner, vector in zip(owners, vectors, strict=True) if vector.any()]
            model = self._index.vectors.add_vectors(model, rows, vector_rows, pieces)
            done += len(rows)
            progress.step(len(rows))
        return done

    def read_person_names(self, transcript: int) -> tuple[str, ...]:
        """Return the names of the people who speak in a transcript, longest first."""
        names = [name for name in self._index.vectors.find_speakers(transcript) if name.casefold() not in chunking.NAMELESS]
        return tuple(sorted(names, key=len, reverse=True))

    def _make_units(
        self, rows: list[WaitingPassage], role: str, speakers: dict[int, tuple[str, ...]]
    ) -> tuple[list[str], list[tuple[int, int]], list[dict[str, object]]]:
        """Return the texts to embed, the folder and owner of each, and the pieces to store."""
        units: list[str] = []
        owners: list[tuple[int, int]] = []
        pieces: list[dict[str, object]] = []
        for row in rows:
            if row.speaker and row.doc not in speakers:
                speakers[row.doc] = self.read_person_names(row.doc)
            pieces_of_text = chunking.cut(row.text, row.speaker or "", speakers.get(row.doc, ()))
            for number, piece in enumerate(pieces_of_text):
                texts = _select_texts(role, piece, row, number)
                units.extend(texts)
                owners.extend([(row.folder, row.passage * PIECES + chunking.unit_number(number, text)) for text in texts])
                if role == "static":
                    tokens = piece_tokens(row.names, piece, row.speaker, number)
                    pieces.append({"passage": row.passage, "number": number, "marks": piece.marks, "tokens": tokens})
        return units, owners, pieces


_general_requests: dict[str, NDArray[Any]] = {}  # by the name of the model


def piece_tokens(names: str, piece: chunking.Piece, speaker: str | None, number: int) -> str:
    """Return the tokens of a piece, separated by spaces; the first piece of a text has those of its names too."""
    own_names = names if number == 0 and not speaker else ""
    return " ".join(tokenizer.tokens(f"{own_names} {piece.text}"))


def by_role(embedders: Iterable[Embedder]) -> dict[str, Embedder]:
    """Return the embedders by role: static (words), sentence, and multi (notes in many languages).

    The last does sentences where no other model does.
    """
    roles = {{"static": "static", "use": "multi"}.get(embedder.setting, "sentence"): embedder for embedder in embedders}
    if "multi" in roles:
        roles.setdefault("sentence", roles["multi"])
    return roles


def _select_texts(role: str, piece: chunking.Piece, row: WaitingPassage, number: int) -> list[str]:
    """Return the texts of a piece that a model embeds.

    The sentence model embeds what people say and short texts, and the opening of what an assistant says: it is too slow for
    the whole of it, and the opening shows what the rest is about.
    """
    if role == "multi":
        short = not row.speaker and len(row.text.split()) <= chunking.NOTE_WORDS
        return [piece.text] if short else []
    if role == "static":
        return list(piece.units)
    if (row.speaker or "").casefold() in chunking.ASSISTANTS:
        return [chunking.find_opening(piece.text)] if number == 0 else []
    apart = bool(piece.marks & chunking.PEOPLE) or (not row.speaker and len(row.text.split()) <= chunking.PIECE_WORDS)
    return list(piece.units) if apart else []
