"""Whether the clients that were installed still hear us: what `doctor` says of them (D1)."""

from __future__ import annotations

from holdfast import clients
from holdfast.clients import install
from holdfast.errors import HoldfastError
from holdfast.models import Problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.clients.base import InstallTarget


def find_problems(place: InstallTarget) -> list[Problem]:
    """What keeps each installed client from using this memory, with what to do."""
    return [problem for name in install.list_installed(place) for problem in _of_one(name, place)]


def _of_one(name: str, place: InstallTarget) -> list[Problem]:
    try:
        client = clients.load(name)
        known = install.load_record(place, name)
        changes = [change for change in client.changes(place) if change.path in known]  # not those of another project
        outdated = [step.path for step in install.plan_install(client, place, changes) if step.changes]
    except HoldfastError as error:
        return [Problem("client", f"{name}: {error.message}", error.fix, name)]
    again = f"holdfast install {name}"
    found = [Problem("client", f"{client.title}: {path} is not as the install left it", again, path) for path in outdated[:1]]
    return [*found, *[Problem("client", f"{client.title}: {what}", fix, name) for what, fix in client.find_problems(place)]]
