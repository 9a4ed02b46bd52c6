"""Compute the trust of a text: the least of its origin and of every source that it was made from.

user > agent > tool > import > web

| Made from | Trusted as |
|---|---|
| an address (`https://...`, `host.example/...`), or an unknown `word:...` | web |
| `note:KEY` or a note's id | that note |
| `turn:CITATION` | its speaker: user, agent (assistant, system), tool; an imported transcript: import; at most its token |
| `session:ID`, `tool:NAME`, a path | tool |
"""

from __future__ import annotations

from holdfast.base.ids import KEY_PATTERN
from holdfast.base.invisible import is_printable
from holdfast.base.lazy_re import pattern
from holdfast.errors import InvalidText, NotFound, Template, TooLarge, UsageError, field
from holdfast.models import ORIGINS, least_trusted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from holdfast.models import Source

    Resolved = tuple[str, str]  # how a source is stored, and its trust

MAX_SOURCES = 64  # of one text
_MAX_CHARS = 2000
_WORD = pattern(r"([A-Za-z][A-Za-z0-9+.-]*):")
_ID = pattern(r"[0-9A-HJKMNP-TV-Z]{16}\Z")
_QUERY_FIX = "Give an address or its beginning, a path, session:ID, client:NAME, agent:NAME, origin:web or note:KEY"
_MADE_FROM_FIX = "Give an address, a path, note:KEY, turn:CITATION, session:ID or tool:NAME"


def parse_made_from(given: object) -> tuple[str, ...]:
    """Return the sources that a writer names for a text, each once."""
    if given is None:
        return ()
    if isinstance(given, bytes | dict) or not hasattr(given, "__iter__"):
        raise UsageError(Template(field("made_from"), f" must be a list, not {type(given).__name__}"), _MADE_FROM_FIX)
    sources: list[object] = [given] if isinstance(given, str) else _take_some(given)
    if len(sources) > MAX_SOURCES:
        raise TooLarge(f"a note can name at most {MAX_SOURCES} sources", "Name the most important ones")
    kept: dict[str, None] = {}
    for number, source in enumerate(sources, 1):
        if not isinstance(source, str) or not source.strip() or not is_printable(source):
            message = Template(f"not a source: number {number} of ", field("made_from"))  # without it: it may be a secret
            raise InvalidText(message, _MADE_FROM_FIX)
        if len(source) > _MAX_CHARS:
            raise TooLarge(
                f"a source can have at most {_MAX_CHARS:,} characters, this one has {len(source):,}", "Shorten the address"
            )
        kept[source.strip()] = None
    return tuple(kept)


def _take_some(given: Iterable[object]) -> list[object]:
    """Return the sources, at most one more than allowed; those of a set are sorted."""
    from itertools import islice

    return list(islice(sorted(given, key=str) if isinstance(given, set | frozenset) else given, MAX_SOURCES + 1))


def resolve_made_from(
    given: tuple[str, ...], note: Callable[[str], Resolved | None], turn: Callable[[str], Resolved | None],
    exists: Callable[[str], bool],
) -> tuple[tuple[str, ...], str]:  # fmt: skip
    """Return the sources as they are stored, and the least trust of all of them.

    `note` resolves a note by key or id, `turn` a turn by its citation; `exists` tells whether a path exists. The sources must
    have been checked for secrets, because errors repeat them.
    """
    resolved = [_resolve_source(source, note, turn, exists) for source in given]
    return tuple([stored for stored, _ in resolved]), least_trusted(ORIGINS[0], *[trust for _, trust in resolved])


def _resolve_source(
    source: str, note: Callable[[str], Resolved | None], turn: Callable[[str], Resolved | None], exists: Callable[[str], bool]
) -> Resolved:
    word = _WORD.match(source)
    kind, rest = (word[1].lower(), source[word.end() :]) if word else ("", source)
    if "://" in source:
        return source, "web"
    if kind == "note" or (not kind and (KEY_PATTERN.match(source) or _ID.match(source))):
        return note(rest) or _raise_unknown(source, "note")
    if kind == "turn":
        return turn(rest) or _raise_unknown(source, "turn")
    if kind in ("session", "tool", "file"):
        return source, "tool"
    if not kind and ("/" in source or "." in source):
        return source, "web" if _is_address(source) and not exists(source) else "tool"
    if kind:
        return source, "web"  # an unknown kind gets the least trust
    raise UsageError(f"not a source: {ascii(source)[:80]}", _MADE_FROM_FIX)


def _is_address(source: str) -> bool:
    """Return whether a text looks like a URL without its scheme: it starts with a host name or two slashes."""
    first = source.partition("/")[0]
    return source.startswith("//") or ("." in first.strip(".") and not first.startswith("."))


def parse_source_query(query: str) -> tuple[str, str]:
    """Return the kind (session, client, agent, origin, note or made) and the name of the source that a caller asks for."""
    if not isinstance(query, str) or not query.strip() or not is_printable(query):
        raise UsageError("which source?", _QUERY_FIX)
    kind, colon, name = query.strip().partition(":")
    if colon and kind in ("session", "client", "agent", "origin", "note") and not name.startswith("//"):
        if not name:
            raise UsageError(f"which {kind}?", _QUERY_FIX)
        if kind == "origin" and name not in ORIGINS:
            raise UsageError("unknown origin", f"One of: {', '.join(ORIGINS)}")
        return kind, name
    return "made", query.strip()


def source_matches(source: Source, kind: str, names: tuple[str, ...]) -> bool:
    """Return whether a version came from a source that has one of these names."""
    if kind in ("client", "agent"):
        return getattr(source, kind) in names
    if kind == "session":
        return source.session in names or any(f"session:{name}" in source.made_from for name in names)
    if kind == "origin":
        return source.origin in names or source.trusted in names
    return any(is_within(made_from, name) for made_from in source.made_from for name in names)


def is_within(source: str, name: str) -> bool:
    """Return whether a source equals a name or starts with it.

    URLs are compared as a browser resolves them; a host is not the start of a longer host name.
    """
    kind, sign, _ = name.partition("://")
    return _starts_with(source, name) or _starts_with(
        _normalize_address(source, kind if sign else ""), _normalize_address(name)
    )


def _starts_with(source: str, name: str) -> bool:
    if source == name or not source.startswith(name):
        return source == name
    _, address, rest = name.partition("//")
    if name.endswith("/") or "/" in rest:
        return True
    return bool(address or "/" in name or _is_address(name)) and source[len(name)] in "/:?#"


def _normalize_address(source: str, query_scheme: str = "http") -> str:
    """Return a URL without http or https, user, default port and upper case in the host; other texts stay as they are.

    Other schemes are removed too if the URL that a caller asks for has none.
    """
    scheme, sign, rest = source.partition("://")
    if not sign:
        if not _is_address(source):
            return source
        scheme, rest = "", source.removeprefix("//")
    end = min([rest.find(mark) for mark in "/?#\\" if mark in rest], default=len(rest))
    host = rest[:end].rpartition("@")[2].lower()
    scheme = scheme.lower()
    for port in [":80"] * (scheme in ("http", "")) + [":443"] * (scheme in ("https", "")):
        host = host.removesuffix(port)
    kind = "" if not query_scheme or scheme in ("", "http", "https") else f"{scheme}:"
    return f"{kind}//{host.rstrip('.')}{rest[end:] if rest[end:] != '/' else ''}"


def _raise_unknown(source: str, kind: str) -> Resolved:
    problem = f" names {ascii(source)[:80]}, and there is no such {kind} that you may see"
    raise NotFound(Template(field("made_from"), problem), _MADE_FROM_FIX)
