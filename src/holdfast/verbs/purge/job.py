"""One purge in progress: reject the texts, remove what was derived from them, verify every byte, and write the receipt."""

from __future__ import annotations

import time

from holdfast.base import dates
from holdfast.base.ids import new_id
from holdfast.errors import Busy, HoldfastError
from holdfast.index import tokenizer
from holdfast.ledger.file_sources import digest_path
from holdfast.ledger.purges import MIN_LINE_CHARS, fold_text, long_lines
from holdfast.models import Receipt
from holdfast.verbs import render
from holdfast.verbs.purge import receipts
from holdfast.verbs.purge.patterns import MIN_LINE, Patterns
from holdfast.verbs.purge.receipts import ReceiptMask
from holdfast.verbs.purge.verify_files import kind_of, open_verifier

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from holdfast.context.caller import Context
    from holdfast.models import Scope

_ENCODINGS = "UTF-8, UTF-16, base64, hexadecimal and JSON"
_MAX_PATHS_NAMED = 20
_MAX_SESSIONS_NAMED = 10


class PurgeJob:
    """Collects what one purge removes and finds. Its callers remove the files; the job does everything that all purges share.

    The order is always: refuse, remove, scrub, verify, finish.
    """

    def __init__(
        self, context: Context, *, kind: str, what: str, key: str = "", scope: Scope | None = None, retry: str = "",
        folders: Iterable[str] = (),
    ) -> None:  # fmt: skip
        self.context, self.what, self.key, self.scope = context, what, key, scope
        self.kind = kind  # note, turns (a note and the turns that say it), session, text
        # The folders of the scopes where the text is refused from now on. A person's purge refuses it everywhere (None): an
        # agent decides for its own scopes only, and what others write is not its to forbid.
        self.folders: tuple[str, ...] | None = None if context.origin == "user" else tuple(dict.fromkeys(folders))
        # What the receipt may tell: an agent with a token learns nothing about scopes that it does not reach.
        self._told_folders = receipts.folders_to_tell(context)
        self.retry = retry  # the command line that purges it again, where that needs no word of the text
        self.id = new_id(int(dates.clock() * 1000))
        self.marks: list[str] = []  # digests by which a later purge of the same thing is recognised
        self.note_marks: list[str] = []  # represent the note until the purge is done: its key may not be kept
        self.texts: dict[str, None] = {}  # texts that must be deleted
        self.ids: list[str] = []  # the ids under which uses of the note were counted
        self.vectors: list[bytes] = []
        self.removed: list[str] = []
        self.index_rows = self.usage_rows = self.turns = 0
        self.checks: list[str] = []
        self.beyond_reach: list[str] = []
        self.pending: list[tuple[str, str]] = []  # a path in the home or "", and what is left to do about it
        self.within_lines = False  # whether the text is purged wherever it occurs within a line
        self._also_said_by: list[str] = []
        self._shown: list[str] = []
        self._shown_sessions: list[str] = []
        self._verifier = open_verifier(context)
        self._earlier_receipts: set[str] = set()  # of unfinished purges of the same thing
        self._allowed: set[str] = set()  # folded lines that other notes say too: they may be stored again
        self._recorded: dict[str, None] = {}  # digests
        self._foreign_files: list[str] = []  # files in the home that are not ours and contain it
        self._unread_files: list[str] = []
        self._deadline = time.monotonic() + context.config.lock_seconds

    # --- keep it from being stored again ----------------------------------------------------------------------------

    def cover(self, folder: str) -> bool:
        """Add a folder to those where the text is refused; return whether it is new: then refuse the text again for it."""
        if self.folders is None or folder in self.folders:
            return False
        self.folders = (*self.folders, folder)
        return True

    def _is_covered(self, path: str) -> bool:
        """Return whether a file is in a scope where the text is refused."""
        return self.folders is None or any(path.startswith(f"shelf/{folder}/") for folder in self.folders)

    def allow_shared_lines(self, own_paths: Iterable[str]) -> None:
        """Find the lines that other notes and files of these scopes say too: writers must not be refused for them."""
        patterns, own = self._verifier.make_patterns(self.texts, []), set(own_paths)
        paths = [path for path in self._list_prose() if path not in own]
        self._allowed |= self._lines_said_in(self._verifier.scan(paths, patterns).matches)

    def allow_shared_turns(self, turns: Iterable[str]) -> None:
        """Find the turns whose text a note or a file contains too, as a whole or as a line."""
        wanted = {fold_text(text) for text in turns}
        for text in self._verifier.read_texts(self._list_prose() if wanted else []):
            self._allowed |= wanted & {fold_text(text), *long_lines(text)}

    def _list_prose(self) -> list[str]:
        """Return the notes and files of the scopes where the text is refused."""
        return [path for path in self._verifier.list_files("shelf") if _is_prose(path) and self._is_covered(path)]

    def _lines_said_in(self, paths: Iterable[str]) -> set[str]:
        """Return those of the purged lines and whole texts, folded, that these files say."""
        wanted = {fold_text(text) for text in self.texts} | {line for text in self.texts for line in _long_lines(text)}
        shared: set[str] = set()
        for text in self._verifier.read_texts(paths):
            whole = fold_text(text)
            if self.within_lines:
                shared |= {line for line in wanted if line in whole}
            else:
                shared |= wanted & {*_long_lines(text), whole}
        return shared

    def refuse(self, texts: Iterable[str], *, lines: Iterable[str] = (), digests: Iterable[str] = ()) -> None:
        """Record digests of these texts and folded lines, and these ready digests, so that no process can write them again.

        They are on disk when this returns.
        """
        purges = self.context.ledger.purges
        refused = [text for text in texts if fold_text(text) not in self._allowed]
        refused_lines = [line for line in lines if line not in self._allowed]
        wanted = [*purges.digests(refused, refused_lines, folders=self.folders), *digests, *self.marks]
        self._earlier_receipts |= purges.find_receipt_ids(self.marks) - {self.id}
        new = [digest for digest in wanted if digest not in self._recorded]
        if new or not self._recorded:
            self._recorded.update(dict.fromkeys(new))
            purges.save_receipt(self.id, self._stored_form(self._make_receipt("begun")), new, int(dates.clock()))

    # --- scrub what was derived from it -----------------------------------------------------------------------------

    def scrub(self, scopes: Iterable[Scope]) -> None:
        """Scrub the ledger, listings, rendered files, index and database logs; the files are deleted already."""
        context = self.context
        count, sessions = context.ledger.sessions.count_shown(self.ids)
        if count:
            named, more = sessions[:_MAX_SESSIONS_NAMED], len(sessions) - _MAX_SESSIONS_NAMED
            self._shown.append(
                f"shown {count} times, to the sessions {', '.join(named)}{f' and {more} more' if more > 0 else ''}"
            )
            self._shown_sessions += named
        self.usage_rows += context.ledger.usage.forget(self.ids)
        self._mask_done_actions()
        self._remove_file_sources()
        for scope in scopes:
            context.sync.write_listing(scope)
        rendered, failed = render_files_again(context)
        self.checks += self._tell_paths(rendered, "rendered again: files of this machine")
        self.beyond_reach += self._tell_paths(failed, "the blocks in files of this machine")
        self._empty_logs(rewrite=True)
        self.beyond_reach += self._verifier.vacuum()

    def _mask_done_actions(self) -> None:
        """Mask records of what agents did where they repeat the text; the records themselves stay. An agent with a token
        masks only its own."""
        patterns = Patterns(self.texts)
        try:
            self.usage_rows += self.context.ledger.done.mask(
                lambda text: patterns.find_in(text.encode("utf-8", "surrogatepass")),
                agent=None if self._told_folders is None else self.context.agent,
            )
        except HoldfastError as error:
            self.pending.append(("ledger.db", error.message))

    def _remove_file_sources(self) -> None:
        """Delete the records of who wrote files that another program deleted."""
        ledger, store, files = self.context.ledger, self.context.store, dict[str, set[str]]()
        try:
            records = [one for one in ledger.file_sources.list() if self._is_covered(f"shelf/{one.scope}/")]
            for scope in {one.scope for one in records}:
                files[scope] = {digest_path(entry.name) for entry in store.tree(scope, 0).entries()}
            ledger.file_sources.remove_records([one for one in records if one.file not in files[one.scope]])
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

    # --- verify -----------------------------------------------------------------------------------------------------

    def verify(self) -> None:
        """Search all of Holdfast's files for every pattern, repeatedly until the lock timeout while a writer may be active."""
        patterns, pause = self._verifier.make_patterns(self.texts, self.vectors), 0.02
        self._verify_dictionary()
        while True:
            remaining = self._find_remaining(patterns)
            if not remaining or self.pending or time.monotonic() >= self._deadline:
                break
            time.sleep(pause)
            pause = min(pause * 2, 1.0)
            self._empty_logs()
        self.pending += remaining
        foreign = [f"{path} (not a file of Holdfast) contains it" for path in self._foreign_files]
        unread = [f"{path} could not be read back" for path in self._unread_files]
        self.beyond_reach += self._tell_paths(foreign, "files that are not Holdfast's contain it")
        self.beyond_reach += self._tell_paths(unread, "files could not be read back")
        short = sum([len(text.strip()) < MIN_LINE for text in self.texts])
        if short:
            self.checks.append(f"{short} of its texts shorter than {MIN_LINE} characters: too short to search for in bytes")

    def _verify_dictionary(self) -> None:
        terms = [term for text in self.texts for term in tokenizer.index_terms(text)]
        remaining = self.context.query(lambda: self.context.index.find_orphaned_terms(terms))
        if remaining:
            what = f"{len(remaining)} of its words are still in the index's dictionary: run `holdfast reindex`"
            self.pending.append(("index.db", what))
        else:
            self.checks.append("searched the index's dictionaries for each of its words: no word left that only this text has")

    def _find_remaining(self, patterns: Patterns) -> list[tuple[str, str]]:
        """Return our files that still contain it, each with what is left; note the other files that do."""
        rendered = render.list_rendered_files(self.context.config.home)
        self.context.index.close()
        self.context.ledger.close()
        files = self._verifier.list_files()
        matches, self._unread_files = self._verifier.scan([*files, *rendered], patterns)
        kinds = {path: "user" if path in rendered else kind_of(path) for path in matches}
        prose = [path for path in matches if kinds[path] == "user"]
        elsewhere = set().union(*[matches[path] for path in prose])  # pieces that notes and files legitimately say
        elsewhere |= self._find_in_records_of_others(patterns)
        remaining = []
        self._foreign_files = [path for path in matches if kinds[path] == "foreign"]
        for path, numbers in matches.items():
            left = {number for number in numbers - elsewhere if not self._is_shared_vector(patterns, number)}
            if kinds[path] in ("ours", "temporary") and left:
                remaining.append((path, f"{len(left)} pieces of it are still there"))
        if not remaining:
            self._report_searched(patterns, len(files), elsewhere)
        told = [path for path in prose if receipts.may_tell(path, self._told_folders)]
        said_by = [path for path in told if not _is_prose(path) or self._lines_said_in([path])]
        self._also_said_by = said_by[:_MAX_PATHS_NAMED]
        covered = [path for path in prose if _is_prose(path) and self._is_covered(path)]
        self._allow_again(self._lines_said_in(covered) - self._allowed)
        return remaining

    def _find_in_records_of_others(self, patterns: Patterns) -> set[int]:
        """Return the pieces that other agents' records say, which the purge of an agent with a token leaves alone."""
        if self._told_folders is None or self.context.agent is None:
            return set()
        texts = self.context.ledger.done.list_texts_of_others(self.context.agent)
        self.context.ledger.close()
        return set().union(*[patterns.find_in(text.encode("utf-8", "surrogatepass")) for text in texts])

    def _is_shared_vector(self, patterns: Patterns, number: int) -> bool:
        """Return whether this pattern is a slice of a vector that another text has too."""
        if number < len(patterns.pieces):
            return False
        vector = patterns.vectors[number - len(patterns.pieces)]
        return self.context.query(lambda: self.context.index.has_vector(vector))

    def _report_searched(self, patterns: Patterns, files: int, elsewhere: set[int]) -> None:
        """Record what was searched for, and what was not because other texts contain it."""
        if self._told_folders is not None:  # no number here depends on what other scopes say
            self.checks.append(f"searched for its lines as {_ENCODINGS}, except lines that other texts contain: none found")
            return
        shared = len([number for number in elsewhere if number < len(patterns.pieces)])
        if patterns.pieces:
            count, where = len(patterns.pieces) - shared, self._verifier.describe_searched(files)
            self.checks.append(f"searched {where} for {count} pieces of its lines, as {_ENCODINGS}: none found")
        if shared:
            self.checks.append(f"{shared} pieces that other texts contain too: not searched for in files derived from those")
        if self.vectors:
            self.checks.append(self._verifier.describe_vectors(self.vectors))

    def _tell_paths(self, lines: list[str], summary: str) -> list[str]:
        """Return lines of the receipt that name files anywhere; for an agent with a token, one line without their names."""
        return lines if self._told_folders is None or not lines else [summary]

    def _allow_again(self, lines: set[str]) -> None:
        """Drop the digests of lines that other notes turn out to contain."""
        if lines:
            self._allowed |= lines
            purges = self.context.ledger.purges
            purges.delete_digests(purges.digests((), lines, folders=self.folders))

    # --- the receipt ------------------------------------------------------------------------------------------------

    def finish(self, tracked: Iterable[str]) -> Receipt:
        """Store the receipt, masked, and return it as it is; `tracked` are the paths that a git history may still contain."""
        self.beyond_reach += self._verifier.find_other_copies(tracked, self._verifier.make_patterns(self.texts, []))
        if self.folders is not None:
            self.checks.append(f"rejected from now on in {', '.join(self.folders)}; other scopes may store it")
        receipt, purges = self._make_receipt("pending" if self.pending else "done"), self.context.ledger.purges
        purges.save_receipt(self.id, self._stored_form(receipt))
        for id in sorted(self._earlier_receipts):
            for earlier in purges.list_receipts(id):
                if earlier["state"] != "done":
                    pending = [f"purged again: see receipt {self.id}"]
                    purges.save_receipt(earlier["id"], {**earlier, "again": self.id, "pending": pending})
        return receipt

    def _make_receipt(self, state: str) -> Receipt:
        pending = dict.fromkeys([f"{path}: {why}" if path else why for path, why in self.pending])
        return Receipt(
            key=self.key, scope=self.scope, deleted=bool(self.removed or self.turns), removed=tuple(self.removed),
            index_rows=self.index_rows, usage_rows=self.usage_rows, checks=tuple(self.checks),
            beyond_reach=tuple(dict.fromkeys([*self._verifier.unreachable, *self.beyond_reach])), time=dates.now(),
            id=self.id, what=self.what, state=state, pending=tuple(pending), turns=self.turns,
            also_said_by=tuple(self._also_said_by), told=tuple(self._shown),
        )  # fmt: skip

    def _stored_form(self, receipt: Receipt) -> dict[str, Any]:
        """Return the receipt without a word of the text (a key may be made of its first words), with what finishing needs."""
        removed = [path.partition(" (")[0] for path in self.removed]
        pending = [path for path, _ in self.pending if path]
        mask = ReceiptMask(
            kind=self.kind, key=self.key, ids=self.ids, texts=self.texts, sessions=self._shown_sessions,
            paths=[*removed, *self._also_said_by, *pending, *self._foreign_files, *self._unread_files],
            fixed_lines=self._verifier.unreachable,
        )  # fmt: skip
        left = [("" if mask.hides(path) else path, mask.mask_line(why)) for path, why in dict.fromkeys(self.pending)]
        more: dict[str, Any] = {"named": self.note_marks} if self.note_marks and receipt.state != "done" else {}
        more |= {"folders": list(self.folders)} if self.folders is not None else {}
        more |= {"agent": self.context.agent} if self._told_folders is not None else {}
        return {**mask.mask_receipt(receipt).as_dict(), "kind": self.kind, "left": left, "retry": self.retry, **more}


def render_files_again(context: Context) -> tuple[list[str], list[str]]:
    """Render the files that show a briefing again: check lines for those that changed, and paths where the text may remain."""
    written, failed = render.render_all(context)
    return [f"rendered again: {path}" for path in written], [f"the block in {path}" for path in failed]


def _is_prose(path: str) -> bool:
    """Return whether this is a note or a file of a tree, also in the trash; transcripts are not."""
    return kind_of(path) == "user" and not path.endswith(".jsonl")


def _long_lines(text: str) -> set[str]:
    return {line for raw in text.split("\n") if len(line := fold_text(raw)) >= MIN_LINE}


def refusable_lines(texts: Iterable[str]) -> list[str]:
    """Return the lines of these texts, folded, that are long enough to be refused by themselves."""
    return [line for text in texts for line in long_lines(text) if len(line) >= MIN_LINE_CHARS]
