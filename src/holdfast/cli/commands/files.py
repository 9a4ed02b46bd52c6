"""search, read, and the verbs of the file tree."""

from __future__ import annotations

from holdfast.errors import UsageError
from holdfast.store.atomic import FILE_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.cli.output import Output
    from holdfast.cli.runner import Invocation
    from holdfast.verbs.read import Piece, Snippets


def search(call: Invocation) -> int:
    """Hybrid where a resident process or a gateway answers; otherwise by words at once, unless a mode is given."""
    from holdfast.cli.commands.notes import from_resident, mode_of
    from holdfast.verbs.read import SEARCHED, snippets

    given = call.given("limit")
    answer = from_resident(call, {"kind": SEARCHED, **given})
    found = snippets(answer) if answer else call.memory.search(call["query"], mode=mode_of(call), **given)
    return call.answer(found, _tell_snippets)


def read(call: Invocation) -> int:
    path, start, lines = _cited(call["path"])
    piece = call.memory.read(path, start, lines)
    return call.answer(piece, _tell_piece, 0 if piece.exists else 1)


def view(call: Invocation) -> int:
    text = call.memory.files.view(call["path"], _span(call["lines"]), **call.given("scope"))
    return call.answer({"path": call["path"], "text": text}, lambda screen, said: screen.text(said["text"]))


def create(call: Invocation) -> int:
    action = call.memory.files.create(call["path"], _text(call), **call.given("scope", "redact"))
    return _done(call, action, call["path"])


def str_replace(call: Invocation) -> int:
    call.memory.files.str_replace(call["path"], call["old"], call["new"], **call.given("scope", "redact"))
    return _done(call, "updated", call["path"])


def insert(call: Invocation) -> int:
    line = call["line"]
    if not line.isdecimal():
        raise UsageError(f"LINE is a whole number, not {line!r}", "Use 0 for the start")
    call.memory.files.insert(call["path"], int(line), _text(call), **call.given("scope", "redact"))
    return _done(call, "updated", call["path"])


def delete(call: Invocation) -> int:
    call.memory.files.delete(call["path"], **call.given("scope"))
    return _done(call, "deleted", call["path"])


def rename(call: Invocation) -> int:
    call.memory.files.rename(call["old"], call["new"], **call.given("scope"))
    return _done(call, "renamed", call["new"])


def _done(call: Invocation, action: str, path: str) -> int:
    from holdfast.cli.output import one_line

    done = {"action": action, "path": path}
    return call.answer(done, lambda screen, _: screen.say(f"{screen.paint(action, 'green')} {one_line(path)}"))


def _text(call: Invocation) -> str:
    """A file's text; what is read from stdin is kept byte for byte."""
    from holdfast.safety.validate import decode_text

    return decode_text(call.text("text", FILE_BYTES, "a file", whole=True))


def _span(lines: str | None) -> tuple[int, int] | None:
    if lines is None:
        return None
    first, dash, last = lines.partition("-")
    if not first.isdecimal() or (last and not last.isdecimal()):
        raise UsageError(f"--lines is FROM-TO, not {lines!r}", "Write 3-7, 3- for all from there, or 3 for one line")
    return int(first), int(last) if last else -1 if dash else int(first)


def _cited(citation: str) -> tuple[str, int, int | None]:
    """A path and, where it ends in `:7-9`, its lines."""
    path, colon, lines = citation.rpartition(":")
    first, dash, last = lines.partition("-")
    if not (colon and path and first.isdecimal() and (last.isdecimal() or not last)):
        return citation, 1, None
    return path, int(first), int(last) - int(first) + 1 if last else None if dash else 1


def _tell_snippets(screen: Output, found: Snippets) -> None:
    from holdfast.cli.commands.notes import WEAK
    from holdfast.cli.output import one_line

    weak = [one for one in found if one.weak]
    if weak and len(weak) == len(found):
        screen.aside("No strong match. These may not be what you look for:")
    for one in [*[one for one in found if not one.weak], *weak[:WEAK]]:
        mark = f"  {screen.paint('weak match', 'dim')}" if one.weak else ""
        screen.say(screen.paint(one_line(f"{one.path}:{one.lines[0]}-{one.lines[1]}"), "cyan") + mark)
        screen.indented(one.snippet, 4)
    if len(weak) > WEAK:
        screen.aside(f"{len(weak) - WEAK} more weak matches; --json has them all")
    if found.degraded:
        screen.aside(f"({found.reason})")
    if not found and not found.disabled:
        screen.nothing("nothing found")


def _tell_piece(screen: Output, piece: Piece) -> None:
    if piece.text:
        screen.text(piece.text)
    elif piece.exists:
        screen.nothing(f"there is no text at these lines of {piece.path}")
    else:
        screen.nothing(f"there is no file {piece.path}; `holdfast search` shows the paths of what it finds")
