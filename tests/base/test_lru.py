"""The cache with a limit."""

from __future__ import annotations

from holdfast.base.lru import LruCache


def test_the_value_that_was_not_used_for_longest_is_discarded():
    cache = LruCache(2)
    cache.put("a", 1)
    cache.put("b", 2)
    assert cache.get("a") == 1
    cache.put("c", 3)
    assert [cache.get(key) for key in "abc"] == [1, None, 3]


def test_a_value_is_replaced_and_all_are_cleared():
    cache = LruCache(2)
    cache.put("a", 1)
    cache.put("a", 2)
    cache.put("b", 3)
    assert (cache.get("a"), cache.get("b")) == (2, 3)
    cache.clear()
    assert cache.get("a") is None
