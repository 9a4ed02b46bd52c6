"""Registry of projects: which ids mean the same project, and where markers and checkouts were last seen."""

from __future__ import annotations

import os

from holdfast.base.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.ledger.interface import LedgerDatabase, Transaction

ADOPTED = "adopted:"  # before the id of a project that a person joined to another; no id has a colon


class Location(Record):
    """The folder in which a marker, a checkout or a project was last seen."""

    id: str
    nonce: str
    path: str


class ProjectLinks:
    """The project registry (`project.marker.Registry`) in the ledger."""

    def __init__(self, database: LedgerDatabase) -> None:
        self._database = database

    def find_project(self, alias: str) -> str | None:
        """Return the project that this other id leads to."""
        rows = self._database.read_or_empty("canonical", alias=alias)
        return str(rows[0][0]) if rows else None

    def link(self, alias: str, project: str, instead: str | None = None) -> None:
        """Let an id lead to a project. The first writer wins, unless the link still leads to `instead`."""

        def insert_link(transaction: Transaction) -> None:
            rows = transaction.run("canonical", alias=project)
            target = rows[0][0] if rows else project
            if target != alias:
                transaction.run("link", alias=alias, project=target, instead=instead)
                transaction.run("lead_on", alias=alias)

        self._database.write(insert_link, checkpoint=True)

    def list_adopted(self, project: str) -> list[str]:
        """Return the projects that a person joined to this one."""
        rows = self._database.read_or_empty("adopted", project=project)
        return [str(alias).removeprefix(ADOPTED) for (alias,) in rows]

    def adopt(self, old: str, new: str) -> None:
        """Let an id, and all that lead to it, lead to another project, whose notes then include those of `old`."""

        def relink(transaction: Transaction) -> None:
            for alias in (old, f"{ADOPTED}{old}"):
                transaction.run("relink", alias=alias, project=new)
            transaction.run("lead_on", alias=old)

        self._database.write(relink, checkpoint=True)

    def list_links(self) -> dict[str, str]:
        """Return every other id with the project that it leads to."""
        return {str(alias): str(project) for alias, project in self._database.read_or_empty("links")}

    def list_locations(self) -> list[Location]:
        """Return where markers, checkouts and folders of projects were last seen."""
        rows = self._database.read_or_empty("places")
        return [Location(str(id), str(nonce), os.fsdecode(bytes(path))) for id, nonce, path in rows]

    def find_location(self, id: str) -> Location | None:
        """Return where a marker or a checkout was last seen."""
        for nonce, path in self._database.read_or_empty("place", id=id):
            return Location(id, str(nonce), os.fsdecode(path))
        return None

    def put_location(self, id: str, nonce: str, path: str) -> None:
        """Record where a marker or a checkout is."""
        values = {"id": id, "nonce": nonce, "path": os.fsencode(path)}
        self._database.write(lambda transaction: transaction.run("put_place", **values), checkpoint=True)
