"""Check the quota of an agent before something is written: how many notes and bytes it may keep.

The gateway puts the limits into the settings of a caller; without them nothing is checked. The index keeps the sums of each
agent, and every write updates it before it answers. The stores that a gateway writes together are checked together; only other
writes that run at the same time (files, turns, MCP calls, stores of another process) can exceed a limit.
"""

from __future__ import annotations

from holdfast.errors import QuotaExceeded, Template, command

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.context.caller import Context
    from holdfast.formats.versions import ParsedNote
    from holdfast.models import Scope


def count_added(context: Context, scope: Scope, old: ParsedNote | None, new: ParsedNote) -> tuple[int, int]:
    """Return how many notes and bytes a write adds to those of the caller: all of a note that was another's before."""
    size = kept_bytes(new)
    if old is None or (old.header.source.agent or (scope.id if scope.kind == "agent" else "")) != context.agent:
        return 1, size
    return 0, size - kept_bytes(old)


def kept_bytes(note: ParsedNote) -> int:
    """Return the bytes of a note file and of its history files."""
    return len(note.data) + (note.header.older.bytes if note.header.older else 0)


def check(context: Context, *, notes: int = 0, bytes: int = 0) -> None:
    """Raise `QuotaExceeded` if the caller may not keep this many more notes and bytes; a write that needs less always may."""
    most_notes, most_bytes = context.config.most_notes, context.config.most_bytes
    if not context.agent or not ((most_notes and notes > 0) or (most_bytes and bytes > 0)):
        return
    agent = context.agent
    context.sync.prepare_all_scopes()
    used = context.query(lambda: context.index.agent_usage(agent))
    fix = Template(command("forget {}", "KEY"), " notes that are not needed, or ask an operator for a higher quota")
    if most_notes and notes > 0 and used.notes + notes > most_notes:
        what = f"{agent} has {used.notes:,} notes; {notes:,} more would exceed its quota of {most_notes:,}"
        raise QuotaExceeded(f"{what} (quota.notes)", fix)
    if most_bytes and bytes > 0 and used.bytes + bytes > most_bytes:
        what = f"{agent} has {used.bytes:,} bytes of notes and files; {bytes:,} more would exceed its quota of {most_bytes:,}"
        raise QuotaExceeded(f"{what} (quota.bytes)", fix)
