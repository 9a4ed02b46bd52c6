"""What the program answered, called in this process."""

from __future__ import annotations

import json


class Said:
    """What one call answered."""

    def __init__(self, code, out, err):
        self.code = code
        self.out = out
        self.err = err

    @property
    def json(self):
        return json.loads(self.out)
