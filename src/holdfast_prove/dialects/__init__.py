"""How clients ask a model: one file for each way, all read into the same words."""

from __future__ import annotations

from holdfast_prove.dialects.base import Dialect
from holdfast_prove.dialects.completions import Completions
from holdfast_prove.dialects.contents import Contents
from holdfast_prove.dialects.messages import Messages
from holdfast_prove.dialects.responses import Responses

DIALECTS: tuple[Dialect, ...] = (Messages(), Responses(), Completions(), Contents())


def of(path: str) -> Dialect | None:
    """The dialect that is spoken at that path."""
    return next((dialect for dialect in DIALECTS if path.endswith(dialect.ends)), None)
