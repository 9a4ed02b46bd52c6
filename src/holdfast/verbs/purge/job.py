"""One purge under way: what must not come back, what was removed, and what is left when everything has been read back."""

from __future__ import annotations

import time

from holdfast.base import dates
from holdfast.base.ids import new_id
from holdfast.errors import Busy, HoldfastError
from holdfast.index import purge_check, tokenizer
from holdfast.ledger.purges import LINE_LEAST, folded, lines_of
from holdfast.models import Receipt
from holdfast.verbs import render
from holdfast.verbs.purge import receipt_masking, verify_files
from holdfast.verbs.purge.patterns import LEAST, Traces

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from holdfast.context.caller import Context
    from holdfast.models import Scope
    from holdfast.verbs.purge.patterns import Traces

WAYS = "UTF-8, UTF-16, base64, hexadecimal and JSON"
_MOST_NAMED = 20
_TOLD_SESSIONS = 10


class PurgeJob:
    """What is being purged. The story is told by those who use it: refuse, remove, scrub, check, and the receipt."""

    def __init__(
        self, context: Context, kind: str, what: str, key: str = "", scope: Scope | None = None, retry: str = ""
    ) -> None:
        self.context, self.what, self.key, self.scope = context, what, key, scope
        self._whole = verify_files.whole(context)  # all that is read back
        self.kind = kind  # note, turns (a note with what sessions said of it), session, text
        self.retry = retry  # the words that purge it again, where that can be said without it
        self.marks: list[str] = []  # digests that tell one purge of a thing from the next
        self.named: list[str] = []  # what stands for the note until this is over: its key may not be kept
        self._earlier: set[str] = set()  # receipts of purges of the same thing
        self.id = new_id(int(dates.clock() * 1000))
        self.texts: dict[str, None] = {}  # what must be gone
        self.ids: list[str] = []  # what its uses were counted under
        self.vectors: list[bytes] = []
        self.removed: list[str] = []
        self.index_rows = self.usage_rows = self.turns = 0
        self.checks: list[str] = []
        self.also: list[str] = []
        self.told: list[str] = []
        self.beyond: list[str] = []
        self.pending: list[tuple[str, str]] = []  # a file of the home, or nothing, and what is left to do about it
        self.anywhere = False  # whether it is meant wherever it stands within a line
        self._spared: set[str] = set()  # lines that others say too: they may be said again
        self._recorded: dict[str, None] = {}
        self._beside: list[str] = []
        self._unread: list[str] = []
        self._told_to: list[str] = []
        self._deadline = time.monotonic() + context.config.lock_seconds

    # --- what must not come back ------------------------------------------------------------------------------------

    def spare(self, mine: Iterable[str]) -> None:
        """Find out which lines other notes and files say too, before anybody is refused for them."""
        traces, own = self._whole.traced(self.texts, []), set(mine)
        paths = [path for path in self._whole.files("shelf") if path not in own and _is_prose(path)]
        found, _ = self._whole.scan(paths, traces)
        self._spared |= self._lines_in(found)

    def _lines_in(self, paths: Iterable[str]) -> set[str]:
        """Those of our lines, and whole texts, that these files say."""
        wanted = {folded(text) for text in self.texts} | {line for text in self.texts for line in _lines(text)}
        said: set[str] = set()
        for text in self._whole.texts(paths):
            whole = folded(text)
            said |= {one for one in wanted if one in whole} if self.anywhere else wanted & {*_lines(text), whole}
        return said

    def spare_said(self, turns: Iterable[str]) -> None:
        """Find out which of these turns a note or a file says too, as a whole or as a line."""
        wanted = {folded(text) for text in turns}
        prose = [path for path in self._whole.files("shelf") if _is_prose(path)] if wanted else []
        for text in self._whole.texts(prose):
            self._spared |= wanted & {folded(text), *lines_of(text)}

    def refuse(self, texts: Iterable[str], lines: Iterable[str] = (), more: Iterable[str] = ()) -> None:
        """From now on nobody can write these; on disk when this returns. `more` are digests made already."""
        purges = self.context.ledger.purges
        whole = [text for text in texts if folded(text) not in self._spared]
        wanted = [*purges.digests(whole, [line for line in lines if line not in self._spared]), *more, *self.marks]
        self._earlier |= purges.receipts_of(self.marks) - {self.id}
        fresh = [digest for digest in wanted if digest not in self._recorded]
        if fresh or not self._recorded:
            self._recorded.update(dict.fromkeys(fresh))
            purges.put(self.id, self._kept(self.receipt("begun")), fresh, int(dates.clock()))

    # --- scrubbing what was derived -----------------------------------------------------------------------------------

    def scrub(self, places: Iterable[Scope], told_of: Callable[[str], str]) -> None:
        """Rows, logs, listings and rendered blocks. The files are gone already."""
        context = self.context
        count, sessions = context.ledger.briefed_to(self.ids)
        if count:
            more = f" and {len(sessions) - _TOLD_SESSIONS} more" if len(sessions) > _TOLD_SESSIONS else ""
            self.told.append(f"told {count} times, to the sessions {', '.join(sessions[:_TOLD_SESSIONS])}{more}")
            self._told_to += sessions[:_TOLD_SESSIONS]
        self.usage_rows += context.ledger.forget(self.ids)
        self._unsay_deeds()
        for place in places:
            context.sync.listing(place)
        written, failed = rendered_anew(context, told_of)
        self.checks += written
        self.beyond += failed
        self._empty_logs(rewrite=True)
        self.beyond += self._whole.swept()

    def _unsay_deeds(self) -> None:
        """What agents have done stays done, but by no name that says this."""
        traces = Traces(self.texts)
        try:
            self.usage_rows += self.context.ledger.done.unsay(lambda said: traces.within(said.encode("utf-8", "surrogatepass")))
        except HoldfastError as error:
            self.pending.append(("ledger.db", error.message))

    def _empty_logs(self, rewrite: bool = False) -> None:
        try:
            self.context.query(lambda: self.context.index.scrub(rewrite=rewrite))
        except Busy as error:
            self.pending.append(("index.db", error.message))
        try:
            self.context.ledger.scrub()
        except Busy as error:
            self.pending.append(("ledger.db", error.message))

    # --- reading everything back ----------------------------------------------------------------------------------------

    def check(self) -> None:
        """Look for every trace in every byte that is ours; again for as long as a writer may be under way."""
        traces, pause = self._whole.traced(self.texts, self.vectors), 0.02
        self._check_words()
        while True:
            left = self._left(traces)
            if not left or self.pending or time.monotonic() >= self._deadline:
                break
            time.sleep(pause)
            pause = min(pause * 2, 1.0)
            self._empty_logs()
        self.pending += left
        self.beyond += [f"{path}, which is not ours, holds it" for path in self._beside]
        self.beyond += [f"{path} could not be read back" for path in self._unread]
        short = sum([len(text.strip()) < LEAST for text in self.texts])
        if short:
            self.checks.append(f"{short} of its texts shorter than {LEAST} characters: too short to be looked for in bytes")

    def _check_words(self) -> None:
        terms = [term for text in self.texts for term in tokenizer.kept(text)]
        found = self.context.query(lambda: purge_check.lingering(self.context.index, terms))
        if found:
            self.pending.append(("index.db", f"{len(found)} of its words are still in the dictionary; `holdfast reindex`"))
        else:
            self.checks.append("the index's dictionaries asked for each of its words: none is there that nothing else says")

    def _left(self, traces: Traces) -> list[tuple[str, str]]:
        shown = render.paths(self.context.config.home)
        self.context.index.close()
        self.context.ledger.close()
        every = self._whole.files()
        found, unread = self._whole.scan([*every, *shown], traces)
        prose = {path: numbers for path, numbers in found.items() if path in shown or verify_files.kind_of(path) == "truth"}
        elsewhere = set().union(*prose.values())
        left, self._beside, self._unread = [], [], unread
        for path, numbers in found.items():
            kind = "truth" if path in shown else verify_files.kind_of(path)
            mine = {number for number in numbers - elsewhere if not self._is_anothers(traces, number)}
            if kind in ("ours", "temp") and mine:
                left.append((path, f"{len(mine)} pieces of it still stand there"))
            elif kind == "beside":
                self._beside.append(path)
        if not left:
            self._tell(traces, len(every), elsewhere)
        self.also = [path for path in prose if not _is_prose(path) or self._lines_in([path])][:_MOST_NAMED]
        self._let_pass(self._lines_in([path for path in prose if _is_prose(path)]) - self._spared)
        return left

    def _is_anothers(self, traces: Traces, number: int) -> bool:
        """Whether these are the numbers of a vector that another text has too."""
        if number < len(traces.pieces):
            return False
        vector = traces.vectors[number - len(traces.pieces)]
        return self.context.query(lambda: purge_check.has_vector(self.context.index, vector))

    def _tell(self, traces: Traces, files: int, elsewhere: set[int]) -> None:
        """What was looked for and where it legitimately stands."""
        pieces = len(traces.pieces) - len([number for number in elsewhere if number < len(traces.pieces)])
        if traces.pieces:
            where = self._whole.looked_in(files)
            self.checks.append(f"{pieces} pieces of its lines looked for in {where}, as {WAYS}: none found")
        if len(traces.pieces) > pieces:
            shared = len(traces.pieces) - pieces
            self.checks.append(f"{shared} pieces that other texts have too: not looked for in what is made from those")
        if self.vectors:
            self.checks.append(self._whole.told_of_vectors(self.vectors))

    def _let_pass(self, lines: set[str]) -> None:
        """What others say too may be said again."""
        if lines:
            self._spared |= lines
            self.context.ledger.purges.drop(self.context.ledger.purges.digests((), lines))

    # --- the receipt ------------------------------------------------------------------------------------------------------

    def receipt(self, state: str) -> Receipt:
        pending = dict.fromkeys([f"{path}: {why}" if path else why for path, why in self.pending])
        beyond = dict.fromkeys([*self._whole.beyond, *self.beyond])
        return Receipt(
            self.key, self.scope, bool(self.removed or self.turns), tuple(self.removed), self.index_rows, self.usage_rows,
            tuple(self.checks), tuple(beyond), dates.now(), self.id, self.what, state,
            tuple(pending), self.turns, tuple(self.also), tuple(self.told),
        )  # fmt: skip

    def done(self, tracked: Iterable[str]) -> Receipt:
        """Keep the receipt, without a word of what was purged: a key may be made of its first words."""
        self.beyond += self._whole.held_elsewhere(tracked, self._whole.traced(self.texts, []))
        receipt, purges = self.receipt("pending" if self.pending else "done"), self.context.ledger.purges
        purges.put(self.id, self._kept(receipt))
        for told in [told for id in sorted(self._earlier) for told in purges.receipts(id) if told["state"] != "done"]:
            purges.put(told["id"], {**told, "again": self.id, "pending": [f"purged again: see receipt {self.id}"]})
        return receipt

    def _kept(self, receipt: Receipt) -> dict[str, Any]:
        """The receipt as it is kept, with what is needed to finish it."""
        paths = [*[path.partition(" (")[0] for path in self.removed], *self.also, *[path for path, _ in self.pending if path]]
        mask = receipt_masking.Mask(
            self.kind, self.key, self.ids, self.texts, [*paths, *self._beside, *self._unread], self._told_to
        )
        left = [(path if mask.path(path) == path else "", mask.line(why)) for path, why in dict.fromkeys(self.pending)]
        named = {"named": self.named} if self.named and receipt.state != "done" else {}
        return {**mask.receipt(receipt).as_dict(), "kind": self.kind, "left": left, "retry": self.retry, **named}


def rendered_anew(context: Context, told_of: Callable[[str], str]) -> tuple[list[str], list[str]]:
    """The files that show a briefing no longer show what is gone: which were written, and where it may still stand."""
    if not render.anywhere(context.config.home):
        return [], []
    written, failed = render.render_anew(context.config, told_of)
    return [f"rendered anew: {path}" for path in written], [f"the block in {one}" for one in failed]


def _is_prose(path: str) -> bool:
    """Whether this is a note or a file of the tree, here or in the trash; what was said in sessions is kept otherwise."""
    return verify_files.kind_of(path) == "truth" and not path.endswith(".jsonl")


def _lines(text: str) -> set[str]:
    return {line for raw in text.split("\n") if len(line := folded(raw)) >= LEAST}


def long_lines(texts: Iterable[str]) -> list[str]:
    """The lines of some texts that are worth being refused for."""
    return [line for text in texts for line in lines_of(text) if len(line) >= LINE_LEAST]
