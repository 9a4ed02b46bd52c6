"""`search`, `read`, the commands of the file tree, `scaffold` and `boot`."""

from __future__ import annotations

from holdfast.errors import UsageError
from holdfast.store.layout import FILE_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.cli.output import Output
    from holdfast.cli.runner import Invocation
    from holdfast.verbs.read import Piece, Snippets
    from holdfast.verbs.scaffold import Scaffolded
    from holdfast.verbs.scaffold.boot import Boot


def search(call: Invocation) -> int:
    """`holdfast search`: hybrid if a resident process or a gateway answers, otherwise keyword unless --mode is given."""
    from holdfast.cli.commands.notes import choose_mode, recall_from_resident
    from holdfast.verbs.read import SEARCHED, snippets

    limit = call.pick("limit")
    answer = recall_from_resident(call, {"kind": SEARCHED, **limit})
    found = snippets(answer) if answer else call.memory.search(call["query"], mode=choose_mode(call), **limit)
    return call.answer(found, _print_snippets)


def read(call: Invocation) -> int:
    """`holdfast read`; exit 1 if there is no such file."""
    path, start, lines = _parse_citation(call["path"])
    piece = call.memory.read(path, start, lines)
    return call.answer(piece, _print_piece, 0 if piece.exists else 1)


def view(call: Invocation) -> int:
    """`holdfast file view`."""
    text = call.memory.files.view(call["path"], _parse_line_range(call["lines"]), **call.pick("scope"))
    return call.answer({"path": call["path"], "text": text}, lambda output, file: output.print_text(file["text"]))


def create(call: Invocation) -> int:
    """`holdfast file create`."""
    action = call.memory.files.create(call["path"], _read_file_text(call), **call.pick("scope", "redact"))
    return _answer_action(call, action, call["path"])


def str_replace(call: Invocation) -> int:
    """`holdfast file str-replace`."""
    call.memory.files.str_replace(call["path"], call["old"], call["new"], **call.pick("scope", "redact"))
    return _answer_action(call, "updated", call["path"])


def insert(call: Invocation) -> int:
    """`holdfast file insert`."""
    line = call["line"]
    if not line.isdecimal():
        raise UsageError(f"LINE must be a whole number, not {line!r}", "Give the line to insert after, or 0 for the start")
    call.memory.files.insert(call["path"], int(line), _read_file_text(call), **call.pick("scope", "redact"))
    return _answer_action(call, "updated", call["path"])


def delete(call: Invocation) -> int:
    """`holdfast file delete`."""
    call.memory.files.delete(call["path"], **call.pick("scope"))
    return _answer_action(call, "deleted", call["path"])


def rename(call: Invocation) -> int:
    """`holdfast file rename`."""
    call.memory.files.rename(call["old"], call["new"], **call.pick("scope"))
    return _answer_action(call, "renamed", call["new"])


def scaffold(call: Invocation) -> int:
    """`holdfast scaffold`."""
    return call.answer(call.memory.scaffold(call["name"], **call.pick("scope")), _print_scaffolded)


def boot(call: Invocation) -> int:
    """`holdfast boot`."""
    return call.answer(call.memory.boot(remember=not call["keep_unread"], **call.pick("scope", "cap")), _print_boot)


def _answer_action(call: Invocation, action: str, path: str) -> int:
    from holdfast.cli.output import join_lines

    report = {"action": action, "path": path}
    return call.answer(report, lambda output, _: output.print_line(f"{output.style(action, 'green')} {join_lines(path)}"))


def _read_file_text(call: Invocation) -> str:
    """Return the text of a file; stdin is kept byte for byte."""
    from holdfast.safety.validate import decode_text

    return decode_text(call.read_text("text", FILE_BYTES, "a file", whole=True))


def _parse_line_range(lines: str | None) -> tuple[int, int] | None:
    """Parse `3-7`, `3-` or `3` to its first and last line; -1 is the end of the file."""
    if lines is None:
        return None
    first, dash, last = lines.partition("-")
    if not first.isdecimal() or (last and not last.isdecimal()):
        raise UsageError(f"--lines must be FROM-TO, not {lines!r}", "Write 3-7, 3- (to the end) or 3 (one line)")
    return int(first), int(last) if last else -1 if dash else int(first)


def _parse_citation(citation: str) -> tuple[str, int, int | None]:
    """Parse `PATH` or `PATH:7-9` to the path, its first line, and the number of lines or None for all."""
    path, colon, lines = citation.rpartition(":")
    first, dash, last = lines.partition("-")
    if not (colon and path and first.isdecimal() and (last.isdecimal() or not last)):
        return citation, 1, None
    return path, int(first), int(last) - int(first) + 1 if last else None if dash else 1


def _print_snippets(output: Output, found: Snippets) -> None:
    from holdfast.cli.commands.notes import MAX_WEAK_HITS
    from holdfast.cli.output import join_lines

    weak = [snippet for snippet in found if snippet.weak]
    if weak and len(weak) == len(found):
        output.print_message("No strong match. These results may not answer your query:")
    for snippet in [*[snippet for snippet in found if not snippet.weak], *weak[:MAX_WEAK_HITS]]:
        mark = f"  {output.style('weak match', 'dim')}" if snippet.weak else ""
        citation = join_lines(f"{snippet.path}:{snippet.lines[0]}-{snippet.lines[1]}")
        output.print_line(output.style(citation, "cyan") + mark)
        output.print_indented(snippet.snippet, 4)
    if len(weak) > MAX_WEAK_HITS:
        output.print_message(f"{len(weak) - MAX_WEAK_HITS} more weak matches; use --json for all")
    if found.degraded:
        output.print_message(f"({found.reason})")
    if not found and not found.disabled:
        output.print_empty("No results.")


def _print_piece(output: Output, piece: Piece) -> None:
    if piece.text:
        output.print_text(piece.text)
    elif piece.exists:
        output.print_empty(f"{piece.path} has no text at these lines.")
    else:
        output.print_empty(f"No file {piece.path}. `holdfast search` shows the paths of files.")


def _print_scaffolded(output: Output, report: Scaffolded) -> None:
    from holdfast.cli.output import format_count

    for path in report.created:
        output.print_line(f"{output.style('created', 'green')} {path}")
    kept = f", {format_count(len(report.kept), 'path')} existed already" if report.kept else ""
    output.print_message(f"{format_count(len(report.created), 'path')} created in {report.scope.folder}/files{kept}")


def _print_boot(output: Output, boot: Boot) -> None:
    if boot.text:
        output.print_text(boot.text)
    else:
        output.print_empty("No files to start from. Create them with `holdfast scaffold continuity`.")
