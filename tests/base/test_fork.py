"""Fork handlers: one module registers them all."""

from __future__ import annotations

from pathlib import Path

import holdfast

SOURCE = Path(holdfast.__file__).parent


def test_only_base_fork_registers_handlers():
    callers = [path.relative_to(SOURCE) for path in SOURCE.rglob("*.py") if "os.register_at_fork(" in path.read_text("utf-8")]
    assert callers == [Path("base/fork.py")]


def test_handlers_run_before_a_fork_and_in_both_processes_after_it(child):
    seen = child(
        """
        from holdfast.base.fork import on_fork
        seen = []
        on_fork(before=lambda: seen.append("before"), parent=lambda: seen.append("parent"), child=lambda: seen.append("child"))
        here, there = os.pipe()
        if os.fork() == 0:
            os.write(there, ",".join(seen).encode())
            os._exit(0)
        os.wait()
        answer = [",".join(seen), os.read(here, 100).decode()]
        """
    )
    assert seen == ["before,parent", "before,child"]
