"""How clients ask a model: one file for each way, all read into the same words."""

from __future__ import annotations

from holdfast.proof.dialects.completions import Completions
from holdfast.proof.dialects.contents import Contents
from holdfast.proof.dialects.messages import Messages
from holdfast.proof.dialects.responses import Responses
from holdfast.proof.dialects.shape import Dialect

DIALECTS: tuple[Dialect, ...] = (Messages(), Responses(), Completions(), Contents())


def of(path: str) -> Dialect | None:
    """The dialect that is spoken at that path."""
    return next((dialect for dialect in DIALECTS if path.endswith(dialect.ends)), None)
