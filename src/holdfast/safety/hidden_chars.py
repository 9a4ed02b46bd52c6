"""Show, remove and restore hidden characters.

Stored text keeps its hidden characters. Every interface shows text to models and at terminals through `make_visible`.
"""

from __future__ import annotations

from holdfast.base.invisible import HIDDEN, HIDDEN_RUN, MAX_MARKS, Mark, char_number, find_marks, is_plain, mixes_scripts
from holdfast.base.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_MAX_RUN = 8  # adjacent marks that are shown one by one; a longer run is shown as one mark


def make_visible(text: str) -> str:
    """Return the text with a mark such as ⟦U+202E⟧ for each hidden character; the same object if there are none."""
    if is_plain(text):
        return text
    pieces: list[str] = []
    done = 0
    for mark in _group_marks(text):
        pieces += (text[done : mark.start], mark.label)
        done = mark.end
    return "".join([*pieces, text[done:]]) if done else text


def make_name_visible(name: str) -> str:
    """Return a name as `make_visible` shows it, with a warning if it mixes scripts."""
    return f"{make_visible(name)} ⟦mixed-script⟧" if mixes_scripts(name) else make_visible(name)


def remove_hidden(text: str) -> str:
    """Return the text without hidden characters; the same object if there are none."""
    return text if is_plain(text) else HIDDEN.sub("", text)


def escape_json(text: str) -> str:
    """Return JSON text with each hidden character as a \\u escape, so that it still means the same."""
    if is_plain(text):
        return text
    pieces: list[str] = []
    done = 0
    for count, mark in enumerate(find_marks(text)):
        if count == MAX_MARKS:
            return HIDDEN_RUN.sub(lambda match: "".join([_escape_char(char) for char in match.group()]), text)
        hidden = text[mark.start : mark.end]
        pieces += (text[done : mark.start], "".join([char if " " <= char <= "~" else _escape_char(char) for char in hidden]))
        done = mark.end
    return "".join([*pieces, text[done:]])


# --- edits of text that was shown with marks ------------------------------------------------------------------------------


def resolve_marks(text: str, old: str, new: str) -> tuple[str, str, int]:
    """Return `old` and `new` with hidden characters in place of the marks that a caller saw and wrote, and how often the
    resolved `old` occurs in the text."""
    spans = find_spans(text, old)
    if len(spans) != 1:
        return old, new, len(spans)
    found = text[slice(*spans[0])]
    return found, restore_marks(found, new), text.count(found)


def find_spans(text: str, piece: str) -> list[tuple[int, int]]:
    """Return the first two spans of the text that are shown as `piece`, which may not begin or end within a mark."""
    visible, shifts = make_visible(text), _compute_shifts(text)
    found: list[tuple[int, int]] = []
    at = visible.find(piece) if piece else -1
    while at >= 0 and len(found) < 2:
        start, end = _find_text_offset(shifts, at), _find_text_offset(shifts, at + len(piece))
        if start is not None and end is not None:
            found.append((start, end))
        at = visible.find(piece, at + 1)
    return found


def restore_marks(old: str, new: str) -> str:
    """Return the new text with the marks that it repeats from the shown old text turned back into hidden characters."""
    pieces: list[str] = []
    missing = {""}  # labels that do not occur in the rest of the new text
    done = 0
    for mark in _group_marks(old):
        at = new.find(mark.label, done) if mark.label not in missing else -1
        if at < 0:
            missing.add(mark.label)
        else:
            pieces += (new[done:at], old[mark.start : mark.end])
            done = at + len(mark.label)
    return "".join([*pieces, new[done:]])


class _Shift(Record):
    """The position of a mark in the visible text, and how much longer the visible text is up to its end."""

    start: int
    end: int
    shift: int


def _compute_shifts(text: str) -> list[_Shift]:
    shifts, shift = [], 0
    for mark in _group_marks(text):
        start = mark.start + shift
        shift += len(mark.label) - (mark.end - mark.start)
        shifts.append(_Shift(start, start + len(mark.label), shift))
    return shifts


def _find_text_offset(shifts: list[_Shift], visible_offset: int) -> int | None:
    """Return the offset in the text of an offset in the visible text; None within a mark."""
    from bisect import bisect_left

    before = bisect_left(shifts, visible_offset, key=lambda shift: shift.start)  # the number of marks that begin earlier
    if not before:
        return visible_offset
    last = shifts[before - 1]
    return None if visible_offset < last.end else visible_offset - last.shift


def _group_marks(text: str) -> Iterator[Mark]:
    """Yield the marks of a text, with a long run of adjacent ones as one mark."""
    run: list[Mark] = []
    for count, mark in enumerate(find_marks(text)):
        if count == MAX_MARKS:
            yield from _merge_run(run, text)
            rest = text[mark.start :].replace("\r\n", "\n")
            yield Mark(mark.start, len(text), "", HIDDEN_RUN.sub("⟦hidden⟧", rest))
            return
        if run and run[-1].end != mark.start:
            yield from _merge_run(run, text)
            run = []
        run.append(mark)
    yield from _merge_run(run, text)


def _merge_run(run: list[Mark], text: str) -> list[Mark]:
    if len(run) <= _MAX_RUN:
        return run
    start, end = run[0].start, run[-1].end
    label = f"⟦{char_number(text[start])} to {char_number(text[run[-1].start])}, {end - start} characters⟧"
    return [Mark(start, end, run[0].kind, label)]


def _escape_char(char: str) -> str:
    code = ord(char)
    if code < 0x10000:
        return f"\\u{code:04x}"
    return f"\\u{0xD800 + (code - 0x10000 >> 10):04x}\\u{0xDC00 + (code - 0x10000 & 0x3FF):04x}"
