"""The desk a caller works at: whose memory it is, and the steps that the verbs are made of."""

from __future__ import annotations

import os

from holdfast import errors
from holdfast.base import dates
from holdfast.base.dates import timestamp as utc
from holdfast.base.ids import derive_key, digest, new_id
from holdfast.context.sync import Sync
from holdfast.errors import (
    Busy,
    Disabled,
    DiskTrouble,
    HoldfastError,
    NoScope,
    NotFound,
    Refused,
    Template,
    UsageError,
    command,
    field,
    from_os,
    phrase,
)
from holdfast.formats import note_file, versions
from holdfast.formats.versions import Draft
from holdfast.index.results import FoundPassage, SearchResult
from holdfast.index.sqlite import IndexReset, SqliteIndex, by_words, read_at
from holdfast.index.tokenizer import POSTINGS
from holdfast.ledger.sqlite import SqliteLedger
from holdfast.models import SCOPES, Hit, Note, Progress, Scope, Source, Stored, parse_tags
from holdfast.safety import validate
from holdfast.store.files import Changed, FileStore

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any, TypeVar

    from holdfast.base.ids import FileId
    from holdfast.config import Config
    from holdfast.index.sqlite import SearchFilter
    from holdfast.models import TrashedNote
    from holdfast.search.hybrid import HybridSearch
    from holdfast.store.atomic import FileContent

    T = TypeVar("T")
    Tags = str | list[str] | tuple[str, ...] | set[str] | None
    When = object

_ASKED, _MOST_CLOSED = 3, 50  # times of a catalogue that others keep deleting; and closed by us during one question
_FEW_WORDS = 3  # of a question
_ATTEMPTS = 1000  # at notes that others keep changing
_NONSENSE = (TypeError, ValueError, LookupError, AttributeError)  # what a spoiled row may lead to


class Context:
    """One home's rooms, and who is asking."""

    def __init__(
        self, config: Config, project: str | None, session: str | None, agent: str | None, client: str | None,
        origin: str, cwd: str | None, progress: Progress,
    ) -> None:  # fmt: skip
        self.config = config
        self.session = validate.name(session, "session id") if session else None
        self.agent = validate.name(agent, "agent name") if agent else None
        self.client = validate.one_line(client, "client's name", 100) if client else None
        self.origin = validate.origin(origin)
        self.project_override = validate.name(project, "project id") if project is not None else None
        self._project: tuple[str, ...] | None = None
        self._recorded = self.project_override is not None  # whether the ledger knows the folder of this project
        self._sources: dict[tuple[str, tuple[str, ...]], Source] = {}
        self._hybrid_search: HybridSearch | None = None
        self._cwd, self.progress, self._named = cwd, progress, False  # whether its names were looked at
        self.store, kept_true = FileStore(config.home, config.lock_seconds), Sync
        self.index = SqliteIndex(config.home, config.lock_seconds, config.quarantine)
        self.ledger = SqliteLedger(config.home, config.lock_seconds)
        if config.store or config.store_read:
            from holdfast.postgres.backend import rooms

            self.store, self.index, self.ledger, kept_true = rooms(config, self.agent, self.origin == "user")
        self.sync = kept_true(self.store, self.index, progress, config.lock_seconds, self.purged_as, self.purged_turns)
        self._sign = "" if config.store else os.path.join(config.home, "ledger.")  # and what there is to ask it for

    @property
    def working_folder(self) -> str:
        """The folder that the caller works in."""
        return self._cwd or "."

    # --- whose memory it is --------------------------------------------------------------------------------------

    def project_ids(self) -> tuple[str, ...]:
        """The project's id, then the older ids whose notes are its notes too."""
        if self._project is None:
            from holdfast.project import resolve

            seen = resolve.find_candidates(self._cwd or ".", self.project_override, self.config.isolate_worktrees)
            remember = self.config.enabled and self.store.exists()
            project = resolve.resolve_project(seen, self.ledger, lambda id: self.store.has(f"projects/{id}"), remember=remember)
            self._project = (project.id, *project.aliases)
            self._recorded = self._recorded or (remember and self.store.has(f"projects/{project.id}"))
        return self._project

    def record_project(self) -> None:
        """After a write: let the ledger know the folder of a project that has just got its first notes."""
        if self._recorded or self._project is None or not self.store.has(f"projects/{self._project[0]}"):
            return
        from holdfast.project import resolve

        self._recorded = True
        seen = resolve.find_candidates(self._cwd or ".", None, self.config.isolate_worktrees)
        resolve.resolve_project(seen, self.ledger, lambda id: self.store.has(f"projects/{id}"))

    def ignored_marker(self) -> str:
        """The path of a marker in this folder that does not count."""
        from holdfast.project.resolve import find_candidates, find_ignored_marker

        return (
            ""
            if self.project_override
            else find_ignored_marker(find_candidates(self._cwd or ".", None, self.config.isolate_worktrees), self.ledger)
        )

    def forget_project(self) -> None:
        """Find out the project again with the next call: what the ledger says of it has changed."""
        self._project = None

    def write_marker(self) -> str:
        """Write a marker into this folder: an id that moves with it."""
        from holdfast.project.marker import write_marker

        self.forget_project()
        return write_marker(self._cwd or ".", self.ledger, utc(dates.clock()))

    def scope(self, kind: str) -> Scope:
        """The scope of that kind that is this caller's."""
        if kind not in SCOPES:
            raise UsageError(f"unknown scope {kind!r}", f"One of: {', '.join(SCOPES)}")
        if kind not in self.config.allowed_scopes:
            raise errors.Denied(
                f"this caller has no part in the scope {kind}", f"It may use: {', '.join(self.config.allowed_scopes)}"
            )
        if kind == "global":
            return Scope("global")
        id = self.project_ids()[0] if kind == "project" else self.session if kind == "session" else self.agent
        if not id:
            given = f"Give one: Memory({kind}=...), --{kind} or HOLDFAST_{kind.upper()}"
            what = f"no {kind} is known, and nothing falls into another scope"
            raise NoScope(what, Template(phrase(f"{kind} of scope", given)))
        return Scope(kind, id)

    def visible_scopes(self, kind: str | None) -> list[Scope]:
        """Where this caller may look, nearest first."""
        if kind is not None:
            first = self.scope(kind)
            return [first, *self._older()] if kind == "project" else [first]
        places = [Scope("session", self.session)] if self.session else []
        places += [Scope("project", id) for id in self.project_ids()]
        places += [Scope("agent", self.agent)] if self.agent else []
        return [place for place in (*places, Scope("global")) if place.kind in self.config.allowed_scopes]

    def visible_folders(self, kind: str | None) -> tuple[str, ...]:
        """The same, as folders of the shelf."""
        return tuple([place.folder for place in self.visible_scopes(kind)])

    def all_folders(self) -> tuple[str, ...]:
        """The folders of every scope of the home. Only a person may look there."""
        self.require_person("search every project", "recall --scope all")
        kinds = {folder: Scope.of_folder(folder).kind for folder in self.store.scopes()}
        return tuple([folder for folder, kind in kinds.items() if kind in self.config.allowed_scopes])

    def require_person(self, what: str, by: str) -> None:
        """Raise `Denied` for an agent: it has no part in the memory of other projects."""
        if self.origin != "user":
            does = phrase(f"{by} as a person", f'`holdfast {by}` in a terminal of their own, or Memory(origin="user")')
            raise errors.Denied(f"only a person may {what}", Template("A person does it: ", does))

    def scope_holding(self, scope: Scope, key: str) -> Scope:
        """Where a key of this scope lives: a project's older id may have it already."""
        if scope.kind != "project" or not self._older() or self._has(scope, key):
            return scope
        return next((old for old in self._older() if self._has(old, key)), scope)

    def scopes_holding(self, key: str, kind: str | None, has: Callable[[Scope, str], bool] | None = None) -> list[Scope]:
        """The places that have this key, all of one kind; if several kinds have, the caller must say which is meant."""
        places = [place for place in self.visible_scopes(kind) if (has or self._has)(place, key)]
        kinds = list(dict.fromkeys(place.kind for place in places))
        if len(kinds) > 1:
            raise UsageError(f"{key!r} is in several scopes: {', '.join(kinds)}", "Say which one with scope")
        return places

    def _older(self) -> list[Scope]:
        return [Scope("project", id) for id in self.project_ids()[1:]]

    def _has(self, place: Scope, key: str) -> bool:
        return self.store.stamp(place.folder, "notes", f"{key}.md") is not None

    # --- writing -------------------------------------------------------------------------------------------------

    def require_enabled(self) -> None:
        if not self.config.enabled:
            raise Disabled

    def make_draft(
        self, text: object, key: str | None, type: str | None = None, tags: Tags = None, valid_from: When = None,
        valid_to: When = None, pinned: bool | None = None, origin: str | None = None, expected: str | None = None,
        made_from: object = None, redact: bool = False, allow_secret: str | None = None, amends: bool | None = None,
        before: str = "",
    ) -> Draft:  # fmt: skip
        """The gate: what passes here may be written."""
        validate.note_properties(type, origin, expected)
        source = self._source(origin, made_from)
        text, redacted = validate.redact(validate.decode_text(text)) if redact else (text, ())
        body = validate.text(text, self.config.note_bytes, before=before, allowed=allow_secret is not None)
        allowed = validate.allow_secret(body, source.origin, allow_secret) if allow_secret is not None else None
        name = validate.key(key) if key is not None else derive_key(allowed[1] if allowed else body)
        if key is not None:
            validate.reject_secrets(name, "a key", fix="Give it another name")
        start = dates.moment(valid_from, "valid_from") if valid_from is not None else None
        end = dates.moment(valid_to, "valid_to") if valid_to is not None else None
        if end and end <= (start or utc(dates.clock())):
            fix = Template("A text is true from one day to a later one: say ", field("valid_from"), " too")
            what = Template(field("valid_to"), f" {end} is not after ", field("valid_from"), f" {start or 'now'}")
            raise UsageError(what, fix)
        kept = validate.tags(parse_tags(tags)) if tags is not None else None
        if not isinstance(pinned, bool | None):
            raise UsageError(
                Template(field("pinned"), f" must be True or False, not {pinned!r}"), "Say one of them, or leave it out"
            )
        why, gated = allowed[0] if allowed else "", allow_secret is None and not before
        return Draft(name, body, source, type, kept, start, end, pinned, expected, amends, redacted, why, gated)

    def _source(self, origin: str | None, made_from: object = None) -> Source:
        """Who is speaking, and from what; the same record for all that comes from one origin."""
        name = validate.origin(self.origin if origin is None else origin)
        self.check_caller_names()
        if made_from is not None and made_from != ():
            from holdfast.verbs import quarantine

            return quarantine.source_of(self, name, made_from, self._sources, self._cwd or ".")
        if (name, ()) not in self._sources:
            self._sources[name, ()] = Source(name, self.agent, self.client, self.session)
        return self._sources[name, ()]

    def check_caller_names(self) -> None:
        """The caller's names become names of folders and stand beside what it writes; asked once."""
        if not self._named:
            for one in filter(None, (self.agent, self.client, self.session, self.project_override)):
                validate.reject_secrets(one, "the name of an agent, client, session or project", fix="Give it another name")
            self._named = True

    def write(
        self, place: Scope, key: str, draft_for: Callable[[Note | None], Draft], again: bool = False, also: tuple[str, ...] = ()
    ) -> Stored:
        """Put the next version, however often others change the note meanwhile. Truth first, catalogue second. What a person
        wants `again` passes once it stands there; what it says `also` must not have been purged either."""
        self.sync.prepare_scope(place.folder)
        doubts: dict[str, str] = {}
        for _ in range(_ATTEMPTS):
            content = self.store.read(place, key)
            if content is None and self.unarchive(place, [key]):
                continue  # the next version of the archived note
            old = versions.parse_note(content.data, content.modified) if content else None
            draft = draft_for(versions.to_note(place, key, old, self.config.quarantine) if old else None)
            if again and draft.source.origin != "user":
                fix = Template("Store it yourself: ", command("store TEXT --again"))
                raise Refused("only a person may take back what was purged", fix)
            action, new = self.compose_versions([draft], [old], doubts)[0]
            if action == "unchanged" and again and content and old:
                self._take_back(place, draft)
                stamp = content.stamp
                self.update_index(lambda: self.sync.index_notes(place.folder, [(f"{key}.md", old, stamp, None)]))  # noqa: B023
            elif action != "unchanged":
                seen = content.stamp if content else None
                beside = [("", one) for one in (*also, *(draft.tags or ()))]
                says = [] if again else [(f"{place.folder}/notes/{key}", draft.text), *beside]
                if draft.allowed or not self.config.store:  # a store asks once, when nobody else can write
                    self.refuse_purged(says)
                if draft.allowed:  # on record before it is on disk
                    self._record_allowed(place, key, new.header.id, draft.allowed)
                try:
                    stamp = self.store.write(place, key, new.data, seen, lambda: self.refuse(says, doubts, [(self, draft)]))  # noqa: B023
                except Changed:
                    continue
                except versions.RejectedText as error:
                    doubts = error.rejected
                    continue
                if again:
                    self._take_back(place, draft)
                self.update_index(lambda: self.sync.index_notes(place.folder, [(f"{key}.md", new, stamp, seen)]))  # noqa: B023
                self.sync.listing(place)
            return Stored(action, versions.to_note(place, key, new, self.config.quarantine), draft.redacted)
        raise Busy(f"the note {key!r} is changed by others all the time", "Try again")

    def compose_versions(
        self, drafts: list[Draft], olds: list[versions.ParsedNote | None], doubts: Mapping[str, str]
    ) -> list[tuple[str, versions.ParsedNote]]:
        """The next version of each note. What is in quarantine, or in doubt, is contained; a home without pays one look."""
        now, milliseconds = utc(dates.clock()), int(dates.clock() * 1000)

        def compose(draft: Draft, old: versions.ParsedNote | None) -> tuple[str, versions.ParsedNote]:
            return versions.compose(draft, old, now, new_id(milliseconds))

        made = list(map(compose, drafts, olds))
        held = self.config.quarantine
        if doubts or any(new.trust in held for _, new in made) or self._could_copy(drafts):
            from holdfast.verbs import quarantine

            return quarantine.contained(self, drafts, olds, made, compose, doubts)
        return made

    def _could_copy(self, drafts: list[Draft]) -> bool:
        """Whether a text of these could stand in quarantine: there is something, and not a person says it."""
        if not self.config.quarantine or all(draft.source.origin == "user" for draft in drafts):
            return False
        try:
            return self.index.has_held()
        except (IndexReset, Busy, DiskTrouble):
            return True  # asked again when it is made anew

    def _record_allowed(self, place: Scope, key: str, id: str, what: str) -> None:
        said = dict(zip(("scope", "key", "rules", "why"), (str(place), key, *what.split(": ", 1)), strict=True))
        self.ledger.decide("secret-allowed", id, said, int(dates.clock()))

    def any_purged(self) -> bool:
        return os.path.exists(f"{self._sign}purged") if self._sign else self.ledger.purges.any()

    def refuse_purged(self, texts: list[tuple[str, str]]) -> None:
        """Refuse what was purged and would come back: texts, each with the path of its note if it is one's. Asked a last time
        where nobody else can write: a purge that begins before is heard of, one that begins later finds it."""
        if self.any_purged():
            self.ledger.purges.refuse(texts)

    def refuse(self, texts: list[tuple[str, str]], doubts: Mapping[str, str], drafts: list[tuple[Context, Draft]]) -> None:
        """The same; and raise `Rejected` for drafts, each of its desk, that say what a person rejected, if not in doubt."""
        self.refuse_purged(texts)
        if os.path.exists(f"{self._sign}rejected") if self._sign else self.ledger.purges.any_rejected():
            from holdfast.verbs import quarantine

            quarantine.refuse_rejected(self, doubts, drafts)

    def _take_back(self, place: Scope, draft: Draft) -> None:
        if self.any_purged():
            self.ledger.purges.take_back(f"{place.folder}/notes/{draft.key}", draft.text, dates.now())

    def purged_as(self, path: str, texts: Callable[[], list[str]]) -> str:
        """The receipt of the purge that took such a text away, if any; a ledger that cannot be read knows of none, and of one
        that is `Busy` nobody can tell: look again."""
        if not self.any_purged():
            return ""
        try:
            found = [self.ledger.purges.receipt_for(text, ended=True, path=path) for text in texts()]
            return next(filter(None, found), "")
        except Busy:
            raise
        except HoldfastError:
            return ""

    def refuse_returned(self, path: str, texts: list[str]) -> None:
        """Refuse to tell what was purged and stands on the shelf again."""
        if self.any_purged():
            self.ledger.purges.refuse_ended(texts, path)

    def purged_turns(self, said: list[tuple[str, str, str]], standing: bool = True) -> set[int]:
        """Which of these turns (session, id, text) were purged, by their places."""
        return self.ledger.purges.turns(said, standing) if self.any_purged() else set()

    def move_notes(self, place: Scope, keys: list[str], part: str, seen: dict[str, FileId] | None = None) -> list[str]:
        """Move notes to the trash or the archive, and out of the catalogue."""
        if part == "trash" and self.origin != "user" and self.config.quarantine:
            from holdfast.verbs import quarantine

            quarantine.must_not_forget(self, place, keys)
        self.sync.prepare_scope(place.folder)
        moved = self.store.move_notes(place, keys, part, dates.clock(), seen)
        self.update_index(lambda: self.sync.remove_files(place.folder, "notes", [f"{key}.md" for key in keys]))
        if part == "archive" and moved:
            self.update_index(lambda: self.sync.refresh_folder(place.folder, part))
        self.sync.listing(place)
        return moved

    def unarchive(self, place: Scope, keys: list[str]) -> list[str]:
        """Move the archived notes of these keys back among the notes, with their history; the keys that were moved."""
        found = self.store.archived(place, keys)
        if not found:
            return []
        from holdfast.context import archive

        return [key for key, one in found.items() if archive.bring_back(self, place, one)]

    def record_use(self, place: Scope, key: str, id: str, archived: TrashedNote | None = None) -> bool:
        """A note was read: count it, and bring it back if it was archived and this caller may write. Whether it came back. A
        count or a move that fails never fails the read."""
        self.count_uses([self.usage_id_of(place, key, id)])
        if archived is None or self.config.read_only:
            return False
        from holdfast.context import archive

        return archive.bring_back(self, place, archived)

    def usage_id_of(self, place: Scope, key: str, id: str) -> str:
        """What the uses of a note are counted under: its id, or where it has none a digest of its path."""
        return id or path_usage_id(place.folder, "notes", f"{key}.md")

    def record_shown(self, ids: list[str]) -> None:
        """Notes were shown to a caller without a session; what a session was shown the ledger knows by itself."""
        try:
            self.ledger.show(ids, int(dates.clock()))
        except HoldfastError:
            pass

    def update_index(self, change: Callable[[], object]) -> None:
        """The shelf has it. Where the catalogue cannot take it now, the next call that reads finds it on the shelf."""
        self.record_project()
        try:
            change()
        except (IndexReset, Busy, DiskTrouble):
            self.sync.reset()

    # --- asking --------------------------------------------------------------------------------------------------

    def refresh(self, folders: tuple[str, ...], archived: bool = False) -> str:
        """Make the catalogue true for these scopes, with `archived` also for their archived notes; the reason if it may say
        less than the shelf."""
        self.store.must_be_ours()
        for attempt in range(_ASKED):
            try:
                return self.sync.refresh(folders, archived)
            except IndexReset:
                self.sync.reset()
            except (Busy, DiskTrouble) as error:
                if attempt + 1 == _ASKED or not self.sync.is_outdated():
                    return f"the index could not be brought up to date: {error.message}"
        return "the index is damaged again and again"

    def query(self, question: Callable[[], T]) -> T:
        """Ask the catalogue; if it turns out unusable, build it from the shelf and ask again. Who forks only lets go."""
        begun, left = self.index.seen[1], _ASKED
        while left and self.index.seen[1] < begun + _MOST_CLOSED:
            seen = self.index.seen
            try:
                which, answer = self.index.generation(), self.sync.run_query(question)
                if not self.sync.is_outdated() and which == self.index.seen[0]:
                    return answer
            except (IndexReset, *_NONSENSE) as error:
                if not isinstance(error, IndexReset) and seen == self.index.seen and not self.index.spoiled():
                    raise
                self.sync.reset()
            except DiskTrouble:
                if not self.sync.is_outdated():
                    raise
            self.refresh(self.sync.scopes, self.sync.archived)
            left -= seen[1] == self.index.seen[1]
        self.index.go_without_file()
        try:
            self.refresh(self.sync.scopes, self.sync.archived)
            return question()
        except IndexReset:
            raise DiskTrouble("the index cannot be used at all", "Check the disk; the notes are safe") from None
        finally:
            self.index.close()

    def search(self, query: str, asked: SearchFilter, limit: int, now: str | None, mode: str, explain: bool) -> SearchResult:
        """What a search finds, in the order of how well it answers."""
        if mode == "keyword" or asked.as_of:
            reason = "older versions have no vectors: keyword search ran" if mode != "keyword" else ""
            with self.index.asking(asked), self.index.reading():
                result = by_words(self.index.search(query, asked, limit), explain, reason)
                if asked.as_of:
                    return result  # older versions are not among the passages whose words are weighed
                return result.replace(weak=self._weak_by_words(result.found, query, asked))
        result = self.hybrid_search().search(query, asked, limit, now, mode, explain, self.progress)
        if result.threshold is None:
            return result.replace(weak=self._weak_by_words(result.found, query, asked))
        weak = [one for one in result.found if one.score < result.threshold]
        if weak and len(query.split()) <= _FEW_WORDS:  # a search for a word or two is no general request
            return result.replace(weak=self._weak_by_words(weak, query, asked))
        return result.replace(weak=frozenset([one.passage for one in weak]))

    def hybrid_search(self) -> HybridSearch:
        """Hybrid search, with the models that the settings name."""
        if self._hybrid_search is None:
            from holdfast import embedders
            from holdfast.search.hybrid import HybridSearch

            opened = embedders.open_for_search(self.config.embedder, self.config.embed_key)
            self._hybrid_search = HybridSearch(self.index, opened)
        return self._hybrid_search

    def hits(
        self, ranked: list[FoundPassage], limit: int, why: Mapping[int, dict[str, list[float]]], weak: frozenset[int]
    ) -> list[Hit]:
        """The best passages with the bytes that stand on the shelf; one that is gone by now makes room for the next."""
        hits: list[Hit] = []
        counted: list[str] = []
        contents = self.store.read_ahead([read_at(one) for one in ranked[:limit]])
        for found in ranked:
            if len(hits) == limit:
                break
            hit = self._hit(found, contents.get(read_at(found)))
            if hit is not None:
                hit = hit.replace(weak=True) if found.passage in weak else hit
                hits.append(hit.replace(why=why[found.passage]) if found.passage in why else hit)
                if not hit.weak:  # what probably does not answer was not of use
                    counted.append(usage_id(found))
        self.count_uses(counted)
        return hits

    def _weak_by_words(self, found: list[FoundPassage], query: str, asked: SearchFilter) -> frozenset[int]:
        """Return which of these passages share too little of the question's wording to be an answer."""
        if not found:
            return frozenset()
        from holdfast.search import abstention

        wording, shared = abstention.Wording(query), self.shared_weights(query, asked, [one.passage for one in found])
        weak = [one.passage for one in found if not wording.is_strong(shared.get(one.passage, 0.0), one.key)]
        return frozenset(weak)

    def shared_weights(self, query: str, asked: SearchFilter, passages: Iterable[int]) -> dict[int, float]:
        """Return, by passage, the weight of the question's words that stand in it."""
        from holdfast.search import abstention

        terms, common = self.index.looked_for(query, asked)
        known = {term: word for term, word in terms.items() if term in common}
        weights = abstention.word_weights(query, known, common, self.index.passage_count(asked))
        return abstention.shared_weights(passages, known, weights, lambda some: self.index.having(some, asked, POSTINGS))

    def _hit(self, found: FoundPassage, content: FileContent | None) -> Hit | None:
        try:
            if found.part not in ("notes", "archive"):
                from holdfast.verbs.read import hit_of_file, hit_of_turn

                return (hit_of_turn if found.turn else hit_of_file)(self.store, found, content)
            content = content or self.store.read_name(found.scope, found.part, found.name)
        except HoldfastError:
            return None
        if content is None:
            return None
        if not found.past:
            text, lines = note_file.read_current_text(content.text())
        else:
            text, lines = versions.read_past_text(versions.parse_note(content.data, content.modified), found.seq)
        return None if lines == (0, 0) else Hit(
            "past" if found.past else "note", Scope.of_folder(found.scope), found.key, found.type, found.tags, text,
            float(f"{found.score:.4g}"), f"{found.scope}/{found.part}/{found.name}:{lines[0]}-{lines[1]}", found.valid_from,
            found.valid_to, found.recorded, found.source,
            quarantined=found.source.trusted in self.config.quarantine if found.past else found.quarantined,
            archived=found.archived,
        )  # fmt: skip

    def count_uses(self, ids: list[str]) -> None:
        """Usage; a count that fails never fails a recall."""
        try:
            self.ledger.count(ids, int(dates.clock()))
        except HoldfastError:
            pass

    def usage(self, found: list[FoundPassage]) -> Mapping[str, int]:
        try:
            return self.ledger.usage([usage_id(one) for one in found])
        except HoldfastError:
            return {}

    def note(self, key: str, kind: str | None) -> tuple[Scope, versions.ParsedNote]:
        """The nearest note of that key."""
        return self.find_note(key, kind)[:2]

    def find_note(self, key: str, kind: str | None) -> tuple[Scope, versions.ParsedNote, TrashedNote | None]:
        """The nearest note of that key; an archived one, and where it lies, if no place has another."""
        validate.existing_key(key)
        if not self.config.enabled:
            raise NotFound(Disabled().text, Disabled().hint)
        places = self.visible_scopes(kind)
        for place, content in self.store.nearest(places, key):
            return place, self._opened(place, key, content), None
        for place in places:
            one = self.store.archived(place, [key]).get(key)
            found = self.store.read_name(place.folder, one.part, one.name) if one else None
            if found is not None:
                return place, self._opened(place, key, found), one
        from holdfast.verbs.read import missing

        self.refresh(folders := self.visible_folders(None))
        raise missing(
            self.store, self.visible_scopes(None), key, lambda: self.query(lambda: self.index.notes(folders, most=5000))
        )

    def _opened(self, place: Scope, key: str, content: FileContent) -> versions.ParsedNote:
        there = versions.parse_note(content.data, content.modified)
        if self.any_purged():
            self.refuse_returned(f"{place.folder}/notes/{key}", [one.text for one in versions.list_versions(there)])
        return there

    def close(self) -> None:
        if self._hybrid_search is not None:
            self._hybrid_search.embedding.stop()
            self._hybrid_search = None
        for part in (self.sync, self.index, self.ledger, self.store):
            part.close()


def typed_errors(cls: type[T]) -> type[T]:
    """The class with verbs that raise only our own errors: what the operating system says comes out as one of them."""
    for name, verb in list(vars(cls).items()):
        if name.startswith("_") and name != "__init__":
            continue
        if isinstance(verb, property):
            setattr(cls, name, property(_typed(verb.fget), doc=verb.__doc__))
        elif callable(verb):
            setattr(cls, name, _typed(verb))
    return cls


def _typed(verb: Any) -> Any:
    def run(*args: Any, **kwargs: Any) -> Any:
        try:
            return verb(*args, **kwargs)
        except OSError as error:
            raise from_os(error) from error

    for name in ("__module__", "__name__", "__qualname__", "__doc__", "__annotations__"):
        setattr(run, name, getattr(verb, name))
    run.__dict__["__wrapped__"] = verb  # what functools.wraps does, without an import that a cold command pays for
    return run


def usage_id(found: FoundPassage) -> str:
    """What its uses are counted under: never content. Archived or not, a note keeps it."""
    part, name = ("notes", f"{found.key}.md") if found.archived else (found.part, found.name)
    return found.note_id or path_usage_id(found.scope, part, name)


def path_usage_id(scope: str, part: str, name: str) -> str:
    """The same for a file that has no id of its own."""
    return digest(f"{scope}/{part}/{name}".encode("utf-8", "surrogateescape"))[:16]
