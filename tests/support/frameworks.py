"""Agent frameworks for tests of adapters: tests of a missing one are skipped, and the summary of the run says so."""

from __future__ import annotations

import npm
import pytest

from holdfast.adapters import FrameworkError, require


def need_framework(extra):
    """Skip the module that calls this unless the framework of this extra is installed in a supported version."""
    try:
        require(extra)
    except FrameworkError as error:
        reason = f"{npm.SKIP_PREFIX}: the adapter of {extra}, because {error.message} (.venv/bin/pip install --group adapters)"
        pytest.skip(reason, allow_module_level=True)
