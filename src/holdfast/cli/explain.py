"""Why a hit is where it is: each signal of the ranking, its value, and what that added to the score."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.cli.output import Output
    from holdfast.models import Hit

_MODELS = {"static": "static model", "sentence": "sentence model", "multi": "multilingual model"}
MEANS = {
    "bm25": "words in the text, the rarer the more",
    "bmd": "words in the text", "bmw": "words in it and the turn before", "bms": "words in the session",
    "big": "words side by side", "soft": "words of like meaning", "soft_sm": "words of like meaning in the session",
    "spk": "said by the person named", "ru": "said by the user", "ra": "said by the assistant", "fp": "said of oneself",
    "direct": "a wish of the user", "qonly": "only a question", "when": "tells a time", "num": "tells a number",
    "date": "of the time asked about", "near": "close to the day asked about", "loglen": "its length",
    "fact": "a fact about what is named",
    "first": "the first of its session", "small": "small talk",
    "name": "has a rare name of the question", "archived": "archived: not updated or used for long",
    **{f"c_{name}": f"meaning of its best piece ({model})" for name, model in _MODELS.items()},
    **{f"d_{name}": f"meaning of the whole ({model})" for name, model in _MODELS.items()},
    **{f"g_{name}": f"meaning with its neighbours ({model})" for name, model in _MODELS.items()},
}  # fmt: skip
_LEAST = 0.001  # less is what rounding left


def tell_why(screen: Output, hit: Hit) -> None:
    """A small table, what weighed most first; it adds up to the score."""
    why = hit.why or {}
    rows = [(MEANS.get(name, name), value, added) for name, (value, added) in why.items()]
    rows.sort(key=lambda row: -abs(row[2]))
    told = [(name, f"{value:.3f}", f"{added:+.3f}") for name, value, added in rows]
    start = hit.score - sum([added for _, _, added in rows])
    if rows and abs(start) >= _LEAST:
        told.append(("where its kind starts", "", f"{start:+.3f}"))
    told.append(("score", "", f"{hit.score:.4g}"))
    screen.table(("SIGNAL", "VALUE", "ADDED"), told, indent=4)
