"""Records of purged texts, so that they do not come back: receipts and keyed digests (docs/adr/0019), never a text.

Texts that a person rejected are recorded the same way, by digests of another kind: storing one again is not refused, but it is
quarantined.

Flags (`PurgeFlags`) say whether there is anything to look up at all: in a home in which nothing was ever purged, a write only
checks for one file.
"""

from __future__ import annotations

from holdfast.base.ids import keyed_digest
from holdfast.base.lazy_re import pattern
from holdfast.errors import Busy, Purged, Template, command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from holdfast.ledger.interface import LedgerDatabase, PurgeFlags, Transaction

MIN_TEXT_CHARS = 12  # characters of a whole text,
MIN_LINE_CHARS = 24  # of a line,
MIN_WORD_CHARS = 12  # and of a word that get a digest: shorter ones also occur in innocent texts
_KEY_NAME = "purged"
_KEY_BYTES = 32
_DIGESTS_PER_QUERY = 20_000
_WORD = pattern(r"[^\s\"'`,;()<>\[\]{}]{12,}")
_LIST_MARK = pattern(r"\A(?:\d{1,3}[.)]|[a-z]\)|x\])\s+")
_PUNCTUATION = " .,;:!?…·•*_-–—+>#|~=\"'`´“”„‘’«»()[]{}<>/\\"
_MAX_LABEL_CHARS = 40  # characters before a colon that are taken for a label of the line
# Kinds of digests, by their first letter. A whole text or line has none.
_WORD_KIND, _NOTE, _TURN, _TARGET = "w", "n", "t", "x"
_LOOSE = "l"  # of a line, whatever punctuation is around it
_REJECTED = "r"
_SCOPED = "s"  # of a text, line or word that is refused in one folder only


def fold_text(text: str) -> str:
    """Return a text for comparison, in which look-alike characters, case and white space do not matter."""
    if not text.isascii():
        import unicodedata

        text = unicodedata.normalize("NFKC", text)
    return " ".join(text.casefold().split())


def long_lines(text: str) -> list[str]:
    """Return the folded lines of a text that are long enough for a digest."""
    lines = [fold_text(line) for line in text.split("\n")]
    return [line for line in lines if len(line) >= MIN_LINE_CHARS]


def long_words(text: str) -> list[str]:
    """Return the long words of a text, folded: each as it is, and the part after its `=` or `:`."""
    found: dict[str, None] = {}
    for word in _WORD.findall(fold_text(text)):
        bare = word.rstrip(".!?:")
        found.update(dict.fromkeys([word, bare, bare.rpartition("=")[2], bare.rpartition(":")[2]]))
    return [word for word in found if len(word) >= MIN_WORD_CHARS]


def _forms(texts: Iterable[str], lines: Iterable[str], words: Iterable[str]) -> list[tuple[str, str]]:
    """Return what is compared of whole texts, folded lines and folded words, each with its kind of digest."""
    whole = [*[form for text in texts if len(form := fold_text(text)) >= MIN_TEXT_CHARS], *lines]
    forms = [*[("", form) for form in whole], *[(_WORD_KIND, word) for word in words]]
    return forms + [(_LOOSE, loose) for form in whole for loose in _loose_forms(form)]


def is_rejection(digest: str) -> bool:
    """Return whether a digest is of a text that a person rejected."""
    return digest.startswith(_REJECTED)


def _strip_marks(line: str) -> str:
    """Return a folded line without list marks, quotation marks and punctuation around it."""
    while True:
        stripped = _LIST_MARK.sub("", line.strip(_PUNCTUATION))
        if stripped == line:
            return line
        line = stripped


def _loose_forms(line: str) -> list[str]:
    """Return the line without punctuation around it, and without a label before it, if these are long enough."""
    bare = _strip_marks(line)
    label, colon, rest = bare.partition(": ")
    unlabelled = _strip_marks(rest) if colon and len(label) <= _MAX_LABEL_CHARS else ""
    return [form for form, least in ((bare, MIN_TEXT_CHARS), (unlabelled, MIN_LINE_CHARS)) if len(form) >= least]


def _whole_form(text: str) -> list[str]:
    """Return a text without punctuation around it; an empty list if it is so short that it may occur by chance."""
    form = _strip_marks(fold_text(text))
    return [form] if len(form) >= MIN_TEXT_CHARS else []


def _line_forms(text: str) -> list[str]:
    """Return the lines of a text without punctuation around them, if they are long enough."""
    return [form for line in text.split("\n") if len(form := _strip_marks(fold_text(line))) >= MIN_LINE_CHARS]


def _key_id(key: bytes) -> str:
    """Return a name for a key that reveals nothing about it."""
    return keyed_digest(b"key", key)


def _to_json(digests: list[str]) -> str:
    import json

    return json.dumps(digests)


class Purges:
    """The receipts and digests of one ledger."""

    def __init__(self, database: LedgerDatabase, flags: PurgeFlags) -> None:
        self._database, self._flags = database, flags
        self._key, self._key_of = b"", 0  # with the identity of the database it was read from: another one has another key

    def has_purges(self) -> bool:
        """Return whether anything was ever purged here."""
        return self._flags.any_purged()

    def has_rejections(self) -> bool:
        """Return whether anything was ever rejected here."""
        return self._flags.any_rejected()

    def set_flag(self, rejected: bool = False) -> None:
        """Record durably that something was purged, or rejected, before anything is removed."""
        if rejected:
            self._flags.set_rejected()
        else:
            self._flags.set_purged()

    # --- digests ----------------------------------------------------------------------------------------------------

    def digests(
        self, texts: Iterable[str], lines: Iterable[str] = (), words: Iterable[str] = (), folders: Iterable[str] | None = None
    ) -> list[str]:
        """Return the digests of whole texts, of folded lines, and of folded words: those by which they are refused everywhere,
        or only in these folders of scopes."""
        forms = _forms(texts, lines, words)
        return self._digest_forms(forms) if folders is None else self._digest_forms_in(forms, folders)

    def _digest_forms(self, forms: list[tuple[str, str]]) -> list[str]:
        return list(dict.fromkeys([self._digest(kind, form) for kind, form in forms]))

    def _digest_forms_in(self, forms: list[tuple[str, str]], folders: Iterable[str]) -> list[str]:
        named = list(folders)
        scoped = [self._digest(_SCOPED, f"{folder}\0{kind}\0{form}") for kind, form in forms for folder in named]
        return list(dict.fromkeys(scoped))

    def digest_note(self, path: str, text: str) -> str:
        """Return the digest of a text under one key: it stays refused there, although other notes may contain the same text."""
        return self._digest(_NOTE, f"{path}\0{fold_text(text)}")

    def digest_turn(self, session: str, id: str, text: str) -> str:
        """Return the digest of one turn of one session, however short it is."""
        return self._digest(_TURN, f"{session}\0{id}\0{fold_text(text)}")

    def digest_target(self, text: str) -> str:
        """Return a digest that recognises the next purge of the same thing. No text is refused for it."""
        return self._digest(_TARGET, fold_text(text))

    def _digest(self, kind: str, text: str) -> str:
        return kind + keyed_digest(text.encode("utf-8", "surrogatepass"), self._load_key())

    def _load_key(self) -> bytes:
        identity = self._database.identity()
        if self._key and identity and identity == self._key_of:
            return self._key
        key = self._find_key()
        if not key:  # a damaged key is replaced: digests made with it are not recognised any more, and `doctor` says so
            import os

            new = os.urandom(_KEY_BYTES)
            self._database.write(lambda transaction: transaction.run("add_key", name=_KEY_NAME, value=new), checkpoint=True)
            key = self._find_key()
        if not key:
            raise Busy("the ledger was replaced during the request", "Try again")
        self._key, self._key_of = key, self._database.identity()
        return self._key

    def _find_key(self) -> bytes:
        """Return the stored key; nothing if there is none of the right length."""
        keys = [bytes(value) for (value,) in self._database.read("key", name=_KEY_NAME)]
        return next((key for key in keys if len(key) == _KEY_BYTES), b"")

    def key_id(self) -> str:
        """Return the name under which receipts refer to the key; "" if there is no usable one."""
        key = self._find_key()
        return _key_id(key) if key else ""

    # --- purged texts -------------------------------------------------------------------------------------------------

    def check_new_texts(self, texts: Iterable[tuple[str, str]]) -> None:
        """Raise Purged if a text contains what was purged; the error names the receipt, never the words.

        Each text comes with its place: the path of the note that would contain it, or the folder of its scope."""
        for place, text in texts:
            receipt = self.find_receipt(text, place=place)
            if receipt:
                shown, again = command("receipts {}", receipt), command("store TEXT --again")
                fix = Template(shown, " shows it; a person can allow it again: ", again)
                raise Purged(f"this text was purged; see receipt {receipt}", fix)

    def check_stored_texts(self, texts: Iterable[str], place: str) -> None:
        """Raise Purged if a text of a stored note or file was purged; a purge that has not ended does not count."""
        for text in texts:
            receipt = self.find_receipt(text, ended=True, place=place)
            if receipt:
                fix = Template("Purge it again: ", command("purge {}", "KEY"))
                raise Purged(f"this text was purged but is present again; see receipt {receipt}", fix)

    def find_receipt(self, text: str, ended: bool = False, place: str = "") -> str:
        """Return the receipt of a purge that this text would undo, or ""; with `ended`, only of a purge that has ended.

        `place` is the path of the note with the text, or the folder of its scope: a purge may cover only some scopes."""
        return next(iter(self._find_receipts(text, ended, place)), "")

    def is_purged_by(self, receipt: str, text: str, places: Iterable[str] = ("",)) -> bool:
        """Return whether the purge of this receipt covers this text in one of these places; other purges may cover it too."""
        return any(receipt in self._find_receipts(text, False, place) for place in places)

    def find_receipt_ids(self, digests: list[str]) -> set[str]:
        """Return the receipts that these digests belong to."""
        return set(self._find_known(digests, False).values())

    def _find_receipts(self, text: str, ended: bool, place: str) -> list[str]:
        return list(self._find_known(self._digests_at(place, text, exact=ended), ended).values())  # a stored text: exactly

    def _digests_at(self, place: str, text: str, exact: bool = False) -> list[str]:
        """Return every digest by which this text may be refused in this place; with `exact`, without other punctuation."""
        forms = _forms([text], long_lines(text), long_words(text))
        forms = [(kind, form) for kind, form in forms if not (exact and kind == _LOOSE)]
        folder, _, key = place.partition("/notes/")
        digests = self._digest_forms(forms) + (self._digest_forms_in(forms, [folder]) if folder else [])
        return [*digests, self.digest_note(place, text)] if key else digests

    def find_purged_turns(self, turns: list[tuple[str, str, str]], stored: bool, folder: str = "") -> dict[int, str]:
        """Return the positions of those of these turns (session, id, text) that were purged, each with its receipt.

        Of turns that are `stored` in a transcript only exactly the same ones count: a turn that repeats a purged note stays
        there unless a person asked to remove it. New turns are looked up as texts of the scope with this `folder`."""
        positions: dict[str, set[int]] = {}
        for position, (session, id, text) in enumerate(turns):
            digests = [] if stored else self._digests_at(folder, text)
            for digest in [*digests, self.digest_turn(session, id, text)]:
                positions.setdefault(digest, set()).add(position)
        known = self._find_known(list(positions), stored)
        return {position: receipt for digest, receipt in known.items() for position in positions[digest]}

    def _find_known(self, digests: list[str], ended: bool) -> dict[str, str]:
        """Return those of the digests that are stored, each with its receipt."""
        known: dict[str, str] = {}
        for start in range(0, len(digests), _DIGESTS_PER_QUERY):
            batch = _to_json(digests[start : start + _DIGESTS_PER_QUERY])
            known.update(self._database.read("purged_known", digests=batch, ended=ended))
        return known

    def allow_again(self, path: str, text: str, time: str) -> list[str]:
        """Delete the digests of a text that a person wants to store again; record the time in its receipts and return their
        ids."""
        wanted = self._digests_at(path, text)
        ids = sorted(set(self._find_known(wanted, False).values()))
        if ids:
            self.delete_digests(wanted)
            for id in ids:
                for receipt in self.list_receipts(id):
                    self.save_receipt(id, {**receipt, "taken_back": time})
        return ids

    def delete_digests(self, digests: Iterable[str]) -> None:
        """Delete digests."""
        deleted = list(digests)

        def delete_rows(transaction: Transaction) -> None:
            owners = self._find_owners(transaction, deleted)
            transaction.run_many("drop_purged", [{"digest": digest} for digest in deleted])
            self._decrement_digests(transaction, list(owners.values()))

        self._database.write(delete_rows, checkpoint=True)

    # --- rejected texts -----------------------------------------------------------------------------------------------

    def reject(self, folder: str, texts: Iterable[str], id: str) -> None:
        """Record that a person rejected the note with this id and these texts, for callers that can see the folder.

        Each text is recognised as a whole."""
        forms = [form for text in texts for form in _whole_form(text)]
        rows = [{"digest": digest, "receipt": id} for digest in self._rejection_digests([folder], forms)]
        if rows:
            key = self._key
            self.set_flag(rejected=True)  # first: without it the rows are never looked up
            self._save(lambda transaction: self._add_digests(transaction, rows, key))

    def find_rejections(self, folders: Iterable[str], text: str, old_text: str = "") -> dict[str, str]:
        """Return the digests by which this text, or a line of it that `old_text` does not have, was rejected in one of these
        folders, each with the id of the rejected note; the text as a whole comes first."""
        forms = [form for form in _whole_form(text) if form not in _whole_form(old_text)]
        forms += [form for form in _line_forms(text) if form not in _line_forms(old_text)]
        digests = self._rejection_digests(folders, forms)
        known = dict(self._database.read("purged_rows", digests=_to_json(digests))) if digests else {}
        return {digest: str(known[digest]) for digest in digests if digest in known}

    def unreject(self, folders: Iterable[str], text: str) -> None:
        """Allow a text that a person approved, in these folders."""
        if self.has_purges() or self.has_rejections():
            self.delete_digests(self._rejection_digests(folders, [*_whole_form(text), *_line_forms(text)]))

    def _rejection_digests(self, folders: Iterable[str], forms: list[str]) -> list[str]:
        named = list(folders)
        return list(dict.fromkeys([self._digest(_REJECTED, f"{folder}\0{form}") for form in forms for folder in named]))

    # --- receipts ---------------------------------------------------------------------------------------------------

    def save_receipt(self, id: str, receipt: dict[str, Any], digests: Iterable[str] = (), time: int = 0) -> None:
        """Store a receipt, replacing the one with this id, and the digests of what was purged.

        When this returns, no process stores texts with these digests."""
        rows = [{"digest": digest, "receipt": id} for digest in dict.fromkeys(digests)]
        key = self._key if rows else b""

        def write_rows(transaction: Transaction) -> None:
            owners = self._find_owners(transaction, [row["digest"] for row in rows])
            others = [owner for owner in owners.values() if owner != id]
            added = len(rows) - len(owners) + len(others)
            self._put_receipt(transaction, id, {**receipt, **self._digest_fields(transaction, id, added, key)}, time)
            self._add_digests(transaction, rows, key)
            self._decrement_digests(transaction, others)

        self._save(write_rows)
        self.set_flag()

    def list_receipts(self, id: str | None = None, last: str | None = None, most: int = -1) -> list[dict[str, Any]]:
        """Return receipts, newest first: the one with this id, or at most `most` after that of the `last` id.

        One that cannot be read has the state `damaged`."""
        from holdfast.ledger.receipts import parse_receipt

        return [parse_receipt(*row) for row in self._database.read("receipts", id=id, last=last, most=most)]

    def list_unfinished(self) -> list[dict[str, Any]]:
        """Return the receipts of purges that have something left to do."""
        receipts = self.list_receipts() if self.has_purges() else []
        return [receipt for receipt in receipts if receipt["state"] not in ("done", "damaged") and not receipt.get("again")]

    def count_digests(self) -> dict[str, int]:
        """Return how many digests each purge has."""
        return dict(self._database.read("purged_counts"))

    def _put_receipt(self, transaction: Transaction, id: str, receipt: dict[str, Any], time: int = 0) -> None:
        import json

        transaction.run("put_receipt", id=id, time=time, receipt=json.dumps(receipt, ensure_ascii=False))

    # A receipt says how many digests it has and by which key they were made, so that `doctor` notices lost ones.

    def _digest_fields(self, transaction: Transaction, id: str, added: int, key: bytes) -> dict[str, Any]:
        """Return the fields of a receipt about its digests, after `added` more are added with this key."""
        before = next(iter(self._read_receipts(transaction, id)), {})
        count = before["digests"] if "digests" in before else dict(transaction.run("purged_counts")).get(id, 0)
        key_id = _key_id(key) if key else before.get("made_with")
        return {"digests": count + added, **({"made_with": key_id} if key_id else {})}

    def _decrement_digests(self, transaction: Transaction, receipts: list[str]) -> None:
        """Reduce the digest count of each of these receipts by one, for each time that it is named."""
        for id in dict.fromkeys(receipts):
            for receipt in self._read_receipts(transaction, id):
                if "digests" in receipt:
                    self._put_receipt(transaction, id, {**receipt, "digests": receipt["digests"] - receipts.count(id)})

    def _read_receipts(self, transaction: Transaction, id: str) -> list[dict[str, Any]]:
        from holdfast.ledger.receipts import parse_receipt

        return [parse_receipt(*row) for row in transaction.run("receipts", id=id, last=None, most=-1)]

    def _find_owners(self, transaction: Transaction, digests: list[str]) -> dict[str, str]:
        """Return those of the digests that are stored, each with its receipt."""
        return dict(transaction.run("purged_rows", digests=_to_json(digests))) if digests else {}

    def _add_digests(self, transaction: Transaction, rows: list[dict[str, str]], key: bytes) -> None:
        """Add digests if they were made with the stored key: those of another key are useless."""
        if rows:
            transaction.run("add_key", name=_KEY_NAME, value=key)
            if transaction.run("key", name=_KEY_NAME) != [(key,)]:
                raise Busy("the ledger was replaced during the request", "Try again")
            transaction.run_many("add_purged", rows)

    def _save(self, work: Callable[[Transaction], None]) -> None:
        try:
            self._database.write(work, checkpoint=True)
        except Busy:
            self._key = b""
            raise
