"""From the words of a command line to a command with its options; mistakes are answered with what was meant."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from polyplex.cli.commands import COMMANDS, EVERYWHERE, HELP, VERSION, Command, Option


class UsageError(Exception):
    """The command line is wrong. `command` is the one whose help says more, where it is known."""

    def __init__(self, message: str, command: Command | None = None) -> None:
        super().__init__(message)
        self.command = command


@dataclass(slots=True)
class Request:
    """What was asked for. `command` is None for help or the version of polyplex itself."""

    command: Command | None
    options: dict[str, str] = field(default_factory=dict[str, str])
    arguments: list[str] = field(default_factory=list[str])

    def has(self, key: str) -> bool:
        """Whether an option was given."""
        return key in self.options


def parse(words: list[str]) -> Request:
    """Read a command line, program name left out. Raises `UsageError`."""
    command, rest = _command(words)
    request = Request(command)
    allowed = (*command.options, *EVERYWHERE) if command is not None else (HELP, VERSION)
    _read(rest, allowed, request)
    if command is not None and not request.has("help"):
        _check(command, request)
    return request


def _command(words: list[str]) -> tuple[Command | None, list[str]]:
    """The command, and the other words. `-v` and `--config FILE` may stand before it."""
    index = 0
    while index < len(words) and words[index] in ("-v", "--verbose", "--config"):
        index += 2 if words[index] == "--config" else 1
    head, rest = words[:index], words[index:]
    if not rest or rest[0].startswith("-"):
        return None, words
    if rest[0] == "help":
        return _named(rest[1:], [])[0] if rest[1:] else None, ["--help"]
    return _named(rest, head)


def _named(rest: list[str], head: list[str]) -> tuple[Command, list[str]]:
    for command in COMMANDS:
        parts = command.name.split()
        if rest[: len(parts)] == parts:
            return command, [*head, *rest[len(parts) :]]
    group = [command for command in COMMANDS if command.name.split()[0] == rest[0]]
    if len(group) == 1 and rest[1:] in (["-h"], ["--help"]):
        return group[0], ["--help"]
    if group:
        groups = [command.name for command in group]
        raise UsageError(f"polyplex {rest[0]} needs one more word: polyplex {', polyplex '.join(groups)}")
    known = [command.name for command in COMMANDS]
    raise UsageError(f"unknown command {rest[0]!r}{suggestion(rest[0], known)}")


def _read(words: list[str], allowed: Iterable[Option], request: Request) -> None:
    options = {name: option for option in allowed for name in option.names}
    waiting = list(reversed(words))
    while waiting:
        word = waiting.pop()
        if word == "--":
            request.arguments += reversed(waiting)
            return
        if len(word) < 2 or not word.startswith("-"):
            request.arguments.append(word)
            continue
        name, equals, attached = word.partition("=")
        if name not in options and not word.startswith("--") and len(word) > 2 and word[:2] in options:
            name, equals, attached = word[:2], "=", word[2:]
        option = options.get(name)
        if option is None:
            raise UsageError(f"unknown option {name}{suggestion(name, options)}", request.command)
        request.options[option.key] = _value(option, name, attached if equals else None, waiting, request.command)


def _value(option: Option, name: str, attached: str | None, waiting: list[str], command: Command | None) -> str:
    if not option.value:
        if attached is not None:
            raise UsageError(f"{name} takes no value", command)
        return ""
    if attached is None and (not waiting or waiting[-1].startswith("--")):
        raise UsageError(f"{name} needs a value: {name} {option.value}", command)
    value = waiting.pop() if attached is None else attached
    if option.choices and value not in option.choices:
        raise UsageError(f"{name} is one of {', '.join(option.choices)}; not {value!r}", command)
    return value


def _check(command: Command, request: Request) -> None:
    given = len(request.arguments)
    required = [argument for argument in command.arguments if argument.required]
    if given < len(required):
        missing = required[given]
        raise UsageError(f"polyplex {command.name} needs {missing.name}: {missing.summary}", command)
    repeats = any(argument.repeats for argument in command.arguments)
    if given > len(command.arguments) and not repeats:
        extra = request.arguments[len(command.arguments)]
        raise UsageError(f"polyplex {command.name} takes no argument {extra!r}", command)
    for argument, value in zip(command.arguments, request.arguments, strict=False):
        if argument.choices and value not in argument.choices:
            raise UsageError(f"{argument.name} is one of {', '.join(argument.choices)}; not {value!r}", command)


def suggestion(word: str, known: Iterable[str]) -> str:
    """`; did you mean X?` for the closest of the known words, or nothing."""
    from difflib import get_close_matches

    close = get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f"; did you mean {close[0]}?" if close else ""
