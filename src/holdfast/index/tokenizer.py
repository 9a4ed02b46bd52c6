"""Split a text in any script into index terms, and a query into the terms to look for. Pure.

A word is folded (case, accents) and stemmed. A compound of programmers (`snake_case`, `camelCase`, a path, a version) is kept
both whole and in its parts. Scripts without spaces between words (Chinese, Japanese, Thai and similar) are split into single
characters and pairs. A long word is also kept backwards, so that its last part is found too (`Datenbankverbindung` by
`Verbindung`); its first part is found as a prefix. An emoji is kept as itself and by its name.
"""

from __future__ import annotations

from itertools import chain

from holdfast.base.lazy_re import pattern

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any

_JOINS = r"[_./:@\-'’+#&]+"
_TOKEN = pattern(rf"[A-Za-z0-9]+(?:{_JOINS}[A-Za-z0-9]+)*(?:\+\+|#)?")
_VOWEL_MARKS = (
    "\u0591-\u05c7\u0900-\u0dff\u0e31-\u0e4e\u0eb1-\u0ecd\u102b-\u103e\u17b4-\u17d3"  # vowel signs, which are not letters
)
_LETTERS = rf"(?:[^\W_]|[{_VOWEL_MARKS}])+"
_UNICODE_TOKEN = pattern(rf"{_LETTERS}(?:{_JOINS}{_LETTERS})*(?:\+\+|#)?|[^\w\s\x00-\xb6\u2010-\u203f{_VOWEL_MARKS}]")
_PIECE = pattern(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_QUERY_PIECE = pattern(
    r"[A-Z]+(?![a-z])[0-9]*|[A-Z]?[a-z]+[0-9]*|[0-9]+[A-Za-z]*"
)  # a query for e42 does not mean every e and 42
_UNSPACED = pattern(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
    "\U00020000-\U0003ffff]+"
)
_LONG_LETTERS = 10  # letters from which on a word may be a compound
_MAX_LETTERS = 64  # letters of a term; longer words are truncated
_BACKWARDS = "_"
_PUNCTUATION = "!\"$%&'()*,-./:;<=>?@[\\]^_`{|}~"  # never part of a word, unlike + and # in c++ and c#
_APOSTROPHES = str.maketrans("", "", "'’")
_TO_UNDERSCORE = str.maketrans(dict.fromkeys("./:@-+#&", "_"))
_ARABIC = {"أ": "ا", "إ": "ا", "آ": "ا", "ى": "ي", "ة": "ه", "ـ": None}
_LATIN = {
    "ß": "ss", "ẞ": "SS", "æ": "ae", "Æ": "Ae", "œ": "oe", "Œ": "Oe", "ø": "o", "Ø": "O", "ł": "l", "Ł": "L", "đ": "d",
    "Đ": "D", "ð": "d", "Ð": "D", "þ": "th", "Þ": "Th", "ı": "i",
}  # fmt: skip
_SAME_LETTERS = str.maketrans({**_ARABIC, **_LATIN})  # variant letters that Unicode does not decompose
_ACCENTS = dict.fromkeys(  # and characters that only modify another
    [*range(0x300, 0x370), *range(0x64B, 0x660), *range(0xFE00, 0xFE10), *range(0x1F3FB, 0x1F400), 0x200D]
)
_SCRIPTS = (("Ͱ", "Ͽ", "greek"), ("Ѐ", "ԯ", "russian"), ("؀", "ۿ", "arabic"))
_COMMON = (
    "a about above after again against all am an and any are aren't as at be because been before being below between both "
    "but by can can't cannot could couldn't did didn't do does doesn't doing don't down during each few for from further "
    "get got had hadn't has hasn't have haven't having he he'd he'll he's her here here's hers herself him himself his how "
    "how's i i'd i'll i'm i've if in into is isn't it it's its itself just let let's me more most mustn't my myself no nor "
    "not of off on once only or other ought our ours ourselves out over own same shan't she she'd she'll she's should "
    "shouldn't so some such than that that's the their theirs them themselves then there there's these they they'd they'll "
    "they're they've this those through to too under until up very was wasn't we we'd we'll we're we've were weren't what "
    "what's when when's where where's which while who who's whom why why's will with won't would wouldn't you you'd you'll "
    "you're you've your yours yourself yourselves also may might must shall us "
)
COMMON = frozenset(_COMMON.split())  # English words without a meaning of their own; in other languages their frequency shows it
POSTINGS = 6_000  # postings that one search reads: the rarest terms first,
_MIN_RAREST = 2  # and at least this many terms
_MAX_CACHED = 50_000
_MAX_CACHED_TERMS = 8  # words
_MAX_LONGER = 20  # terms that replace one without an exact match
_stemmers: dict[str, Any] = {}


def index_terms(text: str) -> list[str]:
    """Return the terms of a text for the index: its words in order, each with the other terms that find it."""
    if len(_term_cache) > _MAX_CACHED:
        _term_cache.clear()
    pieces = [text] if "＇" in text else text.split()  # a token has no space; a wide apostrophe depends on its context
    return list(chain.from_iterable(map(_term_cache.__getitem__, pieces)))


def query_terms(text: str) -> dict[str, str]:
    """Return the terms to look for, in order, each with the word of the query; common words only if there are no others."""
    all_terms: dict[str, str] = {}
    terms: dict[str, str] = {}
    for token in _split_plain(text) or tokens(text):
        word = token.lower()
        for term in _split_token(token, for_query=True):
            all_terms.setdefault(term, word)
            if word not in COMMON:
                terms.setdefault(term, word)
    return terms or all_terms


def prefixes(term: str, word: str) -> list[str]:
    """Return prefixes under which a word without an exact match may still be found: of longer words, and of words backwards."""
    if len(word) < 4 or not word.isalpha() or (not word.isascii() and _UNSPACED.match(word)):
        return []
    return [term, _BACKWARDS + word[::-1]]


def resolve_terms(
    query: str, count_terms: Callable[[list[str]], dict[str, int]], terms_by_prefix: Callable[[str], list[str]]
) -> tuple[dict[str, str], dict[str, int]]:
    """Return the terms to look for, each with the word of the query, and how many passages have each.

    A term that no passage has is replaced by terms that begin with it, or end with it."""
    terms = query_terms(query)
    counts = count_terms(list(terms))
    for term, word in list(terms.items()):
        if term not in counts:
            for prefix in prefixes(term, word):
                longer = _count_longer(terms_by_prefix(prefix), terms, count_terms)
                terms.update(dict.fromkeys(longer, word))
                counts.update(longer)
    return terms, counts


def _count_longer(
    candidates: list[str], known: Mapping[str, str], count_terms: Callable[[list[str]], dict[str, int]]
) -> dict[str, int]:
    """Return the most common of these terms that occur in the searched folders, each with its count."""
    found: dict[str, int] = {}
    for first in range(0, len(candidates), _MAX_LONGER):
        batch = [term for term in candidates[first : first + _MAX_LONGER] if term not in known]
        counts = count_terms(batch)
        found.update(list(counts.items())[: _MAX_LONGER - len(found)])
        if len(counts) == len(batch) or len(found) == _MAX_LONGER:
            break  # otherwise some are only in other folders
    return found


def rarest_terms(terms: Mapping[str, str], counts: Mapping[str, int], least: int = _MIN_RAREST) -> list[str]:
    """Return the terms that a search starts from, at least `least` of them: common terms hardly change the order that the rare
    ones give."""
    rarest: list[str] = []
    total = 0
    for term in sorted([term for term in terms if term in counts], key=lambda term: counts[term]):
        if len(rarest) >= least and total + counts[term] > POSTINGS:
            break
        rarest.append(term)
        total += counts[term]
    return rarest


def fold_accents(text: str) -> str:
    """Return the text without accents and variant letters; upper case stays, since it divides `camelCase`."""
    if text.isascii():
        return text
    import unicodedata

    decomposed = (
        unicodedata.normalize("NFKD", text).replace("и\u0306", "й").replace("И\u0306", "Й")
    )  # й is a letter, not an accent
    return unicodedata.normalize("NFC", decomposed.translate(_ACCENTS)).translate(_SAME_LETTERS)


def tokens(text: str) -> list[str]:
    """Return the words of a text as written; `index_terms` and `query_terms` may be applied to each."""
    found: list[str] = _TOKEN.findall(text) if text.isascii() else _UNICODE_TOKEN.findall(fold_accents(text.replace("’", "'")))
    if "'" not in text and "’" not in text:
        return found
    return [token[:-2] if token.endswith(("'s", "'S")) else token for token in found]


def _split_plain(text: str) -> list[str]:
    """Return the words of a query of plain words without regular expressions: loading those takes a tenth of a cold recall."""
    words = [word.strip(_PUNCTUATION) for word in text.split()] if text.isascii() else []
    return [word for word in words if word] if all(word.isalnum() or not word for word in words) else []


class _TermCache(dict[str, tuple[str, ...]]):
    """The terms of each piece of text seen before; long pieces seldom repeat and are not cached."""

    def __missing__(self, piece: str) -> tuple[str, ...]:
        if piece.isascii() and piece.isdigit():  # too many to cache
            return (piece[:_MAX_LETTERS],)
        words = tuple([word for token in tokens(piece) for word in _split_token(token, for_query=False)])
        if len(piece) <= _MAX_LETTERS and len(words) <= _MAX_CACHED_TERMS:
            self[piece] = words
        return words


_term_cache = _TermCache()


def _split_token(token: str, for_query: bool) -> Iterator[str]:
    """Yield the terms of one token; of a compound, the whole comes first."""
    if len(token) == 1 and not token.isalnum():
        yield from _emoji_terms(token, for_query)
        return
    token = token.translate(_APOSTROPHES) if "'" in token or "’" in token else token
    pieces = [piece for piece in token.replace(":", "/").replace("@", "/").replace("&", "/").split("/") if piece]
    for piece in pieces:
        yield from _split_compound(piece, for_query)


def _split_compound(piece: str, for_query: bool) -> Iterator[str]:
    full = (piece if piece.isalnum() else piece.translate(_TO_UNDERSCORE)).lower()[:_MAX_LETTERS]
    if full.isdigit():
        yield full
        return
    if not piece.isascii():
        yield from _split_non_ascii(piece, for_query)
        return
    if piece.isalpha() and (piece.islower() or piece.isupper() or piece.istitle()):
        words = [piece.lower()]
    else:
        words = [part.lower() for part in (_QUERY_PIECE if for_query else _PIECE).findall(piece)]
    if len(words) > 1:
        yield full.strip(_BACKWARDS) if full[-1:].isalnum() else full
        if len(words) > 2 and words[0] == "v" and full[1:2].isdigit():
            yield full[1:]
    for word in words:
        yield from _word_terms(word, for_query)
    if len(words) == 1 and len(full) > len(words[0]):  # c++, c#
        yield full


def _word_terms(word: str, for_query: bool) -> Iterator[str]:
    yield _stem(word) if word.isalpha() else word[:_MAX_LETTERS]
    if len(word) >= _LONG_LETTERS and not for_query:
        yield _BACKWARDS + word[:_MAX_LETTERS][::-1]


def _split_non_ascii(piece: str, for_query: bool) -> Iterator[str]:
    """Yield the terms of a word that is not ASCII; where it mixes scripts, of each part by itself."""
    for part in piece.translate(_TO_UNDERSCORE).split("_"):
        end = 0
        for run in _UNSPACED.finditer(part):
            if run.start() > end:
                yield from _word_terms(part[end : run.start()].lower(), for_query)
            yield from _sign_terms(run[0], for_query)
            end = run.end()
        if end < len(part):
            yield from _word_terms(part[end:].lower(), for_query)


def _sign_terms(run: str, for_query: bool) -> Iterator[str]:
    """Yield pairs of characters; also single ones for the index, and for a query of a single one."""
    if not for_query or len(run) == 1:
        yield from run
    for first in range(len(run) - 1):
        yield run[first : first + 2]


def _emoji_terms(sign: str, for_query: bool) -> Iterator[str]:
    import unicodedata

    if unicodedata.category(sign) != "So":
        return
    yield f"emoji{ord(sign):x}"
    if not for_query:
        for word in unicodedata.name(sign, "").lower().replace("-", " ").split():
            yield _stem(word)


def _stem(word: str) -> str:
    """Return the stem, by the rules of the language that the word's script suggests."""
    word = word[:_MAX_LETTERS]
    language = "english"
    if not word.isascii():
        language = next((name for first, last, name in _SCRIPTS if first <= word[0] <= last), "english")
    stemmer = _stemmers.get(language)
    if stemmer is None:
        from Stemmer import Stemmer

        stemmer = _stemmers[language] = Stemmer(language)
    return str(stemmer.stemWord(word)) or word  # some Greek words consist of an ending only
