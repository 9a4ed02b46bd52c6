"""What a search finds: passages, and the columns of their rows."""

from __future__ import annotations

from holdfast.note import Fact, Record, Source


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
    turn: str | None
    speaker: str | None
    offset: int | None
    words: int
    quarantined: bool
    score: float


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


class Sought(Record):
    """What a search found, best first; which legs it stood on, and why it may be less than was asked for."""

    found: list[Found]
    mode: str
    reason: str = ""
    why: dict[int, dict[str, list[float]]] = {}


OUTLINE = (0, 1, 8, 9, 11, 16, 19, 20, 22)  # the columns of a row that an order is made of,
ID, SEQ, RECORDED, START, DOC, VERSIONS, TURN, SPEAKER, WORDS = range(len(OUTLINE))  # and their places among themselves
PLACE = "in{}"  # the word by which a search keeps to a folder
