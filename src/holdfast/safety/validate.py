"""The one gate of every write: size, encoding, secrets, keys, names, paths. Text in, verdict out. Pure.

Threat model: every argument comes from an agent that may be mistaken or steered by what it read. It may try to write
outside its tree, to overwrite what it did not mean, to make two different names meet, to break the file format or the
reader's terminal, or to fill the disk. Nothing here trusts a length, an encoding, a name or a path; nothing here
changes a value to make it fit: it passes unchanged or it is refused with what to do.
"""

from __future__ import annotations

from holdfast.base.ids import KEY_PATTERN, is_name
from holdfast.base.lazy_re import pattern
from holdfast.base.markdown import strip_bold
from holdfast.errors import (
    DOCTOR,
    REDACT,
    InvalidKey,
    InvalidPath,
    InvalidText,
    Refused,
    SecretFound,
    Template,
    TooLarge,
    UsageError,
    argument,
    command,
    field,
)
from holdfast.models import ORIGINS, TYPES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_CONTROL = pattern(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_TRICKS = pattern(  # control, invisible and bidi characters, and what looks like a slash
    r"[\x00-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    r"\u2044\u2215\u2216\u2571\u29f5\u29f8\u29f9\u3164\ufeff\uffa0\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e0fff\\]"
)
_PERCENT = pattern(r"%(?:[0-9a-fA-F]{2}|[uU][0-9a-fA-F]{4})")
_ROOT = "/memories"
_KINDS = {  # what JSON has beside texts
    "int": "a number", "float": "a number", "bool": "true or false", "list": "a list", "dict": "an object",
    "NoneType": "nothing",
}  # fmt: skip
_LONG = 64 * 1024  # characters: beyond, the rules themselves tell it quicker
_AROUND = 16 * 1024  # characters before and behind a piece of a text in which the rest of a secret may stand
_number = int.from_bytes
_MARKED = b"\0" + b"\1" * 255
_starts: list[Any] = []  # how anchors of rules for secrets start, as `_learned` tells


def text(value: object, cap: int, what: str = "a note", before: str = "", allowed: bool = False) -> str:
    """The text, if it may be kept. A secret that stands in the text `before` is nothing new; one that is `allowed`, a wish."""
    value = decoded(value)
    if not value.strip().strip("\ufeff"):
        raise InvalidText("empty content", "Give some text to remember")
    if "\0" in value:
        raise InvalidText(f"a NUL byte at character {value.index(chr(0))}", "Only text can be kept")
    size = len(encoded(value))
    if size > cap:
        more = ", or raise notes.max_bytes" if what == "a note" else ""
        fix = f"Split it, keep a summary with a pointer to the source{more}"
        raise TooLarge(f"{what} may have {cap:,} bytes, this has {size:,}", fix)
    if not allowed:
        no_secret(value, what, before)
    return value


def decoded(value: object) -> str:
    """Text as it came, or as UTF-8 says it."""
    if isinstance(value, bytes):
        try:
            value = value.decode("utf-8")
        except UnicodeDecodeError as error:
            raise InvalidText(f"not UTF-8: byte {error.start}", "Convert the text to UTF-8 first") from None
    if not isinstance(value, str):
        raise UsageError(Template(field("text"), f" must be a string, not {type(value).__name__}"), "Give it as text")
    return value


def no_secret(value: str, what: str, before: str = "", fix: str | Template = "") -> None:
    """Refuse what looks like a secret, by its rule and line and never by itself (S2)."""
    value = _seen(value)
    if is_plain(value):
        return
    from holdfast.safety import secrets

    found = tuple([one for one in secrets.found(value) if not before or value[one.start : one.end] not in before])
    if found:
        insist = command("store --allow-secret WHY")
        fix = fix or Template("Leave it out, or keep it with ", REDACT, "; a person may insist: ", insist)
        raise SecretFound(f"{what} seems to hold a secret: {secrets.named(value, found)}", fix)


def wish(body: str, origin: str, why: object) -> tuple[str, str]:
    """A person's wish to keep a secret: which rules and why, for the ledger; and the text without it, to name it by."""
    if origin != ORIGINS[0]:
        raise Refused("only a person may keep a secret, and this comes from " + origin, "Store it with redact=True")
    if not isinstance(why, str) or not why.strip():
        such = Template("Such as ", argument("allow_secret", "a test account"))
        raise UsageError(Template(field("allow_secret"), " must say why, in words"), such)
    reason = one_line(why, "reason", 500)
    no_secret(reason, "the reason", fix="Say why without it")
    clean, rules = redacted(body)
    return (f"{', '.join(rules)}: {reason}" if rules else "", clean)


def redacted(value: str) -> tuple[str, tuple[str, ...]]:
    """The text with the names of rules in place of secrets, and those names. Where hidden characters hide one, it goes without
    them."""
    seen = _seen(value) if isinstance(value, str) else ""  # what is no text is for `text` to refuse
    if is_plain(seen):
        return value, ()
    from holdfast.safety import secrets

    clean, rules = secrets.redacted(seen)
    return (clean, rules) if rules else (value, ())


def _seen(value: str) -> str:
    """The text as eyes see it: characters that nobody sees must not hide a secret."""
    if value.isascii() and "\x1b" not in value and "\b" not in value:
        return value
    from holdfast.safety import hidden_chars

    return hidden_chars.remove_hidden(value)


def cleaned(value: str) -> str:
    """The text as it may be shown, with the names of rules in place of secrets: the same text where there is none."""
    return withheld(value)[0]


class Cut(str):
    """A piece of a longer text, with what stands around it there: part of a secret is known by the rest."""

    before: str
    after: str


def cut(piece: str, before: str, after: str) -> str:
    """A piece of a text, before it is told to anybody. The end of its last line is not part of it."""
    if piece.endswith("\r") and after.startswith("\n"):
        piece, after = piece[:-1], "\r" + after
    if not before and not after:
        return piece
    made = Cut(piece)
    made.before, made.after = before[-_AROUND:], after[:_AROUND]
    return made


def around(value: str) -> str:
    """A text with what stands around it, as far as that is known."""
    return f"{value.before}{value}{value.after}" if isinstance(value, Cut) else value


def withheld(value: str) -> tuple[str, tuple[str, ...]]:
    """As `redacted`, where nobody can be asked to split a text that is too long to tell: a mark stands for all of it."""
    try:
        return _withheld_of_cut(value) if isinstance(value, Cut) else redacted(value)
    except TooLarge:
        return "[REDACTED:too-long-to-tell]", ("too-long-to-tell",)


def _withheld_of_cut(value: Cut) -> tuple[str, tuple[str, ...]]:
    """First what reaches into the piece from before it or out of it, then what stands in it alone."""
    before, piece, after = _seen(value.before), _seen(value), _seen(value.after)
    whole, start, end = f"{before}{piece}{after}", len(before), len(before) + len(piece)
    if is_plain(whole):
        return str(value), ()
    from holdfast.safety import secrets

    hits = [hit for hit in secrets.found(whole) if hit.start < end and hit.end > start]
    parts, last = [], start
    for hit in hits:
        parts += [whole[last : max(hit.start, start)], f"{secrets.MARK}{hit.rule}]"]
        last = hit.end
    clean, rules = redacted("".join([*parts, whole[last:end]]) if hits else str(value))
    return clean, tuple(dict.fromkeys([*[hit.rule for hit in hits], *rules]))


def string(value: object, what: str, needed: bool = False) -> str | None:
    """A text that somebody gave, or none where it may be left out."""
    if isinstance(value, str) or (value is None and not needed):
        return value
    raise UsageError(Template(field(what), f" must be a string, not {type(value).__name__}"), f"Give the {what}")


def session(session: object, client: object, needed: bool = False) -> tuple[Any, Any]:
    """Which session is meant, and of which client."""
    return string(session, "session", needed), string(client, "client")


def is_plain(value: str) -> bool:
    """Whether no rule for secrets has anything to look at in it: none of its anchors stands there. Here, and not in the room of
    the rules, because every write asks: all places are looked at in one go, each a byte of one large number."""
    if len(value) > _LONG:
        return False
    if not _starts:
        _starts[:] = _learned()  # of several threads at once each puts the same
    kinds, first, second, third, anchors = _starts
    data = value.lower().encode("utf-8", "surrogatepass")
    pairs = _pairs(data, kinds)
    may_start = _number(pairs.translate(first), "little")
    may_start &= _number(pairs.translate(second), "little") >> 8
    may_start &= _number(pairs.translate(third), "little") >> 16
    places = may_start.to_bytes(len(data), "little").translate(_MARKED)
    place = places.find(1)
    while place >= 0:
        for anchor in anchors.get(data[place : place + 3], ()):
            if data.startswith(anchor, place):
                return False
        place = places.find(1, place + 1)
    return True


def _pairs(data: bytes, kinds: bytes) -> bytes:
    """A byte for each pair of neighbours, of 32 kinds of characters each: not every two pairs have two."""
    row = _number(data.translate(kinds), "little")
    return (row << 3 ^ row >> 8).to_bytes(len(data), "little")


def _learned() -> list[Any]:
    """The kinds of characters; of anchors in eight groups, a bit each, which pairs they have first, second and third; and the
    anchors by their first three bytes."""
    from holdfast.safety.secrets.anchors import ANCHORS

    kinds = bytes([byte & 31 if 97 <= byte <= 122 else 0 if byte <= 32 else 27 + byte % 5 for byte in range(256)])
    anchors = sorted([anchor.encode() for anchor in ANCHORS], key=lambda one: len(one) > 3)  # the short in few groups
    pairs_of = [bytearray(256), bytearray(256), bytearray(256)]
    for group in range(8):
        some = anchors[group * len(anchors) // 8 : (group + 1) * len(anchors) // 8]
        pairs = _pairs(b"".join([anchor[:4].ljust(4) for anchor in some]), kinds)
        for place, known in enumerate(pairs_of):
            anything = place == 2 and len(some[0]) == 3  # may follow
            for pair in range(256) if anything else pairs[place::4]:
                known[pair] |= 1 << group
    starts: dict[bytes, list[bytes]] = {}
    for anchor in anchors:
        starts.setdefault(anchor[:3], []).append(anchor)
    return [kinds, *map(bytes, pairs_of), starts]


def encoded(value: str) -> bytes:
    """The text as UTF-8; a lone surrogate is refused."""
    try:
        return value.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InvalidText(f"not Unicode: a lone surrogate at character {error.start}", "Repair the text") from None


def key(value: object, otherwise: str | Template = "or leave it out and one is made") -> str:
    """An explicit key is right or it is refused; never changed, so that two keys cannot meet."""
    if isinstance(value, str) and KEY_PATTERN.match(value):
        return value
    what = f"not a valid key: {_show(value)}" if isinstance(value, str) else f"a key is a text, not {_kind(value)}"
    rule = "A key is 1 to 60 of a-z, 0-9 and '-', starting with a letter or digit; "
    raise InvalidKey(what, Template(rule, otherwise))


def key_of_note(value: object) -> str:
    """The key of a note that should be there: a person may have given its file a name that is none."""
    return key(value, Template("for a file that is called otherwise, ", DOCTOR, " prints the `mv` that gives it one"))


def name(value: object, what: str) -> str:
    """The id of a project, agent or session."""
    if not isinstance(value, str) or not is_name(value):
        raise InvalidKey(
            f"not a valid {what}: {_show(value)}", "Use 1 to 128 of A-Z a-z 0-9 . _ - that do not start with a dot"
        )
    return value


def type_(value: object) -> str:
    return choice(value, TYPES, "type")


def origin(value: object) -> str:
    return choice(value, ORIGINS, "origin")


def of_their_kind(type: object, origin_: object, expected: object) -> None:
    """Refuse what is said about a note and is no word, be it empty, 0 or false: None alone is not given."""
    if type is not None:
        type_(type)
    if origin_ is not None:
        origin(origin_)
    string(expected, "expected")


def tags(values: tuple[str, ...]) -> tuple[str, ...]:
    """Few, short, on one line."""
    if len(values) > 64:
        raise TooLarge(f"a note may have 64 tags, this has {len(values)}", "Give fewer")
    for value in values:
        if len(value) > 100:
            raise TooLarge(f"a tag may have 100 characters, this has {len(value)}: {_show(value)}", "Give a shorter one")
        if _CONTROL.search(value):
            raise InvalidText(f"a control character in tag {_show(value)}", "Tags stand on one line")
    no_secret("\n".join(values), "a tag", fix="Leave it out")
    return values


def one_line(value: object, what: str, most: int = 2000) -> str:
    """A subject, label or value of a fact: one line of its own."""
    if not isinstance(value, str) or not value.strip():
        raise InvalidText(f"empty {what}", "A fact has a subject, a label and a value")
    if not value.isprintable() and _CONTROL.search(value):
        raise InvalidText(f"a line break or control character in the {what}", "A fact stands on one line")
    if len(value) > most:
        raise TooLarge(f"the {what} of a fact may have {most} characters, this has {len(value)}", "Store it as a note")
    return " ".join(value.split(" ")).strip()


def label(value: object) -> str:
    """A fact's label: the text before its colon, without `**` around it."""
    text_ = strip_bold(one_line(value, "label", 200))
    if ":" in text_:
        raise InvalidText(f"a colon in the label {_show(text_)}", "The label is the text before the colon")
    if text_.startswith("~~"):
        raise InvalidText(f"the label {_show(text_)} begins with ~~, which marks a closed fact", "Leave the ~~ out")
    return text_


def fact(
    subject: object, label_: object, value: object, redact: bool, *, reads_back: Callable[[str, str], bool]
) -> tuple[str, str, str, tuple[str, ...]]:
    """A subject, a label and a value that may be stated, and the rules whose names stand in place of secrets. Only of the value
    anything is left out: whether it is a secret, the label says."""
    about, name, said = one_line(subject, "subject", 200), label(label_), one_line(value, "value")
    before = f"{about}\n{name}: "
    clean, rules = redacted(before + said) if redact else (before + said, ())
    if clean.startswith(before):
        said = clean.removeprefix(before)
    fix = Template("State where it is kept, not what it is; or keep it with ", REDACT)
    no_secret(before + said, "the fact", fix=fix)
    if not reads_back(name, said):
        raise InvalidText(
            f"the value {_show(said)} reads like a closed fact", "Leave out `superseded DATE`; give the date of the fact itself"
        )
    return about, name, said, rules


def path(value: object) -> tuple[str, ...]:
    """The parts of a path in the files tree. `/memories/x` and `x` mean the same place; nothing else absolute."""
    if not isinstance(value, str) or not value.strip():
        raise InvalidPath("an empty path", "Name a file, such as notes/today.md")
    if len(value) > 1024:
        raise InvalidPath("a path longer than 1,024 characters", "Choose a shorter one")
    if _TRICKS.search(value) or _PERCENT.search(_folded(value)):
        raise InvalidPath(f"hidden, escaped or percent-encoded characters in {_show(value)}", "Write the plain path")
    rest = value
    if value == _ROOT or value.startswith(_ROOT + "/"):
        rest = value[len(_ROOT) + 1 :]
    elif value.startswith("/") or value[1:2] == ":":
        raise InvalidPath(f"an absolute path: {_show(value)}", f"Paths start at {_ROOT}")
    parts = tuple(rest.removesuffix("/").split("/")) if rest else ()
    for part in parts:
        _part(part, value)
    return parts


def _part(part: str, whole: str) -> None:
    folded = _folded(part)
    if not folded.strip(" .\u3002") or "/" in folded or "\\" in folded:
        raise InvalidPath(f"a part that is empty, climbs or hides: {_show(whole)}", "Write the plain path")
    if folded.startswith((".", "~")):
        raise InvalidPath(f"a hidden name in {_show(whole)}", "Names do not start with a dot or a tilde")
    if folded.startswith(" ") or folded.endswith((" ", ".")):
        raise InvalidPath(f"a space around a name or a dot after it: {_show(whole)}", "Leave that off")
    if len(part.encode()) > 255:
        raise InvalidPath("a name longer than 255 bytes", "Choose a shorter one")


def _folded(value: str) -> str:
    """As systems see it that take look-alikes for the same."""
    if value.isascii():
        return value
    import unicodedata

    return unicodedata.normalize("NFKC", value)


def choice(value: object, allowed: tuple[str, ...], what: str) -> str:
    """One of a few words."""
    if not isinstance(value, str) or value not in allowed:
        raise UsageError(f"unknown {what} {_show(value)}", f"One of: {', '.join(allowed)}")
    return value


def _kind(value: object) -> str:
    """What it is that should be a text, in words for who wrote JSON."""
    return _KINDS.get(type(value).__name__, type(value).__name__)


def _show(value: object) -> str:
    text_ = cleaned(value if isinstance(value, str) else repr(value))
    return ascii(text_ if len(text_) <= 80 else text_[:77] + "...")
