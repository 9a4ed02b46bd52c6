"""Gives passages their vectors: a few on the way to an answer, the rest behind it, all of them when asked to.

Each model goes through the passages in the order in which they came, and the catalogue remembers how far it got: stopped
at any moment, it goes on from there, in this process or another. While a model that was set anew lacks vectors, the one
before it answers with its own, if it can still be opened. Vectors of two models never meet.
"""

from __future__ import annotations

import time
from _thread import allocate_lock

from holdfast import embedders as embedders_module
from holdfast.errors import Busy, ConfigError, DiskTrouble, Trouble
from holdfast.index import tokenizer
from holdfast.index.vectors import PIECES, Model, Waiting
from holdfast.models import Progress
from holdfast.search import abstention, chunking

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from numpy.typing import NDArray

    from holdfast.embedders import Embedder
    from holdfast.index.sqlite import SqliteIndex

_BATCH = 16  # passages that get their vectors at once; of the quick model thirty-two times as many
_AT_ONCE = {"static": 20_000, "sentence": 64, "multi": 64}  # that an answer waits for
_PAUSE = 30.0  # seconds before a model that failed is tried again


class WaitingCounts(dict[str, int]):
    """By role, how many passages still lack vectors."""

    failed: dict[str, str]  # by role, why a model could not be used


class Vectorizer:
    """The models of one process, and what they have done so far."""

    def __init__(self, index: SqliteIndex, embedders: tuple[Embedder, ...]) -> None:
        self._index = index
        self.by_role = by_role(embedders)
        self.failed: dict[str, str] = {}  # models that could not be used, and why
        self._again: dict[str, float] = {}  # and when they are tried again
        self._left: dict[str, int] = {}  # as the last answer found it
        self._older: dict[str, tuple[Model, Embedder]] = {}  # by role, a model that was set before and has all its vectors
        self._reopened: dict[str, tuple[Embedder | None, float]] = {}  # those that were opened once more, or when to try
        self.older: tuple[str, ...] = ()  # the settings of those that gave the last question a vector
        self._behind = allocate_lock()  # held while somebody works behind the answers
        self._stopped = False

    def model(self, role: str) -> Model:
        """The model of a role, as the catalogue knows it."""
        embedder = self.by_role[role]
        return self._index.vectors.model(embedder.name, embedder.dim, role, embedder.setting)

    def catch_up(self, progress: Progress, everything: bool = False) -> WaitingCounts:
        """Give passages their vectors; by role, how many still lack them. What an answer cannot wait for goes on behind it."""
        left = WaitingCounts()
        left.failed = {}
        if not self.by_role:
            return left
        for role in self._roles():
            if role in self.failed and time.monotonic() < self._again[role] and not everything:
                continue  # every answer would wait for it in vain
            if "static" in self.failed and role != "static" and not everything:
                continue  # words alone are searched: no answer would be the better for it
            try:
                left[role] = self._catch_up(role, progress, everything)
                self.failed.pop(role, None)
            except DiskTrouble:
                raise
            except (Trouble, ConfigError) as error:
                self._fail(role, error)
        if not any(left.values()):
            self.failed.pop("behind", None)
        left.failed = {role: self.failed[role] for role in self.by_role if role in self.failed}
        if everything and not self.failed:
            self._forget(self._others())
        elif not everything:
            self._left, self._older = left, self._standing_in(left)
            outdated = self._outdated()
            if any(left.values()) or (outdated and not self.failed):
                self._go_on_behind()
        return left

    def of_question(self, text: str) -> dict[str, tuple[Model, NDArray[Any]]]:
        """By role, the question's vector and whose it is: of the model that is set, or of the one that stands in for it."""
        vectors, older = {}, []
        for role in dict.fromkeys([*self.by_role, *self._older]) if "static" not in self.failed else ():
            asked = self._asked(role, text)
            if asked is None and (asked := self._asked_older(role, text)):
                older.append(asked[0].setting)
            if asked is not None:
                vectors[role] = asked
        self.older = tuple(dict.fromkeys(older))
        return vectors

    def general_requests(self) -> NDArray[Any]:
        """Return the multilingual model's vectors of the examples of general requests, computed once in a process."""
        embedder = self.by_role["multi"]
        if embedder.name not in _general_requests:
            _general_requests[embedder.name] = embedder.questions(abstention.general_requests())
        return _general_requests[embedder.name]

    def _asked(self, role: str, text: str) -> tuple[Model, NDArray[Any]] | None:
        """From the model that is set; the static one answers even while it lacks some vectors."""
        if role not in self.by_role or role in self.failed or (role != "static" and self._left.get(role) != 0):
            return None
        try:
            vector = self.by_role[role].questions([text])[0]
            return self.model(role), vector
        except DiskTrouble:
            raise
        except (Trouble, ConfigError) as error:
            self._fail(role, error)
        return None

    def _fail(self, role: str, error: Trouble | ConfigError) -> None:
        self.failed[role], self._again[role] = error.message, time.monotonic() + _PAUSE

    def _roles(self) -> list[str]:
        """The quick model first: without it the others are of no use."""
        return sorted(self.by_role, key=lambda role: role != "static")

    # --- models that were set before ---------------------------------------------------------------------------------

    def _standing_in(self, left: WaitingCounts) -> dict[str, tuple[Model, Embedder]]:
        """While a model lacks vectors or fails: by role, an older one that has all of its own."""
        if "static" in self.failed or all(left.get(role) == 0 for role in self.by_role if role != "static"):
            return {}
        found = {}
        for role in ("sentence", "multi"):  # also where none is set any more: it helped before, so it helps until the end
            if left.get(role) != 0 and (older := self._complete_one(role)):
                found[role] = older
        return found

    def _complete_one(self, role: str) -> tuple[Model, Embedder] | None:
        """The older model that lacks least, once it has the few vectors that it lacked."""
        older = [(self._index.vectors.count_waiting(model), -model.id, model) for model in self._others() if model.role == role]
        for waiting, _, model in sorted(older, key=lambda one: one[:2]):
            embedder = self._open_again(model) if waiting <= _AT_ONCE[role] else None
            if embedder is None:
                continue
            try:
                self._embed(model, embedder, waiting, Progress())
                return model, embedder
            except DiskTrouble:
                raise
            except (Trouble, ConfigError):
                self._shut(model)
        return None

    def _asked_older(self, role: str, text: str) -> tuple[Model, NDArray[Any]] | None:
        if role not in self._older:
            return None
        model, embedder = self._older[role]
        try:
            vector = embedder.questions([text])[0]
        except (Trouble, ConfigError):
            self._shut(model)
            return None
        return (model, vector) if vector.shape[0] == model.dim else None

    def _open_again(self, model: Model) -> Embedder | None:
        """The embedder by which this model's vectors were made, if it is there and still the same."""
        known, when = self._reopened.get(model.name, (None, 0.0))
        if known is None and time.monotonic() >= when:
            try:
                known = embedders_module.reopen(model.setting, self.by_role.values())
                if (known.name, known.dim) != (model.name, model.dim):
                    known = None
            except (Trouble, ConfigError):
                known = None
            self._reopened[model.name] = known, time.monotonic() + _PAUSE
        return known

    def _shut(self, model: Model) -> None:
        self._reopened[model.name] = None, time.monotonic() + _PAUSE

    def _others(self) -> list[Model]:
        """Models that have vectors here and are not set."""
        own = self._own()
        return [model for model in self._index.vectors.models() if (model.name, model.role) not in own]

    def _own(self) -> set[tuple[str, str]]:
        own = set()
        for role, embedder in self.by_role.items():
            try:
                own.add((embedder.name, role))
            except (Trouble, ConfigError):
                pass  # one that cannot even tell its name has nothing here
        return own

    def _outdated(self) -> list[Model]:
        """Models that nobody asks for any more: none did since the newest of those now set came. Who has others set than we
        have may ask in turn with us: then neither takes the other's vectors away."""
        own, models = self._own(), self._index.vectors.models()
        mine = [model for model in models if (model.name, model.role) in own]
        others = [model for model in models if (model.name, model.role) not in own]
        newest = max([model.id for model in others], default=0)
        for model in mine:
            if max(model.id, model.asked) < newest:
                self._note(model, newest)
        latest = max([model.id for model in mine], default=0)
        return [model for model in others if max(model.id, model.asked) < latest]

    def _note(self, model: Model, newest: int) -> None:
        try:
            self._index.vectors.asked_for(model, newest)
        except (Busy, DiskTrouble):
            pass  # a catalogue that cannot be written answers all the same

    def _forget(self, models: list[Model]) -> None:
        for model in models:
            self._index.vectors.forget(model)

    # --- making vectors ----------------------------------------------------------------------------------------------

    def stop(self) -> None:
        """Let whoever works behind the answers finish its batch, and no more."""
        self._stopped = True
        with self._behind:
            pass

    def _catch_up(self, role: str, progress: Progress, everything: bool) -> int:
        model = self.model(role)
        waiting = self._index.vectors.count_waiting(model)
        if not waiting or (not everything and waiting > _AT_ONCE[role]):
            return waiting  # a part would slow this answer and not help it
        if everything:
            progress.start(f"embedding ({role})", waiting)
        try:
            self._embed(model, self.by_role[role], waiting, progress)
            return self._index.vectors.count_waiting(self.model(role))
        finally:
            if everything:
                progress.end()

    def _go_on_behind(self) -> None:
        if not self._behind.acquire(blocking=False):
            return
        from threading import Thread

        try:
            Thread(target=self._work, name="holdfast-embedding", daemon=True).start()
        except RuntimeError as error:  # no more threads are to be had; the answers catch up by themselves
            self.failed["behind"] = str(error)
            self._behind.release()

    def begin_anew(self) -> None:
        """In a child: whoever worked behind the answers did not come along."""
        self._behind = allocate_lock()

    def _work(self) -> None:
        self.failed.pop("behind", None)
        try:
            for role in [role for role in self._roles() if role not in self.failed]:
                while not self._stopped and self._embed(self.model(role), self.by_role[role], _BATCH, Progress()):
                    pass
            if not self._stopped and not self.failed:
                self._forget(self._outdated())  # every model that is set has all its vectors now
        except Exception as error:  # noqa: BLE001
            self.failed["behind"] = str(error)  # nobody hears a thread: the next answer says it
        finally:
            self._behind.release()

    def _embed(self, model: Model, embedder: Embedder, most: int, progress: Progress) -> int:
        done, role = 0, model.role
        speakers: dict[int, tuple[str, ...]] = {}
        batch = _BATCH if role != "static" else 32 * _BATCH
        while done < most and not self._stopped and (rows := self._index.vectors.waiting(model, min(batch, most - done))):
            units, owners, kept = self._units(rows, role, speakers)
            vectors: Any = embedder.passages(units) if units else []
            put = [(*owner, vector) for owner, vector in zip(owners, vectors, strict=True) if vector.any()]
            model = self._index.vectors.keep(model, rows, put, kept)
            done += len(rows)
            progress.step(len(rows))
        return done

    def _units(
        self, rows: list[Waiting], role: str, speakers: dict[int, tuple[str, ...]]
    ) -> tuple[list[str], list[tuple[int, int]], list[dict[str, object]]]:
        """The texts to embed, whose they are (folder, owner), and the pieces to keep."""
        units: list[str] = []
        owners: list[tuple[int, int]] = []
        kept: list[dict[str, object]] = []
        for row in rows:
            if row.speaker and row.doc not in speakers:
                speakers[row.doc] = _names(self._index.vectors.speakers(row.doc))
            cut = chunking.cut(row.text, row.speaker or "", speakers.get(row.doc, ()))
            for number, piece in enumerate(cut):
                texts = _for(role, piece, row)
                units.extend(texts)
                owners.extend([(row.folder, row.passage * PIECES + chunking.numbered(number, text)) for text in texts])
                if role == "static":
                    tokens = tokens_of(row.names, piece, row.speaker, number)
                    kept.append({"passage": row.passage, "number": number, "marks": piece.marks, "tokens": tokens})
        return units, owners, kept


_general_requests: dict[str, NDArray[Any]] = {}  # by the name of the model


def tokens_of(names: str, piece: chunking.Piece, speaker: str | None, number: int) -> str:
    """The words of a piece, as they are kept; the first piece of a text is also found by what the text is called."""
    called = names if number == 0 and not speaker else ""
    return " ".join(tokenizer.tokens(f"{called} {piece.text}"))


def by_role(embedders: Iterable[Embedder]) -> dict[str, Embedder]:
    """What each embedder is for: words, sentences, notes of many languages; the last does sentences where nothing else does."""
    roles = {{"static": "static", "use": "multi"}.get(embedder.setting, "sentence"): embedder for embedder in embedders}
    if "multi" in roles:
        roles.setdefault("sentence", roles["multi"])
    return roles


def _for(role: str, piece: chunking.Piece, row: Waiting) -> list[str]:
    """The units of a piece that a model embeds: sentences are for what people say and for short texts."""
    if role == "multi":
        short = not row.speaker and len(row.text.split()) <= chunking.NOTE_WORDS
        return [piece.text] if short else []
    if role == "static":
        return list(piece.units)
    apart = bool(piece.marks & chunking.PEOPLE) or (not row.speaker and len(row.text.split()) <= chunking.SIZE)
    return list(piece.units) if apart else []


def _names(speakers: list[str]) -> tuple[str, ...]:
    return tuple(sorted([name for name in speakers if name.casefold() not in chunking.NAMELESS], key=len, reverse=True))
