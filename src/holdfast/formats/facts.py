"""Parse, format and edit facts, and decide between facts of several files.

A fact is a dated line of a Markdown text: `- [2026-03-27] status: on`, or when it has ended
`- ~~[2026-03-20] status: off~~ superseded 2026-03-27`. The parser accepts the variants that people write. A dated line that it
cannot read is not a fact; `find_unreadable_lines` reports it.
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

_DATE_REGEX = rf"{DAY}(?:T\d\d:\d\d:\d\dZ)?"
_DATE = pattern(rf"(?a)(?<![\w-]){_DATE_REGEX}(?![\w-])")
_DATED_LINE = pattern(r"(?ma)^(?:[ \t]*[-*+] | {0,3})(?:~~)?\[\d{4}-")
_OPENING = pattern(rf"(?a)([ \t]*[-*+] | {{0,3}})(~~)?\[({_DATE_REGEX})\] (~~(?=[^\s:~]))?")
_END_WORD = pattern(r"(?i)[ \t]*+(?:[-–—→>:;,(\[]++[ \t]*+)?(superseded|ended|closed)(?![\w-])")
_END_MARK = pattern(r"(?:[ \t]++[-–—→>;(\[]++[ \t]*+(?i:superseded)|(?:[ \t]++|[,;][ \t]*+)SUPERSEDED)(?![\w-])")
_BEFORE_DATE = pattern(r"(?i)[ \t]*+(?:(?:by|with)[ \t].*[ \t,(\[])?(?:(?:on|since|as of|from|at)[ \t]++)?[(\[]?\Z")
_AFTER_DATE = pattern(r"(?i)[)\].;]*+(?:[ \t]++(?:by|with|because|see|in favou?r of)[ \t].*|[ \t]*+\(.*\))?\Z|\][ \t]")
_UNDATED_END = pattern(r"(?i)[)\].;]*+(?:[ \t]++(?:by|with)[ \t].*)?\Z")
_REPLACED_BY = pattern(r"(?i) (?:by|with) ")
_CLOSING_STYLE = pattern(rf"(?ai) (superseded(?: on)?) {_DATE_REGEX}\Z")
_NEARLY_A_FACT = pattern(
    r"(?a)[ \t]*+(?:[-*+]|\d{1,3}[.)])?+[ \t]*+(?:\*\*|__|~~)*+"
    r"\[(?:\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.]\d{4})(?:[ T][^\]\n]{0,20})?\]"
    r"(?:\*\*|__|~~)*+[ \t]*+(?![ \t(])[^:\n]++:[ \t*_]*+[^ \t\r*_]"
)
_FENCE = pattern(r"[ \t]*+(`{3,}|~{3,})([^`\n]*)")
_LINK = pattern(r"\[\[([^\[\]|\n]+)(?:\|[^\[\]\n]*)?\]\]")
EXPECTED = "Write `- [2026-03-20] label: value`, or for one that ended `- ~~[2026-03-20] label: value~~ superseded 2026-03-27`"
_SUPERSEDED = "superseded"
_END_OF_TIME = "9999-12-31T23:59:59Z"
_MAX_STALE = 10  # lines that `stale_in` names


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


class _ParsedLine(Record):
    """The parts of a dated line.

    `prefix + statement + closing + trailing` is the whole line, apart from the `~~` around `statement`.
    """

    prefix: str  # indentation and bullet, if any; also the date, where only label and value are struck through
    statement: str
    closing: str  # what closes the line: ` superseded 2026-03-27`
    trailing: str  # white space at the end
    is_struck: bool
    valid_from: str
    content: str  # `label: value`
    valid_to: str | None  # "" if the line is closed but does not say when
    problem: str = ""


def find_fact_lines(text: str) -> list[FactLine]:
    """Return the fact lines in order; a closed line without a date ends when the next line of its label begins."""
    if not _DATED_LINE.search(text):
        return []
    rows = text.split("\n")
    found = [line for number, row in _parse_rows(rows) if (line := _to_fact_line(row, number))]
    return _fill_missing_ends(found) if any(line.valid_to == "" for line in found) else found


def find_unreadable_lines(text: str) -> list[UnreadableLine]:
    """Return the dated lines that look like facts but cannot be read, each with its problem."""
    rows = text.split("\n")
    readable = {line.line for line in find_fact_lines(text)}
    code_rows = _find_code_rows(rows)
    return [
        UnreadableLine(number, problem)
        for number, row in enumerate(rows)
        if number not in readable and number not in code_rows and (problem := _find_problem(row))
    ]


def _find_problem(row: str) -> str:
    """Return why a line is not a fact; "" if it does not look like one."""
    if "[" not in row:
        return ""
    parsed = _parse_row(row)
    if parsed is None:
        return "the date or the form of the line is not the expected one" if _NEARLY_A_FACT.match(row) else ""
    label, value = _split_label(parsed.content)
    if parsed.problem:
        return parsed.problem if label and value else ""
    if not (label and value):
        closed = parsed.is_struck and _END_WORD.match(parsed.closing)
        return "the line is closed but has no `label: value`" if closed else ""
    if not is_moment(parsed.valid_from) or (parsed.valid_to and not is_moment(parsed.valid_to)):
        return "there is no such date"
    return "the line is closed but does not say when" if parsed.valid_to == "" else ""


def _parse_rows(rows: list[str]) -> list[tuple[int, _ParsedLine]]:
    """Return the number and the parts of each readable dated line outside code blocks, which contain logs and examples."""
    parsed = [(number, _parse_row(row)) for number, row in enumerate(rows) if "[" in row]
    readable = [(number, line) for number, line in parsed if line is not None and not line.problem]
    code_rows = _find_code_rows(rows) if readable else set()
    return [(number, line) for number, line in readable if number not in code_rows]


def _parse_row(row: str) -> _ParsedLine | None:
    """Split a line that starts like a fact into its parts; return None for other lines."""
    body = row.rstrip(" \t\r")
    match = _OPENING.match(body)
    if not match:
        return None
    bullet, struck_line, valid_from, struck_content = match.groups()
    rest, trailing = body[match.end() :], row[len(body) :]
    cut = rest.rfind("~~") if struck_line or struck_content else -1
    if struck_content and not struck_line and cut < 0:
        rest, struck_content = "~~" + rest, None
    shown_date = "" if struck_content else f"[{valid_from}] "
    prefix = f"{bullet}[{valid_from}] " if struck_content else bullet
    if struck_line or struck_content:
        content, closing = (rest[:cut], rest[cut + 2 :]) if cut >= 0 else (rest, "")
        valid_to, problem = _parse_end(closing)
        if cut < 0 or (struck_line and struck_content):
            problem = "the line is not struck through to its end"
        return _ParsedLine(
            prefix=prefix,
            statement=shown_date + content,
            closing=closing,
            trailing=trailing,
            is_struck=True,
            valid_from=valid_from,
            content=content,
            valid_to=valid_to,
            problem=problem,
        )
    marked = _END_MARK.search(rest) if "uperseded" in rest or "SUPERSEDED" in rest else None
    if marked and _split_label(rest[: marked.start()])[1]:
        content, closing = rest[: marked.start()], rest[marked.start() :]
        valid_to, problem = _parse_end(closing)
        # an undated `plan: done - superseded by B` is a value, not a closed line
        if valid_to or problem or not _REPLACED_BY.search(closing):
            return _ParsedLine(
                prefix=prefix,
                statement=shown_date + content,
                closing=closing,
                trailing=trailing,
                is_struck=False,
                valid_from=valid_from,
                content=content,
                valid_to=valid_to,
                problem=problem,
            )
    return _ParsedLine(
        prefix=prefix,
        statement=shown_date + rest,
        closing="",
        trailing=trailing,
        is_struck=False,
        valid_from=valid_from,
        content=rest,
        valid_to=None,
    )


def _parse_end(closing: str) -> tuple[str | None, str]:
    """Return when a closed line ended ("" if it does not say), and its problem ("" if there is none)."""
    ending = _END_WORD.match(closing)
    if not ending:
        return None, "the line is struck through but not marked as superseded"
    rest = closing[ending.end() :]
    dates = list(_DATE.finditer(rest))
    if not dates:
        return ("", "") if _UNDATED_END.match(rest) else (None, "the line does not say clearly when it ended")
    if len(dates) > 1 or not _BEFORE_DATE.match(rest[: dates[0].start()]) or not _AFTER_DATE.match(rest[dates[0].end() :]):
        return None, "the line does not say clearly when it ended"
    return dates[0].group(), ""


def _split_label(content: str) -> tuple[str, str]:
    """Return the label and the value of `label: value`, `**label**: value` or `**label:** value`; two empty texts otherwise."""
    label, colon, value = content.partition(":")
    if label.lstrip().startswith("**") and value.startswith("**"):
        label, value = label + "**", value[2:]
    if not colon or not value.startswith((" ", "\t")):
        return "", ""
    return strip_bold(label), value.strip()


def _find_code_rows(rows: list[str]) -> set[int]:
    """Return the row numbers of code blocks between ``` or ~~~; a block that is never closed does not count."""
    code_rows: set[int] = set()
    fence, first = "", 0
    for number, row in enumerate(rows):
        if "```" not in row and "~~~" not in row:
            continue
        match = _FENCE.match(row)
        if not match:
            continue
        fence_mark, info = match.groups()
        if not fence:
            fence, first = fence_mark, number
        elif fence_mark.startswith(fence) and not info.strip():
            code_rows.update(range(first, number + 1))
            fence = ""
    return code_rows


def find_mentions(text: str, subject: str) -> list[str]:
    """Return the names that a text links outside its facts and code blocks, each once; not its own subject."""
    rows = text.split("\n")
    linking = [number for number, row in enumerate(rows) if "[[" in row]
    skipped = _find_code_rows(rows) | {line.line for line in find_fact_lines(text)} if linking else set()
    names = [name.strip() for number in linking if number not in skipped for name in _LINK.findall(rows[number])]
    by_folded = {normalize_name(name): name for name in reversed(names)}  # the first spelling counts
    return [name for folded, name in sorted(by_folded.items()) if folded and folded != normalize_name(subject)]


def has_prose(text: str) -> bool:
    """Return whether a text has more than headings and dated lines with a label and a value."""
    return any(row.strip() and not row.startswith("#") and not _is_statement(row) for row in text.split("\n"))


def _is_statement(row: str) -> bool:
    parsed = _parse_row(row) if "[" in row else None
    return parsed is not None and bool(_split_label(parsed.content)[1])


def drop_ended_facts(text: str, now: str) -> str:
    """Return the text without the fact lines that ended by `now`, which is a day or a UTC moment.

    Closed lines that do not say when they ended are removed too. Every other byte stays.
    """
    if not _DATED_LINE.search(text):
        return text
    rows = text.split("\n")
    ends = {line.line: line.valid_to for line in find_fact_lines(text)}
    kept = [row for number, row in enumerate(rows) if not _is_ended(row, ends.get(number, ""), now)]
    return "\n".join(kept) if len(kept) < len(rows) else text


def _is_ended(row: str, end: str | None, now: str) -> bool:
    """Return whether a line ended by `now`; a line that is not a fact (`end` is "") ended if it is closed."""
    if end:
        return _to_moment(end) <= _to_moment(now)
    return end == "" and "[" in row and (parsed := _parse_row(row)) is not None and (parsed.is_struck or bool(parsed.closing))


def format_statement(subject: str, label: str, value: str, valid_from: str, valid_to: str | None = None) -> str:
    """Return a fact as one plain sentence with its dates: `Canary, share of traffic: 10 % (since 2026-09-01)`."""
    dates = f"{valid_from} to {valid_to}" if valid_to else f"since {valid_from}"
    return f"{subject}, {label}: {value} ({dates})"


def _to_fact_line(row: _ParsedLine, number: int) -> FactLine | None:
    label, value = _split_label(row.content)
    has_valid_dates = is_moment(row.valid_from) and (not row.valid_to or is_moment(row.valid_to))
    return FactLine(number, label, value, row.valid_from, row.valid_to) if has_valid_dates and label and value else None


def _fill_missing_ends(lines: list[FactLine]) -> list[FactLine]:
    """End each closed line without an end date when the next line of its label begins; drop it if there is none."""
    from bisect import bisect_right

    starts: dict[str, list[str]] = {}
    for line in sorted(lines, key=lambda each: _to_moment(each.valid_from)):
        starts.setdefault(normalize_name(line.label), []).append(line.valid_from)
    filled = []
    for line in lines:
        same_label_starts = starts[normalize_name(line.label)]
        later = bisect_right(same_label_starts, _to_moment(line.valid_from), key=_to_moment)
        if line.valid_to != "":
            filled.append(line)
        elif later < len(same_label_starts):
            filled.append(line.replace(valid_to=same_label_starts[later]))
    return filled


def parse_facts(text: str, subject: str, scope: Scope, path: str, first_line: int) -> list[Fact]:
    """Return the facts that a text states about its subject."""
    dated = find_fact_lines(text)
    lines_by_start = _group_by_start(dated)
    return [
        Fact(
            subject=subject,
            label=line.label,
            value=line.value,
            valid_from=line.valid_from,
            valid_to=line.valid_to,
            retired_by=_describe_successor(line, lines_by_start),
            links=tuple(_LINK.findall(line.value)),
            scope=scope,
            path=path,
            line=first_line + line.line,
        )
        for line in dated
    ]


class Statement(Record):
    """A fact of one of the files that state the same label of the same subject."""

    fact: Fact
    updated: str  # when its file was last written
    prose: bool = False  # whether the file has more than a title and facts


class _FileKind(Record):
    """The properties of a file that decide whether its facts can make those of another file outdated."""

    scope: int  # a nearer scope has a lower number
    quarantined: bool
    is_file: bool  # not a note
    prose: bool
    untitled: bool  # a file with no title: its name is used as the subject


class _RankedFact(Record):
    """A fact among those of several files; one with a higher rank is preferred."""

    rank: tuple[str, int, bool, str, str]  # when it begins; then nearer scopes, notes, what was written last, the path
    fact: Fact
    kind: _FileKind

    @property
    def start(self) -> str:
        return _to_moment(self.fact.valid_from)


class _Comparison(Record):
    """The files that state one subject and label, compared at a moment."""

    newest: dict[str, _RankedFact]  # by path, the newest fact of each file
    outdated: set[str]  # paths of the files that another file makes outdated
    open_facts: list[Fact]  # facts that their own file does not end by that moment


def resolve_statements(statements: list[Statement], at: str | None) -> list[Fact]:
    """Return the facts that are valid at a moment, of all that several files state for one subject and label.

    Without a moment, return every fact. The file with the newest fact decides, unless it is in quarantine or of a farther scope
    than another. All files stay valid if one file states several values at that moment. So do two notes or two files that both
    have prose, and two files without a title: they may have only the name in common. Each fact says when a newer fact of
    another file ends it (`valid_to`, `retired_by`), and which lines elsewhere still state an older, different value
    (`stale_in`).
    """
    ranked = _rank_statements(statements)
    compared = _compare_files(statements, ranked, at)
    current = [fact for fact in compared.open_facts if fact.path not in compared.outdated]
    current_values = {normalize_name(fact.value) for fact in current}
    outdated = [fact for fact in compared.open_facts if fact.path in compared.outdated]
    stale = sorted([fact for fact in outdated if normalize_name(fact.value) not in current_values], key=_age_key)
    stale_in = tuple([f"{fact.path}:{fact.line}" for fact in stale[-_MAX_STALE:][::-1]])
    shown = [statement.fact for statement in statements] if at is None else current
    paths = {fact.path for fact in shown}
    undecided = _has_several_values(compared.open_facts)
    successors = {path: None if undecided else _find_successor(compared.newest[path], ranked) for path in paths}
    current_ids = {id(fact) for fact in current}
    return [
        _end_by_successor(fact, successors[fact.path]).replace(stale_in=stale_in if id(fact) in current_ids else ())
        for fact in shown
    ]


def find_outdated(statements: list[Statement], at: str) -> list[Fact]:
    """Return the facts that their own file leaves open at a moment but that a newer fact of another file makes outdated.

    The newer fact may have ended since, or have the same value. The statements are those of `resolve_statements`.
    """
    compared = _compare_files(statements, _rank_statements(statements), at)
    return [fact for fact in compared.open_facts if fact.path in compared.outdated]


def _rank_statements(statements: list[Statement]) -> list[_RankedFact]:
    return sorted([_rank_statement(statement) for statement in statements], key=lambda ranked: ranked.rank)


def _compare_files(statements: list[Statement], ranked: list[_RankedFact], at: str | None) -> _Comparison:
    moment = _to_moment(at) if at else _END_OF_TIME
    newest: dict[str, _RankedFact] = {}
    newest_by_kind: dict[_FileKind, _RankedFact] = {}
    for fact in ranked:
        if fact.start <= moment:
            newest[fact.fact.path] = fact
            newest_by_kind[fact.kind] = fact
    facts = [statement.fact for statement in statements]
    open_facts = [fact for fact in facts if fact.path in newest and _is_fact_valid(fact, moment)]
    outdated: set[str] = set()
    if not _has_several_values(open_facts):
        outdated = {path for path, fact in newest.items() if any(_outranks(other, fact) for other in newest_by_kind.values())}
    return _Comparison(newest, outdated, open_facts)


def _has_several_values(open_facts: list[Fact]) -> bool:
    """Return whether a file that is not in quarantine states more than one value."""
    values: dict[str, set[str]] = {}
    for fact in open_facts:
        if not fact.quarantined:
            values.setdefault(fact.path, set()).add(normalize_name(fact.value))
    return any(len(file_values) > 1 for file_values in values.values())


def _rank_statement(statement: Statement) -> _RankedFact:
    fact = statement.fact
    scope, is_file = SCOPES.index(fact.scope.kind), fact.path.startswith(f"{fact.scope.folder}/files/")
    is_note = fact.path.startswith(f"{fact.scope.folder}/notes/")
    untitled = is_file and fact.subject == fact.path.rsplit("/", 1)[-1].rsplit(".", 1)[0]
    kind = _FileKind(scope, fact.quarantined, is_file, statement.prose, untitled)
    return _RankedFact((_to_moment(fact.valid_from), -scope, is_note, statement.updated, fact.path), fact, kind)


def _outranks(newer: _RankedFact, older: _RankedFact) -> bool:
    """Return whether the newest fact of one file makes the newest fact of another outdated."""
    new, old = newer.kind, older.kind
    if newer.rank <= older.rank or new.scope > old.scope or (new.quarantined and not old.quarantined):
        return False
    unrelated = new.is_file == old.is_file and new.prose and old.prose
    return not unrelated and not (new.untitled and old.untitled)


def _find_successor(last: _RankedFact, ranked: list[_RankedFact]) -> Fact | None:
    """Return the first fact of another file that makes the file of this fact outdated."""
    from bisect import bisect_right

    for other in ranked[bisect_right(ranked, last.rank, key=lambda each: each.rank) :]:
        if other.fact.path == last.fact.path:
            last = other
        elif _outranks(other, last):
            return other.fact
    return None


def _is_fact_valid(fact: Fact, moment: str) -> bool:
    return _to_moment(fact.valid_from) <= moment and (fact.valid_to is None or _to_moment(fact.valid_to) > moment)


def _age_key(fact: Fact) -> tuple[str, str, int]:
    return _to_moment(fact.valid_from), fact.path, fact.line


def _end_by_successor(fact: Fact, successor: Fact | None) -> Fact:
    """Return the fact, ended when its successor begins, unless it ends earlier."""
    if successor is None or (fact.valid_to is not None and _to_moment(fact.valid_to) <= _to_moment(successor.valid_from)):
        return fact
    retired_by = f"[{successor.valid_from}] {successor.label}: {successor.value} ({successor.path}:{successor.line})"
    return fact.replace(valid_to=successor.valid_from, retired_by=retired_by)


def set_fact(text: str, label: str, value: str, on: str, many: bool) -> FactEdit:
    """Return the text with `label: value` as of `on`; the lines it replaces are struck through and dated.

    With `many`, a label may have several values at a time, so nothing is replaced.
    """
    label, all_lines = strip_bold(label), find_fact_lines(text)
    same = [line for line in all_lines if normalize_name(line.label) == normalize_name(label)]
    unchanged = [line for line in same if line.value == value and _already_states(line, on, many)]
    if unchanged:
        return FactEdit(text, "unchanged", unchanged[-1].line, ())
    later = [] if many else [line for line in same if _to_moment(line.valid_from) > _to_moment(on)]
    end = min([line.valid_from for line in later], key=_to_moment, default=None)
    retired = [] if many else [line for line in same if _is_line_valid(line, on)]
    rows = text.split("\n")
    closing_words = _find_closing_words(rows, all_lines)
    for line in retired:
        rows[line.line] = _close_row(rows[line.line], f"{closing_words} {on}")
    position, prefix, trailing = _find_insert_position(rows, same or all_lines, later)
    rows.insert(position, prefix + format_line(FactLine(0, label, value, on, end))[2:] + trailing)
    action = "updated" if same else "created"
    return FactEdit("\n".join(rows), action, position, tuple([line.replace(valid_to=on) for line in retired]))


def format_line(line: FactLine) -> str:
    """Return the line as it is written in a file."""
    statement = f"[{line.valid_from}] {line.label}: {line.value}"
    return f"- ~~{statement}~~ superseded {line.valid_to}" if line.valid_to else f"- {statement}"


def reads_back(label: str, value: str) -> bool:
    """Return whether a line with this label and value is parsed as exactly that."""
    text = format_line(FactLine(0, label, value, "2000-01-01", None))
    return [(line.label, line.value) for line in find_fact_lines(text)] == [(label, value)]


def _to_moment(time: str) -> str:
    """Return a day as its first second, so that days and moments compare."""
    return time if len(time) > 10 else time + "T00:00:00Z"


def _is_line_valid(line: FactLine, on: str) -> bool:
    moment = _to_moment(on)
    return _to_moment(line.valid_from) <= moment and (line.valid_to is None or _to_moment(line.valid_to) > moment)


def _already_states(line: FactLine, on: str, many: bool) -> bool:
    """Return whether a line with the same value already covers that date; with `many`, any open line does."""
    return line.valid_to is None if many else _is_line_valid(line, on)


def _close_row(row: str, closing: str) -> str:
    """Return a line struck through and closed with a date."""
    parsed = _parse_row(row)
    assert parsed is not None, row  # it was read as a fact before
    return f"{parsed.prefix}~~{parsed.statement}~~ {closing}{parsed.trailing}"


def _find_closing_words(rows: list[str], all_lines: list[FactLine]) -> str:
    """Return the words with which the last closed line of a text is closed, such as `SUPERSEDED on`."""
    for line in reversed(all_lines):
        parsed = _parse_row(rows[line.line]) if line.valid_to is not None else None
        if parsed and (match := _CLOSING_STYLE.match(parsed.closing)):
            return str(match.group(1))
    return _SUPERSEDED


def _find_insert_position(rows: list[str], listed: list[FactLine], later: list[FactLine]) -> tuple[int, str, str]:
    """Return the row number of a new line, and the bullet and the line ending of the list that it joins."""
    if listed:
        neighbour = min(later, key=_line_number) if later else max(listed, key=_line_number)
        bullet = _OPENING.match(rows[neighbour.line]).group(1)  # type: ignore[union-attr]
        ending = "\r" if rows[neighbour.line].endswith("\r") else ""
        return neighbour.line if later else _find_item_end(rows, neighbour.line, bullet), bullet, ending
    while rows and not rows[-1].strip():
        rows.pop()
    ending = "\r" if rows and rows[-1].endswith("\r") else ""
    if rows and not rows[-1].lstrip().startswith(("- ", "* ", "+ ")):
        rows.append(ending)
    return len(rows), "- ", ending


def _line_number(line: FactLine) -> int:
    return line.line


def _find_item_end(rows: list[str], number: int, bullet: str) -> int:
    """Return the number of the row after a list item and the rows indented under it."""
    depth = len(bullet) - 1
    number += 1
    while bullet.strip() and number < len(rows) and rows[number].strip() and not rows[number][:depth].strip():
        number += 1
    return number


def _group_by_start(dated: list[FactLine]) -> dict[tuple[str, str], list[FactLine]]:
    """Return the lines by their label and the moment they begin."""
    lines_by_start: dict[tuple[str, str], list[FactLine]] = {}
    for line in dated:
        lines_by_start.setdefault((normalize_name(line.label), _to_moment(line.valid_from)), []).append(line)
    return lines_by_start


def _describe_successor(line: FactLine, lines_by_start: dict[tuple[str, str], list[FactLine]]) -> str | None:
    """Return the line that begins when this one ends: the next below it, or else the first above it; None if it is open."""
    if line.valid_to is None:
        return None
    from bisect import bisect_right

    candidates = lines_by_start.get((normalize_name(line.label), _to_moment(line.valid_to)), [])
    below = bisect_right(candidates, line.line, key=_line_number)
    successor = candidates[below] if below < len(candidates) else candidates[0] if candidates else line
    if successor is line:
        return f"superseded {line.valid_to}"
    return f"[{successor.valid_from}] {successor.label}: {successor.value}"


# --- aliases ------------------------------------------------------------------------------------------------------------------

ALIAS_LABELS = frozenset(("alias", "aliases", "aka", "also known as"))  # a fact with such a label gives its subject more names


def alias_names(value: str, links: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names that an alias fact declares: its links, or else its value, split at commas."""
    return links or tuple(value.split(","))
