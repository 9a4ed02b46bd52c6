"""Export: every note a caller may see, one record a note with all its versions, and no secret in it (S2)."""

from __future__ import annotations

from holdfast import guard, leaf
from holdfast.errors import HoldfastError, from_os
from holdfast.note import KEY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import Any

    from holdfast.desk import Desk
    from holdfast.note import Scope, Source, Version
    from holdfast.shelf.disk import Sheet

_BATCH = 100  # notes that are read together where that is cheaper


def export(desk: Desk, scope: str | None) -> Generator[dict[str, Any], None, None]:
    """The steps of `Memory.export`. `holdfast import` reads such records back."""
    places = desk.places(scope) if desk.config.enabled else []
    names = [(place, name) for place in places for name in _names(desk, place)]
    desk.progress.start("exporting", len(names))
    try:
        for start in range(0, len(names), _BATCH):
            batch = names[start : start + _BATCH]
            sheets = desk.shelf.read_ahead([(place.folder, "notes", name) for place, name in batch])
            purged = desk.any_purged()
            for place, name in batch:
                row = _row(desk, place, name, sheets.get((place.folder, "notes", name)), purged)
                desk.progress.step()
                if row is not None:
                    yield row
    except OSError as error:  # whoever iterates is outside the verb
        raise from_os(error) from error
    finally:
        desk.progress.end()


def _names(desk: Desk, place: Scope) -> list[str]:
    entries = desk.shelf.census(place.folder, "notes")
    return sorted([one.name for one in entries if one.regular and one.name.endswith(".md") and KEY.match(one.name[:-3])])


def _row(desk: Desk, place: Scope, name: str, sheet: Sheet | None, purged: bool) -> dict[str, Any] | None:
    """A note as plain data; None where it is gone by now, or cannot be read, which `doctor` says."""
    try:
        sheet = sheet or desk.shelf.read_name(place.folder, "notes", name)
        if sheet is None:
            return None
        there = leaf.opened(sheet.data, sheet.modified)
    except HoldfastError:
        return None
    if purged and desk.purged_as(f"{place.folder}/notes/{name[:-3]}", lambda: [one.text for one in leaf.versions_of(there)]):
        return None
    note = leaf.note_of(place, name[:-3], there, desk.config.quarantine)
    rules: dict[str, None] = {}
    row = {
        "key": note.key, "text": _cleaned(note.text, rules), "type": note.type,
        "tags": [_cleaned(tag, rules) for tag in note.tags], "valid_from": note.valid_from, "valid_to": note.valid_to,
        "pinned": note.pinned, "scope": str(place), "id": note.id, "created": note.created, "updated": note.updated,
        "source": _source(note.source, rules), "quarantined": note.quarantined,
        "versions": [_version(one, rules) for one in leaf.versions_of(there)],
    }  # fmt: skip
    return {**row, "redacted": list(rules)}


def _version(version: Version, rules: dict[str, None]) -> dict[str, Any]:
    tags = [_cleaned(tag, rules) for tag in version.tags]
    said = {**version.as_dict(), "text": _cleaned(version.text, rules), "tags": tags}
    said["source"] = _source(version.source, rules)
    return {name: value for name, value in said.items() if name != "hidden"}


def _source(source: Source, rules: dict[str, None]) -> dict[str, Any]:
    """Who said it and from what: names and addresses, which may hold a secret as well."""
    said = {name: value for name, value in source.as_dict().items() if value}
    made = [_cleaned(one, rules) for one in said.pop("made_from", ())]
    return {name: _cleaned(one, rules) for name, one in said.items()} | ({"made_from": made} if made else {})


def _cleaned(text: str, rules: dict[str, None]) -> str:
    clean, found = guard.withheld(text)
    rules.update(dict.fromkeys(found))
    return clean
