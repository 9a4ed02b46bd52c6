"""Promises that no other room's tests speak of."""

from __future__ import annotations

import pytest


@pytest.mark.promise("promise-6")
def test_no_verb_opens_a_socket_or_starts_a_program(child, home):
    asked = child(
        """
        events = []
        watched = ("socket.", "urllib.", "http.", "ssl.", "smtplib.", "ftplib.", "subprocess.", "os.system", "os.exec")
        sys.addaudithook(lambda event, _: events.append(event) if event.startswith(watched) else None)
        with Memory(args[0], cwd=os.getcwd(), session="s", agent="a") as memory:
            memory.store("We deploy on Fridays.", key="deploys")
            memory.store_many([{"text": "one"}, {"text": "two"}], scope="global")
            memory.fact("Telegram", "status", "enabled")
            memory.files.create("plan.md", "# Plan")
            for call in (memory.list, memory.facts, memory.brief, memory.status, memory.check, memory.reindex, memory.retain):
                call()
            memory.recall("deploy"), memory.search("plan"), memory.get("deploys"), memory.history("deploys")
            memory.forget("deploys"), memory.restore("deploys"), memory.purge("deploys"), memory.clear("global")
            memory.mark()
        answer = sorted(set(events))
        """,
        home,
    )
    assert asked == []
