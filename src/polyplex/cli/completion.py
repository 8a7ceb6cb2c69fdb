"""Completion scripts for shells, made from the table of commands. They call nothing: completing starts no server."""

from polyplex.cli.commands import COMMANDS, EVERYWHERE, Command, Option


def script(shell: str) -> str:
    """The script for `bash`, `zsh` or `fish`."""
    return {"bash": _bash, "zsh": _zsh, "fish": _fish}[shell]()


def _options(command: Command) -> tuple[Option, ...]:
    return (*command.options, *EVERYWHERE)


def _first_words() -> list[str]:
    return list(dict.fromkeys(command.name.split()[0] for command in COMMANDS))


def _words(command: Command) -> list[str]:
    """What may follow a command: its options, and the choices of its arguments."""
    names = [name for option in _options(command) for name in option.names]
    return [choice for argument in command.arguments for choice in argument.choices] + names


def _values() -> list[Option]:
    """Every option that takes a value, once."""
    options = {option.names: option for command in COMMANDS for option in command.options if option.value}
    return list(options.values())


def _bash() -> str:
    values = "\n".join(f"    {'|'.join(option.names)}) {_bash_value(option)}; return ;;" for option in _values())
    cases = "\n".join(_bash_case(first) for first in _first_words())
    return f"""\
# polyplex completion for bash: eval "$(polyplex completion bash)"
_polyplex() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}}
  COMPREPLY=()
  case $previous in
{values}
  esac
  if ((COMP_CWORD == 1)); then
    COMPREPLY=($(compgen -W "{" ".join(_first_words())} --help --version" -- "$current"))
    return
  fi
  case ${{COMP_WORDS[1]}} in
{cases}
  esac
}}
complete -F _polyplex polyplex"""


def _bash_value(option: Option) -> str:
    if option.is_file:
        return 'compopt -o filenames 2>/dev/null; COMPREPLY=($(compgen -f -- "$current"))'
    return f'COMPREPLY=($(compgen -W "{" ".join(option.choices)}" -- "$current"))'


def _bash_case(first: str) -> str:
    """The case of a first word; a command of two words offers its second word too."""
    words: list[str] = []
    for command in COMMANDS:
        parts = command.name.split()
        if parts[0] == first:
            words += [*parts[1:], *_words(command)]
    return f'    {first}) COMPREPLY=($(compgen -W "{" ".join(dict.fromkeys(words))}" -- "$current")) ;;'


def _zsh() -> str:
    described = "\n".join(f"    {_quoted(f'{first}:{_summary(first)}')}" for first in _first_words())
    cases = "\n".join(_zsh_case(command) for command in COMMANDS)
    return f"""\
#compdef polyplex
# polyplex completion for zsh: source <(polyplex completion zsh)
_polyplex() {{
  local -a commands
  commands=(
{described}
  )
  if ((CURRENT == 2)); then
    _describe 'command' commands
    return
  fi
  case ${{words[2]}} in
{cases}
  esac
}}
compdef _polyplex polyplex"""


def _zsh_case(command: Command) -> str:
    parts = command.name.split()
    specs = [spec for option in _options(command) for spec in _zsh_option(option)]
    if parts[1:]:
        specs.append(_quoted(f"2:command:({' '.join(parts[1:])})"))
    elif command.arguments and command.arguments[0].choices:
        specs.append(_quoted(f"2:{command.arguments[0].name}:({' '.join(command.arguments[0].choices)})"))
    lines = " \\\n        ".join(specs)
    return f"    {parts[0]})\n      _arguments \\\n        {lines} ;;"


def _zsh_option(option: Option) -> list[str]:
    summary = option.summary.replace("[", "(").replace("]", ")").replace(":", "\\:")
    value = ""
    if option.value:
        offer = "_files" if option.is_file else f"({' '.join(option.choices)})" if option.choices else " "
        value = f":{option.value.replace(':', ' ')}:{offer}"
    return [_quoted(f"{name}[{summary}]{value}") for name in option.names]


def _fish() -> str:
    lines = ["# polyplex completion for fish", "complete -c polyplex -f"]
    start = "complete -c polyplex -n __fish_use_subcommand"
    lines += [f"{start} -a {first} -d {_quoted(_summary(first))}" for first in _first_words()]
    for command in COMMANDS:
        lines += _fish_command(command)
    return "\n".join(lines)


def _fish_command(command: Command) -> list[str]:
    first, *second = command.name.split()
    start = f"complete -c polyplex -n '__fish_seen_subcommand_from {first}'"
    choices = [*second, *(choice for argument in command.arguments for choice in argument.choices)]
    lines = [f"{start} -a {_quoted(' '.join(choices))}"] if choices else []
    for option in _options(command):
        names = " ".join(f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in option.names)
        value = " -r -F" if option.is_file else " -x" if option.value else ""
        offer = f" -a {_quoted(' '.join(option.choices))}" if option.choices else ""
        lines.append(f"{start} {names}{value}{offer} -d {_quoted(option.summary)}")
    return lines


def _summary(first: str) -> str:
    return next(command.summary for command in COMMANDS if command.name.split()[0] == first)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
