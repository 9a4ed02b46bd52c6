"""Documents of a tenant on their way out of PostgreSQL or into it: what `carrying` is to a folder."""

from __future__ import annotations

from holdfast.errors import Conflict
from holdfast.postgres.store import put
from holdfast.store.files import Changed, number_of_trashed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.postgres import Session
    from holdfast.postgres.store import PostgresStore
    from holdfast.store.transfer import Brought

_AT_ONCE = 2000  # digests that the server makes with one question


def digests(store: PostgresStore, scope_folder: str, part: str) -> Iterator[tuple[str, str]]:
    """Each name with the SHA-256 of its bytes: the server reads what it has."""
    after, rows = "", [("", "")]
    while rows:
        rows = store.database.rows("digests", scope=scope_folder, part=part, after=after, most=_AT_ONCE)
        yield from rows
        after = rows[-1][0] if rows else after


def folders(store: PostgresStore, scope_folder: str) -> list[str]:
    """Those of the tree of files in which nothing stands."""
    every = [entry.name for part in ("files", "folders") for entry in store.entries(scope_folder, part)]
    above = {name.rpartition("/")[0] for name in every}
    return [entry.name for entry in store.entries(scope_folder, "folders") if entry.name not in above]


def bring(store: PostgresStore, scope_folder: str, part: str, brought: list[Brought]) -> None:
    """Put documents where none stand, all of them in one transaction; `Conflict` where one does by now."""

    def before(db: Session) -> None:
        if part == "files":
            for path in sorted({name.rpartition("/")[0] for name, _, _ in brought} - {""}):
                store.tree(scope_folder).make_room(db, (*path.split("/"), ""))
        elif part != "notes":  # what goes there next is numbered after these
            store.mix(db, scope_folder, part, 0, max([number_of_trashed(name) for name, _, _ in brought]))

    puts = [put(part, name, data, None, modified) for name, data, modified in brought]
    try:
        store.put(scope_folder, part, puts, before=before)
    except Changed:
        raise Conflict(f"somebody else writes to {scope_folder}/{part}", "Copy again when nobody writes") from None
