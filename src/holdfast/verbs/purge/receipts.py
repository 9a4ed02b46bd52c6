"""Receipts of purges: list them, and mask in each what would repeat a word of the purged text."""

from __future__ import annotations

import re

from holdfast.base.record import field_names
from holdfast.errors import DOCTOR, Damaged, NotFound, Template, command
from holdfast.ledger.purges import fold_text
from holdfast.models import Receipt, Scope
from holdfast.verbs.purge.verify_files import TABLE_PREFIX, USER_FOLDERS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from holdfast.context.caller import Context

_MASK = "(not kept)"
_MIN_WORD = 4  # characters of a word that would reveal anything
_SEPARATORS = re.compile(r"[\W_]+")
_LINE_FIELDS = ("removed", "checks", "beyond_reach", "pending", "also_said_by", "told")


# --- listing ----------------------------------------------------------------------------------------------------------


def list_receipts(context: Context, id: str | None) -> list[Receipt]:
    """Return the receipts of this caller's scopes, newest first, or the one with that id; raise NotFound for an unknown id."""
    if not context.config.enabled or not context.store.exists():
        return []
    rows = context.ledger.purges.list_receipts(id)
    if not rows and id is None:
        _check_none_lost(context)
    found = _visible_receipts(context, rows)
    if id is not None and not found:
        raise NotFound(f"no receipt {id[:40]!r}", Template(command("receipts"), " shows them all"))
    return found


def list_receipts_after(context: Context, last: str | None, limit: int) -> list[Receipt]:
    """Return at most `limit` receipts of this caller's scopes that follow the one with the id `last`."""
    found: list[Receipt] = []
    while context.config.enabled and context.store.exists():
        rows = context.ledger.purges.list_receipts(last=last, most=limit)
        if not rows and last is None:
            _check_none_lost(context)
        found += _visible_receipts(context, rows)
        if len(rows) < limit or len(found) >= limit:
            break
        last = rows[-1]["id"]
    return found[:limit]


def _check_none_lost(context: Context) -> None:
    """Raise Damaged if the ledger has no receipt although something else proves that there was a purge."""
    if context.ledger.purges.has_purges() or context.ledger.purges.count_digests():
        raise Damaged("something was purged here, but its receipt is missing from the ledger", Template("Run ", DOCTOR))


def folders_to_tell(context: Context) -> tuple[str, ...] | None:
    """Return the folders about which a receipt may tell the caller; None for all, unless it is an agent with a token."""
    return context.visible_folders(None) if context.config.by_token and context.origin != "user" else None


def may_tell(path: str, folders: tuple[str, ...] | None) -> bool:
    """Return whether a receipt may name this file."""
    return folders is None or any(path.startswith(f"shelf/{folder}/") for folder in folders)


def _visible_receipts(context: Context, rows: list[dict[str, Any]]) -> list[Receipt]:
    found = [receipt_from_dict(row) for row in rows]
    if not found or context.origin == "user":
        return found
    visible, folders = context.visible_scopes(None), folders_to_tell(context)
    seen = [(row, receipt) for row, receipt in zip(rows, found, strict=True) if receipt.scope in visible]
    return [receipt if folders is None else _limit(receipt, folders, "folders" in row) for row, receipt in seen]


def _limit(receipt: Receipt, folders: tuple[str, ...], is_of_agent: bool) -> Receipt:
    """Return the receipt without what an agent with a token may not know. That of a person tells about the whole home."""
    said_by = tuple([path for path in receipt.also_said_by if may_tell(path, folders)])
    if is_of_agent:
        return receipt.replace(also_said_by=said_by)
    return receipt.replace(also_said_by=said_by, checks=(), beyond_reach=(), pending=(), told=())


def receipt_from_dict(stored: dict[str, Any]) -> Receipt:
    """Return the receipt of its stored form; ignore fields that a later version added."""
    known = {name: value for name, value in stored.items() if name in field_names(Receipt)}
    fields: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in known.items()}
    scope = fields.get("scope")
    return Receipt(**{**fields, "scope": Scope(**scope) if isinstance(scope, dict) else None})


# --- masking ----------------------------------------------------------------------------------------------------------


class ReceiptMask:
    """Masks names made from a purged text: its key, and parts of paths and session names that repeat its words."""

    def __init__(
        self, *, kind: str, key: str, ids: list[str], texts: Iterable[str], paths: Iterable[str],
        sessions: Iterable[str] = (), fixed_lines: Iterable[str] = (),
    ) -> None:  # fmt: skip
        self._kind = kind
        self._fixed_lines = frozenset(fixed_lines)  # our own sentences: never made from a text
        words = {word for text in texts for word in fold_text(text).replace("-", " ").split()}
        self._all_words, self._long_words = "\n".join(words), [word for word in words if len(word) >= _MIN_WORD]
        self._replacement = f"({ids[0]})" if ids else "(its key is not stored)"
        self._key = _whole_word(key) if key and self._repeats_text(key) else None
        masked = {path: self._mask_path(path) for path in paths}
        masked |= {session: _MASK for session in sessions if self._repeats_text(session)}
        changed = [(old, new) for old, new in masked.items() if old != new]
        self._names = sorted(changed, key=lambda pair: -len(pair[0]))  # a longer name may contain a shorter one

    def mask_receipt(self, receipt: Receipt) -> Receipt:
        """Return the receipt with those names masked in every field."""
        lines = {name: tuple([self.mask_line(line) for line in getattr(receipt, name)]) for name in _LINE_FIELDS}
        key = self._replacement if self._key else receipt.key
        return receipt.replace(key=key, what=self.mask_line(receipt.what), **lines)

    def mask_line(self, line: str) -> str:
        """Return the line with those names masked; the key only where it is a word of its own."""
        if line in self._fixed_lines:
            return line
        for old, new in self._names:
            line = line.replace(old, new)
        return self._mask_key(line)

    def hides(self, path: str) -> bool:
        """Return whether a part of the path is masked."""
        return any(path == old for old, _ in self._names)

    def _mask_key(self, text: str) -> str:
        return self._key.sub(lambda _: self._replacement, text) if self._key else text

    def _mask_path(self, path: str) -> str:
        parts = path.split("/")
        below = next((number + 1 for number, part in enumerate(parts[:-1]) if part in USER_FOLDERS), 0)
        if (not below and parts[0] in ("shelf", "run")) or parts[0].startswith(("index.db", "ledger.db", TABLE_PREFIX)):
            return path  # our own file: no name in it is made from a text
        if self._kind == "session" and path.endswith(".jsonl"):
            return path  # the client named the session
        return "/".join([*parts[:below], *[self._mask_name(part) for part in parts[below:]]])

    def _mask_name(self, name: str) -> str:
        masked = self._mask_key(name)
        if masked != name:
            return masked
        stem, dot, suffix = name.rpartition(".")
        return _MASK + dot + suffix if self._repeats_text(stem or name) else name

    def _repeats_text(self, name: str) -> bool:
        """Return whether a name contains a word of the purged text, or is part of one."""
        plain = fold_text(name)
        parts = [part for part in _SEPARATORS.split(plain) if len(part) >= _MIN_WORD]
        return any(part in self._all_words for part in parts) or any(word in plain for word in self._long_words)


def _whole_word(key: str) -> re.Pattern[str]:
    """Return the pattern that finds a key where no letter or digit precedes or follows it."""
    return re.compile(rf"(?<![^\W_]){re.escape(key)}(?![^\W_])")
