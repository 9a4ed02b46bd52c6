"""MemPalace asked for candidates from words and from vectors, which is an option of its search."""

from __future__ import annotations

import with_mempalace  # type: ignore[import-not-found]  # beside this file, where the peer's own Python looks first


class Peer(with_mempalace.Peer):  # type: ignore[misc]
    strategy = "union"


Scaled = Peer
