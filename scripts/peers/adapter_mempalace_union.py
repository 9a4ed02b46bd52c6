"""MemPalace with candidates from keywords and from vectors, an option of its search."""

from __future__ import annotations

import adapter_mempalace  # type: ignore[import-not-found]  # in the folder of driver.py, first on its path


class Peer(adapter_mempalace.Peer):  # type: ignore[misc]
    """A palace searched with the strategy `union`."""

    strategy = "union"


BulkPeer = Peer
