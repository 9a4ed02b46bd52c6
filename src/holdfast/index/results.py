"""What a search finds: passages, and the columns of their rows."""

from __future__ import annotations

from holdfast.base.record import Record
from holdfast.models import Fact, Source

TYPE_CHECKING = False
if TYPE_CHECKING:
    ListedFile = tuple[str, int, int, int]  # the key, id, inode and ctime of a note's file: another version has others


class FoundPassage(Record):
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
    turn: str | None
    speaker: str | None
    offset: int | None
    words: int
    quarantined: bool
    score: float

    @property
    def archived(self) -> bool:
        """Whether it is a passage of an archived note."""
        return self.part == "archive"


class FoundFact(Record):
    """A fact that a search found, and what is known of the note or file it stands in."""

    fact: Fact
    part: str
    name: str
    key: str
    note_id: str
    tags: tuple[str, ...]
    source: Source
    updated: str


class ListedNote(Record):
    """A note as index.md shows it."""

    id: int
    key: str
    type: str
    date: str
    text: str  # its beginning; all of it where it has facts or seems to hold a secret
    quarantined: bool
    exposed: bool


class SearchResult(Record):
    """What a search found, best first; which legs it stood on, and why it may be less than was asked for. A passage that
    scores less than `threshold` is weak; where it is None, the words of the question decide."""

    found: list[FoundPassage]
    mode: str
    reason: str = ""
    why: dict[int, dict[str, list[float]]] = {}
    threshold: float | None = None
    weak: frozenset[int] = frozenset()  # passages that probably do not answer
    named: frozenset[int] = frozenset()  # passages that have a rare name of the question


ARCHIVED = 0.5  # the share of its score that a passage of an archived note keeps


def rank_archived_lower(
    found: list[FoundPassage], why: dict[int, dict[str, list[float]]]
) -> tuple[list[FoundPassage], dict[int, dict[str, list[float]]]]:
    """The same passages, those of archived notes with a lower score; where each score is explained, so is that."""
    if not any(one.archived for one in found):
        return found, why
    less = {one.passage: -abs(one.score) * (1 - ARCHIVED) for one in found if one.archived}
    told = {id: {**said, "archived": [1.0, round(less[id], 3)]} if id in less else said for id, said in why.items()}
    return [one.replace(score=one.score + less[one.passage]) if one.archived else one for one in found], told


OUTLINE = (0, 1, 8, 9, 11, 16, 19, 20, 22)  # the columns of a row that an order is made of,
ID, SEQ, RECORDED, START, DOC, VERSIONS, TURN, SPEAKER, WORDS = range(len(OUTLINE))  # and their places among themselves
PLACE = "in{}"  # the word by which a search keeps to a folder
