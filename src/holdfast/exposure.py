"""Secrets that stand on the shelf, pasted in by hand or kept on purpose: which files, which rule, which line (S2, D1)."""

from __future__ import annotations

import os

from holdfast import secrets
from holdfast.errors import HoldfastError, TooLarge
from holdfast.guard import is_plain
from holdfast.hidden import bare
from holdfast.mending import mending as mending_of
from holdfast.mending import told
from holdfast.note import Problem, Scope
from holdfast.page import clean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.desk import Desk
    from holdfast.mending import Mending
    from holdfast.shelf.disk import Sheet

_SHOWN = 50  # that are listed one by one


def problems(desk: Desk) -> list[Problem]:
    """Each note and file that seems to hold a secret, with the command that mends it; not those that a person allowed."""
    if not desk.config.enabled or not desk.shelf.there():
        return []
    mending = mending_of(desk.config)
    found: list[Problem] = []
    more = 0
    try:
        for path, fix, rules in _exposed(desk, mending):
            if len(found) < _SHOWN:
                found.append(Problem("secret", f"{path} seems to hold a secret, which is never briefed: {rules}", fix, path))
            else:
                more += 1
    except HoldfastError:
        pass  # something stands in the way, which is told elsewhere
    if more:
        found.append(Problem("secret", f"and {more} more files that seem to hold a secret", mending.holdfast("doctor")))
    return found


def _exposed(desk: Desk, mending: Mending) -> Iterator[tuple[str, str, str]]:
    """Where, what to do, and which rules on which lines: one look at each file."""
    places = [(scope, part, name) for scope in desk.shelf.scopes() for part, name in _files(desk, scope)]
    desk.progress.start("looking for secrets", len(places))
    try:
        for scope, part, name in places:
            desk.progress.step()
            text = _text(desk, scope, part, name)
            if not text or is_plain(text):
                continue
            try:
                hits = secrets.found(text)
            except TooLarge:
                yield told(f"{scope}/{part}/{name}"), _fix(mending, desk, scope, part, name), "it is too long to tell"
                continue
            if hits and not (part == "notes" and _allowed(desk, scope, name, {hit.rule for hit in hits})):
                line = text.count("\n", 0, hits[0].start) + 1
                where = told(f"{scope}/{part}/{name}")
                yield f"{where}:{line}", _fix(mending, desk, scope, part, name), secrets.named(text, hits)
    finally:
        desk.progress.end()


def _files(desk: Desk, scope: str) -> Iterator[tuple[str, str]]:
    for entry in desk.shelf.census(scope, "notes"):
        if entry.regular and entry.name.endswith(".md"):
            yield "notes", entry.name
    for entry in desk.shelf.tree(scope, 0).census():
        if entry.regular:
            yield "files", entry.name


def _text(desk: Desk, scope: str, part: str, name: str) -> str:
    """A file as eyes see it: what nobody sees must not hide a secret, as it does not from the gate."""
    try:
        sheet: Sheet | None
        if part == "notes":
            sheet = desk.shelf.read_name(scope, part, name)
        else:
            sheet = desk.shelf.tree(scope, 0).read(tuple(name.split("/")))
    except HoldfastError:
        return ""  # told elsewhere
    return bare(clean(sheet.data.decode("utf-8", "surrogateescape"))) if sheet is not None else ""


def _allowed(desk: Desk, scope: str, name: str, rules: set[str]) -> bool:
    """Whether a person said that this note may keep such a secret."""
    from holdfast import leaf

    sheet = desk.shelf.read_name(scope, "notes", name)
    if sheet is None:
        return True
    id = leaf.note_of(Scope.of_folder(scope), name[:-3], leaf.opened(sheet.data, sheet.modified)).id
    wishes = [detail for action, detail, _ in desk.ledger.decisions(id) if action == "secret-allowed"] if id else []
    return rules <= {rule for detail in wishes for rule in detail.get("rules", "").split(", ")}


def _fix(mending: Mending, desk: Desk, scope: str, part: str, name: str) -> str:
    """A person takes it out of the file itself: a new version of a note would leave it in the history."""
    return mending.edited(os.path.join(desk.config.home, "shelf", scope, part, name))
