"""A session that another replica starts while a purge is in progress."""

from __future__ import annotations

import threading

import psycopg
import pytest

from holdfast import Memory

TEXT = "the harbour code of zanzibarqvx7 is forty-two and a half"
_WAITING = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"


@pytest.mark.promise("N10")
def test_the_first_turn_of_a_session_that_is_on_its_way_when_a_purge_begins_is_taken_out(postgres_url, monkeypatch):
    with Memory(postgres_url, project="demo", origin="user") as person, Memory(postgres_url, project="demo") as other:
        person.store("something else stays", key="x")
        asked, goes_on, ask, receipts = threading.Event(), threading.Event(), other._context.purge_filter.find_purged_turns, []

        def slowly(*given, **named):
            answer = ask(*given, **named)
            asked.set()
            assert goes_on.wait(120)
            return answer

        monkeypatch.setattr(other._context.purge_filter, "find_purged_turns", slowly)
        begins = threading.Thread(target=lambda: other.log([{"role": "user", "text": TEXT}], session="s1", client="chat"))
        begins.start()
        assert asked.wait(120)
        purges = threading.Thread(target=lambda: receipts.append(person.purge(text=TEXT)))
        purges.start()
        with psycopg.connect(postgres_url, autocommit=True) as watch:
            while purges.is_alive() and not watch.execute(_WAITING).fetchone()[0]:
                purges.join(0.05)
        goes_on.set()
        begins.join()
        purges.join()
        assert [(one.state, one.turns) for one in receipts] == [("done", 1)]
        assert person.recall("zanzibarqvx7 harbour code", kind="turn").hits == ()
