"""What a question asks for, as its wording shows: a time, a number, a name, advice, a whole subject, two things. Pure.

The patterns are English. A question in another language has none of these properties and is ranked by words and meaning alone.
"""

from __future__ import annotations

from holdfast.base.lazy_re import pattern

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.search.time_expressions import Span

_WHEN = pattern(
    r"(?i)^\s*when\b|\bwhat (?:date|day|month|year|time)\b|\bhow long ago\b|\bwhich (?:date|day|month|year)\b"
    r"|\bhow many (?:days|weeks|months|years)\b"
)
_NUMBER = pattern(r"(?i)\bhow (?:many|much|often|long|old|far)\b|\bwhat number\b|\btotal\b")
_NAME = pattern(
    r"(?i)^\s*(?:where|who|whose)\b|\b(?:what|which|where|who|whose)\b.{0,40}\b(?:cit(?:y|ies)|countr(?:y|ies)|states?|places?"
    r"|locations?|areas?|books?|novels?|series|movies?|films?|shows?|songs?|bands?|artists?|musicians?|games?|teams?|authors?"
    r"|names?|named|called|brands?|compan(?:y|ies)|restaurants?)\b"
)
_ABOUT_ASSISTANT = pattern(
    r"(?i)\b(?:you|your)\b.{0,40}\b(?:told|said|say|mention\w*|recommend\w*|suggest\w*|gave|give|provid\w*|list\w*|shar\w*"
    r"|explain\w*|advis\w*|wrote|made|describ\w*|generat\w*|show\w*|use\w*|creat\w*)\b"
    r"|\bour (?:previous|last|earlier|past)\b|\bremind me\b|\bprevious(?:ly)? (?:chat|conversation|discuss\w*)"
)

# A request for work or advice, for which standing instructions count, and questions about the past, for which they do not.
_REQUEST = pattern(
    r"(?i)^(?:(?:so|hi|hey|please|ok|okay|also|now)[, ]+)?(?:can|could|would|will) you\b"
    r"|\bhow (?:should|can|could|would|do|to) (?:i|we|you)\b|\b(?:show|help|explain|suggest|recommend)\b"
    r"|\bi(?:'m| am) (?:planning|looking|working|applying|about|updating|creating|building|trying)\b"
    r"|\bwhat (?:are|is) (?:the|some)\b.{0,30}\b(?:ways|different|best|common|good|steps|options|libraries)\b"
    r"|\b(?:what|which) .{1,40}\bshould\b|\bany (?:tips|advice|suggestions|recommendations|ideas)\b"
)
_ABOUT_PAST = pattern(
    r"(?i)\b(?:did|have|had|has) (?:i|we|you|my|our)\b|\bremind me\b|\bprevious(?:ly)?\b"
    r"|\b(?:i|we|you) (?:\w+ ){0,2}?(?:mentioned|said|told|brought up|talked|discussed|recommended|suggested|provided)\b"
    r"|\b(?:our|my) (?:\w+ )?(?:conversation|discussion|chat|session|message|question|request)s?\b"
)

# A question about a whole subject, and the words around the name of the subject.
_OVERVIEW = pattern(
    r"(?i)\bsummar(?:y|ies|i[sz]e)\b|\border in which (?:i|we|you)\b|\bin (?:what|which) order\b|\bin chronological order\b"
    r"|\blist in order\b|\b(?:timeline|overview) of\b|\beverything (?:about|we|i|you|that|on)\b"
    r"|\bhow (?:has|have|did) .{1,60}\b(?:evolved?|developed?|progress(?:ed)?|change[sd]?) (?:over|through|across|since)\b"
)
_ASK = r"list|walk me through|give me|provide|show me|tell me|summari[sz]e|describe|explain|recap|outline"
_SPEAK = r"brought up|talked about|discussed|covered|mentioned|asked about|went through"
_AROUND_SUBJECT = tuple(
    pattern(rf"(?i){text}")
    for text in (
        r"\bmention only\b.*$",
        rf"^\s*(?:(?:can|could|would|will) you )?(?:please )?(?:{_ASK})\b",
        r"^\s*(?:a|an|the)?\s*(?:(?:clear|comprehensive|complete|detailed|brief|short|full|quick) )*"
        r"(?:summary|overview|timeline|recap|history)\b(?: of)?",
        r"\bin (?:chronological |what |which )order\b|\bin order[,?.]*\s*$|^\s*in order\b|\b(?:the )?order in which\b",
        r"^\s*(?:of )?(?:how|what|everything(?: about)?)\b",
        rf"\b(?:that |did )?(?:i|we)(?:'ve| have)? (?:first )?(?:{_SPEAK}|discuss|talk about|mention|bring up)\b",
        r"\b(?:different|various) (?:aspects|concepts|ways|topics|things|parts)(?: of| related to| about)?\b",
        r"\b(?:throughout|through|across|in|over|during) (?:all )?(?:our|my|the|these) (?:\w+ )?"
        r"(?:conversation|discussion|chat|session|message)s?\b",
        r"\bover (?:time|the (?:past|last) (?:few )?\w+)\b|\bso far\b",
        r"\b(?:has|have|had) (?:progress|develop|evolv|chang)ed\b|\b(?:progress|develop|evolv|chang)ed\s*[,?.]*\s*$",
    )
)

# Two things that a question compares, or between which it asks for the time.
_TWO_THINGS = (
    pattern(r"(?i)\bbetween (.+?),? and (?:when |the (?:day|time|date) )?(.+)$"),
    pattern(
        r"(?i)\b(?:first|last|earlier|later|more|faster|sooner|older|better|cheaper|longer|recently)\b[^,:]*[,:] (.+?),? or "
        r"(.+)$"
    ),
    pattern(r"(?i)^(how (?:many|much|long|old)\b.+?),? (?:when|before|after|since|until) (?:i|we) (.+)$"),
)
_DURATION = pattern(r"(?i)^how (?:many|much|long|old) (?:(?:\w+s|ago|ever|time|had|have|has|did|do|does|was|were|passed) )*")
_MIN_PART_WORDS, _MAX_CHARS = 2, 500  # of a part, and of a question


# A question whose answer is in several sessions: how many, in total, across our conversations.
_MANY = pattern(
    r"(?i)\bhow (?:many|much|often)\b|\b(?:in total|altogether)\b"
    r"|\b(?:across|throughout) (?:all )?(?:our|my|the|these) (?:\w+ )?"
    r"(?:conversation|discussion|chat|session|message|question|request)s\b"
)


class Question:
    """The properties of a question that scoring needs."""

    def __init__(
        self, *, text: str, terms: Mapping[str, str], idf: Mapping[str, float], people: frozenset[str], times: list[Span],
        today: int,
    ) -> None:  # fmt: skip
        self.terms = terms  # each with the word of the question
        self.idf = idf
        self.people = people  # named in it
        self.times = times
        self.today = today  # ordinal of the day of the question; 0 if unknown
        self.asks_when = float(bool(_WHEN.search(text)))
        self.asks_number = float(bool(_NUMBER.search(text)))
        self.asks_name = float(bool(_NAME.search(text)))
        self.asks_for_work = float(bool(_REQUEST.search(text)) and not _ABOUT_PAST.search(text))
        self.about_assistant = float(bool(_ABOUT_ASSISTANT.search(text)) and not people)
        self.total_idf = sum(idf[term] for term in terms) or 1.0


def asks_for_many(text: str) -> bool:
    """Return whether the answer to a question is probably in several sessions."""
    return bool(_MANY.search(text) or find_subject(text))


def find_subject(text: str) -> str:
    """Return what a question about a whole subject is about: "my app" of "give me a summary of my app"; else "".

    The words around it occur in every such question, so they find passages that speak of summaries and conversations.
    """
    if len(text) > _MAX_CHARS or not _OVERVIEW.search(text):
        return ""
    subject = text.replace("’", "'")
    for around in _AROUND_SUBJECT:
        subject = around.sub(" ", subject)
    subject = _strip(subject)
    return subject if len(subject.split()) >= _MIN_PART_WORDS else ""


def find_named(text: str, names: list[str]) -> list[str]:
    """Return those of these names that a text contains as whole words, in any case."""
    import re

    return [name for name in names if re.search(rf"\b{re.escape(name)}\b", text, re.IGNORECASE)]


def to_first_person(text: str, names: list[str]) -> str:
    """Return a question as the named person would say it: turns do not name their own speaker."""
    import re

    for name in sorted(names, key=len, reverse=True):
        text = re.sub(rf"\b{re.escape(name)}['’]s\b", "my", text, flags=re.IGNORECASE)
        text = re.sub(rf"\b{re.escape(name)}\b", "I", text, flags=re.IGNORECASE)
    return " ".join(text.split())


def find_parts(text: str) -> list[str]:
    """Return the two things that a question compares, or between which it asks for the time; [] for other questions."""
    if len(text) > _MAX_CHARS:
        return []
    text = text.replace("’", "'").strip()
    match = next((found for things in _TWO_THINGS if (found := things.search(text))), None)
    if not match:
        return []
    parts = [_strip(_DURATION.sub("", part)) for part in match.groups()]
    return parts if all(len(part.split()) >= _MIN_PART_WORDS for part in parts) else []


def _strip(text: str) -> str:
    """Return a text without punctuation at its ends, its words separated by single spaces."""
    return " ".join(text.split()).strip(" ,.?;:'\"")
