"""Arguments by the names that similar tools use."""

from __future__ import annotations

import pytest

from holdfast import UsageError
from holdfast.safety.validate import ALIASES, resolve_aliases

KNOWN = ("text", "type", "mode", "sort", "scope")


@pytest.mark.parametrize(("alias", "name"), ALIASES.items())
def test_an_alias_is_its_name(alias, name):
    assert resolve_aliases({alias: 1, "scope": "agent"}, KNOWN) == {name: 1, "scope": "agent"}
    assert resolve_aliases({alias: 1, name: 1}, KNOWN) == {name: 1}
    with pytest.raises(UsageError, match=f"{alias} is an alias of {name}"):
        resolve_aliases({alias: 1, name: 2}, KNOWN)


@pytest.mark.parametrize("known", [(), ("scope",), (*ALIASES, *ALIASES.values())])
def test_where_the_name_is_unknown_or_the_alias_is_a_name_nothing_changes(known):
    given = dict.fromkeys((*ALIASES, *ALIASES.values()), 1) | {"content": 2}
    assert resolve_aliases(given, known) == given
