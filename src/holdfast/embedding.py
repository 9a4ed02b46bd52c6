"""Gives passages their vectors: a few on the way to an answer, the rest behind it, all of them when asked to.

Each model goes through the passages in the order in which they came, and the catalogue remembers how far it got: stopped
at any moment, it goes on from there, in this process or another. Vectors of two models never meet.
"""

from __future__ import annotations

import time
from _thread import allocate_lock

from holdfast import pieces, words
from holdfast.errors import ConfigError, DiskTrouble, Trouble
from holdfast.index.vectors import PIECES, Model, Waiting
from holdfast.note import Progress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from numpy.typing import NDArray

    from holdfast.embed import Embedder
    from holdfast.index.sqlite import Index

_BATCH = 16  # passages that get their vectors at once; of the quick model thirty-two times as many
_AT_ONCE = {"static": 20_000, "sentence": 64, "multi": 64}  # that an answer waits for
_PAUSE = 30.0  # seconds before a model that failed is tried again


class Embedding:
    """The models of one process, and what they have done so far."""

    def __init__(self, index: Index, embedders: tuple[Embedder, ...]) -> None:
        self._index = index
        self.by_role = {role_of(embedder): embedder for embedder in embedders}
        self.failed: dict[str, str] = {}  # models that could not be used, and why
        self._again: dict[str, float] = {}  # and when they are tried again
        self._behind = allocate_lock()  # held while somebody works behind the answers
        self._stopped = False

    def model(self, role: str) -> Model:
        """The model of a role, as the catalogue knows it."""
        embedder = self.by_role[role]
        return self._index.vectors.model(embedder.name, embedder.dim)

    def catch_up(self, progress: Progress, everything: bool = False) -> dict[str, int]:
        """Give passages their vectors; by model, how many still lack them. What an answer cannot wait for goes on behind it."""
        left = {}
        for role in sorted(self.by_role, key=lambda role: role != "static"):
            if role in self.failed and time.monotonic() < self._again[role] and not everything:
                continue  # every answer would wait for it in vain
            try:
                left[role] = self._catch_up(role, progress, everything)
                self.failed.pop(role, None)
            except DiskTrouble:
                raise
            except (Trouble, ConfigError) as error:
                self._fail(role, error)
        if everything and not self.failed:
            self._forget_others()
        if not any(left.values()):
            self.failed.pop("behind", None)
        elif not everything:
            self._go_on_behind()
        return left

    def of_question(self, text: str) -> dict[str, NDArray[Any]]:
        """The question's vector by every model that can be asked."""
        vectors = {}
        for role, embedder in self.by_role.items():
            if role in self.failed:
                continue
            try:
                vectors[role] = embedder.questions([text])[0]
            except (Trouble, ConfigError) as error:
                self._fail(role, error)
        return vectors

    def _fail(self, role: str, error: Trouble | ConfigError) -> None:
        self.failed[role], self._again[role] = error.message, time.monotonic() + _PAUSE

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
            self._embed(model, role, waiting, progress)
            return self._index.vectors.count_waiting(self.model(role))
        finally:
            if everything:
                progress.end()

    def _go_on_behind(self) -> None:
        if not self._behind.acquire(blocking=False):
            return
        from threading import Thread

        Thread(target=self._work, name="holdfast-embedding", daemon=True).start()

    def _work(self) -> None:
        self.failed.pop("behind", None)
        try:
            for role in sorted(self.by_role, key=lambda role: role != "static"):
                while not self._stopped and self._embed(self.model(role), role, _BATCH, Progress()):
                    pass
        except Exception as error:  # noqa: BLE001 (nobody hears a thread: the next answer says it)
            self.failed["behind"] = str(error)
        finally:
            self._behind.release()

    def _forget_others(self) -> None:
        """Vectors of models that are no longer asked for go, once those that are have theirs."""
        names = {embedder.name for embedder in self.by_role.values()}
        for model in self._index.vectors.models():
            if model.name not in names:
                self._index.vectors.forget(model)

    def _embed(self, model: Model, role: str, most: int, progress: Progress) -> int:
        done = 0
        speakers: dict[int, tuple[str, ...]] = {}
        batch = _BATCH if role != "static" else 32 * _BATCH
        while done < most and not self._stopped and (rows := self._index.vectors.waiting(model, min(batch, most - done))):
            units, owners, kept = self._units(rows, role, speakers)
            vectors: Any = self.by_role[role].passages(units) if units else []
            put = [(*owner, vector) for owner, vector in zip(owners, vectors, strict=True) if vector.any()]
            model = self._index.vectors.keep(model, rows[-1].passage, put, kept)
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
            cut = pieces.cut(row.text, row.speaker or "", speakers.get(row.doc, ()))
            for number, piece in enumerate(cut):
                texts = _for(role, piece, row)
                units.extend(texts)
                owners.extend([(row.folder, row.passage * PIECES + pieces.numbered(number, text)) for text in texts])
                if role == "static":
                    tokens = tokens_of(row.names, piece, row.speaker, number)
                    kept.append({"passage": row.passage, "number": number, "marks": piece.marks, "tokens": tokens})
        return units, owners, kept


def tokens_of(names: str, piece: pieces.Piece, speaker: str | None, number: int) -> str:
    """The words of a piece, as they are kept; the first piece of a text is also found by what the text is called."""
    called = names if number == 0 and not speaker else ""
    return " ".join(words.tokens(f"{called} {piece.text}"))


def role_of(embedder: Embedder) -> str:
    """What an embedder is for: words, sentences, or many languages."""
    if embedder.name.startswith("static-"):
        return "static"
    return "multi" if embedder.name.startswith("use-") else "sentence"


def _for(role: str, piece: pieces.Piece, row: Waiting) -> list[str]:
    """The units of a piece that a model embeds: sentences are for what people say and for short texts."""
    if role == "multi":
        short = not row.speaker and len(row.text.split()) <= pieces.NOTE_WORDS
        return [piece.text] if short else []
    if role == "static":
        return list(piece.units)
    apart = bool(piece.marks & pieces.PEOPLE) or (not row.speaker and len(row.text.split()) <= pieces.SIZE)
    return list(piece.units) if apart else []


def _names(speakers: list[str]) -> tuple[str, ...]:
    return tuple(sorted([name for name in speakers if name.casefold() not in pieces.NAMELESS], key=len, reverse=True))
