"""A receipt as it is kept: names that were made from what was purged are left out of it. Pure."""

from __future__ import annotations

from holdfast.base.lazy_re import pattern
from holdfast.ledger.purges import folded
from holdfast.verbs.purge.verify_files import TABLE, TRUTH

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from holdfast.models import Receipt

INSTEAD = "(not kept)"
_LEAST = 4  # characters of a word that gives anything away
_BETWEEN = pattern(r"[\W_]+")


class Mask:
    """What hides the names of one purge: its key, and those parts of paths and names of sessions that say a word of it."""

    def __init__(
        self, kind: str, key: str, ids: list[str], texts: Iterable[str], paths: Iterable[str], sessions: Iterable[str] = ()
    ) -> None:
        self._kind, self._key = kind, key
        words = {word for text in texts for word in folded(text).replace("-", " ").split()}
        self._all, self._words = "\n".join(words), [word for word in words if len(word) >= _LEAST]
        self._id = f"({ids[0]})" if ids else "(its key is not kept)"
        self._hides_key = bool(key) and self._says(key)
        changed = {path: self._changed(path) for path in paths} | {name: INSTEAD for name in sessions if self._says(name)}
        self._paths = sorted([(old, new) for old, new in changed.items() if old != new], key=lambda one: -len(one[0]))

    def receipt(self, receipt: Receipt) -> Receipt:
        """The same without them, in every field."""
        names = ("removed", "checks", "beyond_reach", "pending", "also_said_by", "told")
        hidden = {name: tuple([self.line(line) for line in getattr(receipt, name)]) for name in names}
        key = self._id if self._hides_key else receipt.key
        return receipt.replace(key=key, what=self.line(receipt.what), **hidden)

    def line(self, line: str) -> str:
        for old, new in self._paths:
            line = line.replace(old, new)
        return line.replace(self._key, self._id) if self._hides_key else line

    def path(self, path: str) -> str:
        return dict(self._paths).get(path, path)

    def _changed(self, path: str) -> str:
        parts = path.split("/")
        below = next((place + 1 for place, part in enumerate(parts) if part in TRUTH and place < len(parts) - 1), 0)
        if (not below and parts[0] in ("shelf", "run")) or parts[0].startswith(("index.db", "ledger.db", TABLE)):
            return path  # ours: no name in it is made from a text
        if self._kind == "session" and path.endswith(".jsonl"):
            return path  # a session is named by whoever ran it
        return "/".join([*parts[:below], *[self._shown(part) for part in parts[below:]]])

    def _shown(self, name: str) -> str:
        if self._hides_key and self._key in name:
            return name.replace(self._key, self._id)
        stem, dot, suffix = name.rpartition(".")
        return INSTEAD + dot + suffix if self._says(stem or name) else name

    def _says(self, name: str) -> bool:
        """Whether a name has a word of it, or is part of one."""
        flat = folded(name)
        parts = [part for part in _BETWEEN.split(flat) if len(part) >= _LEAST]
        return any(part in self._all for part in parts) or any(word in flat for word in self._words)
