"""Names, keys, ids and digests."""

from __future__ import annotations

import os

from holdfast.base.lazy_re import pattern

try:
    from _blake2 import blake2b  # the C module itself: importing hashlib loads OpenSSL, 8 ms of a cold start
except ImportError:  # this Python was built without it
    from hashlib import blake2b

KEY_PATTERN = pattern(r"[a-z0-9][a-z0-9-]{0,59}\Z")
_WORD = pattern(r"[a-z0-9]+")
_CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_TIME_SHIFTS, _RANDOM_SHIFTS = range(45, -1, -5), range(25, -1, -5)
_last_id = 0, "0000000000", 0  # of the last id: milliseconds, the same encoded, the random part


class FileId(tuple[int, int, int]):
    """The identity of a file: every change of the file changes it.

    It is a tuple with names that is written out, because `typing` and `collections` are too slow for a cold start.
    """

    __slots__ = ()

    def __new__(cls, inode: int, changed: int, size: int) -> FileId:
        return tuple.__new__(cls, (inode, changed, size))

    @property
    def inode(self) -> int:
        return self[0]

    @property
    def changed(self) -> int:
        """The time of the last change, in nanoseconds since 1970."""
        return self[1]

    @property
    def size(self) -> int:
        """The size in bytes."""
        return self[2]


def is_name(text: str) -> bool:
    """Return whether the text may name a project, an agent or a session.

    A name has 1 to 128 letters, digits, `_`, `-` and dots, and does not start with a dot.
    """
    letters = text.replace("_", "").replace("-", "").replace(".", "")
    fits = 0 < len(text) <= 128 and text[0] != "."
    return fits and (not letters or (letters.isascii() and letters.isalnum()))


def derive_key(text: str) -> str:
    """Return a key made of the first six words of a text.

    The same text always gives the same key. Unless the text is a few plain ASCII words, the key ends with a short hash, so that
    different texts get different keys.
    """
    words = _WORD.findall(to_ascii(text.lower()))
    stem = "-".join(words[:6])[:48].strip("-")
    if stem and " ".join(words) == text.lower() and "-".join(words) == stem:
        return stem
    text_digest = digest(text.encode("utf-8", "surrogatepass"))
    return f"{stem}-{text_digest[:8]}" if stem else text_digest[:16]


def digest(data: bytes) -> str:
    """Return the BLAKE2b digest of some bytes as 32 hexadecimal digits."""
    return str(blake2b(data, digest_size=16).hexdigest())


def keyed_digest(data: bytes, key: bytes) -> str:
    """Return a digest made with a secret key, so that the bytes cannot be guessed without the key."""
    return str(blake2b(data, key=key, digest_size=16).hexdigest())


def new_id(milliseconds: int) -> str:
    """Return an id that sorts by time: ten characters of time, then six random ones."""
    global _last_id
    last_milliseconds, prefix, random = _last_id
    if last_milliseconds == milliseconds:
        random += 1  # ids of one millisecond count up, so that they sort in the order of creation
    else:
        prefix = _encode(milliseconds, _TIME_SHIFTS)
        random = int.from_bytes(os.urandom(4), "big") & 0x1FFFFFFF  # half of the range leaves room for counting up
    _last_id = milliseconds, prefix, random
    return prefix + _encode(random, _RANDOM_SHIFTS)


def file_fingerprint(file_id: FileId, name: str) -> int:
    """Return the fingerprint of a file, which is combined into that of its folder.

    Pass the path of a file in a tree as `name`, because moving a folder changes no `FileId`; pass "" for a flat folder.
    """
    if not name:
        return hash(file_id)
    import zlib

    return hash((*file_id, zlib.crc32(name.encode("utf-8", "surrogateescape"))))


def signed(inode: int) -> int:
    """Return an inode number as SQL can hold it."""
    return inode if inode < 1 << 63 else inode - (1 << 64)


def unsigned(inode: int) -> int:
    """Return an inode number as the operating system has it; SQL has signed numbers only."""
    return inode if inode >= 0 else inode + (1 << 64)


def to_ascii(text: str) -> str:
    """Return the text without accents and without characters that are not ASCII."""
    if text.isascii():
        return text
    import unicodedata

    return unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()


def _encode(number: int, shifts: range) -> str:
    """Return a number in Crockford's base 32."""
    return "".join([_CROCKFORD[(number >> shift) & 31] for shift in shifts])
