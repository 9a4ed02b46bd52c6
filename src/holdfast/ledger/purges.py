"""What was purged and must not come back: receipts, and digests that only this home can make (docs/adr/0019). Never a text.

Beside them the texts that a person rejected, by digests of their own: nobody is refused for saying one, but it waits (S3).

A file in the home, `ledger.purged` or `ledger.rejected`, says that there is anything to ask for: a home in which nothing ever
was pays one look at a file name for it.
"""

from __future__ import annotations

import os

from holdfast.base.ids import keyed_digest
from holdfast.base.lazy_re import pattern
from holdfast.errors import Busy, Purged, Template, command, from_os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, Protocol

    import apsw

    class Write(Protocol):
        def __call__(self, work: Callable[[apsw.Connection], Any], durable: bool) -> Any: ...


SIGN = "ledger.purged"
_REJECTED = "ledger.rejected"
TEXT_LEAST = 12  # characters of a whole text,
LINE_LEAST = 24  # of a line,
WORD_LEAST = 12  # and of a word that are worth a digest: shorter ones stand in innocent texts too
_KEY_BYTES = 32
_MOST_AT_ONCE = 20_000
_WORD = pattern(r"[^\s\"'`,;()<>\[\]{}]{12,}")
_MARK = pattern(r"\A(?:\d{1,3}[.)]|[a-z]\)|x\])\s+")
_EDGES = " .,;:!?…·•*_-–—+>#|~=\"'`´“”„‘’«»()[]{}<>/\\"
_LABEL = 40  # characters of what stands before a colon and is no part of the line
_LOOSE = "l"  # the kind of digest by which a line is known whatever stands around it,
_REJECT = "r"  # and that of a text which a person rejected
_SIGN_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC


def folded(text: str) -> str:
    """A text as it is compared: look-alikes, case and white space count for nothing."""
    if not text.isascii():
        import unicodedata

        text = unicodedata.normalize("NFKC", text)
    return " ".join(text.casefold().split())


def lines_of(text: str) -> list[str]:
    """The lines of a text that are worth a digest, folded."""
    every = [folded(line) for line in text.split("\n")]
    return [line for line in every if len(line) >= LINE_LEAST]


def bare(line: str) -> str:
    """A folded line without what stands around it: marks of a list or a quotation, punctuation."""
    while True:
        less = _MARK.sub("", line.strip(_EDGES))
        if less == line:
            return line
        line = less


def _bare_forms(line: str) -> list[str]:
    """The line by itself, and what a label before it labels."""
    alone = bare(line)
    label, colon, rest = alone.partition(": ")
    labelled = bare(rest) if colon and len(label) <= _LABEL else ""
    return [one for one, least in ((alone, TEXT_LEAST), (labelled, LINE_LEAST)) if len(one) >= least]


def words_of(text: str) -> list[str]:
    """The long words of a text, folded: each as it stands, and what comes behind its `=` or `:`."""
    found: dict[str, None] = {}
    for word in _WORD.findall(folded(text)):
        bare = word.rstrip(".!?:")
        found.update(dict.fromkeys([word, bare, bare.rpartition("=")[2], bare.rpartition(":")[2]]))
    return [word for word in found if len(word) >= WORD_LEAST]


class Purges:
    """The receipts and digests of one ledger."""

    def __init__(self, home: str, sql: dict[str, str], rows: Callable[..., list[Any]], write: Write) -> None:
        self._sign, self._rejected = os.path.join(home, SIGN), os.path.join(home, _REJECTED)
        self._path = os.path.join(home, "ledger.db")
        self._sql, self._rows, self._write = sql, rows, write
        self._key, self._of = b"", 0  # and the file that it was read from: another one has another key

    def any(self) -> bool:
        """Whether anything was ever purged here."""
        return os.path.exists(self._sign)

    def any_rejected(self) -> bool:
        """Whether anything was ever rejected here."""
        return os.path.exists(self._rejected)

    # --- digests ----------------------------------------------------------------------------------------------------

    def digests(self, texts: Iterable[str], lines: Iterable[str] = (), words: Iterable[str] = ()) -> list[str]:
        """What stands for whole texts, for lines that are folded already, and for words that are."""
        whole = [one for text in texts if len(one := folded(text)) >= TEXT_LEAST]
        made = [*[self._digest("", one) for one in (*whole, *lines)], *[self._digest("w", one) for one in words]]
        made += [self._digest(_LOOSE, form) for one in (*whole, *lines) for form in _bare_forms(one)]
        return list(dict.fromkeys(made))

    def of_note(self, path: str, text: str) -> str:
        """What stands for a text under one key: it stays refused there, though another note may say the same."""
        return self._digest("n", f"{path}\0{folded(text)}")

    def of_turn(self, session: str, id: str, text: str) -> str:
        """What stands for one turn of one session, however short it is."""
        return self._digest("t", f"{session}\0{id}\0{folded(text)}")

    def _digest(self, kind: str, text: str) -> str:
        return kind + keyed_digest(text.encode("utf-8", "surrogatepass"), self._load_key())

    def mark(self, text: str) -> str:
        """What stands for the purge of one thing, so that the next purge of it is known as that. Nobody is refused for it."""
        return self._digest("x", folded(text))

    def _inode(self) -> int:
        try:
            return os.stat(self._path).st_ino
        except OSError:
            return 0

    def _load_key(self) -> bytes:
        inode = self._inode()
        if self._key and inode and inode == self._of:
            return self._key
        key = self._kept_key()
        if not key:  # a damaged one gives way: what was made with it is not known again, and `doctor` says so
            self._write(lambda db: db.execute(self._sql["add_key"], {"name": "purged", "value": os.urandom(_KEY_BYTES)}), True)
            key = self._kept_key()
        if not key:
            raise Busy("the ledger was replaced in this very moment", "Try again")
        self._key, self._of = key, self._inode()
        return self._key

    def _kept_key(self) -> bytes:
        """The key that is kept; none where it is not of its length."""
        keys = [bytes(row[0]) for row in self._rows("key", {"name": "purged"})]
        return next((key for key in keys if len(key) == _KEY_BYTES), b"")

    def mark_of_key(self) -> str:
        """By which a receipt tells what key its digests were made with; nothing where there is none that could be used."""
        key = self._kept_key()
        return _mark_of(key) if key else ""

    # --- what must not come back ------------------------------------------------------------------------------------

    def refuse(self, texts: Iterable[tuple[str, str]]) -> None:
        """Refuse texts that say what was purged; with the receipt, never with the words. Each comes with the path of the note
        that would say it, or with nothing."""
        for path, text in texts:
            receipt = self.receipt_for(text, path=path)
            if receipt:
                shown, again = command("receipts {}", receipt), command("store TEXT --again")
                fix = Template(shown, " shows it; a person may take it back: ", again)
                raise Purged(f"this says what was purged; see receipt {receipt}", fix)

    def refuse_ended(self, texts: Iterable[str], path: str) -> None:
        """The same for what stands on the shelf: until a purge has ended, its note is as it was."""
        for text in texts:
            receipt = self.receipt_for(text, ended=True, path=path)
            if receipt:
                fix = Template("Purge it again: ", command("purge {}", "KEY"))
                raise Purged(f"this was purged and came back; see receipt {receipt}", fix)

    def receipt_for(self, text: str, ended: bool = False, path: str = "") -> str:
        """The receipt of a purge that this text would undo, if any; with `ended` only of one that has taken it away."""
        return next(iter(self._receipts_for(text, ended, path)), "")

    def is_of(self, receipt: str, text: str, path: str = "") -> bool:
        """Whether this text would undo that very purge, whichever others it would undo too."""
        return receipt in self._receipts_for(text, False, path)

    def receipts_of(self, digests: list[str]) -> set[str]:
        """The receipts that these digests are of."""
        return set(self._known(digests, False).values())

    def _receipts_for(self, text: str, ended: bool, path: str) -> list[str]:
        named = [self.of_note(path, text)] if path else []
        says = self.digests([text], lines_of(text), words_of(text))
        if ended:  # what stands there is another's, unless it is the very same
            says = [one for one in says if not one.startswith(_LOOSE)]
        return list(self._known([*says, *named], ended).values())

    def turns(self, said: list[tuple[str, str, str]], standing: bool) -> set[int]:
        """Which of these turns (session, id, text) were purged, by their places. Of those that are `standing` in a transcript
        only the very same: one that says what a purged note said stays where nobody asked to take it out."""
        return set(self.turn_receipts(said, standing))

    def turn_receipts(self, said: list[tuple[str, str, str]], standing: bool) -> dict[int, str]:
        """The same, each with the receipt of its purge."""
        owners: dict[str, set[int]] = {}
        for place, (session, id, text) in enumerate(said):
            says = [] if standing else self.digests([text], lines_of(text), words_of(text))
            for digest in [*says, self.of_turn(session, id, text)]:
                owners.setdefault(digest, set()).add(place)
        known = self._known(list(owners), standing)
        return {place: receipt for digest, receipt in known.items() for place in owners[digest]}

    def _known(self, digests: list[str], ended: bool) -> dict[str, str]:
        known: dict[str, str] = {}
        for start in range(0, len(digests), _MOST_AT_ONCE):
            some = _json(digests[start : start + _MOST_AT_ONCE])
            known.update(self._rows("purged_known", {"digests": some, "ended": ended}))
        return known

    def take_back(self, path: str, text: str, time: str) -> list[str]:
        """A person wants this again: its digests go, and the receipts they were of say when."""
        wanted = self.digests([text], lines_of(text), words_of(text))
        wanted.append(self.of_note(path, text))
        receipts = sorted(set(self._known(wanted, False).values()))
        if receipts:
            self.drop(wanted)
            for id in receipts:
                for told in self.receipts(id):
                    self.put(id, {**told, "taken_back": time})
        return receipts

    def drop(self, digests: Iterable[str]) -> None:
        """These count no more."""
        every = list(digests)

        def work(db: apsw.Connection) -> None:
            owners = self._owners(db, every)
            db.executemany(self._sql["drop_purged"], [{"digest": one} for one in every]).fetchall()
            self._fewer(db, list(owners.values()))

        self._write(work, True)

    # --- what a person rejected -------------------------------------------------------------------------------------

    def reject(self, folder: str, texts: Iterable[str], id: str) -> None:
        """Keep that a person took away the note of this id, which said these texts: each is known again as a whole, by those
        who may see that folder."""
        forms = [form for text in texts for form in _whole(text)]
        rows = [{"digest": one, "receipt": id} for one in self._said([folder], forms)]
        if rows:
            key = self._key
            self.show_sign(rejected=True)  # first: without it nobody would ask for the rows
            self._kept(lambda db: self._add(db, rows, key))

    def rejected(self, folders: Iterable[str], text: str, old: str = "") -> dict[str, str]:
        """By which digests this text, or a line of it that the `old` one has not, is known as rejected in one of these folders,
        each with the id of the note that said it; the text as a whole comes first."""
        forms = [one for one in _whole(text) if one not in _whole(old)]
        forms += [one for one in _lines(text) if one not in _lines(old)]
        digests = self._said(folders, forms)
        known = dict(self._rows("purged_rows", {"digests": _json(digests)})) if digests else {}
        return {one: str(known[one]) for one in digests if one in known}

    def unreject(self, folders: Iterable[str], text: str) -> None:
        """A person let this pass: in these folders nobody rejects it any more."""
        if self.any() or self.any_rejected():
            self.drop(self._said(folders, [*_whole(text), *_lines(text)]))

    def _said(self, folders: Iterable[str], forms: list[str]) -> list[str]:
        """What stands for texts that were rejected in one of these folders."""
        every = list(folders)
        return list(dict.fromkeys([self._digest(_REJECT, f"{folder}\0{one}") for one in forms for folder in every]))

    # --- receipts ---------------------------------------------------------------------------------------------------

    def put(self, id: str, receipt: dict[str, Any], digests: Iterable[str] = (), time: int = 0) -> None:
        """Keep a receipt, in the place of the one that has this id, and the digests of what it is about. When this returns,
        no writer of any process lets them pass."""
        rows = [{"digest": one, "receipt": id} for one in dict.fromkeys(digests)]
        key = self._key if rows else b""

        def work(db: apsw.Connection) -> None:
            owners = self._owners(db, [row["digest"] for row in rows])
            others = [owner for owner in owners.values() if owner != id]
            more = len(rows) - len(owners) + len(others)
            self._put(db, id, {**receipt, **self._counted(db, id, more, key)}, time)
            self._add(db, rows, key)
            self._fewer(db, others)

        self._kept(work)
        self.show_sign()

    def _put(self, db: apsw.Connection, id: str, receipt: dict[str, Any], time: int = 0) -> None:
        import json

        row = {"id": id, "time": time, "receipt": json.dumps(receipt, ensure_ascii=False)}
        db.execute(self._sql["put_receipt"], row).fetchall()

    # How many digests a receipt has stands in it, and by what key they were made: `doctor` misses those that are gone.

    def _owners(self, db: apsw.Connection, digests: list[str]) -> dict[str, str]:
        """Which receipts have these digests."""
        return dict(self._asked(db, "purged_rows", digests=_json(digests))) if digests else {}

    def _asked(self, db: apsw.Connection, statement: str, **values: Any) -> list[Any]:
        return db.execute(self._sql[statement], values).fetchall()

    def _counted(self, db: apsw.Connection, id: str, more: int, key: bytes) -> dict[str, Any]:
        """What a receipt says of its digests, with so many more of this key's."""
        before = next(iter(self._stored(db, id)), {})
        count = before["digests"] if "digests" in before else dict(self._asked(db, "purged_counts")).get(id, 0)
        mark = _mark_of(key) if key else before.get("made_with")
        return {"digests": count + more, **({"made_with": mark} if mark else {})}

    def _fewer(self, db: apsw.Connection, receipts: list[str]) -> None:
        """Each of these receipts has one digest less, for each time that it is named."""
        for id in dict.fromkeys(receipts):
            for told in self._stored(db, id):
                if "digests" in told:
                    self._put(db, id, {**told, "digests": told["digests"] - receipts.count(id)})

    def _stored(self, db: apsw.Connection, id: str) -> list[dict[str, Any]]:
        from holdfast.ledger.receipts import read

        return [read(*row) for row in self._asked(db, "receipts", id=id, last=None, most=-1)]

    def counts(self) -> dict[str, int]:
        """How many digests there are of each purge."""
        return dict(self._rows("purged_counts", {}))

    def _add(self, db: apsw.Connection, rows: list[dict[str, str]], key: bytes) -> None:
        """Digests; the key they were made with stands beside them, or they are worth nothing."""
        if rows:
            db.execute(self._sql["add_key"], {"name": "purged", "value": key}).fetchall()
            if db.execute(self._sql["key"], {"name": "purged"}).fetchall() != [(key,)]:
                raise Busy("the ledger was replaced by another meanwhile", "Try again")
            db.executemany(self._sql["add_purged"], rows).fetchall()

    def _kept(self, work: Callable[[apsw.Connection], None]) -> None:
        try:
            self._write(work, True)
        except Busy:
            self._key = b""
            raise

    def receipts(self, id: str | None = None, last: str | None = None, most: int = -1) -> list[dict[str, Any]]:
        """The receipts, newest first, so many behind that of the `last` id; or the one of this id. One that cannot be read is
        told as `damaged`."""
        from holdfast.ledger.receipts import read

        return [read(*row) for row in self._rows("receipts", {"id": id, "last": last, "most": most})]

    def unfinished(self) -> list[dict[str, Any]]:
        """Those of purges that have something left to do."""
        every = self.receipts() if self.any() else []
        return [one for one in every if one["state"] not in ("done", "damaged") and not one.get("again")]

    def show_sign(self, rejected: bool = False) -> None:
        """Say in the home that something was purged, or rejected; on disk before anything is removed."""
        from holdfast.ledger.review_key import flush_folder

        sign = self._rejected if rejected else self._sign
        if os.path.exists(sign):
            return
        try:
            os.close(os.open(sign, _SIGN_FLAGS, 0o600))
            flush_folder(os.path.dirname(sign))
        except OSError as error:
            raise from_os(error, f"cannot write {sign}") from error


def _mark_of(key: bytes) -> str:
    """Tells a key from others, and nothing about it."""
    return keyed_digest(b"key", key)


def _whole(text: str) -> list[str]:
    """A text, whatever stands around it; nothing if it is so short that it is said by chance."""
    return [one for one in (bare(folded(text)),) if len(one) >= TEXT_LEAST]


def _lines(text: str) -> list[str]:
    """The same for its lines."""
    return [one for line in text.split("\n") if len(one := bare(folded(line))) >= LINE_LEAST]


def is_rejection(digest: str) -> bool:
    """Whether a digest is of a text that a person rejected."""
    return digest.startswith(_REJECT)


def _json(digests: list[str]) -> str:
    import json

    return json.dumps(digests)
