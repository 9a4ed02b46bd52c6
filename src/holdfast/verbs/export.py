"""Export: every note a caller may see, one record a note with all its versions, and no secret in it (S2). What an import could
not take is left out, and it is said which notes those are."""

from __future__ import annotations

from collections.abc import Generator

from holdfast.base.ids import KEY_PATTERN, derive_key
from holdfast.errors import Contended, HoldfastError, Template, Unreached, UsageError, field, from_os
from holdfast.formats import versions
from holdfast.safety import validate
from holdfast.safety.secrets import prefilter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from holdfast.context.caller import Context
    from holdfast.models import Scope, Source, Version
    from holdfast.store.atomic import FileContent

    Row = dict[str, Any]
    Rows = Generator[Row, None, None]
    Name = tuple[Scope, str]  # of a file: where it stands, and what it is called there

_BATCH = 100  # notes that are read together where that is cheaper
_NAMED = 50  # notes that are left out and named one by one


class LeftOut:
    """The notes that an export has not: how many, and of the first of them where, by which name and why."""

    def __init__(self) -> None:
        self.count = 0
        self.notes: list[dict[str, str]] = []

    def add(self, place: Scope, name: str, why: str) -> None:
        self.count += 1
        if len(self.notes) < _NAMED:
            name, why = validate.without_secrets(name), validate.without_secrets(why)
            self.notes.append({"scope": str(place), "name": name, "why": why})

    def as_dict(self) -> Row:
        return {"count": self.count, "notes": self.notes}


class Export(Generator["Row", None, None]):
    """The records, one by one; at their end `left_out` tells of the notes that are not among them."""

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
    """The steps of `Memory.export`. `holdfast import` reads such records back."""
    return Export(lambda left_out: _rows(context, scope, left_out))


def _rows(context: Context, scope: str | None, left_out: LeftOut) -> Rows:
    places = context.visible_scopes(scope) if context.config.enabled else []
    names = [(place, name) for place in places for name in _names(context, place, left_out)]
    keys = _new_keys(names)
    context.progress.start("exporting", len(names))
    try:
        for start in range(0, len(names), _BATCH):
            batch = names[start : start + _BATCH]
            contents = context.store.read_ahead([(place.folder, "notes", name) for place, name in batch])
            purged = context.any_purged()
            for place, name in batch:
                row = _row(context, place, name, contents.get((place.folder, "notes", name)), purged, left_out)
                context.progress.step()
                if row is not None:
                    yield {**row, "key": keys[place, name], "name": row["key"]} if (place, name) in keys else row
    except OSError as error:  # whoever iterates is outside the verb
        raise from_os(error) from error
    finally:
        context.progress.end()


def _names(context: Context, place: Scope, left_out: LeftOut) -> list[str]:
    """The files that are notes; what stands among them and is never read is left out."""
    entries = list(context.store.entries(place.folder, "notes"))
    for one in [one for one in entries if not one.regular]:
        left_out.add(place, one.name, "a link or special file; never followed")
    for path in context.store.misnamed(place.folder):
        where, _, name = path.rpartition("/")
        if where.endswith(f"/shelf/{place.folder}/notes"):
            left_out.add(place, ascii(name)[1:-1], "its name is not UTF-8")
    return sorted([one.name for one in entries if one.regular and one.name.endswith(".md")])


def _new_keys(names: list[Name]) -> dict[Name, str]:
    """A key for each file whose name is none, or holds a secret: as `doctor` would rename it, and never one that another note
    has in that kind of scope, since an import puts all of a kind in one place."""
    odd = [(place, name) for place, name in names if not _is_key(name[:-3])]
    taken = {(place.kind, name[:-3]) for place, name in names} if odd else set()
    keys: dict[Name, str] = {}
    for place, name in odd:
        said = validate.without_secrets(name[:-3])
        while (place.kind, key := derive_key(said)) in taken:
            said += " ."  # more than small words: it gets a hash
        taken.add((place.kind, key))
        keys[place, name] = key
    return keys


def _is_key(name: str) -> bool:
    return bool(KEY_PATTERN.match(name)) and (prefilter.is_surely_clean(name) or validate.without_secrets(name) == name)


def _row(context: Context, place: Scope, name: str, content: FileContent | None, purged: bool, left_out: LeftOut) -> Row | None:
    """A note as plain data; None where it is gone by now or was purged, and where it is left out."""
    try:
        content = content or context.store.read_name(place.folder, "notes", name)
        if content is None:
            return None
        there = versions.parse_note(content.data, content.modified)
        row = _said(context, place, name, there)
        _must_pass(row, context.config.note_bytes)
    except (Contended, Unreached):
        raise  # of which the note knows nothing
    except HoldfastError as error:
        left_out.add(place, name, error.message)
        return None
    if purged and context.purged_as(
        f"{place.folder}/notes/{name[:-3]}", lambda: [one.text for one in versions.list_versions(there)]
    ):
        return None
    return row


def _said(context: Context, place: Scope, name: str, there: versions.ParsedNote) -> Row:
    note = versions.to_note(place, name[:-3], there, context.config.quarantine)
    rules: dict[str, None] = {}
    row = {
        "key": _cleaned(note.key, rules), "text": _cleaned(note.text, rules), "type": note.type,
        "tags": [_cleaned(tag, rules) for tag in note.tags], "valid_from": note.valid_from, "valid_to": note.valid_to,
        "pinned": note.pinned, "scope": str(place), "id": note.id, "created": note.created, "updated": note.updated,
        "source": _source(note.source, rules), "quarantined": note.quarantined,
        "versions": [_version(one, rules) for one in versions.list_versions(there)],
    }  # fmt: skip
    return {**row, "redacted": list(rules)}


def _must_pass(row: Row, most_bytes: int) -> None:
    """Raise what the gate of an import would say of a file that somebody made by hand: one such line, and it takes none."""
    validate.text(row["text"], most_bytes, allowed=True)  # secrets are out of it
    validate.tags(tuple(row["tags"]))
    if row["valid_to"] and row["valid_to"] <= row["valid_from"]:
        what = Template(field("valid_to"), f" {row['valid_to']} is not after ", field("valid_from"), f" {row['valid_from']}")
        raise UsageError(what, Template("A text is true from one day to a later one: say ", field("valid_from"), " too"))


def _version(version: Version, rules: dict[str, None]) -> Row:
    tags = [_cleaned(tag, rules) for tag in version.tags]
    said = {**version.as_dict(), "text": _cleaned(version.text, rules), "tags": tags}
    said["source"] = _source(version.source, rules)
    return {name: value for name, value in said.items() if name != "hidden"}


def _source(source: Source, rules: dict[str, None]) -> Row:
    """Who said it and from what: names and addresses, which may hold a secret as well."""
    said = {name: value for name, value in source.as_dict().items() if value}
    made = [_cleaned(one, rules) for one in said.pop("made_from", ())]
    return {name: _cleaned(one, rules) for name, one in said.items()} | ({"made_from": made} if made else {})


def _cleaned(text: str, rules: dict[str, None]) -> str:
    clean, found = validate.redact_or_withhold(text)
    rules.update(dict.fromkeys(found))
    return clean
