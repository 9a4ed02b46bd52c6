"""The gate that every write passes: size, encoding, secrets, keys, names and paths.

Threat model: every argument comes from an agent that may be mistaken or controlled by text it has read. It may try to write
outside its tree, to overwrite other notes, to make two names collide, to break the file format or the reader's terminal, or to
fill the disk. Nothing here trusts a length, an encoding, a name or a path, and nothing changes a value to make it fit: a value
passes unchanged or is rejected with a hint.
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
    from collections.abc import Callable, Container
    from typing import Any

_CONTROL = pattern(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_DECEPTIVE = pattern(  # control, invisible and bidi characters, and what looks like a slash
    r"[\x00-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    r"\u2044\u2215\u2216\u2571\u29f5\u29f8\u29f9\u3164\ufeff\uffa0\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e0fff\\]"
)
_PERCENT = pattern(r"%(?:[0-9a-fA-F]{2}|[uU][0-9a-fA-F]{4})")
_ROOT = "/memories"
_JSON_KINDS = {
    "int": "a number", "float": "a number", "bool": "true or false", "list": "a list", "dict": "an object",
    "NoneType": "nothing",
}  # fmt: skip
ALIASES = {"content": "text", "memory_type": "type", "search_mode": "mode", "sort_by": "sort"}  # names of similar tools
_PLAIN_PATH = "Write the plain path, such as notes/today.md, without `..`, empty parts or escapes"
_CONTEXT_CHARS = 16 * 1024  # before and after an excerpt, where the rest of a secret may be


def check_text(value: object, max_bytes: int, description: str = "a note", before: str = "", allowed: bool = False) -> str:
    """Return a text that may be stored; secrets that are also in the text `before`, or if `allowed` all secrets, may stay."""
    value = decode_text(value)
    if not value.strip().strip("\ufeff"):
        raise InvalidText("empty content", "Pass the text to store")
    if "\0" in value:
        raise InvalidText(f"a NUL byte at character {value.index(chr(0))}", "Only text can be stored")
    size = len(encode_text(value))
    if size > max_bytes:
        more = ", or raise notes.max_bytes" if description == "a note" else ""
        fix = f"Split it, or store a summary that names the source{more}"
        raise TooLarge(f"{description} can have at most {max_bytes:,} bytes, this one has {size:,}", fix)
    if not allowed:
        reject_secrets(value, description, before)
    return value


def decode_text(value: object) -> str:
    """Return a text, decoding bytes as UTF-8."""
    if isinstance(value, bytes):
        try:
            value = value.decode("utf-8")
        except UnicodeDecodeError as error:
            raise InvalidText(f"not UTF-8: byte {error.start}", "Convert the text to UTF-8 first") from None
    return require_text(value)


def require_text(value: object) -> str:
    """Return a text; raise UsageError if it is not a string."""
    if not isinstance(value, str):
        raise UsageError(Template(field("text"), f" must be a string, not {type(value).__name__}"), "Give it as text")
    return value


def reject_secrets(value: str, description: str, before: str = "", fix: str | Template = "") -> None:
    """Raise SecretFound, which names the rule and the line but never the secret."""
    from holdfast.safety.secrets.prefilter import is_surely_clean

    value = _strip_hidden(value)
    if is_surely_clean(value):
        return
    from holdfast.safety import secrets

    matches = secrets.find_secrets(value)
    found = tuple([match for match in matches if not before or value[match.start : match.end] not in before])
    if found:
        leave = Template("Remove the secret, or store it with ", REDACT)
        insist = Template("; a person can allow it: ", command("store --allow-secret WHY"))
        fix = fix or (Template(leave, insist) if description == "a note" else leave)
        raise SecretFound(f"{description} seems to contain a secret: {secrets.describe(value, found)}", fix)


def allow_secret(body: str, origin: str, reason: object) -> tuple[str, str]:
    """Return which secrets a person keeps and why, for the ledger, and the text without them."""
    if origin != ORIGINS[0]:
        raise Refused("only a person can store a secret, and this comes from " + origin, Template("Store it with ", REDACT))
    if not isinstance(reason, str) or not reason.strip():
        such = Template("Such as ", argument("allow_secret", "a test account"))
        raise UsageError(Template(field("allow_secret"), " needs a reason, in words"), such)
    reason = check_line(reason, "reason", 500)
    reject_secrets(reason, "the reason", fix="Give a reason that does not contain the secret")
    clean, rules = redact(body)
    return (f"{', '.join(rules)}: {reason}" if rules else "", clean)


def redact(value: str) -> tuple[str, tuple[str, ...]]:
    """Return the text with the names of rules in place of secrets, and those names.

    If hidden characters split a secret, they are removed too; raise TooLarge if the text is too long to search.
    """
    from holdfast.safety.secrets.prefilter import is_surely_clean

    seen = _strip_hidden(value) if isinstance(value, str) else ""  # `text` rejects other types
    if is_surely_clean(seen):
        return value, ()
    from holdfast.safety import secrets

    clean, rules = secrets.redact(seen)
    return (clean, rules) if rules else (value, ())


def _strip_hidden(value: str) -> str:
    """Return the text without hidden characters, which must not hide a secret."""
    if value.isascii() and "\x1b" not in value and "\b" not in value:
        return value
    from holdfast.safety import hidden_chars

    return hidden_chars.remove_hidden(value)


def hide_secrets(value: str) -> str:
    """Return the text as it may be shown: with the names of rules in place of secrets."""
    return redact_or_withhold(value)[0]


class Excerpt(str):
    """A part of a longer text, with the text around it, without which part of a secret is not recognized."""

    before: str
    after: str


def make_excerpt(piece: str, before: str, after: str) -> str:
    """Return a part of a text together with its context; the line ending after it is not part of it."""
    if piece.endswith("\r") and after.startswith("\n"):
        piece, after = piece[:-1], "\r" + after
    if not before and not after:
        return piece
    made = Excerpt(piece)
    made.before, made.after = before[-_CONTEXT_CHARS:], after[:_CONTEXT_CHARS]
    return made


def join_context(value: str) -> str:
    """Return a text with the text around it, as far as that is known."""
    return f"{value.before}{value}{value.after}" if isinstance(value, Excerpt) else value


def redact_or_withhold(value: str) -> tuple[str, tuple[str, ...]]:
    """Redact a text for display; a mark replaces a text that is too long to search."""
    try:
        return _redact_excerpt(value) if isinstance(value, Excerpt) else redact(value)
    except TooLarge:
        return "[REDACTED:too-long-to-tell]", ("too-long-to-tell",)


def _redact_excerpt(value: Excerpt) -> tuple[str, tuple[str, ...]]:
    """Redact secrets that reach into or out of the excerpt, then those within it."""
    from holdfast.safety.secrets.prefilter import is_surely_clean

    before, piece, after = _strip_hidden(value.before), _strip_hidden(value), _strip_hidden(value.after)
    whole, start, end = f"{before}{piece}{after}", len(before), len(before) + len(piece)
    if is_surely_clean(whole):
        return str(value), ()
    from holdfast.safety import secrets

    hits = [hit for hit in secrets.find_secrets(whole) if hit.start < end and hit.end > start]
    parts, last = [], start
    for hit in hits:
        parts += [whole[last : max(hit.start, start)], f"{secrets.MARK}{hit.rule}]"]
        last = hit.end
    clean, rules = redact("".join([*parts, whole[last:end]]) if hits else str(value))
    return clean, tuple(dict.fromkeys([*[hit.rule for hit in hits], *rules]))


def check_string(value: object, field_name: str, required: bool = False) -> str | None:
    """Return a string, or None if it may be left out."""
    if isinstance(value, str) or (value is None and not required):
        return value
    raise UsageError(Template(field(field_name), f" must be a string, not {type(value).__name__}"), f"Give the {field_name}")


def check_session(session: object, client: object, required: bool = False) -> tuple[Any, Any]:
    """Return the session and its client."""
    return check_string(session, "session", required), check_string(client, "client")


def encode_text(value: str) -> bytes:
    """Return the text as UTF-8; raise InvalidText for a lone surrogate."""
    try:
        return value.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InvalidText(f"not Unicode: a lone surrogate at character {error.start}", "Repair the text") from None


def check_key(value: object, fix: str | Template = "or leave it out to get one") -> str:
    """Return a valid key; it is never changed, so that two keys cannot collide."""
    if isinstance(value, str) and KEY_PATTERN.match(value):
        return value
    problem = (
        f"not a valid key: {_show(value)}" if isinstance(value, str) else f"a key must be a string, not {_json_kind(value)}"
    )
    rule = "A key is 1 to 60 of a-z, 0-9 and '-', starting with a letter or digit; "
    raise InvalidKey(problem, Template(rule, fix))


def check_platform_key(value: object) -> str:
    """Return a key of any printable text in Unicode's form NFC, so that two spellings of the same characters are one key.

    Raise InvalidKey for hidden characters, for spaces other than the ordinary one, and for a space at either end.
    """
    from holdfast.base import invisible, platform_keys

    rule = f"A key is 1 to {platform_keys.MAX_CHARS} printable characters, without a space at either end"
    if not isinstance(value, str):
        raise InvalidKey(f"a key must be a string, not {_json_kind(value)}", rule)
    if not 0 < len(value) <= platform_keys.MAX_CHARS:
        raise InvalidKey(f"not a valid key: it has {len(value):,} characters", rule)
    encode_text(value)
    key = platform_keys.normalize(value)
    hidden = [mark.start for mark in invisible.find_marks(key)] + [at for at, char in enumerate(key) if _is_odd_space(char)]
    if hidden or key != key.strip():
        shown = f"it has the hidden character {invisible.char_number(key[hidden[0]])}" if hidden else "it has a space at an end"
        raise InvalidKey(f"not a valid key: {shown}", rule)
    return key


def _is_odd_space(char: str) -> bool:
    return char != " " and char.isspace()


def check_existing_key(value: object) -> str:
    """Return the key of a note that should exist; the error explains files whose name is not a key."""
    return check_key(value, Template("for a file with another name, ", DOCTOR, " prints the `mv` command that renames it"))


def check_name(value: object, kind: str) -> str:
    """Return a valid id of a project, agent or session."""
    if not isinstance(value, str) or not is_name(value):
        raise InvalidKey(
            f"not a valid {kind}: {_show(value)}", "Use 1 to 128 of A-Z a-z 0-9 . _ - that do not start with a dot"
        )
    return value


def check_note_type(value: object) -> str:
    return check_choice(value, TYPES, "type")


def check_origin(value: object) -> str:
    return check_choice(value, ORIGINS, "origin")


def check_note_properties(type: object, origin: object, expected: object) -> None:
    """Reject an invalid type, origin or expected version; only None counts as not given."""
    if type is not None:
        check_note_type(type)
    if origin is not None:
        check_origin(origin)
    check_string(expected, "expected")


def check_tags(values: tuple[str, ...]) -> tuple[str, ...]:
    """Return at most 64 tags of at most 100 characters, each on one line."""
    if len(values) > 64:
        raise TooLarge(f"a note can have at most 64 tags, this one has {len(values)}", "Give fewer")
    for value in values:
        if len(value) > 100:
            raise TooLarge(
                f"a tag can have at most 100 characters, this one has {len(value)}: {_show(value)}", "Give a shorter one"
            )
        if _CONTROL.search(value):
            raise InvalidText(f"a control character in tag {_show(value)}", "Write the tag on one line")
    reject_secrets("\n".join(values), "a tag", fix="Leave it out")
    return values


def check_line(value: object, field_name: str, max_chars: int = 2000) -> str:
    """Return a subject, label or value of a fact: one line of at most `max_chars` characters."""
    if not isinstance(value, str) or not value.strip():
        raise InvalidText(f"empty {field_name}", "Give a subject, a label and a value")
    if not value.isprintable() and _CONTROL.search(value):
        raise InvalidText(f"a line break or control character in the {field_name}", "Write the fact on one line")
    if len(value) > max_chars:
        raise TooLarge(
            f"the {field_name} of a fact can have at most {max_chars} characters, this one has {len(value)}",
            "Store it as a note",
        )
    return " ".join(value.split(" ")).strip()


def check_label(value: object) -> str:
    """Return the label of a fact: the text before its colon, without `**` around it."""
    label = strip_bold(check_line(value, "label", 200))
    if ":" in label:
        raise InvalidText(f"a colon in the label {_show(label)}", "The label is the text before the colon")
    if label.startswith("~~"):
        raise InvalidText(f"the label {_show(label)} begins with ~~, which marks a closed fact", "Leave the ~~ out")
    return label


def check_fact(
    subject: object, label: object, value: object, is_redacting: bool, *, reads_back: Callable[[str, str], bool]
) -> tuple[str, str, str, tuple[str, ...]]:
    """Return a valid subject, label and value, and the rules whose names replace secrets in the value.

    `reads_back` tells whether a line with this label and value is parsed as exactly that. Only the value is redacted, but the
    label helps to recognize a secret.
    """
    valid_subject, valid_label = check_line(subject, "subject", 200), check_label(label)
    valid_value = check_line(value, "value")
    before = f"{valid_subject}\n{valid_label}: "
    clean, rules = redact(before + valid_value) if is_redacting else (before + valid_value, ())
    if clean.startswith(before):
        valid_value = clean.removeprefix(before)
    secret_fix = Template("Store where the secret is kept, not the secret; or store it with ", REDACT)
    reject_secrets(before + valid_value, "the fact", fix=secret_fix)
    if not reads_back(valid_label, valid_value):
        raise InvalidText(
            f"the value {_show(valid_value)} looks like a closed fact",
            "Leave out `superseded DATE`; give the date of the fact itself",
        )
    return valid_subject, valid_label, valid_value, rules


def check_path(value: object) -> tuple[str, ...]:
    """Return the parts of a path in the file tree; `/memories/x` and `x` are the same, other absolute paths are rejected."""
    if not isinstance(value, str) or not value.strip():
        raise InvalidPath("an empty path", "Name a file, such as notes/today.md")
    if len(value) > 1024:
        raise InvalidPath("a path longer than 1,024 characters", "Choose a shorter one")
    if _DECEPTIVE.search(value) or _PERCENT.search(_normalize(value)):
        raise InvalidPath(f"hidden, escaped or percent-encoded characters in {_show(value)}", _PLAIN_PATH)
    rest = value
    if value == _ROOT or value.startswith(_ROOT + "/"):
        rest = value[len(_ROOT) + 1 :]
    elif value.startswith("/") or value[1:2] == ":":
        raise InvalidPath(f"an absolute path: {_show(value)}", f"Paths start at {_ROOT}")
    parts = tuple(rest.removesuffix("/").split("/")) if rest else ()
    for part in parts:
        _check_path_part(part, value)
    return parts


def _check_path_part(part: str, whole: str) -> None:
    folded = _normalize(part)
    if not folded.strip(" .\u3002") or "/" in folded or "\\" in folded:
        raise InvalidPath(f"an empty, relative or hidden part in the path {_show(whole)}", _PLAIN_PATH)
    if folded.startswith((".", "~")):
        raise InvalidPath(f"a hidden name in {_show(whole)}", "Names do not start with a dot or a tilde")
    if folded.startswith(" ") or folded.endswith((" ", ".")):
        raise InvalidPath(f"a name that begins or ends with a space, or ends with a dot: {_show(whole)}", "Remove it")
    if len(part.encode()) > 255:
        raise InvalidPath("a name longer than 255 bytes", "Choose a shorter one")


def _normalize(value: str) -> str:
    """Return the text in NFKC, as file systems do that treat look-alikes as equal."""
    if value.isascii():
        return value
    import unicodedata

    return unicodedata.normalize("NFKC", value)


def resolve_aliases(given: dict[str, Any], known: Container[str]) -> dict[str, Any]:
    """Return arguments with the known names in place of their aliases; raise UsageError if both are given and differ."""
    alias = find_conflict(given, known)
    if alias:
        what = f"{alias} is an alias of {ALIASES[alias]}, and both are given with different values"
        raise UsageError(what, f"Give only {ALIASES[alias]}")
    names = {alias: name for alias, name in ALIASES.items() if alias in given and alias not in known and name in known}
    return {names.get(name, name): value for name, value in given.items()} if names else given


def find_conflict(given: dict[str, Any], known: Container[str]) -> str:
    """Return an alias that is given beside its name with another value, or an empty string."""
    for alias, name in ALIASES.items():
        if name in known and alias not in known and alias in given and given.get(name, given[alias]) != given[alias]:
            return alias
    return ""


def check_choice(value: object, allowed: tuple[str, ...], field_name: str) -> str:
    """Return one of the allowed words."""
    if not isinstance(value, str) or value not in allowed:
        raise UsageError(f"unknown {field_name} {_show(value)}", f"One of: {', '.join(allowed)}")
    return value


def _json_kind(value: object) -> str:
    """Return the name of a value's JSON type."""
    return _JSON_KINDS.get(type(value).__name__, type(value).__name__)


def _show(value: object) -> str:
    shown = hide_secrets(value if isinstance(value, str) else repr(value))
    return ascii(shown if len(shown) <= 80 else shown[:77] + "...")
