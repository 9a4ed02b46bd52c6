"""Open memories that are kept between calls: closing one keeps no other call waiting."""

from __future__ import annotations

import threading

from holdfast.api.memory_cache import MemoryCache


class SlowMemory:
    """A memory whose close waits, as for a database that does not answer."""

    def __init__(self):
        self.closing, self.may_close = threading.Event(), threading.Event()

    def close(self):
        self.closing.set()
        assert self.may_close.wait(60)


def test_a_memory_that_is_slow_to_close_keeps_no_other_call_waiting():
    cache, slow, quick = MemoryCache(1), SlowMemory(), SlowMemory()
    quick.may_close.set()

    def make_room():
        with cache.lend("slow", lambda: slow):
            pass
        with cache.lend("other", lambda: quick):
            pass

    thread = threading.Thread(target=make_room)
    thread.start()
    try:
        assert slow.closing.wait(60)
        with cache.lend("other", SlowMemory) as found:
            assert found is quick
        assert cache.list_open() == [quick]
    finally:
        slow.may_close.set()
        thread.join()


def test_what_is_dropped_while_a_call_uses_it_is_closed_when_the_call_ends():
    cache, memory = MemoryCache(4), SlowMemory()
    memory.may_close.set()
    with cache.lend("one", lambda: memory):
        cache.clear()
        assert not memory.closing.is_set() and cache.list_open() == []
    assert memory.closing.is_set()
