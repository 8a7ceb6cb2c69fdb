"""From arguments to an exit code: 0 done, 1 failed, 2 wrong usage or configuration, 130 interrupted, 141 unread.

Nothing a command raises reaches the user as a traceback, unless -v asks for it.
"""

import os
import sys
from collections.abc import Callable
from typing import Final

from polyplex.cli.arguments import Request, UsageError, parse
from polyplex.cli.terminal import Terminal, prepare_streams, write_result

FAILED: Final = 1
MISUSED: Final = 2
INTERRUPTED: Final = 130
NOT_READ: Final = 141


def main(words: list[str]) -> int:
    """Run one command line; returns the exit code."""
    prepare_streams()
    verbose = "-v" in words or "--verbose" in words
    try:
        return _run(words)
    except UsageError as error:
        page = f"polyplex {error.command.name} --help" if error.command is not None else "polyplex --help"
        _complain(str(error), f"{page} says more")
        return MISUSED
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        _abandon_stdout()
        return NOT_READ
    except Exception as error:  # noqa: BLE001 - whatever it is, the user gets a sentence
        return _explain(error, verbose)


def _run(words: list[str]) -> int:
    request = parse(words)
    if request.command is None:
        write_result(_about(request))
        # Without any word, somebody wants to know what to do; that is no success for a script.
        return 0 if words else MISUSED
    if request.has("help"):
        from polyplex.cli.help_text import page

        write_result(page(request.command, _help_width()))
        return 0
    return _command(request)(request)


def _about(request: Request) -> str:
    if request.has("version"):
        from polyplex.version import version

        return f"polyplex {version()}"
    from polyplex.cli.help_text import overview

    return overview(_help_width())


def _help_width() -> int:
    """A page of help is as wide as is good to read, and no wider than the terminal."""
    from polyplex.cli.help_text import WIDTH

    screen = Terminal(sys.stdout)
    return min(WIDTH, screen.width) if screen.interactive else WIDTH


def _command(request: Request) -> Callable[[Request], int]:
    """The function of a command; only what that command needs is imported."""
    name = "" if request.command is None else request.command.name
    if name == "serve":
        from polyplex.cli.serve import serve

        return serve
    if name == "tools":
        from polyplex.cli.tools import tools

        return tools
    if name == "call":
        from polyplex.cli.call import call

        return call
    if name == "lint":
        from polyplex.cli.lint import lint

        return lint
    if name == "cost":
        from polyplex.cli.cost import cost

        return cost
    if name == "doctor":
        from polyplex.cli.doctor import doctor

        return doctor
    if name == "config check":
        from polyplex.cli.config_check import config_check

        return config_check
    return _completion


def _completion(request: Request) -> int:
    from polyplex.cli.completion import script

    write_result(script(request.arguments[0]))
    return 0


def _explain(error: Exception, verbose: bool) -> int:
    from polyplex.errors import ConfigError, PolyplexError

    if verbose:
        import traceback

        traceback.print_exception(error)
    if isinstance(error, ConfigError):
        unset = "is not set" in error.message
        _complain(str(error), "polyplex config check names every unset variable" if unset else "")
        return MISUSED
    if isinstance(error, PolyplexError):
        _complain(str(error))
    elif isinstance(error, OSError):
        _complain(f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}")
    else:
        hint = "" if verbose else "; -v shows where"
        _complain(f"polyplex itself failed: {type(error).__name__}: {error}{hint}")
    return FAILED


def _complain(text: str, more: str = "") -> None:
    terminal = Terminal()
    terminal.tell("error", text, "red")
    if more:
        terminal.tell("", more)


def _abandon_stdout() -> None:
    """Nothing can be written any more, so that the interpreter must not try when it ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
