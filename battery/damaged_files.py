"""Generate damaged index files and malformed notes; the same seed gives the same bytes."""

from __future__ import annotations

import random
from collections.abc import Callable

_PAGE = 4096  # bytes
INDEX_FILES = ("index.db", "index.db-wal", "index.db-shm")
Files = dict[str, bytes]


# --- index files ------------------------------------------------------------------------------------------------------


def damage_index(index_files: Files, foreign: bytes, seed: str) -> tuple[str, Files]:
    """Return the kind of damage and the damaged files; `foreign` is the database of another program."""
    rng = random.Random(seed)
    files = dict(index_files)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        name = rng.choice([name for name in INDEX_FILES for _ in range(3 if name == "index.db" else 2)])
        kind = rng.choice(sorted(_DAMAGES))
        files[name] = _DAMAGES[kind](files.get(name, b""), foreign, rng)
        damage = f"{kind} in {name}"
    if rng.random() < 0.08:
        deleted = rng.choice(INDEX_FILES)
        files.pop(deleted, None)
        damage = f"{deleted} is deleted"
    return damage, files


def _flip_bits(data: bytes, foreign: bytes, rng: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 8, 64)) if changed else 0):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def _change_header(data: bytes, foreign: bytes, rng: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(3 if changed else 0):
        changed[rng.randrange(min(len(changed), 100))] = rng.randrange(256)
    return bytes(changed)


def _truncate(data: bytes, foreign: bytes, rng: random.Random) -> bytes:
    return data[: rng.choice((0, 1, 15, 16, 99, 100, 512, _PAGE - 1, _PAGE, len(data) // 2, max(len(data) - 1, 0)))]


def _truncate_anywhere(data: bytes, foreign: bytes, rng: random.Random) -> bytes:
    return data[: rng.randrange(len(data) + 1)]


def _write_zeros(data: bytes, foreign: bytes, rng: random.Random) -> bytes:
    start = rng.randrange(len(data) + 1)
    size = min(rng.choice((1, 16, 512, _PAGE, 4 * _PAGE, len(data))), len(data) - start)
    return data[:start] + bytes(size) + data[start + size :]


def _swap_pages(data: bytes, foreign: bytes, rng: random.Random) -> bytes:
    pages = [data[at : at + _PAGE] for at in range(0, len(data), _PAGE)]
    if len(pages) > 1:
        first, second = rng.sample(range(len(pages)), 2)
        pages[first], pages[second] = pages[second], pages[first]
    return b"".join(pages)


def _duplicate_page(data: bytes, foreign: bytes, rng: random.Random) -> bytes:
    pages = [data[at : at + _PAGE] for at in range(0, len(data), _PAGE)]
    if pages:
        pages[rng.randrange(len(pages))] = rng.choice(pages)
    return b"".join(pages)


def _write_noise(data: bytes, foreign: bytes, rng: random.Random) -> bytes:
    start = rng.randrange(len(data) + 1)
    size = min(rng.choice((16, 200, _PAGE)), len(data) - start)
    return data[:start] + rng.randbytes(size) + data[start + size :]


_DAMAGES: dict[str, Callable[[bytes, bytes, random.Random], bytes]] = {
    "flipped bits": _flip_bits,
    "a changed header": _change_header,
    "truncated": _truncate,
    "truncated anywhere": _truncate_anywhere,
    "zeros": _write_zeros,
    "swapped pages": _swap_pages,
    "a duplicated page": _duplicate_page,
    "noise": _write_noise,
    "only noise": lambda data, foreign, rng: rng.randbytes(rng.choice((1, 100, 5000, 40_000))),
    "text": lambda data, foreign, rng: b"# A note\n\nthat somebody saved over it\n" * rng.choice((1, 300)),
    "bytes appended": lambda data, foreign, rng: data + rng.randbytes(rng.choice((1, _PAGE, 3 * _PAGE + 7))),
    "a foreign database": lambda data, foreign, rng: foreign,
    "half of a foreign database": lambda data, foreign, rng: data[: len(data) // 2] + foreign[len(data) // 2 :],
    "empty": lambda data, foreign, rng: b"",
}


# --- notes ------------------------------------------------------------------------------------------------------------

_FRONTMATTER = (
    "---\nid: 01K9Z6V0M4Q2AAAA\ntype: project\ntags: [a, b]\ncreated: 2026-04-16T10:30:00Z\nupdated: 2026-05-02T09:00:00Z\n"
)
_SOURCE = "source: {origin: user}\n"
_HISTORY = "\n<!-- holdfast:history -->\n## 2026-04-16T10:30:00Z to 2026-05-02T09:00:00Z\nThe text before.\n"
_BAD_FIELDS = (
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


def make_malformed_note(seed: str, token: str) -> tuple[str, bytes]:
    """Return what is wrong with a note, and its bytes; its text, if it has any, contains the token."""
    rng = random.Random(seed)
    kind = rng.choice(sorted(_NOTES))
    return kind, _NOTES[kind](token, rng)


def _sound_note(token: str) -> str:
    return f"{_FRONTMATTER}{_SOURCE}---\n{token} is what it says.\n{_HISTORY}"


def _bad_field(token: str, rng: random.Random) -> bytes:
    return f"{_FRONTMATTER}{rng.choice(_BAD_FIELDS)}\n---\n{token} after a bad field\n".encode("utf-8", "surrogateescape")


def _truncate_note(token: str, rng: random.Random) -> bytes:
    whole = _sound_note(token).encode()
    return whole[: rng.randrange(1, len(whole))]


def _flip_bits_of_note(token: str, rng: random.Random) -> bytes:
    return _flip_bits(_sound_note(token).encode(), b"", rng)


def _forge_history(token: str, rng: random.Random) -> bytes:
    mark = "<!-- holdfast:history -->"
    bodies = (
        f"{mark}\n{mark}\n{mark}\n", f"{mark}\n## 2026-01-01T00:00:00Z to 2020-01-01T00:00:00Z\nback in time\n", f"{mark}",
        f"{mark}\n## nonsense\ntext\n", f"{mark}\n## 9999-12-31T23:59:59Z to 0000-00-00T00:00:00Z\nx\n", f"a\n{mark}\n" * 40,
        f"{mark}\n<!-- holdfast:version {{origin: [}} -->\nx\n", f"{mark}\n<!-- holdfast:version {{recorded: never}} -->\n",
        f"\\{mark}\n",
        f"{mark}\n## 2026-01-01T00:00:00Z to 2026-02-01T00:00:00Z\n<!-- holdfast:version {'{' * 5000} -->\nx\n",
        f"<!-- holdfast:begin -->\n{mark}\n<!-- holdfast:end -->\n", f"{mark}\n" + "## 2026-01-01 to 2026-01-02\nx\n" * 500,
    )  # fmt: skip
    return f"{_FRONTMATTER}---\n{token} before\n\n{rng.choice(bodies)}".encode()


def _nest_deeply(token: str, rng: random.Random) -> bytes:
    deep = rng.choice((50, 1000, 20_000))
    forms = ("[" * deep, "[" * deep + "]" * deep, "{a: " * deep + "b" + "}" * deep,
        "\n".join("  " * n + "a:" for n in range(min(deep, 400))))
    return f"{_FRONTMATTER}extra: {rng.choice(forms)}\n---\n{token} deep\n".encode()


def _alias_bomb(token: str, rng: random.Random) -> bytes:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, rng.choice((4, 12, 30)))]
    return f"{_FRONTMATTER}{chr(10).join(lines)}\n---\n{token} bomb\n".encode()


def _giant_field(token: str, rng: random.Random) -> bytes:
    size = rng.choice((10_000, 300_000, 1_200_000))
    forms = (f"type: {'x' * size}", f"tags: [{'a, ' * (size // 3)}b]", f"{'k' * size}: v",
        "\n".join(f"k{n}: v" for n in range(size // 60)))
    return f"{_FRONTMATTER}{rng.choice(forms)}\n---\n{token} giant\n".encode()


def _long_line(token: str, rng: random.Random) -> bytes:
    size = rng.choice((100_000, 1_000_000, 10_000_000))
    piece = rng.choice(("x", "word ", "- [2026-03-27] a: b ", "\u202e", "[[", "~~[", "記憶"))
    return f"{_FRONTMATTER}---\n{token} {piece * (size // len(piece.encode()))}\n".encode()


def _invalid_utf8(token: str, rng: random.Random) -> bytes:
    bad = rng.choice((b"\xff\xfe", b"\xc0\xaf", b"\xed\xa0\x80", b"\xf8\x88\x80\x80\x80", b"\x80", b"\xe2\x82"))
    where = rng.choice((b"type: project", token.encode(), b"is what"))
    return _sound_note(token).encode().replace(where, where + bad, 1)


_BAD_FACTS = b"- [2026-99-99] a: b\n- ~~[2026-03-20] x\n- [[[]]] :\n"
_EMPTY_NOTES = (b"", b"\n", b" ", b"---", b"---\n", b"---\n---\n", b"---\n---", b"\xef\xbb\xbf", b"\0")
_NOTES: dict[str, Callable[[str, random.Random], bytes]] = {
    "a bad field": _bad_field,
    "a bad field (2)": _bad_field,
    "a bad field (3)": _bad_field,
    "truncated": _truncate_note,
    "flipped bits": _flip_bits_of_note,
    "forged history": _forge_history,
    "deep nesting": _nest_deeply,
    "an alias bomb": _alias_bomb,
    "giant fields": _giant_field,
    "a long line": _long_line,
    "not UTF-8": _invalid_utf8,
    "binary": lambda token, rng: rng.randbytes(rng.choice((1, 100, 5000))),
    "empty": lambda token, rng: rng.choice(_EMPTY_NOTES),
    "CRLF": lambda token, rng: _sound_note(token).replace("\n", rng.choice(("\r\n", "\r"))).encode(),
    "BOM": lambda token, rng: rng.choice((b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")) + _sound_note(token).encode(),
    "UTF-16": lambda token, rng: _sound_note(token).encode(rng.choice(("utf-16", "utf-16-le", "utf-32"))),
    "NUL": lambda token, rng: _sound_note(token).replace("what", "wh\0at", 1).encode() + bytes(rng.choice((0, 1, 5000))),
    "frontmatter never closed": lambda token, rng: f"{_FRONTMATTER}{token} {rng.choice(('x', '...', '--', '----'))}\n".encode(),
    "frontmatter twice": lambda token, rng: (_FRONTMATTER + "---\n" + _sound_note(token)).encode(),
    "another kind of frontmatter": lambda token, rng: f"+++\ntype = 'x'\n+++\n{token}\n".encode(),
    "JSON": lambda token, rng: f'{{"type": "user", "text": "{token}"}}'.encode(),
    "HTML": lambda token, rng: f"<html><script>{token}</script></html>".encode(),
    "facts": lambda token, rng: f"{_FRONTMATTER}---\n{token}\n".encode() + _BAD_FACTS * 50,
}  # fmt: skip
