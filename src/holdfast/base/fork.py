"""Register fork handlers; this is the only module that calls os.register_at_fork.

Locks and connections of the parent must not be used in a child process. A module that has them registers handlers here.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


def on_fork(
    *, child: Callable[[], None], before: Callable[[], None] | None = None, parent: Callable[[], None] | None = None
) -> None:
    """Run `before` in the parent before each fork, then `parent` there and `child` in the new process after it.

    As with os.register_at_fork, `before` handlers run in reverse order of their registration, the others in order.
    """
    if before is not None:
        os.register_at_fork(before=before)
    if parent is not None:
        os.register_at_fork(after_in_parent=parent)
    os.register_at_fork(after_in_child=child)
