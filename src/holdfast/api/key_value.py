"""The notes of one scope as keys and values, for platforms whose keys may be any printable text (docs/adr/0040)."""

from __future__ import annotations

from holdfast.api import pagination
from holdfast.api.memory import context_of
from holdfast.base.platform_keys import is_derived, to_note_key
from holdfast.base.record import Record
from holdfast.context.caller import typed_errors
from holdfast.errors import NotFound
from holdfast.formats import versions
from holdfast.models import Stored
from holdfast.safety import validate
from holdfast.verbs import read, write

TYPE_CHECKING = False
if TYPE_CHECKING:
    from concurrent.futures import Future

    from holdfast.api.memory import Memory
    from holdfast.models import Note


class Pair(Record):
    """A key and the note that holds its value."""

    key: str
    note: Note


class StoredPair(Record):
    """The result of a write: created, updated or unchanged."""

    action: str
    pair: Pair


@typed_errors
class KeyValueMemory:
    """The notes of one scope of a memory by their platform keys.

    Every note of the scope is here: one that was stored under a note key, or whose `name` was edited by hand, has its note key.
    """

    def __init__(self, memory: Memory, scope: str) -> None:
        self._memory, self._scope = memory, scope

    def pairs(self) -> list[Pair]:
        """Return every pair, by the key of its note."""
        return [Pair(note.name or note.key, note) for note in pagination.iterate_notes(self._memory, self._scope)]

    def get(self, key: str) -> Pair | None:
        """Return the pair of a key; reading counts as use."""
        name = validate.check_platform_key(key)
        try:
            return Pair(name, self._memory.get(self._note_key(name), scope=self._scope))
        except NotFound:
            return None

    def store(self, key: str, value: str, *, redact: bool = False) -> StoredPair:
        """Store a value under a key."""
        stored = self.begin_store(key, value, redact=redact)
        return self.stored_pair(key, stored if isinstance(stored, Stored) else stored.result())

    def begin_store(self, key: str, value: str, *, redact: bool = False) -> Stored | Future[Stored]:
        """Store a value under a key; where the memory has a write queue, return the future result."""
        context = context_of(self._memory)
        context.require_enabled()
        name = validate.check_platform_key(key)
        note_key = self._note_key(name)
        draft = write.make_draft(context, value, key=note_key, name=name if note_key != name else None, redact=redact)
        return write.begin_store(context, draft, context.scope(self._scope))

    def stored_pair(self, key: str, stored: Stored) -> StoredPair:
        """Return the result of a store as a pair."""
        return StoredPair(stored.action, Pair(validate.check_platform_key(key), stored.note))

    def _note_key(self, name: str) -> str:
        """Return the note key of a platform key.

        A key in the form of a derived key stands for itself only if a note has it that no platform key was kept with.
        """
        return name if is_derived(name) and self._is_unnamed(name) else to_note_key(name)

    def _is_unnamed(self, note_key: str) -> bool:
        try:
            found = read.find_note(context_of(self._memory), note_key, self._scope)
        except NotFound:
            return False
        return versions.platform_key(note_key, found.parsed.header) is None
