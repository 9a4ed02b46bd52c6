"""Facts are dated lines: `- [2026-03-27] status: on`; closed: `- ~~[2026-03-20] status: off~~ superseded 2026-03-27`.

This module parses them in any Markdown text, in the variants that people write, and edits them in place. A dated line that
cannot be read is not a fact; `find_unreadable` reports it.
"""

from __future__ import annotations

from holdfast.base.dates import DAY, is_moment
from holdfast.base.ids import KEY_PATTERN, derive_key
from holdfast.base.lazy_re import pattern
from holdfast.base.markdown import strip_bold
from holdfast.base.record import Record
from holdfast.models import SCOPES, Fact

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.models import Scope

_WHEN = rf"{DAY}(?:T\d\d:\d\d:\d\dZ)?"
_DATE = pattern(rf"(?a)(?<![\w-]){_WHEN}(?![\w-])")
_HINT = pattern(r"(?ma)^(?:[ \t]*[-*+] | {0,3})(?:~~)?\[\d{4}-")
_OPENING = pattern(rf"(?a)([ \t]*[-*+] | {{0,3}})(~~)?\[({_WHEN})\] (~~(?=[^\s:~]))?")
_ENDING = pattern(r"(?i)[ \t]*+(?:[-–—→>:;,(\[]++[ \t]*+)?(superseded|ended|closed)(?![\w-])")
_MARKED = pattern(r"(?:[ \t]++[-–—→>;(\[]++[ \t]*+(?i:superseded)|(?:[ \t]++|[,;][ \t]*+)SUPERSEDED)(?![\w-])")
_BEFORE_DATE = pattern(r"(?i)[ \t]*+(?:(?:by|with)[ \t].*[ \t,(\[])?(?:(?:on|since|as of|from|at)[ \t]++)?[(\[]?\Z")
_AFTER_DATE = pattern(r"(?i)[)\].;]*+(?:[ \t]++(?:by|with|because|see|in favou?r of)[ \t].*|[ \t]*+\(.*\))?\Z|\][ \t]")
_NO_DATE = pattern(r"(?i)[)\].;]*+(?:[ \t]++(?:by|with)[ \t].*)?\Z")
_BY = pattern(r"(?i) (?:by|with) ")
_STYLE = pattern(rf"(?ai) (superseded(?: on)?) {_WHEN}\Z")
_NEARLY = pattern(
    r"(?a)[ \t]*+(?:[-*+]|\d{1,3}[.)])?+[ \t]*+(?:\*\*|__|~~)*+"
    r"\[(?:\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.]\d{4})(?:[ T][^\]\n]{0,20})?\]"
    r"(?:\*\*|__|~~)*+[ \t]*+(?![ \t(])[^:\n]++:[ \t*_]*+[^ \t\r*_]"
)
_FENCE = pattern(r"[ \t]*+(`{3,}|~{3,})([^`\n]*)")
_LINK = pattern(r"\[\[([^\[\]|\n]+)(?:\|[^\[\]\n]*)?\]\]")
EXPECTED = "Write `- [2026-03-20] label: value`, or for one that ended `- ~~[2026-03-20] label: value~~ superseded 2026-03-27`"
_SUPERSEDED = "superseded"
_EVER = "9999-12-31T23:59:59Z"
_MOST_STALE = 10  # places that are named


class FactLine(Record):
    """One dated line of a text."""

    line: int
    label: str
    value: str
    valid_from: str
    valid_to: str | None


class FactEdit(Record):
    """A text with a fact set in it, and the lines that this retired."""

    text: str
    action: str
    line: int
    retired: tuple[FactLine, ...]


def normalize_name(name: str) -> str:
    """Return a name in lower case with single spaces; names that are equal then are the same."""
    return " ".join(name.casefold().split())


def subject_key(subject: str) -> str:
    """Return the key of the note with a subject's facts."""
    name = normalize_name(subject)
    return name if KEY_PATTERN.match(name) else derive_key(name)


class UnreadableLine(Record):
    """A line that looks like a fact and cannot be read as one."""

    line: int
    problem: str


class _Row(Record):
    """The parts of a dated line: `before + stated + tail + after` is the whole line, apart from the `~~` around `stated`."""

    before: str  # indentation and bullet, if any; also the date, where only label and value are struck through
    stated: str
    tail: str  # what closes the line: ` superseded 2026-03-27`
    after: str  # white space at the end
    struck: bool
    opened: str
    said: str  # `label: value`
    ended: str | None  # "" where the line is closed and does not say when
    problem: str = ""


def find_lines(text: str) -> list[FactLine]:
    """Return the fact lines in order; a closed line without a date ends when the next line of its label begins."""
    if not _HINT.search(text):
        return []
    rows = text.split("\n")
    found = [line for number, row in _rows(rows) if (line := _dated(row, number))]
    return _with_ends(found) if any(one.valid_to == "" for one in found) else found


def find_unreadable(text: str) -> list[UnreadableLine]:
    """Return the dated lines that look like facts but cannot be read, and what is wrong with each."""
    rows = text.split("\n")
    read = {line.line for line in find_lines(text)}
    fenced = _fenced(rows)
    return [
        UnreadableLine(number, problem)
        for number, row in enumerate(rows)
        if number not in read and number not in fenced and (problem := _wrong_with(row))
    ]


def _wrong_with(row: str) -> str:
    """Return why a line is not a fact; "" if it does not look like one."""
    if "[" not in row:
        return ""
    read = _parse(row)
    if read is None:
        return "the date or the form of the line is not the expected one" if _NEARLY.match(row) else ""
    label, value = _split(read.said)
    if read.problem:
        return read.problem if label and value else ""
    if not (label and value):
        closed = read.struck and _ENDING.match(read.tail)
        return "the line is closed but has no `label: value`" if closed else ""
    if not is_moment(read.opened) or (read.ended and not is_moment(read.ended)):
        return "there is no such date"
    return "the line is closed but does not say when" if read.ended == "" else ""


def _rows(rows: list[str]) -> list[tuple[int, _Row]]:
    """The rows with a date in front that can be taken apart; not those in code blocks, where logs and examples stand."""
    read = [(number, one) for number, row in enumerate(rows) if "[" in row and (one := _parse(row)) and not one.problem]
    fenced = _fenced(rows) if read else set()
    return [(number, one) for number, one in read if number not in fenced]


def _parse(row: str) -> _Row | None:
    """Split a line that starts like a fact into its parts; return None for other lines."""
    body = row.rstrip(" \t\r")
    match = _OPENING.match(body)
    if not match:
        return None
    bullet, struck, opened, struck_inside = match.groups()
    rest, after = body[match.end() :], row[len(body) :]
    cut = rest.rfind("~~") if struck or struck_inside else -1
    if struck_inside and not struck and cut < 0:
        rest, struck_inside = "~~" + rest, None
    date = "" if struck_inside else f"[{opened}] "
    before = f"{bullet}[{opened}] " if struck_inside else bullet
    if struck or struck_inside:
        said, tail = (rest[:cut], rest[cut + 2 :]) if cut >= 0 else (rest, "")
        ended, problem = _end(tail)
        if cut < 0 or (struck and struck_inside):
            problem = "the line is not struck through to its end"
        return _Row(before, date + said, tail, after, True, opened, said, ended, problem)
    marked = _MARKED.search(rest) if "uperseded" in rest or "SUPERSEDED" in rest else None
    if marked and _split(rest[: marked.start()])[1]:
        said, tail = rest[: marked.start()], rest[marked.start() :]
        ended, problem = _end(tail)
        if ended or problem or not _BY.search(tail):  # `plan: done - superseded by B` says how it is, not that it is over
            return _Row(before, date + said, tail, after, False, opened, said, ended, problem)
    return _Row(before, date + rest, "", after, False, opened, rest, None)


def _end(tail: str) -> tuple[str | None, str]:
    """Return when a closed line ended ("" if it does not say), and what is wrong with it."""
    ending = _ENDING.match(tail)
    if not ending:
        return None, "the line is struck through but not marked as superseded"
    rest = tail[ending.end() :]
    dates = list(_DATE.finditer(rest))
    if not dates:
        return ("", "") if _NO_DATE.match(rest) else (None, "the line does not say clearly when it ended")
    if len(dates) > 1 or not _BEFORE_DATE.match(rest[: dates[0].start()]) or not _AFTER_DATE.match(rest[dates[0].end() :]):
        return None, "the line does not say clearly when it ended"
    return dates[0].group(), ""


def _split(said: str) -> tuple[str, str]:
    """The label and the value of `label: value`, `**label**: value` or `**label:** value`; empty where there is none."""
    label, colon, value = said.partition(":")
    if label.lstrip().startswith("**") and value.startswith("**"):
        label, value = label + "**", value[2:]
    if not colon or not value.startswith((" ", "\t")):
        return "", ""
    return strip_bold(label), value.strip()


def _fenced(rows: list[str]) -> set[int]:
    """The rows of code blocks between ``` or ~~~; a block that is never closed is none."""
    fenced: set[int] = set()
    fence, first = "", 0
    for number, row in enumerate(rows):
        if "```" not in row and "~~~" not in row:
            continue
        match = _FENCE.match(row)
        if not match:
            continue
        mark, more = match.groups()
        if not fence:
            fence, first = mark, number
        elif mark.startswith(fence) and not more.strip():
            fenced.update(range(first, number + 1))
            fence = ""
    return fenced


def has_prose(text: str) -> bool:
    """Whether a text has more than headings and dated lines with a label and a value."""
    return any(row.strip() and not row.startswith("#") and not _states(row) for row in text.split("\n"))


def _states(row: str) -> bool:
    read = _parse(row) if "[" in row else None
    return read is not None and bool(_split(read.said)[1])


def drop_ended_facts(text: str, now: str) -> str:
    """Return the text without the fact lines that ended by `now` (a day or a UTC moment) and without closed lines that do
    not say when they ended. Every other byte stays."""
    if not _HINT.search(text):
        return text
    rows = text.split("\n")
    ends = {line.line: line.valid_to for line in find_lines(text)}
    kept = [row for number, row in enumerate(rows) if not _is_over(row, ends.get(number, ""), now)]
    return "\n".join(kept) if len(kept) < len(rows) else text


def _is_over(row: str, end: str | None, now: str) -> bool:
    """Whether a line is closed; `end` is "" where it is not a fact."""
    if end:
        return _at(end) <= _at(now)
    return end == "" and "[" in row and (read := _parse(row)) is not None and (read.struck or bool(read.tail))


def format_statement(subject: str, label: str, value: str, valid_from: str, valid_to: str | None = None) -> str:
    """Return a fact as one plain sentence with its dates: `Canary, share of traffic: 10 % (since 2026-09-01)`."""
    dates = f"{valid_from} to {valid_to}" if valid_to else f"since {valid_from}"
    return f"{subject}, {label}: {value} ({dates})"


def _dated(row: _Row, number: int) -> FactLine | None:
    label, value = _split(row.said)
    real = is_moment(row.opened) and (not row.ended or is_moment(row.ended))
    return FactLine(number, label, value, row.opened, row.ended) if real and label and value else None


def _with_ends(found: list[FactLine]) -> list[FactLine]:
    """The same lines. A closed one that does not say when it ended does so when the next line of its label begins; without
    such a line it is no fact."""
    from bisect import bisect_right

    starts: dict[str, list[str]] = {}
    for line in sorted(found, key=lambda one: _at(one.valid_from)):
        starts.setdefault(normalize_name(line.label), []).append(line.valid_from)
    ended = []
    for line in found:
        same = starts[normalize_name(line.label)]
        later = bisect_right(same, _at(line.valid_from), key=_at)
        if line.valid_to != "":
            ended.append(line)
        elif later < len(same):
            ended.append(line.replace(valid_to=same[later]))
    return ended


def parse_facts(text: str, subject: str, scope: Scope, path: str, first_line: int) -> list[Fact]:
    """Return the facts that a text states about its subject."""
    dated = find_lines(text)
    heirs = _heirs(dated)
    return [
        Fact(
            subject=subject,
            label=line.label,
            value=line.value,
            valid_from=line.valid_from,
            valid_to=line.valid_to,
            retired_by=_retired_by(line, heirs),
            links=tuple(_LINK.findall(line.value)),
            scope=scope,
            path=path,
            line=first_line + line.line,
        )
        for line in dated
    ]


class Statement(Record):
    """A line of one of the files that state the same label of the same subject."""

    fact: Fact
    updated: str  # when its file was last written
    prose: bool = False  # whether that says more than a title and facts


class _Kind(Record):
    """What decides whether the lines of one file can make those of another stale."""

    scope: int  # the nearer, the lower
    quarantined: bool
    is_file: bool  # not a note
    prose: bool
    untitled: bool  # a file with no title: its name stands for the subject


class _Word(Record):
    """One line among those of several files: the later, the more it counts."""

    order: tuple[str, int, bool, str, str]  # when it begins; then nearer scopes, notes, what was written last, the path
    fact: Fact
    kind: _Kind

    @property
    def start(self) -> str:
        return self.order[0]


def resolve_statements(statements: list[Statement], at: str | None) -> list[Fact]:
    """Of all lines that several files have for one subject and label, return those that hold at a moment; without a moment,
    every line.

    The file with the newest line counts, unless that file is in quarantine or of a farther scope than another. Nothing is
    settled if one file states several values at that moment, nor between two notes or two files that both have prose, nor
    between two files without a title: they may share no more than a name. Each fact says when a newer line of another file ends
    it (`valid_to`, `retired_by`), and which lines elsewhere still state an older, different value (`stale_in`). Nothing is
    written.
    """
    words = _in_order(statements)
    newest, beaten, holding = _weighed(statements, words, at)
    current = [fact for fact in holding if fact.path not in beaten]
    said = {normalize_name(fact.value) for fact in current}
    stale = sorted([fact for fact in holding if fact.path in beaten and normalize_name(fact.value) not in said], key=_age)
    stale_in = tuple([f"{fact.path}:{fact.line}" for fact in stale[-_MOST_STALE:][::-1]])
    shown = [one.fact for one in statements] if at is None else current
    several = _has_several(holding)
    heirs = {path: None if several else _heir_of(newest[path], words) for path in {fact.path for fact in shown}}
    holds = {id(fact) for fact in current}
    return [_ended(fact, heirs[fact.path]).replace(stale_in=stale_in if id(fact) in holds else ()) for fact in shown]


def find_outdated(statements: list[Statement], at: str) -> list[Fact]:
    """Return the lines that their own file leaves open at a moment and that a newer line of another file makes stale, even if
    that has ended since or has the same value. The statements are those of `settle`."""
    _, beaten, holding = _weighed(statements, _in_order(statements), at)
    return [fact for fact in holding if fact.path in beaten]


def _in_order(statements: list[Statement]) -> list[_Word]:
    return sorted([_word(one) for one in statements], key=lambda word: word.order)


def _weighed(
    statements: list[Statement], words: list[_Word], at: str | None
) -> tuple[dict[str, _Word], set[str], list[Fact]]:
    """Of each file the newest line by a moment; the files that another makes stale; the lines that each file leaves open."""
    moment = _at(at) if at else _EVER
    newest: dict[str, _Word] = {}
    best: dict[_Kind, _Word] = {}
    for word in words:
        if word.start <= moment:
            newest[word.fact.path] = word
            best[word.kind] = word
    holding = [one.fact for one in statements if one.fact.path in newest and _covers_fact(one.fact, moment)]
    if _has_several(holding):
        return newest, set(), holding
    beaten = {path for path, word in newest.items() if any(_counts_over(other, word) for other in best.values())}
    return newest, beaten, holding


def _has_several(holding: list[Fact]) -> bool:
    """Whether a file that is not in quarantine states more than one value."""
    values: dict[str, set[str]] = {}
    for fact in holding:
        if not fact.quarantined:
            values.setdefault(fact.path, set()).add(normalize_name(fact.value))
    return any(len(said) > 1 for said in values.values())


def _word(one: Statement) -> _Word:
    fact = one.fact
    scope, is_file = SCOPES.index(fact.scope.kind), fact.path.startswith(f"{fact.scope.folder}/files/")
    is_note = fact.path.startswith(f"{fact.scope.folder}/notes/")
    untitled = is_file and fact.subject == fact.path.rsplit("/", 1)[-1].rsplit(".", 1)[0]
    kind = _Kind(scope, fact.quarantined, is_file, one.prose, untitled)
    return _Word((_at(fact.valid_from), -scope, is_note, one.updated, fact.path), fact, kind)


def _counts_over(other: _Word, word: _Word) -> bool:
    """Whether the newest line of one file makes those of another stale."""
    new, old = other.kind, word.kind
    if other.order <= word.order or new.scope > old.scope or (new.quarantined and not old.quarantined):
        return False
    unrelated = new.is_file == old.is_file and new.prose and old.prose
    return not unrelated and not (new.untitled and old.untitled)


def _heir_of(word: _Word, words: list[_Word]) -> Fact | None:
    """The first line of another file that makes the file of this word stale."""
    from bisect import bisect_right

    for other in words[bisect_right(words, word.order, key=lambda one: one.order) :]:
        if other.fact.path == word.fact.path:
            word = other
        elif _counts_over(other, word):
            return other.fact
    return None


def _covers_fact(fact: Fact, moment: str) -> bool:
    return _at(fact.valid_from) <= moment and (fact.valid_to is None or _at(fact.valid_to) > moment)


def _age(fact: Fact) -> tuple[str, str, int]:
    return _at(fact.valid_from), fact.path, fact.line


def _ended(fact: Fact, heir: Fact | None) -> Fact:
    """The fact, ended by a line of another file, if that comes before the end it has."""
    if heir is None or (fact.valid_to is not None and _at(fact.valid_to) <= _at(heir.valid_from)):
        return fact
    by = f"[{heir.valid_from}] {heir.label}: {heir.value} ({heir.path}:{heir.line})"
    return fact.replace(valid_to=heir.valid_from, retired_by=by)


def set_fact(text: str, label: str, value: str, on: str, many: bool) -> FactEdit:
    """Write `label: value` as of `on`. The newest date is current; what it replaces is struck through and dated."""
    label, known = strip_bold(label), find_lines(text)
    same = [line for line in known if normalize_name(line.label) == normalize_name(label)]
    standing = [line for line in same if line.value == value and _holds(line, on, many)]
    if standing:
        return FactEdit(text, "unchanged", standing[-1].line, ())
    later = [] if many else [line for line in same if _at(line.valid_from) > _at(on)]
    end = min([line.valid_from for line in later], key=_at, default=None)
    retired = [] if many else [line for line in same if _covers(line, on)]
    rows = text.split("\n")
    words = _closing_words(rows, known)
    for line in retired:
        rows[line.line] = _struck(rows[line.line], f"{words} {on}")
    place, before, after = _place(rows, same or known, later)
    rows.insert(place, before + format_line(FactLine(0, label, value, on, end))[2:] + after)
    action = "updated" if same else "created"
    return FactEdit("\n".join(rows), action, place, tuple([line.replace(valid_to=on) for line in retired]))


def format_line(line: FactLine) -> str:
    """Return the line as it is written in a file."""
    stated = f"[{line.valid_from}] {line.label}: {line.value}"
    return f"- ~~{stated}~~ superseded {line.valid_to}" if line.valid_to else f"- {stated}"


def reads_back(label: str, value: str) -> bool:
    """Return whether a line with this label and value is parsed as exactly that."""
    text = format_line(FactLine(0, label, value, "2000-01-01", None))
    return [(line.label, line.value) for line in find_lines(text)] == [(label, value)]


def _at(when: str) -> str:
    """Return a day as its first second, so that days and moments compare."""
    return when if len(when) > 10 else when + "T00:00:00Z"


def _covers(line: FactLine, on: str) -> bool:
    return _at(line.valid_from) <= _at(on) and (line.valid_to is None or _at(line.valid_to) > _at(on))


def _holds(line: FactLine, on: str, many: bool) -> bool:
    """Whether this line already says so for that date."""
    return line.valid_to is None if many else _covers(line, on)


def _struck(row: str, closing: str) -> str:
    """Return a line struck through and closed with a date."""
    read = _parse(row)
    assert read is not None, row  # it was read as a fact before
    return f"{read.before}~~{read.stated}~~ {closing}{read.after}"


def _closing_words(rows: list[str], known: list[FactLine]) -> str:
    """The words with which this text closes lines, as its last closed line has them: `superseded`, `SUPERSEDED on`, ..."""
    for line in reversed(known):
        read = _parse(rows[line.line]) if line.valid_to is not None else None
        if read and (match := _STYLE.match(read.tail)):
            return str(match.group(1))
    return _SUPERSEDED


def _place(rows: list[str], known: list[FactLine], later: list[FactLine]) -> tuple[int, str, str]:
    """The row for a new line, and what stands before and after a line in that list: its bullet, its line ending."""
    if known:
        beside = min(later, key=_row) if later else max(known, key=_row)
        bullet = _OPENING.match(rows[beside.line]).group(1)  # type: ignore[union-attr]
        ending = "\r" if rows[beside.line].endswith("\r") else ""
        return beside.line if later else _below(rows, beside.line, bullet), bullet, ending
    while rows and not rows[-1].strip():
        rows.pop()
    ending = "\r" if rows and rows[-1].endswith("\r") else ""
    if rows and not rows[-1].lstrip().startswith(("- ", "* ", "+ ")):
        rows.append(ending)
    return len(rows), "- ", ending


def _row(line: FactLine) -> int:
    return line.line


def _below(rows: list[str], number: int, bullet: str) -> int:
    """The row after a list item and what is indented under it."""
    depth = len(bullet) - 1
    number += 1
    while bullet.strip() and number < len(rows) and rows[number].strip() and not rows[number][:depth].strip():
        number += 1
    return number


def _heirs(dated: list[FactLine]) -> dict[tuple[str, str], list[FactLine]]:
    """The lines by what they are about and when they begin."""
    heirs: dict[tuple[str, str], list[FactLine]] = {}
    for line in dated:
        heirs.setdefault((normalize_name(line.label), _at(line.valid_from)), []).append(line)
    return heirs


def _retired_by(line: FactLine, heirs: dict[tuple[str, str], list[FactLine]]) -> str | None:
    """The fact that took over on the day this one ended: the next below it, else the first above."""
    if line.valid_to is None:
        return None
    from bisect import bisect_right

    there = heirs.get((normalize_name(line.label), _at(line.valid_to)), [])
    below = bisect_right(there, line.line, key=_row)
    heir = there[below] if below < len(there) else there[0] if there else line
    return f"superseded {line.valid_to}" if heir is line else f"[{heir.valid_from}] {heir.label}: {heir.value}"


# --- aliases ------------------------------------------------------------------------------------------------------------------

ALIAS_LABELS = frozenset(("alias", "aliases", "aka", "also known as"))  # a fact with such a label gives its subject more names


def alias_names(value: str, links: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names that an alias fact declares: its links, or else its value, split at commas."""
    return links or tuple(value.split(","))
