"""`polyplex call`: one tool call, its result on stdout and everything else on stderr."""

import sys
from typing import Any

import msgspec

from polyplex.cli.arguments import Request, UsageError, suggestion
from polyplex.cli.commands import CALL
from polyplex.cli.configuration import load, warn
from polyplex.cli.elicitation import Questions
from polyplex.cli.results import as_text
from polyplex.cli.session import run, started
from polyplex.cli.terminal import Terminal, one_line, stdout_is_terminal, write_result
from polyplex.config import Config
from polyplex.errors import RpcError
from polyplex.mux.names import SEPARATOR, server_slug


def call(request: Request) -> int:
    """Call a tool. The exit code is 1 when it failed or its server did, 2 when there is no such tool."""
    name = request.arguments[0]
    arguments = read_arguments(request.arguments[1] if len(request.arguments) > 1 else None)
    terminal = Terminal()
    config = load(request.options.get("config"))
    warn(config, terminal)
    work = _call(only_for(config, name), name, arguments, terminal)
    result = run(work, terminal, verbose=request.has("verbose"))
    if isinstance(result, int):
        return result
    failed = result.get("isError") is True
    if request.has("json"):
        raw = msgspec.json.encode(result)
        write_result((msgspec.json.format(raw, indent=2) if stdout_is_terminal() else raw).decode())
    elif failed:
        terminal.say(f"{terminal.paint('failed', 'red')}   {as_text(result, for_terminal=True)}")
    else:
        write_result(as_text(result, for_terminal=stdout_is_terminal()))
    return 1 if failed else 0


def read_arguments(text: str | None) -> dict[str, Any]:
    """The arguments of the tool; `-` is standard input. Raises `UsageError`."""
    if text is None:
        return {}
    try:
        value = msgspec.json.decode(sys.stdin.buffer.read() if text == "-" else text)
    except msgspec.DecodeError as error:
        raise UsageError(f'the arguments are not JSON: {error}; quote them as \'{{"name": "value"}}\'', CALL) from None
    if not isinstance(value, dict):
        raise UsageError('the arguments are no JSON object; write {"name": value}', CALL)
    return value  # pyright: ignore[reportUnknownVariableType]


def only_for(config: Config, name: str) -> Config:
    """The configuration with only the servers that may have a tool of this name, as public names tell; else all."""
    if config.options.naming != "prefix":
        return config
    servers = {
        server: entry
        for server, entry in config.servers.items()
        if entry.enabled and name.startswith((f"{server}{SEPARATOR}", f"{server_slug(server)}{SEPARATOR}"))
    }
    return msgspec.structs.replace(config, servers=servers) if servers else config


async def _call(config: Config, name: str, arguments: dict[str, Any], terminal: Terminal) -> dict[str, Any] | int:
    """The result, or the exit code of a failure that has been reported."""
    questions = Questions(terminal, name)
    async with started(config, terminal, questions.answer) as (multiplexer, outcomes):
        names = [tool["name"] for tool in await multiplexer.list_tools()]
        if name not in names and multiplexer.gateway.core.builtins.get(name) is None:
            failed = [outcome.name for outcome in outcomes if outcome.reason is not None]
            collisions = multiplexer.gateway.core.view(
                multiplexer.gateway.core.modern.plain
            ).routes.tools.collisions.get(name)
            _complain(terminal, _unknown(name, names, failed, collisions))
            return 1 if failed else 2

        def progress(done: float, total: float | None, message: str | None) -> None:
            if not questions.asking:
                _show_progress(terminal, done, total, message)

        try:
            return await multiplexer.call_tool(name, arguments, progress=progress, raw=True)
        except RpcError as error:
            _complain(terminal, f"{name} was refused with {error.code}: {one_line(error.message)}")
            return 1
        finally:
            terminal.live("")


def _unknown(name: str, names: list[str], failed: list[str], collisions: list[str] | None) -> str:
    if collisions:
        return f'{" and ".join(collisions)} both have a tool {name}; set "naming": "prefix" in the configuration'
    if any(name.startswith(f"{server_slug(server)}{SEPARATOR}") for server in failed):
        return f"{name} cannot be called: its server did not start; polyplex doctor says what to do"
    elsewhere = f", unless {' or '.join(failed)} has it" if failed else ""
    return f"there is no tool {name}{elsewhere}{suggestion(name, names) or '; polyplex tools lists them'}"


def _complain(terminal: Terminal, text: str) -> None:
    terminal.tell("error", text, "red")


def _show_progress(terminal: Terminal, done: float, total: float | None, message: str | None) -> None:
    amount = f"{done:g}" if total is None else f"{done:g} of {total:g}"
    text = f"progress {amount}{f'  {one_line(message)}' if message else ''}"
    if terminal.interactive:
        terminal.live(text)
    else:
        terminal.say(text)
