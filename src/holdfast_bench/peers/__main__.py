"""`python -m holdfast_bench.peers`."""

from __future__ import annotations

import sys

from holdfast_bench.peers.runner import main

sys.exit(main(sys.argv[1:]))
