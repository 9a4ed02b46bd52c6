"""What each signal of the ranking means, for people who ask why a hit is where it is."""

from __future__ import annotations

_MODELS = {"static": "static model", "sentence": "sentence model", "multi": "multilingual model"}
SIGNALS = {  # what each signal of the ranking means
    "base": "base score of its kind of text",
    "bm25": "words in the text, the rarer the more",
    "bmd": "words in the text", "bmw": "words in it and the turn before", "bms": "words in the session",
    "big": "words side by side", "soft": "words of like meaning", "soft_sm": "words of like meaning in the session",
    "spk": "said by the person named", "ru": "said by the user", "ra": "said by the assistant", "fp": "said of oneself",
    "direct": "a wish of the user", "qonly": "only a question", "when": "tells a time", "num": "tells a number",
    "date": "of the time asked about", "near": "close to the day asked about", "loglen": "its length",
    "fact": "a fact about what is named",
    "first": "the first of its session", "small": "small talk",
    "named": "has a name, as asked for", "part": "answers one of two things", "repeat": "after others of its session",
    "later": "later than the question", "c_sentence_sm": "meaning of the best piece of its session (sentence model)",
    "c_sentence_ra": "meaning of what the assistant said (sentence model)",
    "c_or_g": "meaning of it, or with its neighbours (sentence model)",
    "rerank": "how well it answers the question, by the reranker",
    "name": "has a rare name of the question", "archived": "archived: not updated or used for long",
    **{f"c_{name}": f"meaning of its best piece ({model})" for name, model in _MODELS.items()},
    **{f"d_{name}": f"meaning of the whole ({model})" for name, model in _MODELS.items()},
    **{f"g_{name}": f"meaning with its neighbours ({model})" for name, model in _MODELS.items()},
}  # fmt: skip
