"""The catalogue in one SQLite file, through FTS5. Deleted, damaged or foreign, it starts anew and the shelf fills it."""

from __future__ import annotations

import time

from holdfast import sql
from holdfast.facts import fold, note_key
from holdfast.house import Database, Renewed
from holdfast.leaf import Doc, Passage, Stamp, mix_of
from holdfast.note import Fact, Note, Record, Scope, Source

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    import apsw

SQL = sql.statements(__file__)
APPLICATION = 0x484F4C44  # "HOLD"
SCHEMA = 1  # another number, another tokenizer: the catalogue is built anew
_ANY_TIME = "9"


Lost = Renewed  # the catalogue was not usable and has been started anew; fill it and ask again


class Found(Record):
    """A passage that matched, and where it stands."""

    passage: int
    seq: int
    past: bool
    lines: tuple[int, int]
    type: str | None
    tags: tuple[str, ...]
    source: Source
    recorded: str
    valid_from: str | None
    valid_to: str | None
    doc: int
    kind: str
    name: str
    key: str
    note_id: str
    versions: int
    scope: str
    part: str
    score: float


class Asked(Record):
    """What a search is for, and on which clock."""

    scopes: tuple[str, ...]
    type: str | None = None
    tags: tuple[str, ...] = ()
    as_of: str | None = None
    known_at: str | None = None
    now: str = ""


class Index:
    """One process's view of the catalogue."""

    def __init__(self, home: str, busy_seconds: float) -> None:
        self._database = Database(home, "index.db", SQL, APPLICATION, SCHEMA, busy_seconds)
        self._one, self._all, self._writing = self._database.row, self._database.rows, self._database.transaction

    def generation(self) -> int:
        """Which file this is, counted from the first that was opened."""
        with self._database.lock:
            self._database.opened()
            return self._database.generation

    @property
    def in_memory(self) -> str:
        """Why the home cannot hold the catalogue, when it cannot."""
        return self._database.reason

    # --- what is in it -------------------------------------------------------------------------------------------

    def folder(self, scope: str, part: str) -> tuple[int, int] | None:
        """The id and the fingerprint of a folder, or None if it was never catalogued."""
        row: tuple[int, int] | None = self._one("folder_of", scope=scope, part=part)
        return row

    def stamps(self, scope: str, part: str) -> dict[str, tuple[Stamp, str]]:
        """Every file of a folder that is catalogued: its stamp and digest."""
        known = self.folder(scope, part)
        if known is None:
            return {}
        rows = self._all("doc_stamps", folder=known[0])
        return {name: ((_unsigned(ino), ctime, size), digest) for name, ino, ctime, size, digest in rows}

    def stamp(self, scope: str, part: str, name: str) -> Stamp | None:
        """The stamp of one catalogued file."""
        known = self.folder(scope, part)
        row = self._one("doc_stamp", folder=known[0], name=name) if known else None
        return (_unsigned(row[1]), row[2], row[3]) if row else None

    # --- changing it ---------------------------------------------------------------------------------------------

    def put(self, docs: Iterable[tuple[Doc, Stamp | None]], still: Callable[[Doc], bool]) -> None:
        """Catalogue files, in one transaction. With each comes the stamp of the bytes it replaced, if the writer knows:
        then only what is new is added. `still` says whether the file on the shelf is the one described: when another
        writer was faster, that writer's description counts, not ours."""
        with self._writing() as db:
            new = _Additions(db)
            for doc, replaced in docs:
                if still(doc):
                    self._put(db, new, doc, replaced)
            new.save()

    def drop(self, scope: str, part: str, names: Iterable[str], gone: Callable[[str], bool]) -> int:
        """Take files out that are no longer on the shelf; how many were in."""
        count = 0
        with self._writing() as db:
            folders = _Folders(db)
            folder = folders.id(scope, part)
            for name in names:
                row = _row(db, "doc_stamp", folder=folder, name=name)
                if row and gone(name):
                    _empty(db, row[0])
                    db.execute(SQL["drop_doc"], {"doc": row[0]})
                    folders.mix(folder, row[4])
                    count += 1
            folders.save()
        return count

    def add_folder(self, scope: str, part: str) -> None:
        """Remember that a folder has been looked at, even if it is empty."""
        with self._writing() as db:
            db.execute(SQL["add_folder"], {"scope": scope, "part": part})

    def _put(self, db: apsw.Connection, new: _Additions, doc: Doc, replaced: Stamp | None) -> None:
        folder = new.folders.id(doc.scope, doc.part)
        row = None if new.folders.was_empty(folder) else _row(db, "doc_stamp", folder=folder, name=doc.name)
        mix = mix_of(doc.stamp, doc.name if doc.part == "files" else "")
        if row is None:
            new.folders.mix(folder, mix)
            new.add(new.doc(_doc_fields(doc, folder, mix)), doc.passages, doc.facts)
            return
        id, known = row[0], (_unsigned(row[1]), row[2], row[3])
        if known == doc.stamp and row[5] == doc.digest:
            return
        follows = replaced is not None and known == replaced and row[6] + 1 == doc.versions
        if not follows and len(doc.passages) < doc.versions and doc.kind == "note":
            return  # the one before is not catalogued: leave it to the next look at the folder
        _empty(db, id, current_only=follows)
        db.execute(SQL["change_doc"], {**_doc_fields(doc, folder, mix), "doc": id})
        new.folders.mix(folder, row[4] ^ mix)
        new.add(id, doc.passages[:2] if follows else doc.passages, doc.facts)

    # --- asking it -----------------------------------------------------------------------------------------------

    def search(self, query: str, asked: Asked, limit: int) -> list[Found]:
        """The passages that match any word, best first; at least `limit` of them if there are so many."""
        match = terms(query)
        if not match:
            return []
        pool = max(limit * 4, 40)
        while True:
            scores = dict(self._all("match_now", query=match, pool=pool))
            full = len(scores) >= pool
            if asked.as_of:
                old = dict(self._all("match_past", query=match, pool=pool))
                full = full or len(old) >= pool
                scores.update(old)
            found = self._passages(scores, asked)
            if len(found) >= limit or not full:
                return found
            pool *= 8

    def recent(self, asked: Asked, limit: int) -> list[Found]:
        """The newest passages."""
        if asked.as_of:
            rows = self._all("recent_at", scopes=_list(asked.scopes), known_at=asked.known_at or _ANY_TIME)
        else:
            rows = self._all(
                "recent", scopes=_list(asked.scopes), type=asked.type, tags=_list(_folded(asked.tags)),
                now=asked.now, pool=limit,
            )  # fmt: skip
        return self._passages({row[0]: -0.0 for row in rows}, asked)

    def notes(
        self, scopes: tuple[str, ...], type: str | None = None, tags: tuple[str, ...] = (),
        before: str | None = None, most: int = -1, now: str = "",
    ) -> list[tuple[Any, ...]]:  # fmt: skip
        """The notes of some scopes, newest first, pinned ones before; each a row for `note_of_row`."""
        wanted = _list(_folded(tags))
        return self._all("notes", scopes=_list(scopes), type=type, tags=wanted, before=before, most=most, now=now)

    def count(self, scopes: tuple[str, ...], now: str = "") -> int:
        """How many notes some scopes have that are not over."""
        return int(self._one("count_notes", scopes=_list(scopes), now=now)[0])

    def facts(
        self, scopes: tuple[str, ...], about: str | None, label: str | None, as_of: str | None
    ) -> list[Fact]:
        """The facts of some scopes, by subject, label and date."""
        rows = self._all(
            "facts", scopes=_list(scopes), about=fold(about) if about else None, key=note_key(about) if about else None,
            named=fold(label) if label else None, as_of=as_of,
        )  # fmt: skip
        return [
            Fact(
                subject, label_, value, start, end, retired, tuple(links.split("\n")) if links else (),
                Scope.of_folder(scope), f"{scope}/{part}/{name}", line,
            )
            for subject, label_, value, start, end, retired, links, line, scope, part, name in rows
        ]  # fmt: skip

    def stating(self, scope: str, subject: str) -> str | None:
        """The key of a note that states facts about a subject."""
        row = self._one("stating", scope=scope, about=fold(subject))
        return str(row[0]) if row else None

    def listing(self, scope: str) -> list[tuple[str, str, str, str, str]]:
        """One row a note, for index.md."""
        return self._all("listing", scope=scope)

    def listing_due(self, scope: str, small: int, seconds: float) -> bool:
        """Whether index.md should be made now: always for a small scope, else at most once in `seconds`."""
        state = self._one("listing_state", scope=scope, most=small + 1)
        return bool(state and state[0] and (state[2] <= small or time.time() - state[1] >= seconds))

    def listed(self, scope: str, seen: int) -> None:
        """index.md says what the notes said when their fingerprint was the one seen."""
        with self._writing() as db:
            db.execute(SQL["set_listed"], {"scope": scope, "time": time.time(), "seen": seen})

    def counts(self) -> list[tuple[str, str, int, int, str]]:
        """Per folder: how many files, how many bytes, last change."""
        return self._all("counts")

    def totals(self) -> tuple[int, int, int, int]:
        """Notes, files, passages, facts."""
        row: tuple[int, int, int, int] = self._one("totals") or (0, 0, 0, 0)
        return row

    def problems(self, scopes: tuple[str, ...]) -> list[tuple[str, str, str, str]]:
        """Files that are not as they should be."""
        return self._all("problems", scopes=_list(scopes))

    def has_note(self, scope: str, name: str) -> bool:
        row = self._one("rows_of_note", scope=scope, name=name)
        return bool(row and row[0])

    def says(self, piece: str) -> bool:
        """Whether any catalogued text holds this piece."""
        return self._one("says", piece=piece) is not None

    def verify(self) -> str:
        """Empty if the whole catalogue is sound, else what is wrong with it."""
        try:
            with self._writing() as db:
                for row in db.execute(SQL["verify_pages"]):
                    if row[0] != "ok":
                        return str(row[0])
                db.execute(SQL["verify_now"])
                db.execute(SQL["verify_past"])
        except Lost as error:
            return str(error)
        return ""

    def _passages(self, scores: dict[int, float], asked: Asked) -> list[Found]:
        if not scores:
            return []
        name = "passages_at" if asked.as_of else "passages"
        rows = self._all(
            name, ids="[" + ",".join(map(str, scores)) + "]", scopes=_list(asked.scopes), type=asked.type,
            tags=_list(_folded(asked.tags)), now=asked.now, as_of=asked.as_of, known_at=asked.known_at or _ANY_TIME,
        )  # fmt: skip
        found = [_found(row, -scores[row[0]]) for row in rows]
        return sorted(found, key=lambda one: -one.score)

    # --- the file ------------------------------------------------------------------------------------------------

    def start_anew(self) -> None:
        """Throw the catalogue away; the next look at the shelf fills a new one."""
        self._database.renew()

    def go_without_file(self) -> None:
        """Answer from memory: somebody keeps deleting the file."""
        self._database.go_without_file("its file keeps disappearing")

    def scrub(self) -> None:
        """Leave nothing of deleted rows in the file or in its log."""
        with self._writing() as db:
            db.execute(SQL["optimize_now"])
            db.execute(SQL["optimize_past"])
        self._database.scrub()

    def close(self) -> None:
        self._database.close()


class _Folders:
    """The folders one transaction touches: looked up once, their fingerprints written once."""

    def __init__(self, db: apsw.Connection) -> None:
        self._db = db
        self._ids: dict[tuple[str, str], int] = {}
        self._mixes: dict[int, int] = {}
        self._empty: dict[int, bool] = {}

    def id(self, scope: str, part: str) -> int:
        known = self._ids.get((scope, part))
        if known is None:
            row = _row(self._db, "folder_of", scope=scope, part=part)
            if row is None:
                self._db.execute(SQL["add_folder"], {"scope": scope, "part": part})
                row = _row(self._db, "folder_of", scope=scope, part=part)
            known = self._ids[scope, part] = int(row[0])
        return known

    def was_empty(self, folder: int) -> bool:
        """Whether nothing of it was catalogued before this transaction."""
        if folder not in self._empty:
            self._empty[folder] = _row(self._db, "any_doc", folder=folder) is None
        return self._empty[folder]

    def mix(self, folder: int, mix: int) -> None:
        self._mixes[folder] = self._mixes.get(folder, 0) ^ mix

    def save(self) -> None:
        for folder, mix in self._mixes.items():
            self._db.execute(SQL["mix_in"], {"folder": folder, "mix": mix})


class _Additions:
    """Rows of one transaction, numbered here and added together: far cheaper than one by one."""

    def __init__(self, db: apsw.Connection) -> None:
        self._db = db
        self.folders = _Folders(db)
        self._doc, self._passage = _row(db, "last_ids")
        self._docs: list[dict[str, Any]] = []
        self._passages: list[dict[str, Any]] = []
        self._facts: list[dict[str, Any]] = []

    def doc(self, fields: dict[str, Any]) -> int:
        """A file that was not catalogued before; its id."""
        self._doc += 1
        fields["id"] = self._doc
        self._docs.append(fields)
        return int(self._doc)

    def add(self, doc: int, passages: tuple[Passage, ...], facts: tuple[Fact, ...]) -> None:
        for passage in passages:
            self._passage += 1
            self._passages.append(_passage_fields(self._passage, doc, passage))
        self._facts.extend([_fact_fields(doc, fact) for fact in facts])

    def save(self) -> None:
        self._db.executemany(SQL["add_doc"], self._docs)
        self._db.executemany(SQL["add_passage"], self._passages)
        self._db.executemany(SQL["add_now"], [row for row in self._passages if not row["past"]])
        self._db.executemany(SQL["add_past"], [row for row in self._passages if row["past"]])
        self._db.executemany(SQL["add_fact"], self._facts)
        self.folders.save()


def terms(query: str) -> str:
    """Any of the query's words, each quoted: nothing in it is syntax."""
    words: dict[str, None] = {}
    word = ""
    for char in query + " ":
        strange = not char.isascii() and not char.isspace() and not "\ud800" <= char <= "\udfff"
        if char.isalnum() or char == "_" or strange:
            word += char
        elif word:
            words[word] = None
            word = ""
    return " OR ".join([f'"{word}"' for word in list(words)[:64] if '"' not in word and "\0" not in word])


def _row(db: apsw.Connection, statement: str, /, **values: Any) -> Any:
    return db.execute(SQL[statement], values).fetchone()


def _empty(db: apsw.Connection, doc: int, current_only: bool = False) -> None:
    db.execute(SQL["drop_now"], {"doc": doc})
    if not current_only:
        db.execute(SQL["drop_past"], {"doc": doc})
    db.execute(SQL["drop_current" if current_only else "drop_passages"], {"doc": doc})
    db.execute(SQL["drop_facts"], {"doc": doc})


def _passage_fields(id: int, doc: int, passage: Passage) -> dict[str, Any]:
    return {
        "id": id, "doc": doc, "seq": passage.seq, "past": passage.past, "names": passage.names, "text": passage.text,
        "first_line": passage.lines[0], "last_line": passage.lines[1], "type": passage.type, "tags": _tags(passage.tags),
        "source": _source(passage.source), "recorded": passage.recorded, "valid_from": passage.valid_from,
        "valid_to": passage.valid_to, "closed": passage.closed, "replaced": passage.replaced,
    }  # fmt: skip


def _doc_fields(doc: Doc, folder: int, mix: int) -> dict[str, Any]:
    return {
        "folder": folder, "name": doc.name, "mix": mix, "digest": doc.digest, "kind": doc.kind, "key": doc.key,
        "note_id": doc.note_id, "title": doc.title, "type": doc.type, "tags": _tags(doc.tags), "created": doc.created,
        "updated": doc.updated, "source": _source(doc.source), "valid_from": doc.valid_from, "valid_to": doc.valid_to,
        "pinned": doc.pinned, "touched": doc.touched, "first_line": doc.lines[0], "last_line": doc.lines[1],
        "versions": doc.versions,
        "problem": doc.problem, **_stamp(doc.stamp),
    }  # fmt: skip


def _fact_fields(doc: int, fact: Fact) -> dict[str, Any]:
    return {
        "doc": doc, "subject": fact.subject, "label": fact.label, "value": fact.value, "about": fold(fact.subject),
        "named": fold(fact.label), "valid_from": fact.valid_from, "valid_to": fact.valid_to,
        "retired_by": fact.retired_by, "links": "\n".join(fact.links), "line": fact.line,
    }  # fmt: skip


def _found(row: tuple[Any, ...], score: float) -> Found:
    (id, seq, past, first, last, type, tags, source, recorded, start, end, doc, kind, name, key, note_id, versions, scope,
     part) = row  # fmt: skip
    return Found(
        id, seq, bool(past), (first, last), type, tags_from(tags), source_from(source), recorded, start, end, doc, kind,
        name, key, note_id, versions, scope, part, score,
    )  # fmt: skip


def _stamp(stamp: Stamp) -> dict[str, int]:
    return {"ino": stamp[0] if stamp[0] < 1 << 63 else stamp[0] - (1 << 64), "ctime": stamp[1], "size": stamp[2]}


def _unsigned(ino: int) -> int:
    return ino if ino >= 0 else ino + (1 << 64)


def _tags(tags: tuple[str, ...]) -> str:
    if not tags:
        return "\n"
    return "".join([f"\n{tag}" for tag in tags]) + "\n" + "".join([f"{low}\n" for low in _folded(tags)])


def tags_from(kept: str) -> tuple[str, ...]:
    """The tags as written: the first half of what is kept, the second is folded for filters."""
    every = kept.strip("\n").split("\n")
    return tuple(every[: len(every) // 2])


def _folded(tags: tuple[str, ...]) -> tuple[str, ...]:
    return tuple([tag.casefold() for tag in tags])


def _source(source: Source | None) -> str:
    return "\n".join([source.origin, source.agent or "", source.client or "", source.session or ""]) if source else ""


def source_from(kept: str) -> Source:
    if not kept:
        return Source("user")
    origin, agent, client, session = kept.split("\n")
    return Source(origin, agent or None, client or None, session or None)


def _list(values: Iterable[str]) -> str:
    """A JSON list of strings, without importing json for a handful of plain ones."""
    parts = []
    for value in values:
        plain = value.isascii() and value.isprintable() and '"' not in value and "\\" not in value
        if not plain:
            import json

            return json.dumps(list(values))
        parts.append(f'"{value}"')
    return "[" + ",".join(parts) + "]"




def note_of_row(row: tuple[Any, ...]) -> Note:
    """A note as the catalogue has it."""
    (scope, name, key, id, _, type, tags, created, updated, source, start, end, pinned, first, last, version, versions,
     text) = row  # fmt: skip
    return Note(
        Scope.of_folder(scope), key, id, text, type, tags_from(tags), created, updated, source_from(source), start, end,
        bool(pinned), f"{scope}/notes/{name}", (first, last), version, versions,
    )  # fmt: skip
