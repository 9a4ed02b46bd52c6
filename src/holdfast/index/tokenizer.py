"""The words of a text, in whatever script, as the catalogue keeps them and as a question asks for them. Pure.

A word is folded (case, accents) and stemmed. A compound as programmers write them (`snake_case`, `camelCase`, a path, a
version) is kept whole and in its parts. Scripts that do not space their words (Chinese, Japanese, Thai and their kin) are
cut into single signs and pairs. A long word is also kept backwards, so that its last part is found too
(`Datenbankverbindung` by `Verbindung`); its first part is found because it begins so. An emoji is kept as itself and by
its name.
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
_MARKS = "\u0591-\u05c7\u0900-\u0dff\u0e31-\u0e4e\u0eb1-\u0ecd\u102b-\u103e\u17b4-\u17d3"  # vowels that are no letters
_LETTERS = rf"(?:[^\W_]|[{_MARKS}])+"
_WIDE = pattern(rf"{_LETTERS}(?:{_JOINS}{_LETTERS})*(?:\+\+|#)?|[^\w\s\x00-\xb6\u2010-\u203f{_MARKS}]")
_PIECE = pattern(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_ASKED = pattern(r"[A-Z]+(?![a-z])[0-9]*|[A-Z]?[a-z]+[0-9]*|[0-9]+[A-Za-z]*")  # who asks for e42 does not mean every e and 42
_SIGNS = pattern(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
    "\U00020000-\U0003ffff]+"
)
_LONG = 10  # letters from which a word may be made of several
_MOST = 64  # letters of a word; what is longer is cut
_BACKWARDS = "_"
_AROUND = "!\"$%&'()*,-./:;<=>?@[\\]^_`{|}~"  # what stands around a word and never belongs to it; in c++ and c# it does
_APOSTROPHES = str.maketrans("", "", "'’")
_PLAIN = str.maketrans(dict.fromkeys("./:@-+#&", "_"))
_ARABIC = {"أ": "ا", "إ": "ا", "آ": "ا", "ى": "ي", "ة": "ه", "ـ": None}
_LATIN = {
    "ß": "ss", "ẞ": "SS", "æ": "ae", "Æ": "Ae", "œ": "oe", "Œ": "Oe", "ø": "o", "Ø": "O", "ł": "l", "Ł": "L", "đ": "d",
    "Đ": "D", "ð": "d", "Ð": "D", "þ": "th", "Þ": "Th", "ı": "i",
}  # fmt: skip
_ALIKE = str.maketrans({**_ARABIC, **_LATIN})  # letters that people write in two ways, and Unicode does not take apart
_ACCENTS = dict.fromkeys(  # and signs that only say how another looks
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
COMMON = frozenset(_COMMON.split())  # what means nothing by itself, in English; elsewhere its being everywhere tells
POSTINGS = 6_000  # how many mentions of words one search looks through: the rarest words first,
_RAREST = 2  # and so many whatever it costs
_MOST_SEEN = 50_000
_FEW = 8  # words
_LONGER = 20  # words that are looked for in the place of one that nobody wrote exactly so
_stemmers: dict[str, Any] = {}


def index_terms(text: str) -> list[str]:
    """What the catalogue keeps of a text: its words in their order, and where one can be found by more than itself, what
    else it can be found by."""
    if len(_seen) > _MOST_SEEN:
        _seen.clear()
    pieces = [text] if "＇" in text else text.split()  # no token has a space in it; what an odd ' means depends on the others
    return list(chain.from_iterable(map(_seen.__getitem__, pieces)))


def query_terms(text: str) -> dict[str, str]:
    """The words to look for, each once and in their order, each with the word as it was asked; common ones only where there
    are no others."""
    every: dict[str, str] = {}
    found: dict[str, str] = {}
    for token in _plain(text) or tokens(text):
        word = token.lower()
        for term in _parts(token, asked=True):
            every.setdefault(term, word)
            if word not in COMMON:
                found.setdefault(term, word)
    return found or every


def prefixes(term: str, word: str) -> list[str]:
    """Beginnings under which a word that nobody wrote exactly so may still be found: of longer words, and backwards."""
    if len(word) < 4 or not word.isalpha() or (not word.isascii() and _SIGNS.match(word)):
        return []
    return [term, _BACKWARDS + word[::-1]]


def resolve_terms(
    query: str, frequencies: Callable[[list[str]], dict[str, int]], beginning: Callable[[str], list[str]]
) -> tuple[dict[str, str], dict[str, int]]:
    """The words to look for, each with the word as asked, and how common each is. One that nobody wrote exactly so is
    replaced by those that begin with it, or that end with it."""
    terms = query_terms(query)
    common = frequencies(list(terms))
    for term, word in list(terms.items()):
        if term not in common:
            for start in prefixes(term, word):
                more = _longer(beginning(start), terms, frequencies)
                terms.update(dict.fromkeys(more, word))
                common.update(more)
    return terms, common


def _longer(
    every: list[str], known: Mapping[str, str], frequencies: Callable[[list[str]], dict[str, int]]
) -> dict[str, int]:
    """Of words, the commonest first, so many that are written where one looks, each with how common it is there."""
    found: dict[str, int] = {}
    for first in range(0, len(every), _LONGER):
        some = [one for one in every[first : first + _LONGER] if one not in known]
        here = frequencies(some)
        found.update(list(here.items())[: _LONGER - len(found)])
        if len(here) == len(some) or len(found) == _LONGER:
            break  # else others wrote them
    return found


def rarest_terms(terms: Mapping[str, str], common: Mapping[str, int], least: int = _RAREST) -> list[str]:
    """The words a search starts from, `least` whatever they cost: common ones add to an order that the rare ones have nearly
    made."""
    chosen: list[str] = []
    total = 0
    for term in sorted([term for term in terms if term in common], key=lambda term: common[term]):
        if len(chosen) >= least and total + common[term] > POSTINGS:
            break
        chosen.append(term)
        total += common[term]
    return chosen


def fold_accents(text: str) -> str:
    """Without accents and odd forms of letters; case is still there, since it divides `camelCase`."""
    if text.isascii():
        return text
    import unicodedata

    loose = unicodedata.normalize("NFKD", text).replace("и\u0306", "й").replace("И\u0306", "Й")  # another letter, no accent
    return unicodedata.normalize("NFC", loose.translate(_ACCENTS)).translate(_ALIKE)


def tokens(text: str) -> list[str]:
    """The words of a text as they stand there, for `kept` and `asked` to be asked again of each."""
    found: list[str] = _TOKEN.findall(text) if text.isascii() else _WIDE.findall(fold_accents(text.replace("’", "'")))
    if "'" not in text and "’" not in text:
        return found
    return [token[:-2] if token.endswith(("'s", "'S")) else token for token in found]


def _plain(text: str) -> list[str]:
    """The same of a question of plain words, which needs no patterns: loading those takes a tenth of a cold recall."""
    words = [word.strip(_AROUND) for word in text.split()] if text.isascii() else []
    return [word for word in words if word] if all(word.isalnum() or not word for word in words) else []


class _Seen(dict[str, tuple[str, ...]]):
    """What is kept of each piece of text seen before; a long one seldom comes again."""

    def __missing__(self, piece: str) -> tuple[str, ...]:
        if piece.isascii() and piece.isdigit():  # of which there are too many to remember
            return (piece[:_MOST],)
        words = tuple([word for token in tokens(piece) for word in _parts(token, asked=False)])
        if len(piece) <= _MOST and len(words) <= _FEW:
            self[piece] = words
        return words


_seen = _Seen()


def _parts(token: str, asked: bool) -> Iterator[str]:
    """The words in one token; of several, the whole comes first."""
    if len(token) == 1 and not token.isalnum():
        yield from _emoji(token, asked)
        return
    token = token.translate(_APOSTROPHES) if "'" in token or "’" in token else token
    pieces = [piece for piece in token.replace(":", "/").replace("@", "/").replace("&", "/").split("/") if piece]
    for piece in pieces:
        yield from _compound(piece, asked)


def _compound(piece: str, asked: bool) -> Iterator[str]:
    whole = (piece if piece.isalnum() else piece.translate(_PLAIN)).lower()[:_MOST]
    if whole.isdigit():
        yield whole
        return
    if not piece.isascii():
        yield from _foreign(piece, asked)
        return
    if piece.isalpha() and (piece.islower() or piece.isupper() or piece.istitle()):
        small = [piece.lower()]
    else:
        small = [part.lower() for part in (_ASKED if asked else _PIECE).findall(piece)]
    if len(small) > 1:
        yield whole.strip(_BACKWARDS) if whole[-1:].isalnum() else whole
        if len(small) > 2 and small[0] == "v" and whole[1:2].isdigit():
            yield whole[1:]
    for word in small:
        yield from _word(word, asked)
    if len(small) == 1 and len(whole) > len(small[0]):  # c++, c#
        yield whole


def _word(word: str, asked: bool) -> Iterator[str]:
    yield _stem(word) if word.isalpha() else word[:_MOST]
    if len(word) >= _LONG and not asked:
        yield _BACKWARDS + word[:_MOST][::-1]


def _foreign(piece: str, asked: bool) -> Iterator[str]:
    """Words that are not all ASCII: of one that mixes scripts, each stretch by itself."""
    for joined in piece.translate(_PLAIN).split("_"):
        end = 0
        for run in _SIGNS.finditer(joined):
            if run.start() > end:
                yield from _word(joined[end : run.start()].lower(), asked)
            yield from _signs(run[0], asked)
            end = run.end()
        if end < len(joined):
            yield from _word(joined[end:].lower(), asked)


def _signs(run: str, asked: bool) -> Iterator[str]:
    """Pairs of signs; single ones too where they are kept, and asked for where there is only one."""
    if not asked or len(run) == 1:
        yield from run
    for first in range(len(run) - 1):
        yield run[first : first + 2]


def _emoji(sign: str, asked: bool) -> Iterator[str]:
    import unicodedata

    if unicodedata.category(sign) != "So":
        return
    yield f"emoji{ord(sign):x}"
    if not asked:
        for word in unicodedata.name(sign, "").lower().replace("-", " ").split():
            yield _stem(word)


def _stem(word: str) -> str:
    """The stem, by the rules of the language its script suggests."""
    word = word[:_MOST]
    language = "english"
    if not word.isascii():
        language = next((name for first, last, name in _SCRIPTS if first <= word[0] <= last), "english")
    stemmer = _stemmers.get(language)
    if stemmer is None:
        from Stemmer import Stemmer

        stemmer = _stemmers[language] = Stemmer(language)
    return str(stemmer.stemWord(word)) or word  # some Greek words are endings and nothing else
