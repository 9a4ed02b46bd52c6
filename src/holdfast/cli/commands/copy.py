"""copy: all memory from one store to another."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.cli.output import Output
    from holdfast.cli.runner import Invocation
    from holdfast.verbs.copy import Copied


def copy(call: Invocation) -> int:
    """Exit 1 where something could not be read and was left."""
    from holdfast.cli.progress import Bar
    from holdfast.verbs import copy as copy_module

    done = copy_module.copy(call["src"], call["dst"], call.settings(), None if call.screen.json else Bar())
    return call.answer(done, _tell, 1 if done.left else 0)


def _tell(screen: Output, done: Copied) -> None:
    for one in done.left:
        screen.aside(f"left: {one}")
    screen.say(f"{screen.paint('copied', 'green')} {done.source} to {done.target}")
    screen.say(f"  documents    {done.documents_copied:,} brought, {done.documents:,} there")
    screen.say(f"  transcripts  {done.lines_copied:,} lines brought, {done.lines:,} in {done.transcripts:,} there")
    screen.say(f"  records      {done.records_copied:,} brought, {done.records:,} there; the audit: {done.audit_rows:,}")
    screen.say(f"  verified     {done.verified:,}")
