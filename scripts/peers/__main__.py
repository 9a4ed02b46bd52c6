"""Run the comparison: `python -m peers`."""

from __future__ import annotations

import sys

from peers.runner import main

sys.exit(main(sys.argv[1:]))
