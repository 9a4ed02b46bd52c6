"""Ways to spoil things: bytes of a database, and notes that no program of ours would write. Pure, and the same for a seed."""

from __future__ import annotations

import random

PAGE = 4096
FILES = ("index.db", "index.db-wal", "index.db-shm")
Files = dict[str, bytes]


# --- databases --------------------------------------------------------------------------------------------------------


def index(pristine: Files, foreign: bytes, seed: str) -> tuple[str, Files]:
    """What was done, and the files of the index after it."""
    chance = random.Random(seed)
    files = dict(pristine)
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        name = chance.choice([one for one in FILES for _ in range(3 if one == "index.db" else 2)])
        kind = chance.choice(sorted(_DAMAGES))
        files[name] = _DAMAGES[kind](files.get(name, b""), foreign, chance)
        done = f"{kind} in {name}"
    if chance.random() < 0.08:
        gone = chance.choice(FILES)
        files.pop(gone, None)
        done = f"{gone} is gone"
    return done, files


def _flip(data: bytes, _: bytes, chance: random.Random) -> bytes:
    changed = bytearray(data)
    for _number in range(chance.choice((1, 1, 2, 8, 64)) if changed else 0):
        changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
    return bytes(changed)


def _flip_in_head(data: bytes, _: bytes, chance: random.Random) -> bytes:
    changed = bytearray(data)
    for _number in range(3 if changed else 0):
        changed[chance.randrange(min(len(changed), 100))] = chance.randrange(256)
    return bytes(changed)


def _cut(data: bytes, _: bytes, chance: random.Random) -> bytes:
    return data[: chance.choice((0, 1, 15, 16, 99, 100, 512, PAGE - 1, PAGE, len(data) // 2, max(len(data) - 1, 0)))]


def _cut_anywhere(data: bytes, _: bytes, chance: random.Random) -> bytes:
    return data[: chance.randrange(len(data) + 1)]


def _zeros(data: bytes, _: bytes, chance: random.Random) -> bytes:
    start = chance.randrange(len(data) + 1)
    size = min(chance.choice((1, 16, 512, PAGE, 4 * PAGE, len(data))), len(data) - start)
    return data[:start] + bytes(size) + data[start + size :]


def _swapped_pages(data: bytes, _: bytes, chance: random.Random) -> bytes:
    pages = [data[at : at + PAGE] for at in range(0, len(data), PAGE)]
    if len(pages) > 1:
        one, other = chance.sample(range(len(pages)), 2)
        pages[one], pages[other] = pages[other], pages[one]
    return b"".join(pages)


def _twice(data: bytes, _: bytes, chance: random.Random) -> bytes:
    pages = [data[at : at + PAGE] for at in range(0, len(data), PAGE)]
    if pages:
        pages[chance.randrange(len(pages))] = chance.choice(pages)
    return b"".join(pages)


def _noise(data: bytes, _: bytes, chance: random.Random) -> bytes:
    start = chance.randrange(len(data) + 1)
    size = min(chance.choice((16, 200, PAGE)), len(data) - start)
    return data[:start] + chance.randbytes(size) + data[start + size :]


_DAMAGES = {
    "flipped bits": _flip,
    "a spoiled head": _flip_in_head,
    "cut": _cut,
    "cut anywhere": _cut_anywhere,
    "zeros": _zeros,
    "swapped pages": _swapped_pages,
    "a page in the place of another": _twice,
    "noise": _noise,
    "only noise": lambda data, _, chance: chance.randbytes(chance.choice((1, 100, 5000, 40_000))),
    "text": lambda data, _, chance: b"# A note\n\nthat somebody saved over it\n" * chance.choice((1, 300)),
    "more behind": lambda data, _, chance: data + chance.randbytes(chance.choice((1, PAGE, 3 * PAGE + 7))),
    "a foreign database": lambda data, foreign, chance: foreign,
    "the other half foreign": lambda data, foreign, chance: data[: len(data) // 2] + foreign[len(data) // 2 :],
    "empty": lambda data, _, chance: b"",
}


# --- notes ------------------------------------------------------------------------------------------------------------

_HEAD = "---\nid: 01K9Z6V0M4Q2AAAA\ntype: project\ntags: [a, b]\ncreated: 2026-04-16T10:30:00Z\nupdated: 2026-05-02T09:00:00Z\n"
_SOURCE = "source: {origin: user}\n"
_PAST = "\n<!-- holdfast:history -->\n## 2026-04-16T10:30:00Z to 2026-05-02T09:00:00Z\nThe text before.\n"
_FIELDS = (
    "type: nonsense", "type: [a]", "type: {a: b}", "type: 5", "type:", "tags: 5", "tags: {a: [b]}", "tags: [",
    "tags: [[[a]]]", "tags: 'a",
    "created: yesterday", "created: 99999-01-01", "created: []", "updated: 2026-13-45T99:99:99Z", "updated: -1",
    "updated: true",
    "valid_from: never", "valid_to: [1]", "valid_from: 2026-05-01\nvalid_to: 2025-05-01", "source: user",
    "source: {origin: root}",
    "source: {origin: [a]}", "source: [", "source: {origin: user, agent: {a: b}}", "pinned: perhaps", "pinned: [true]",
    "trust: 99",
    "trust: {}", "relations: [{}]", "relations: 7", "expires: soon", "id: ../../x", "id: [1]", "id: \"\"",
    "type: user\ntype: feedback",
    "tags: [a]\ntags: [b]", "? complex\n: key", "&a type: *a", "*nothing", "!!python/object/apply:os.system ['id']",
    "<<: *x", "\tid: x",
    "a: b: c", "- a\n- b", "{", "}", "]", "%YAML 9.9", "key: |\n  text\n bad", "key: >-\n\ttext", "\"unclosed: x", "@at: x",
    "`tick: x",
    "name: \u202eevil", "name: \x00", "name: \x1b[2J", "__proto__: x", "source: {origin: user, origin: web}", "tags: *a",
    "id: !!binary x",
)  # fmt: skip


def note(seed: str, token: str) -> tuple[str, bytes]:
    """What is wrong with it, and its bytes; the token stands in its text where there is one."""
    chance = random.Random(seed)
    kind = chance.choice(sorted(_NOTES))
    return kind, _NOTES[kind](token, chance)


def _good(token: str) -> str:
    return f"{_HEAD}{_SOURCE}---\n{token} is what it says.\n{_PAST}"


def _field(token: str, chance: random.Random) -> bytes:
    return f"{_HEAD}{chance.choice(_FIELDS)}\n---\n{token} after a bad field\n".encode("utf-8", "surrogateescape")


def _cut_note(token: str, chance: random.Random) -> bytes:
    whole = _good(token).encode()
    return whole[: chance.randrange(1, len(whole))]


def _flipped_note(token: str, chance: random.Random) -> bytes:
    return _flip(_good(token).encode(), b"", chance)


def _forged_history(token: str, chance: random.Random) -> bytes:
    mark = "<!-- holdfast:history -->"
    bodies = (
        f"{mark}\n{mark}\n{mark}\n", f"{mark}\n## 2026-01-01T00:00:00Z to 2020-01-01T00:00:00Z\nback in time\n", f"{mark}",
        f"{mark}\n## nonsense\ntext\n", f"{mark}\n## 9999-12-31T23:59:59Z to 0000-00-00T00:00:00Z\nx\n", f"a\n{mark}\n" * 40,
        f"{mark}\n<!-- holdfast:version {{origin: [}} -->\nx\n", f"{mark}\n<!-- holdfast:version {{recorded: never}} -->\n",
        f"\\{mark}\n",
        f"{mark}\n## 2026-01-01T00:00:00Z to 2026-02-01T00:00:00Z\n<!-- holdfast:version {'{' * 5000} -->\nx\n",
        f"<!-- holdfast:begin -->\n{mark}\n<!-- holdfast:end -->\n", f"{mark}\n" + "## 2026-01-01 to 2026-01-02\nx\n" * 500,
    )  # fmt: skip
    return f"{_HEAD}---\n{token} before\n\n{chance.choice(bodies)}".encode()


def _deep(token: str, chance: random.Random) -> bytes:
    deep = chance.choice((50, 1000, 20_000))
    forms = ("[" * deep, "[" * deep + "]" * deep, "{a: " * deep + "b" + "}" * deep,
        "\n".join("  " * n + "a:" for n in range(min(deep, 400))))
    return f"{_HEAD}extra: {chance.choice(forms)}\n---\n{token} deep\n".encode()


def _bomb(token: str, chance: random.Random) -> bytes:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, chance.choice((4, 12, 30)))]
    return f"{_HEAD}{chr(10).join(lines)}\n---\n{token} bomb\n".encode()


def _giant(token: str, chance: random.Random) -> bytes:
    size = chance.choice((10_000, 300_000, 1_200_000))
    forms = (f"type: {'x' * size}", f"tags: [{'a, ' * (size // 3)}b]", f"{'k' * size}: v",
        "\n".join(f"k{n}: v" for n in range(size // 60)))
    return f"{_HEAD}{chance.choice(forms)}\n---\n{token} giant\n".encode()


def _long_line(token: str, chance: random.Random) -> bytes:
    size = chance.choice((100_000, 1_000_000, 10_000_000))
    piece = chance.choice(("x", "word ", "- [2026-03-27] a: b ", "\u202e", "[[", "~~[", "記憶"))
    return f"{_HEAD}---\n{token} {piece * (size // len(piece.encode()))}\n".encode()


def _not_utf8(token: str, chance: random.Random) -> bytes:
    bad = chance.choice((b"\xff\xfe", b"\xc0\xaf", b"\xed\xa0\x80", b"\xf8\x88\x80\x80\x80", b"\x80", b"\xe2\x82"))
    where = chance.choice((b"type: project", token.encode(), b"is what"))
    return _good(token).encode().replace(where, where + bad, 1)


_NOTES = {
    "a bad field": _field,
    "bad fields again": _field,
    "and again": _field,
    "cut": _cut_note,
    "flipped bits": _flipped_note,
    "forged history": _forged_history,
    "deep nesting": _deep,
    "an alias bomb": _bomb,
    "giant fields": _giant,
    "a long line": _long_line,
    "not UTF-8": _not_utf8,
    "binary": lambda token, chance: chance.randbytes(chance.choice((1, 100, 5000))),
    "empty": lambda token,
    chance: chance.choice((b"", b"\n", b" ", b"---", b"---\n", b"---\n---\n", b"---\n---", b"\xef\xbb\xbf", b"\0")),
    "CRLF": lambda token, chance: _good(token).replace("\n", chance.choice(("\r\n", "\r"))).encode(),
    "BOM": lambda token, chance: chance.choice((b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")) + _good(token).encode(),
    "UTF-16": lambda token, chance: _good(token).encode(chance.choice(("utf-16", "utf-16-le", "utf-32"))),
    "NUL": lambda token, chance: _good(token).replace("what", "wh\0at", 1).encode() + bytes(chance.choice((0, 1, 5000))),
    "frontmatter never closed": lambda token, chance: f"{_HEAD}{token} {chance.choice(('x', '...', '--', '----'))}\n".encode(),
    "frontmatter twice": lambda token, chance: (_HEAD + "---\n" + _good(token)).encode(),
    "another kind of frontmatter": lambda token, chance: f"+++\ntype = 'x'\n+++\n{token}\n".encode(),
    "JSON": lambda token, chance: f'{{"type": "user", "text": "{token}"}}'.encode(),
    "HTML": lambda token, chance: f"<html><script>{token}</script></html>".encode(),
    "facts": lambda token,
    chance: f"{_HEAD}---\n{token}\n".encode() + b"- [2026-99-99] a: b\n- ~~[2026-03-20] x\n- [[[]]] :\n" * 50,
}  # fmt: skip
