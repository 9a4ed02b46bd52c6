"""Shell completion. The scripts only ask `holdfast _complete`, so what they offer is always what the table says."""

from __future__ import annotations

from holdfast.cli.command_table import COMMANDS, FAMILIES
from holdfast.errors import HoldfastError, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.cli.parser import ParsedArguments
    from holdfast.cli.runner import Invocation

_MOST = 500  # keys offered at once

BASH = r"""# holdfast completion for bash: source <(holdfast completion bash)
_holdfast() {
    local line
    COMPREPLY=()
    while IFS= read -r line; do
        COMPREPLY+=("${line%%$'\t'*}")
    done < <("${COMP_WORDS[0]/#\~/$HOME}" _complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -o default -F _holdfast holdfast
"""

ZSH = r"""#compdef holdfast
# holdfast completion for zsh: source <(holdfast completion zsh)
_holdfast() {
    local -a offers
    local line
    for line in "${(@f)$(${words[1]} _complete "${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
        [[ -n $line ]] && offers+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
    done
    if (( $#offers )); then _describe -V holdfast offers; else _files; fi
}
if [[ $funcstack[1] == _holdfast ]]; then _holdfast "$@"; else compdef _holdfast holdfast; fi
"""

FISH = r"""# holdfast completion for fish: holdfast completion fish | source
function __holdfast_complete
    set -l typed (commandline -opc) (commandline -ct)
    $typed[1] _complete $typed[2..-1] 2>/dev/null
end
complete -c holdfast -a '(__holdfast_complete)'
"""

SCRIPTS = {"bash": BASH, "zsh": ZSH, "fish": FISH}


def completion(call: Invocation) -> int:
    shell = call["shell"]
    if shell not in SCRIPTS:
        raise UsageError(f"no completion for {shell!r}", f"One of: {', '.join(SCRIPTS)}")
    script = {"shell": shell, "script": SCRIPTS[shell]}
    return call.answer(script, lambda screen, made: screen.text(made["script"]))


def complete(call: Invocation) -> int:
    """What the last word may become, a line each: the word, a tab, what it means. Trouble offers nothing."""
    from holdfast.cli.output import one_line

    typed = _joined(call.words.rest) or [""]
    try:
        offers = _offers(typed, call.words)
    except HoldfastError:
        offers = []
    for word, meaning in offers:
        if word.startswith(typed[-1]):
            call.screen.say(f"{one_line(word)}\t{one_line(meaning)}")
    return 0


def _joined(typed: list[str]) -> list[str]:
    """Bash hands over `--scope=gl` as three words; here it is an option and the start of its value."""
    if typed[-1:] == ["="]:
        return [*typed[:-1], ""]
    return [*typed[:-2], typed[-1]] if typed[-2:-1] == ["="] else typed


def _offers(typed: list[str], before: ParsedArguments) -> list[tuple[str, str]]:
    from holdfast.cli.commands.help import choices
    from holdfast.cli.parser import scan

    words, last = scan(typed[:-1]), typed[-1]
    words.values = {**before.values, **words.values}  # an alias may have said where the home is
    if words.pending:
        return [(choice, words.pending.help) for choice in choices(words.pending)]
    if last.startswith("-"):
        return [(option.name, option.help) for option in words.options.values()]
    if words.command is None:
        return _commands(words.family)
    place = min(len(words.places), len(words.command.args) - 1)
    arg = words.command.args[place] if words.command.args and (place == len(words.places)) else None
    return _ARGUMENTS[arg.offers](words) if arg and arg.offers in _ARGUMENTS else []


def _commands(family: str) -> list[tuple[str, str]]:
    if family:
        inner = [(name.partition(" ")[2], one) for name, one in COMMANDS.items() if name.startswith(f"{family} ")]
        return [(name, command.summary) for name, command in inner]
    single = [(name, command.summary) for name, command in COMMANDS.items() if " " not in name]
    return [*single, *FAMILIES.items()]


def _asked(words: ParsedArguments) -> Invocation:
    from holdfast.cli.output import Output
    from holdfast.cli.runner import Invocation

    return Invocation(words, Output(json=True))


def _keys(words: ParsedArguments) -> list[tuple[str, str]]:
    asked = _asked(words)
    try:
        notes = asked.memory.list(scope=asked["scope"], limit=_MOST)
        return [(note.key, " ".join(note.text[:80].split())[:60]) for note in notes]
    finally:
        asked.close()


def _trash(words: ParsedArguments) -> list[tuple[str, str]]:
    asked = _asked(words)
    try:
        return list(dict.fromkeys((one.key, f"in the {one.part}") for one in asked.memory.trash()))
    finally:
        asked.close()


def _settings(_: ParsedArguments) -> list[tuple[str, str]]:
    from holdfast.config import SETTINGS

    return [(setting.name, setting.description) for setting in SETTINGS]


def _clients(_: ParsedArguments) -> list[tuple[str, str]]:
    from holdfast import clients

    return [(name, clients.load(name).title) for name in clients.names()]


def _paths(words: ParsedArguments) -> list[tuple[str, str]]:
    from holdfast.cli.commands.setup import PARTS, PLACES

    return [*[(name, "a place in the home") for name in (*PLACES, *PARTS)], *_keys(words)]


def _scaffolds(_: ParsedArguments) -> list[tuple[str, str]]:
    from holdfast.verbs.scaffold import list_scaffolds

    return [(name, "template files") for name in list_scaffolds()]


def _projects(words: ParsedArguments) -> list[tuple[str, str]]:
    asked = _asked(words)
    try:
        return [(one.id, one.folders[0] if one.folders else "") for one in asked.memory.projects()]
    finally:
        asked.close()


def _agents(words: ParsedArguments) -> list[tuple[str, str]]:
    from holdfast.config import find_home
    from holdfast.ledger import SqliteLedger

    ledger = SqliteLedger(find_home(words.values.get("home")))
    try:
        return [(agent.name, agent.role) for agent in ledger.agents.list()]
    finally:
        ledger.close()


_ARGUMENTS: dict[str, Callable[[ParsedArguments], list[tuple[str, str]]]] = {
    "keys": _keys,
    "trash": _trash,
    "settings": _settings,
    "paths": _paths,
    "clients": _clients,
    "shells": lambda _: [(shell, "completion script") for shell in SCRIPTS],
    "scaffolds": _scaffolds,
    "agents": _agents,
    "projects": _projects,
    "commands": lambda _: _commands(""),
}
