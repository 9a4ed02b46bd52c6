"""Short fingerprints of bytes. blake2b straight from its C module: importing hashlib loads OpenSSL, 8 ms of a cold start."""

from __future__ import annotations

import os

try:
    from _blake2 import blake2b
except ImportError:  # a Python built otherwise
    from hashlib import blake2b

_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def digest(data: bytes) -> str:
    """32 hexadecimal digits that name these bytes."""
    return str(blake2b(data, digest_size=16).hexdigest())


def new_id(milliseconds: int) -> str:
    """An id that sorts by time: ten characters of time, then six of chance."""
    letters = []
    for shift in range(45, -1, -5):
        letters.append(_ALPHABET[(milliseconds >> shift) & 31])
    chance = int.from_bytes(os.urandom(4), "big")
    letters.extend(_ALPHABET[(chance >> shift) & 31] for shift in range(25, -1, -5))
    return "".join(letters)
