"""Relations of a note to other notes, as its frontmatter states them: `kind target status origin time`, one string each.

    relations: [supersedes note:01KPAXEB201VA8X6 accepted user 2026-05-02T09:00:00Z]

The target is the id of a note, so that the relation follows a rename and a later note on the same key inherits none. A person
may write `supersedes old-deploys`: the key of a note in the same scope, accepted.
"""

from __future__ import annotations

from holdfast.base.lazy_re import pattern
from holdfast.base.record import Record
from holdfast.models import ORIGINS, RELATION_KINDS, RELATION_STATUSES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_ID_PREFIX = "note:"
_TARGET = pattern(r"(?a)(?:note:[\w.-]{1,64}|[a-z0-9][a-z0-9-]{0,59})\Z")
_TIME = pattern(r"(?a)\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ\Z")
MAX_RELATIONS = 200  # of one note


class StatedRelation(Record):
    """A relation as the note that states it has it. `time` is when it was stated, or decided about."""

    kind: str
    target: str  # `note:ID`, or the key of a note in the same scope
    status: str = "accepted"
    origin: str = ORIGINS[0]
    time: str = ""

    @property
    def target_id(self) -> str:
        """Return the id of the target; "" if the target is named by its key."""
        return self.target.removeprefix(_ID_PREFIX) if self.target.startswith(_ID_PREFIX) else ""


def target_of(id: str) -> str:
    """Return how a relation names the note of an id."""
    return _ID_PREFIX + id


def parse_relations(value: Any) -> tuple[StatedRelation, ...]:
    """Return the relations of a frontmatter field; raise ValueError if one cannot be read."""
    if isinstance(value, str):
        value = [value]
    if not isinstance(value, list) or len(value) > MAX_RELATIONS:
        raise ValueError(f"must be a list of at most {MAX_RELATIONS}")
    return tuple([_parse(item) for item in value])


def format_relations(relations: tuple[StatedRelation, ...]) -> str:
    """Return the value of the field on one line, which is read without a YAML parser: no part needs quotes."""
    return "[" + ", ".join([_format(relation) for relation in relations]) + "]" if relations else ""


def _parse(item: Any) -> StatedRelation:
    words = item.split() if isinstance(item, str) else []
    if len(words) not in (2, 5) or words[0] not in RELATION_KINDS or not _TARGET.match(words[1]):
        raise ValueError(f"must be `KIND KEY`, where KIND is one of {', '.join(RELATION_KINDS)}")
    if len(words) == 2:
        return StatedRelation(words[0], words[1])
    if words[2] not in RELATION_STATUSES or not _TIME.match(words[4]):
        raise ValueError("must be `KIND note:ID STATUS ORIGIN TIME`")
    origin = words[3] if words[3] in ORIGINS else ORIGINS[-1]  # an unknown origin gets the least trust
    return StatedRelation(words[0], words[1], words[2], origin, words[4])


def _format(relation: StatedRelation) -> str:
    words = [relation.kind, relation.target]
    return " ".join([*words, relation.status, relation.origin, relation.time] if relation.time else words)
