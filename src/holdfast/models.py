"""Value types: notes, versions, facts, turns, scopes, hits, answers and receipts."""

from __future__ import annotations

import os
import time

from holdfast.base.lazy_re import pattern
from holdfast.errors import Template, UsageError, field

try:
    from _blake2 import blake2b  # straight from its C module: hashlib loads OpenSSL, 8 ms of a cold start
except ImportError:  # a Python built otherwise
    from hashlib import blake2b

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, ClassVar, Self, dataclass_transform
else:

    def dataclass_transform(**_options):
        return lambda cls: cls


SCOPES = ("session", "project", "agent", "global")  # in order of precedence
TYPES = ("user", "feedback", "project", "reference")
ORIGINS = ("user", "agent", "tool", "import", "web")  # in order of trust
AGENT_ORIGINS = ORIGINS[1:]  # an agent cannot claim that a person said something
MODES = ("hybrid", "keyword", "semantic", "recent")
SEARCH_MODES = MODES[:3]  # those that need a query
SORTS = ("relevance", "recency", "usage")
PARTS = {  # where what can be asked for stands
    "note": "notes archive", "file": "files", "turn": "transcripts", "fact": "facts",
}  # fmt: skip
EVERY_PART = "notes archive files transcripts"  # what a recall searches; None in its place leaves the archive out
KEY = pattern(r"[a-z0-9][a-z0-9-]{0,59}\Z")

_FOLDERS = {"project": "projects", "agent": "agents", "session": "sessions"}
_WORD = pattern(r"[a-z0-9]+")
_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_TIME_SHIFTS, _CHANCE_SHIFTS = range(45, -1, -5), range(25, -1, -5)
_FIRST, _LAST = -62135596800, 253402300799  # the seconds that four digits of a year can name
_last = 0, "0000000000", 0  # of the id made last: the time, as its characters too, and the chance
_KINDS = {folder: kind for kind, folder in _FOLDERS.items()}
_AS_IT_IS = frozenset((str, int, bool, float, type(None)))  # in plain form already


@dataclass_transform(frozen_default=True)
class Record:
    """Frozen named fields: what dataclasses give, without the 20 ms their import costs a cold command.
    Subclasses list their fields as annotations; a class attribute is the field's default."""

    _fields: tuple[str, ...] = ()
    _more: ClassVar[tuple[str, ...]] = ()  # properties that the plain form has besides
    _names: frozenset[str] = frozenset()
    _defaults: dict[str, Any] = {}
    _fills: ClassVar[dict[int, tuple[Any, ...]]] = {0: ()}  # by how many values are given: the defaults of the others

    def __init_subclass__(cls) -> None:
        own = tuple(name for name in cls.__dict__.get("__annotations__", ()) if not name.startswith("_"))
        cls._fields = cls._fields + own
        cls._names = frozenset(cls._fields)
        cls._defaults = cls._defaults | {name: cls.__dict__[name] for name in own if name in cls.__dict__}
        last = cls._fields[len(cls._fields) - len(cls._defaults) :]
        tail = tuple(cls._defaults.values()) if last == tuple(cls._defaults) else ()
        cls._fills = {len(cls._fields) - missing: tail[len(tail) - missing :] for missing in range(len(tail) + 1)}

    def __init__(self, *values: Any, **named: Any) -> None:
        state, fields = self.__dict__, self._fields
        if not named and (fill := self._fills.get(len(values))) is not None:
            state.update(zip(fields, values + fill))  # noqa: B905
            return
        state.update(self._defaults)
        state.update(zip(fields, values, strict=False))
        state.update(named)
        if len(state) != len(fields) or len(values) > len(fields) or not named.keys() <= self._names:
            wrong = sorted(set(named) - self._names) or sorted(self._names - set(state)) or ["too many values"]
            raise TypeError(f"{type(self).__name__}: unknown or missing field: {', '.join(wrong)}")

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is frozen; use .replace({name}=...)")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} is frozen")

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.__dict__ == self.__dict__

    def __hash__(self) -> int:
        return hash((type(self), *(self.__dict__[name] for name in self._fields)))

    def __repr__(self) -> str:
        inside = ", ".join(f"{name}={self.__dict__[name]!r}" for name in self._fields)
        return f"{type(self).__name__}({inside})"

    def replace(self, **changes: Any) -> Self:
        """The same record with some fields changed."""
        if not changes.keys() <= self._names or len(self.__dict__) != len(self._fields):  # what is wrong, or was worked out
            return type(self)(**({name: self.__dict__[name] for name in self._fields} | changes))
        new = object.__new__(type(self))
        new.__dict__.update(self.__dict__, **changes)
        return new

    def as_dict(self) -> dict[str, Any]:
        """Plain dicts, lists and scalars all the way down: what `--json` prints."""
        said = [(name, self.__dict__[name]) for name in self._fields] + [(name, getattr(self, name)) for name in self._more]
        return {name: value if type(value) in _AS_IT_IS else _plain(value) for name, value in said}


def _plain(value: Any) -> Any:
    if isinstance(value, Record):
        return value.as_dict()
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {str(name): _plain(item) for name, item in value.items()}
    return value


class Written(Record):
    """What somebody wrote: it says which kinds of characters in it nobody would see."""

    _more = ("hidden",)
    _said: ClassVar[tuple[str, ...]] = ("text",)  # its fields of text, and
    _called: ClassVar[tuple[str, ...]] = ()  # those of names

    @property
    def hidden(self) -> tuple[str, ...]:
        """The kinds, as `holdfast.safety.hidden_chars` calls them; of nearly every text none. The text itself is
        always as it was kept."""
        said = [getattr(self, name) or "" for name in self._said]
        names = [one for name in self._called if (value := getattr(self, name)) for one in _each(value)]
        every = "".join(said + names).replace("\n", "")
        if every.isascii() and every.isprintable():
            return ()
        from holdfast.base import invisible

        return invisible.find_kinds("\n".join(said), *names)


def _each(value: str | tuple[str, ...]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else value


class Scope(Record):
    """Where a note applies and who reads it back."""

    kind: str
    id: str = ""

    @property
    def folder(self) -> str:
        """Its place on the shelf."""
        return "global" if self.kind == "global" else f"{_FOLDERS[self.kind]}/{self.id}"

    @classmethod
    def of_folder(cls, folder: str) -> Scope:
        kind, _, id = folder.partition("/")
        return cls("global") if kind == "global" else cls(_KINDS[kind], id)

    def __str__(self) -> str:
        return self.kind if self.kind == "global" else f"{self.kind}:{self.id}"


class Source(Record):
    """Who said it, through what."""

    origin: str = "user"
    agent: str | None = None
    client: str | None = None
    session: str | None = None
    made_from: tuple[str, ...] = ()  # addresses, paths, note:ID, session:ID, tool:NAME
    trust: str | None = None  # of the least trusted thing it was made from, where that is less than its origin

    @property
    def trusted(self) -> str:
        """How far it can be trusted, as one of the origins."""
        return lowest(self.origin, self.trust) if self.trust else self.origin


class Version(Written):
    """One text a note has had, on both clocks: when it was true, and when it was recorded.

    `valid_to` is the end its writer gave it; `closed` is the end that a later version put to it.
    """

    _called = ("tags",)
    text: str
    type: str = "project"
    tags: tuple[str, ...] = ()
    source: Source = Source()
    recorded: str = ""
    valid_from: str = ""
    valid_to: str | None = None
    closed: str | None = None

    @property
    def until(self) -> str | None:
        return self.closed or self.valid_to


class Note(Written):
    """A memory as it stands. `version` names these very bytes: give it back as `expected` to edit safely."""

    _called = ("key", "tags")
    scope: Scope
    key: str
    id: str
    text: str
    type: str
    tags: tuple[str, ...]
    created: str
    updated: str
    source: Source
    valid_from: str
    valid_to: str | None
    pinned: bool
    path: str
    lines: tuple[int, int]
    version: str
    versions: int = 1
    quarantined: bool = False  # not trusted enough to be told to anybody who did not ask, and approved by no person
    archived: bool = False  # retention moved it to the archive; briefings leave it out


class Fact(Written):
    """A dated line: what was so, from when to when, and what ended it."""

    _said = ("value",)
    _called = ("subject", "label", "links")
    subject: str
    label: str
    value: str
    valid_from: str
    valid_to: str | None = None
    retired_by: str | None = None
    links: tuple[str, ...] = ()
    scope: Scope = Scope("global")
    path: str = ""
    line: int = 0
    quarantined: bool = False  # it stands in a note that is
    archived: bool = False  # likewise
    stale_in: tuple[str, ...] = ()  # other files that still state an older, different value: `path:line`, at most 10


class Stored(Record):
    """What a store did: created, updated or unchanged; and the rules whose names stand where a secret was."""

    action: str
    note: Note
    redacted: tuple[str, ...] = ()


class FactSet(Record):
    """What setting a fact did, and which facts it retired."""

    action: str
    fact: Fact
    retired: tuple[Fact, ...]
    note: Note
    redacted: tuple[str, ...] = ()


class Forgotten(Record):
    """Whether there was anything to forget, and until when it can be restored."""

    deleted: bool
    key: str
    scope: Scope | None = None
    restorable_until: str | None = None
    beyond_reach: tuple[str, ...] = ()  # files that may still show it, each with why


class Cleared(int):
    """How many notes were forgotten; `beyond_reach` are files that may still show them, each with why."""

    beyond_reach: tuple[str, ...] = ()


class Receipt(Record):
    """What a purge removed, how that was checked, and what it could not reach."""

    key: str
    scope: Scope | None
    deleted: bool
    removed: tuple[str, ...]
    index_rows: int
    usage_rows: int
    checks: tuple[str, ...]
    beyond_reach: tuple[str, ...]
    time: str
    id: str = ""  # under which it is kept; nothing where nothing was removed
    what: str = ""  # what was purged, without a word of it
    state: str = "done"  # or pending: something is left to do, and doctor does it as soon as it can; damaged: it is lost
    pending: tuple[str, ...] = ()  # what that is
    turns: int = 0  # that were taken out of transcripts
    also_said_by: tuple[str, ...] = ()  # what says the same and was not to be removed
    told: tuple[str, ...] = ()  # to whom it had been told
    taken_back: str = ""  # when a person stored it again on purpose


class Hit(Written):
    """A passage that answers, with where it stands and why it may be believed."""

    _called = ("key", "tags", "session", "speaker", "name", "description")
    kind: str  # note, past, file, turn, fact
    scope: Scope
    key: str
    type: str | None
    tags: tuple[str, ...]
    text: str
    score: float
    citation: str
    valid_from: str | None
    valid_to: str | None
    updated: str
    source: Source | None
    session: str | None = None
    speaker: str | None = None
    why: dict[str, list[float]] | None = None
    quarantined: bool = False
    weak: bool = False  # it shares something with the question, but probably does not answer it
    name: str | None = None  # of a file with frontmatter: its name and
    description: str | None = None  # its description there
    archived: bool = False


class Answer(Record):
    """The hits, the mode that really ran, and whether that is less than was asked for."""

    hits: tuple[Hit, ...]
    mode: str
    degraded: bool = False
    reason: str = ""
    disabled: bool = False

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    def __len__(self) -> int:
        return len(self.hits)

    def __getitem__(self, place: int) -> Hit:
        return self.hits[place]

    @property
    def sessions(self) -> dict[str, tuple[Hit, ...]]:
        """The turns among the hits by their session, the session of the best first."""
        found: dict[str, list[Hit]] = {}
        for hit in self.hits:
            if hit.session is not None:
                found.setdefault(hit.session, []).append(hit)
        return {session: tuple(hits) for session, hits in found.items()}


class TrashedNote(Record):
    """A note in the trash or in the archive, and since when."""

    scope: Scope
    key: str
    time: str
    part: str
    name: str


class Problem(Record):
    """Something `check` found, and the command that mends it."""

    code: str
    message: str
    fix: str
    path: str = ""


class Finding(Record):
    """A problem without the text of its fix yet; `verbs.doctor.fixes.with_fixes` writes it.

    `action` says what fixes it: "edit" or "move_aside" the file `target`, "run" the command `target`, "remove" the file
    `target` after following the hint, or "advise": only follow the hint."""

    code: str
    message: str
    path: str = ""
    action: str = "advise"
    target: str = ""
    tenant: str = ""  # which the command has to name
    hint: str = ""


class Turn(Written):
    """One thing that was said in a session, word for word. `number` counts the lines of its file after the header."""

    _called = ("speaker", "session")
    id: str
    role: str  # user, assistant, system, tool
    speaker: str | None
    time: str | None
    text: str
    session: str
    client: str
    number: int
    citation: str


class Logged(Record):
    """What keeping a session did: how many turns are new, how many were there already, how many could not be read."""

    session: str
    client: str
    added: int
    known: int
    path: str
    broken: int = 0
    purged: int = 0  # turns that were left out: they say what was purged
    redacted: int = 0  # turns that held a secret: the name of its rule stands in its place


class Progress:
    """Where long work says how far it is. This one says nothing; a door may pass one that draws."""

    def start(self, what: str, total: int) -> None: ...
    def step(self, count: int = 1) -> None: ...
    def end(self) -> None: ...


class Interrupted(KeyboardInterrupt):
    """Ctrl-C in the midst of many, of which more can be told: how many are surely `stored`, None where nobody knows."""

    def __init__(self, stored: int | None, message: str = "interrupted", fix: str = "") -> None:
        super().__init__(message)
        self.stored, self.message, self.fix = stored, message, fix


def lowest(*origins: str) -> str:
    """The least trusted of some origins."""
    return max(origins, key=ORIGINS.index)


def tags_of(tags: str | list[str] | tuple[str, ...] | set[str] | None) -> tuple[str, ...]:
    """Tags from a list or a comma string: trimmed, each once, in the order given."""
    if tags is None:
        return ()
    if not isinstance(tags, str | list | tuple | set | frozenset):
        raise UsageError(
            Template(field("tags"), f" must be a list or a comma string, not {type(tags).__name__}"), "Give a list of words"
        )
    if not all(isinstance(tag, str | int) and not isinstance(tag, bool) for tag in tags):
        raise UsageError("a tag that is no word", "Give a list of words")
    parts = tags.split(",") if isinstance(tags, str) else [piece for tag in tags for piece in str(tag).split(",")]
    return tuple(dict.fromkeys(trimmed for part in parts if (trimmed := " ".join(part.split()))))


def is_name(text: str) -> bool:
    """Whether this may name a project, an agent or a session: letters, digits, `_`, `-` and dots; never hidden or `..`."""
    letters = text.replace("_", "").replace("-", "").replace(".", "")
    fits = 0 < len(text) <= 128 and text[0] != "."
    return fits and (not letters or (letters.isascii() and letters.isalnum()))


def key_of(text: str) -> str:
    """A key made from the first six words. The same text gives the same key; a text that is more than a few small words
    of ASCII gets a short hash, so that different texts do not meet."""
    words = _WORD.findall(_ascii(text.lower()))
    stem = "-".join(words[:6])[:48].strip("-")
    if stem and " ".join(words) == text.lower() and "-".join(words) == stem:
        return stem
    mark = digest(text.encode("utf-8", "surrogatepass"))
    return f"{stem}-{mark[:8]}" if stem else mark[:16]


def _ascii(text: str) -> str:
    if text.isascii():
        return text
    import unicodedata

    return unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()


def title_of(text: str, otherwise: str) -> str:
    """The first heading, else the name it goes by."""
    for line in text.split("\n", 20)[:20]:
        if line.startswith("# ") and line[2:].strip():
            return line[2:].strip()
    return otherwise


def as_json(record: Record | list[Any]) -> Any:
    """The plain form of a record, for `--json` and for HTTP."""
    return [as_json(item) for item in record] if isinstance(record, list) else record.as_dict()


def timestamp(seconds: float) -> str:
    """The moment so many seconds after 1970; beyond the years 1 to 9999, the nearest in them."""
    then = time.gmtime(min(max(seconds, _FIRST), _LAST))
    return f"{then.tm_year:04d}{time.strftime('-%m-%dT%H:%M:%SZ', then)}"


def digest(data: bytes) -> str:
    """32 hexadecimal digits that name these bytes."""
    return str(blake2b(data, digest_size=16).hexdigest())


def keyed_digest(data: bytes, key: bytes) -> str:
    """The same, made with a key: whoever does not have it cannot try out what the bytes were."""
    return str(blake2b(data, key=key, digest_size=16).hexdigest())


def new_id(milliseconds: int) -> str:
    """An id that sorts by time: ten characters of time, then six of chance."""
    global _last
    when, start, chance = _last
    if when == milliseconds:
        chance += 1  # within a millisecond ids count up, so that they sort in the order they were made
    else:
        start = _characters(milliseconds, _TIME_SHIFTS)
        chance = int.from_bytes(os.urandom(4), "big") & 0x1FFFFFFF  # half of what fits: it can be counted up from
    _last = milliseconds, start, chance
    return start + _characters(chance, _CHANCE_SHIFTS)


def _characters(number: int, shifts: range) -> str:
    return "".join([_ALPHABET[(number >> shift) & 31] for shift in shifts])
