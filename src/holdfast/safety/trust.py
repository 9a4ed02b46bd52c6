"""How far a text can be trusted: the least of who said it and of everything it was made from (S3). Pure.

    user > agent > tool > import > web

| Made from | Trusted as |
|---|---|
| an address (`https://...`, `host.example/...`), or `word:...` that is none of ours | web |
| `note:KEY` or a note's id | that note |
| `turn:CITATION` | who said it: user, agent (assistant, system), tool; an imported transcript: import |
| `session:ID`, `tool:NAME`, a path | tool |
"""

from __future__ import annotations

from holdfast.base.ids import KEY_PATTERN
from holdfast.base.lazy_re import pattern
from holdfast.errors import InvalidText, NotFound, Template, TooLarge, UsageError, field
from holdfast.models import ORIGINS, least_trusted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from holdfast.models import Source

    Known = tuple[str, str]  # what something is kept as, and how far it can be trusted

ROLES = {"user": "user", "assistant": "agent", "system": "agent", "tool": "tool"}
MOST = 64  # things that one text is made from
_MOST_CHARS = 2000
_WORD = pattern(r"([A-Za-z][A-Za-z0-9+.-]*):")
_ID = pattern(r"[0-9A-HJKMNP-TV-Z]{16}\Z")
_ASKED = "Give an address or its beginning, a path, session:ID, client:NAME, agent:NAME, origin:web or note:KEY"
_FORMS = "Give an address, a path, note:KEY, turn:CITATION, session:ID or tool:NAME"


def things(given: object) -> tuple[str, ...]:
    """What a writer says a text was made from: each once, on one line."""
    if given is None:
        return ()
    if isinstance(given, bytes | dict) or not hasattr(given, "__iter__"):
        raise UsageError(Template(field("made_from"), f" must be a list, not {type(given).__name__}"), _FORMS)
    every: list[object] = [given] if isinstance(given, str) else _some(given)
    if len(every) > MOST:
        raise TooLarge(f"a text may be made from {MOST} things, this from more", "Name those that matter")
    kept: dict[str, None] = {}
    for number, one in enumerate(every, 1):
        if not isinstance(one, str) or not one.strip() or not one.isprintable():
            what = Template(f"not a source: number {number} of ", field("made_from"))  # it may be a secret: not repeated
            raise InvalidText(what, _FORMS)
        if len(one) > _MOST_CHARS:
            raise TooLarge(f"a source may have {_MOST_CHARS:,} characters, this has {len(one):,}", "Shorten the address")
        kept[one.strip()] = None
    return tuple(kept)


def _some(given: Iterable[object]) -> list[object]:
    """As many as tell whether they are too many; of a set in an order that is always the same."""
    from itertools import islice

    return list(islice(sorted(given, key=str) if isinstance(given, set | frozenset) else given, MOST + 1))


def resolved(
    given: tuple[str, ...], note: Callable[[str], Known | None], turn: Callable[[str], Known | None],
    exists: Callable[[str], bool],
) -> tuple[tuple[str, ...], str]:  # fmt: skip
    """What it was made from as it is kept, and the least trust of all that. `note` knows notes by key or id, `turn` turns by
    their citation, `exists` paths. What is given has passed the gate for secrets: errors repeat it."""
    every = [_one(what, note, turn, exists) for what in given]
    return tuple([kept for kept, _ in every]), least_trusted(ORIGINS[0], *[trust for _, trust in every])


def _one(
    what: str, note: Callable[[str], Known | None], turn: Callable[[str], Known | None], exists: Callable[[str], bool]
) -> Known:
    word = _WORD.match(what)
    kind, rest = (word[1].lower(), what[word.end() :]) if word else ("", what)
    if "://" in what:
        return what, "web"
    if kind == "note" or (not kind and (KEY_PATTERN.match(what) or _ID.match(what))):
        return note(rest) or _unknown(what, "note")
    if kind == "turn":
        return turn(rest) or _unknown(what, "turn")
    if kind in ("session", "tool", "file"):
        return what, "tool"
    if not kind and ("/" in what or "." in what):
        return what, "web" if _is_address(what) and not exists(what) else "tool"
    if kind:
        return what, "web"  # what we do not know is trusted least
    raise UsageError(f"not a source: {ascii(what)[:80]}", _FORMS)


def _is_address(what: str) -> bool:
    """Whether it reads as an address without its scheme: a host's name first, or two slashes."""
    first = what.partition("/")[0]
    return what.startswith("//") or ("." in first.strip(".") and not first.startswith("."))


def asked(what: str) -> tuple[str, str]:
    """What somebody means by a source: session, client, agent, origin, note, or what notes were made from; and its name."""
    if not isinstance(what, str) or not what.strip() or not what.isprintable():
        raise UsageError("which source?", _ASKED)
    kind, colon, name = what.strip().partition(":")
    if colon and kind in ("session", "client", "agent", "origin", "note") and not name.startswith("//"):
        if not name:
            raise UsageError(f"which {kind}?", _ASKED)
        if kind == "origin" and name not in ORIGINS:
            raise UsageError("unknown origin", f"One of: {', '.join(ORIGINS)}")
        return kind, name
    return "made", what.strip()


def matches(source: Source, kind: str, names: tuple[str, ...]) -> bool:
    """Whether a version came from what was asked for; names are several where one thing goes by several."""
    if kind in ("client", "agent"):
        return getattr(source, kind) in names
    if kind == "session":
        return source.session in names or any(f"session:{name}" in source.made_from for name in names)
    if kind == "origin":
        return source.origin in names or source.trusted in names
    return any(is_below(one, name) for one in source.made_from for name in names)


def is_below(what: str, name: str) -> bool:
    """Whether something is what a name says, or begins with it. Addresses are compared as a browser would go to them; a bare
    host is no beginning of a longer host's name."""
    kind, sign, _ = name.partition("://")
    return _begins(what, name) or _begins(_address(what, kind if sign else ""), _address(name))


def _begins(what: str, name: str) -> bool:
    if what == name or not what.startswith(name):
        return what == name
    _, address, place = name.partition("//")
    if name.endswith("/") or "/" in place:
        return True
    return bool(address or "/" in name or _is_address(name)) and what[len(name)] in "/:?#"


def _address(what: str, asked: str = "http") -> str:
    """An address without what makes no other place of it: http or https or neither, case of the host, who logs in, the port
    that is meant anyhow; and without any scheme where none is `asked` for. What is no address stays as it is."""
    scheme, sign, rest = what.partition("://")
    if not sign:
        if not _is_address(what):
            return what
        scheme, rest = "", what.removeprefix("//")
    end = min([rest.find(one) for one in "/?#\\" if one in rest], default=len(rest))
    host = rest[:end].rpartition("@")[2].lower()
    scheme = scheme.lower()
    for port in [":80"] * (scheme in ("http", "")) + [":443"] * (scheme in ("https", "")):
        host = host.removesuffix(port)
    kind = "" if not asked or scheme in ("", "http", "https") else f"{scheme}:"
    return f"{kind}//{host.rstrip('.')}{rest[end:] if rest[end:] != '/' else ''}"


def _unknown(what: str, kind: str) -> Known:
    said = f" names {ascii(what)[:80]}, and there is no such {kind} that you may see"
    raise NotFound(Template(field("made_from"), said), _FORMS)
