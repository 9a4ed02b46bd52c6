"""`completion`: scripts for shells that ask `holdfast _complete` for words, so that they always match the command table."""

from __future__ import annotations

from contextlib import closing

from holdfast.cli.command_table import COMMAND_GROUPS, COMMANDS
from holdfast.errors import HoldfastError, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.cli.parser import ParsedArguments
    from holdfast.cli.runner import Invocation

    Words = list[tuple[str, str]]  # each word with its description

_MAX_KEYS = 500  # keys offered at once

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
    """`holdfast completion`."""
    shell = call["shell"]
    if shell not in SCRIPTS:
        raise UsageError(f"no completion script for the shell {shell!r}", f"Use one of: {', '.join(SCRIPTS)}")
    script = {"shell": shell, "script": SCRIPTS[shell]}
    return call.answer(script, lambda output, script: output.print_text(script["script"]))


def complete(call: Invocation) -> int:
    """`holdfast _complete`: print completions of the last word, one per line, a tab and a description; nothing on errors."""
    from holdfast.cli.output import join_lines

    typed = _join_equals(call.arguments.rest) or [""]
    try:
        words = _list_words(typed, call.arguments)
    except HoldfastError:
        words = []
    for word, meaning in words:
        if word.startswith(typed[-1]):
            call.output.print_line(f"{join_lines(word)}\t{join_lines(meaning)}")
    return 0


def _join_equals(typed: list[str]) -> list[str]:
    """Drop the `=` of `--scope = gl`: bash splits `--scope=gl` into these three words."""
    if typed[-1:] == ["="]:
        return [*typed[:-1], ""]
    return [*typed[:-2], typed[-1]] if typed[-2:-1] == ["="] else typed


def _list_words(typed: list[str], global_arguments: ParsedArguments) -> Words:
    from holdfast.cli.commands.help import list_choices
    from holdfast.cli.parser import parse_partial

    arguments, last = parse_partial(typed[:-1]), typed[-1]
    arguments.values = {**global_arguments.values, **arguments.values}  # an alias of the shell may set --home
    if arguments.pending:
        return [(choice, arguments.pending.help) for choice in list_choices(arguments.pending)]
    if last.startswith("-"):
        return [(option.name, option.help) for option in arguments.options.values()]
    if arguments.command is None:
        return _list_commands(arguments.group)
    args, number = arguments.command.args, len(arguments.positionals)
    kind = args[number].completion if number < len(args) else ""
    return _COMPLETIONS[kind](arguments) if kind in _COMPLETIONS else []


def _list_commands(group: str) -> Words:
    if group:
        prefix = f"{group} "
        return [(name.removeprefix(prefix), command.summary) for name, command in COMMANDS.items() if name.startswith(prefix)]
    single = [(name, command.summary) for name, command in COMMANDS.items() if " " not in name]
    return [*single, *COMMAND_GROUPS.items()]


def _open_call(arguments: ParsedArguments) -> Invocation:
    from holdfast.cli.output import Output
    from holdfast.cli.runner import Invocation

    return Invocation(arguments, Output(json=True))


def _list_keys(arguments: ParsedArguments) -> Words:
    with closing(_open_call(arguments)) as call:
        notes = call.memory.list(scope=call["scope"], limit=_MAX_KEYS)
        return [(note.key, " ".join(note.text[:80].split())[:60]) for note in notes]


def _list_trash(arguments: ParsedArguments) -> Words:
    with closing(_open_call(arguments)) as call:
        return list(dict.fromkeys((note.key, f"in the {note.part}") for note in call.memory.trash()))


def _list_settings(_: ParsedArguments) -> Words:
    from holdfast.config import SETTINGS

    return [(setting.name, setting.description) for setting in SETTINGS]


def _list_clients(_: ParsedArguments) -> Words:
    from holdfast import clients

    return [(name, clients.load(name).title) for name in clients.names()]


def _list_paths(arguments: ParsedArguments) -> Words:
    from holdfast.cli.commands.setup import HOME_PATHS, SCOPE_FOLDERS

    return [*[(name, "part of the home") for name in (*HOME_PATHS, *SCOPE_FOLDERS)], *_list_keys(arguments)]


def _list_models(_: ParsedArguments) -> Words:
    from holdfast.embedders.known_models import MODELS

    return [(model.name, model.title) for model in MODELS]


def _list_testable_models(_: ParsedArguments) -> Words:
    from holdfast.embedders.known_models import BUNDLED_MODELS, MODELS

    return [(model.name, model.title) for model in (*BUNDLED_MODELS, *MODELS)]


def _list_scaffolds(_: ParsedArguments) -> Words:
    from holdfast.verbs.scaffold import list_scaffolds

    return [(name, "template files") for name in list_scaffolds()]


def _list_projects(arguments: ParsedArguments) -> Words:
    with closing(_open_call(arguments)) as call:
        return [(project.id, project.folders[0] if project.folders else "") for project in call.memory.projects()]


def _list_agents(arguments: ParsedArguments) -> Words:
    from holdfast.context.ledgers import open_ledger

    with closing(_open_call(arguments)) as call, closing(open_ledger(call.load_settings())) as ledger:
        return [(agent.name, agent.role) for agent in ledger.agents.list()]


_COMPLETIONS: dict[str, Callable[[ParsedArguments], Words]] = {  # by Arg.completion
    "keys": _list_keys,
    "trash": _list_trash,
    "settings": _list_settings,
    "paths": _list_paths,
    "clients": _list_clients,
    "shells": lambda _: [(shell, "completion script") for shell in SCRIPTS],
    "models": _list_models,
    "testable-models": _list_testable_models,
    "scaffolds": _list_scaffolds,
    "agents": _list_agents,
    "projects": _list_projects,
    "commands": lambda _: _list_commands(""),
}
