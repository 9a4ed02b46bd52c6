"""Export every note that a caller may see: one record per note with all its versions, secrets masked. Notes that an import
would reject are left out and reported."""

from __future__ import annotations

from collections.abc import Generator

from holdfast.base.ids import KEY_PATTERN, derive_key
from holdfast.errors import Contended, HoldfastError, Template, Unreached, UsageError, field, from_os
from holdfast.formats import versions
from holdfast.safety import validate
from holdfast.safety.secrets import prefilter
from holdfast.store import note_history

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from holdfast.context.caller import Context
    from holdfast.models import Scope, Source, Version
    from holdfast.store.interface import FileContent

    Row = dict[str, Any]
    Rows = Generator[Row, None, None]
    NoteFileName = tuple[Scope, str]  # the scope, and the name of the file in its notes/

_BATCH = 100  # notes read together
_MAX_NAMED = 50  # notes left out that are named one by one


class LeftOut:
    """The notes that an export leaves out: how many, and scope, name and reason of the first ones."""

    def __init__(self) -> None:
        self.count = 0
        self.notes: list[dict[str, str]] = []

    def add(self, scope: Scope, name: str, why: str) -> None:
        self.count += 1
        if len(self.notes) < _MAX_NAMED:
            self.notes.append({"scope": str(scope), "name": validate.hide_secrets(name), "why": validate.hide_secrets(why)})

    def as_dict(self) -> Row:
        return {"count": self.count, "notes": self.notes}


class Export(Generator["Row", None, None]):
    """An iterator over the records; when it is exhausted, `left_out` says which notes are missing."""

    def __init__(self, rows: Callable[[LeftOut], Rows]) -> None:
        self.left_out = LeftOut()
        self._rows = rows(self.left_out)

    def send(self, value: None) -> Row:
        return self._rows.send(value)

    def throw(self, *error: Any) -> Row:
        return self._rows.throw(*error)

    def close(self) -> None:
        self._rows.close()


def export(context: Context, scope: str | None) -> Export:
    """Return the records of `Memory.export`; `holdfast import` reads them back."""
    return Export(lambda left_out: _export_notes(context, scope, left_out))


def _export_notes(context: Context, kind: str | None, left_out: LeftOut) -> Rows:
    scopes = context.visible_scopes(kind) if context.config.enabled else []
    names = [(scope, name) for scope in scopes for name in _list_names(context, scope, left_out)]
    keys, relations = _new_keys(names), _list_relations(context, scopes)
    context.progress.start("exporting", len(names))
    try:
        for start in range(0, len(names), _BATCH):
            batch = names[start : start + _BATCH]
            contents = context.store.read_batch([(scope.folder, "notes", name) for scope, name in batch])
            purged = context.purge_filter.any_purged()
            for scope, name in batch:
                content = contents.get((scope.folder, "notes", name))
                row = _export_note(context, scope, name, content=content, purged=purged, left_out=left_out)
                context.progress.step()
                if row is not None and (stated := relations.get((scope, name))):
                    row["relations"] = stated
                if row is not None:
                    yield {**row, "key": keys[scope, name], "name": row["key"]} if (scope, name) in keys else row
    except OSError as error:  # the caller iterates outside the verb, which would convert it
        raise from_os(error) from error
    finally:
        context.progress.end()


def _list_names(context: Context, scope: Scope, left_out: LeftOut) -> list[str]:
    """Return the names of the note files of a scope; report other files among them as left out."""
    entries = list(context.store.entries(scope.folder, "notes"))
    for entry in [entry for entry in entries if not entry.regular]:
        left_out.add(scope, entry.name, "a link or special file; never followed")
    for path in context.store.list_misnamed(scope.folder):
        where, _, name = path.rpartition("/")
        if where.endswith(f"/shelf/{scope.folder}/notes"):
            left_out.add(scope, ascii(name)[1:-1], "its name is not UTF-8")
    return sorted([entry.name for entry in entries if entry.regular and entry.name.endswith(".md")])


def _list_relations(context: Context, scopes: list[Scope]) -> dict[NoteFileName, list[Row]]:
    """Return the relations of each note that states any; an import names the other note by its key, since its id changes."""
    folders = tuple([scope.folder for scope in scopes])
    context.refresh(folders)
    found: dict[NoteFileName, list[Row]] = {}
    for one in context.query(lambda: context.index.list_relations(folders)):
        if _is_key(one.key) and _is_key(one.target):
            row = {"kind": one.kind, "target": one.target, "target_scope": one.target_scope.kind, "status": one.status}
            found.setdefault((one.scope, f"{one.key}.md"), []).append({**row, "origin": one.origin, "time": one.time})
    return found


def _new_keys(names: list[NoteFileName]) -> dict[NoteFileName, str]:
    """Return a key for each file whose name is not a valid key or contains a secret, as `doctor` would rename it. It is unique
    within the kind of scope, since an import puts all notes of a kind into one scope."""
    invalid = [(scope, name) for scope, name in names if not _is_key(name[:-3])]
    taken = {(scope.kind, name[:-3]) for scope, name in names} if invalid else set()
    keys: dict[NoteFileName, str] = {}
    for scope, name in invalid:
        title = validate.hide_secrets(name[:-3])
        while (scope.kind, key := derive_key(title)) in taken:
            title += " ."  # key_of adds a hash to such a title
        taken.add((scope.kind, key))
        keys[scope, name] = key
    return keys


def _is_key(name: str) -> bool:
    return bool(KEY_PATTERN.match(name)) and (prefilter.is_surely_clean(name) or validate.hide_secrets(name) == name)


def _export_note(
    context: Context, scope: Scope, name: str, *, content: FileContent | None, purged: bool, left_out: LeftOut
) -> Row | None:
    """Return a note as plain data; None if it was deleted or purged meanwhile, or is left out."""
    try:
        content = content or context.store.read_file(scope.folder, "notes", name)
        if content is None:
            return None
        parsed = versions.parse_note(content.data, content.modified)
        every = note_history.list_versions(context.store, scope.folder, parsed)
        row = _record(context, scope, name, parsed, every)
        _check_importable(row, context.config.note_bytes)
    except (Contended, Unreached):
        raise  # not a problem of this note
    except HoldfastError as error:
        left_out.add(scope, name, error.message)
        return None
    if purged and context.purge_filter.find_receipt(f"{scope.folder}/notes/{name[:-3]}", [version.text for version in every]):
        return None
    return row


def _record(context: Context, scope: Scope, name: str, parsed: versions.ParsedNote, every: list[Version]) -> Row:
    note = versions.to_note(scope, name[:-3], parsed, context.config.quarantine)
    rules: dict[str, None] = {}
    row = {
        "key": _mask_secrets(note.key, rules), "text": _mask_secrets(note.text, rules), "type": note.type,
        "tags": [_mask_secrets(tag, rules) for tag in note.tags], "valid_from": note.valid_from, "valid_to": note.valid_to,
        "pinned": note.pinned, "scope": str(scope), "id": note.id, "created": note.created, "updated": note.updated,
        "source": _source_record(note.source, rules), "quarantined": note.quarantined,
        "versions": [_version_record(version, rules) for version in every],
    }  # fmt: skip
    named = {"name": _mask_secrets(note.name, rules)} if note.name else {}
    return {**row, **named, "redacted": list(rules)}


def _check_importable(row: Row, max_bytes: int) -> None:
    """Raise the error that an import would raise for this record, which would reject the whole export."""
    validate.check_text(row["text"], max_bytes, allowed=True)  # its secrets are masked
    validate.check_tags(tuple(row["tags"]))
    if row["valid_to"] and row["valid_to"] <= row["valid_from"]:
        what = Template(field("valid_to"), f" {row['valid_to']} is not after ", field("valid_from"), f" {row['valid_from']}")
        raise UsageError(what, Template("Give a later end, or an earlier ", field("valid_from")))


def _version_record(version: Version, rules: dict[str, None]) -> Row:
    tags = [_mask_secrets(tag, rules) for tag in version.tags]
    row = {**version.as_dict(), "text": _mask_secrets(version.text, rules), "tags": tags}
    row["source"] = _source_record(version.source, rules)
    return {name: value for name, value in row.items() if name != "hidden"}


def _source_record(source: Source, rules: dict[str, None]) -> Row:
    """Return the origin and sources of a version; names and addresses may contain a secret too."""
    row = {name: value for name, value in source.as_dict().items() if value}
    made = [_mask_secrets(one, rules) for one in row.pop("made_from", ())]
    return {name: _mask_secrets(one, rules) for name, one in row.items()} | ({"made_from": made} if made else {})


def _mask_secrets(text: str, rules: dict[str, None]) -> str:
    clean, found = validate.redact_or_withhold(text)
    rules.update(dict.fromkeys(found))
    return clean
