"""The result of a command that a test runs in its own process."""

from __future__ import annotations

import json


class CliResult:
    """The exit status, standard output and standard error of one command."""

    def __init__(self, code, out, err):
        self.code = code
        self.out = out
        self.err = err

    @property
    def json(self):
        """Return standard output as JSON."""
        return json.loads(self.out)
