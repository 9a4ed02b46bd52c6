"""`operator send`, `operator list` and `operator read`: messages between the operator and agents."""

from __future__ import annotations

from holdfast.cli.output import format_count, join_lines
from holdfast.verbs.operator_messages import AGENT, MESSAGE_BYTES, OPERATOR

TYPE_CHECKING = False
if TYPE_CHECKING:
    from holdfast.cli.output import Output
    from holdfast.cli.runner import Invocation
    from holdfast.verbs.operator_messages import Message


def send(call: Invocation) -> int:
    """`holdfast operator send`."""
    text = call.read_text("text", MESSAGE_BYTES, "a message")
    to = OPERATOR if call["to_operator"] else AGENT
    sent = call.memory.operator_send(text, to=to, **call.pick("re", "agent", "scope", "redact"))
    return call.answer(sent, _print_sent)


def list_messages(call: Invocation) -> int:
    """`holdfast operator list`."""
    messages = call.memory.operator_list(unread=bool(call["unread"]), **call.pick("agent", "scope"))
    return call.answer(messages, _print_table)


def read(call: Invocation) -> int:
    """`holdfast operator read`."""
    messages = call.memory.operator_read(call["id"], **call.pick("agent", "scope"))
    return call.answer(messages, lambda output, messages: _print_messages(output, messages, call))


def _print_sent(output: Output, message: Message) -> None:
    whom = "the operator" if message.to == OPERATOR else str(message.scope)
    output.print_line(f"{output.style('sent', 'green')} {output.style(message.id, 'bold')} to {join_lines(whom)}")


def _print_table(output: Output, messages: list[Message]) -> None:
    if not messages:
        output.print_empty("No messages. Send one with `holdfast operator send TEXT`.")
        return
    rows = [
        (one.id, one.time[:16], one.sender, one.to, str(one.scope), "read" if one.read else "unread", one.text[:400])
        for one in messages
    ]
    head = ("ID", "TIME", "FROM", "TO", "SCOPE", "STATE", "TEXT")
    output.print_table(head, rows, ("bold", "dim", "", "", "cyan", "", ""))


def _print_messages(output: Output, messages: list[Message], call: Invocation) -> None:
    for message in messages:
        about = [f"{message.sender} to {message.to}", str(message.scope), message.time]
        details = "  ".join([join_lines(word) for word in (*about, f"answers {message.re}" if message.re else "") if word])
        output.print_line(f"{output.style(join_lines(message.id), 'bold')}  {output.style(details, 'dim')}")
        output.print_indented(message.text)
    if not messages:
        waiting = len(call.memory.operator_list(unread=True, **call.pick("agent", "scope")))
        others = f" {format_count(waiting, 'message')} for others: `holdfast operator list`." if waiting else ""
        output.print_empty(f"No unread messages to you.{others}")
