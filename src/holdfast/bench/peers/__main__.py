"""`python -m holdfast.bench.peers`."""

from __future__ import annotations

import sys

from holdfast.bench.peers.runner import main

sys.exit(main(sys.argv[1:]))
