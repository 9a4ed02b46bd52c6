"""Check that installed clients can still use this memory, for `holdfast doctor`."""

from __future__ import annotations

from holdfast import clients
from holdfast.clients import install
from holdfast.errors import HoldfastError
from holdfast.models import Problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.clients.base import InstallTarget


def find_problems(target: InstallTarget) -> list[Problem]:
    """Return what keeps each installed client from using this memory, with a fix."""
    return [problem for name in install.list_installed(target) for problem in _find_client_problems(name, target)]


def _find_client_problems(name: str, target: InstallTarget) -> list[Problem]:
    try:
        client = clients.load(name)
        record = install.load_record(target, name)
        changes = [change for change in client.changes(target) if change.path in record]  # not those of another project
        outdated = [step.path for step in install.plan_install(client, target, changes) if step.changes]
    except HoldfastError as error:
        return [Problem("client", f"{name}: {error.message}", error.fix, name)]
    fix = f"holdfast install {name}"
    found = [
        Problem("client", f"{client.title}: {path} was changed or removed since the install", fix, path)
        for path in outdated[:1]
    ]
    return [
        *found,
        *[Problem("client", f"{client.title}: {message}", advice, name) for message, advice in client.find_problems(target)],
    ]
