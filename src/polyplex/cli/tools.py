"""`polyplex tools`: what all servers offer, or what fits a query."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from polyplex.cli.arguments import Request, UsageError
from polyplex.cli.commands import TOOLS
from polyplex.cli.configuration import count, load, warn
from polyplex.cli.lacks import embedder_lack
from polyplex.cli.progress import Outcome
from polyplex.cli.session import decline, run, started
from polyplex.cli.terminal import Terminal, one_line, shorten, stdout_is_terminal, write_result
from polyplex.config import Config

SEARCH_RESULTS: Final = 10
FULL_WIDTH: Final = 200


def tools(request: Request) -> int:
    """List or search. The exit code is 1 when no server could be started."""
    limit = _limit(request.options.get("k"))
    query = " ".join(request.arguments)
    terminal = Terminal()
    config = load(request.options.get("config"))
    warn(config, terminal)
    found, all_count, outcomes = run(
        _tools(config, terminal, query, limit or SEARCH_RESULTS), terminal, verbose=request.has("verbose")
    )
    found = found[:limit]
    write_result(_json(found) if request.has("json") else _lines(found, Terminal()))
    if not request.has("json"):
        _conclude(terminal, query, len(found), all_count)
    return 1 if outcomes and all(outcome.reason is not None for outcome in outcomes) else 0


def _limit(text: str | None) -> int | None:
    if text is None:
        return None
    if not text.isascii() or not text.isdigit() or int(text) == 0:
        raise UsageError(f"-k takes a number from 1 on; not {text!r}", TOOLS)
    return int(text)


async def _tools(
    config: Config, terminal: Terminal, query: str, k: int
) -> tuple[Sequence[Mapping[str, Any]], int, list[Outcome]]:
    """What is offered, or of it what fits a query; how many tools there are; how the servers started."""
    lack = embedder_lack(config.options.search) if query else None
    if lack is not None:
        terminal.tell("warning", f"{lack.key}: {lack.reason}; {lack.instead}", "yellow")
    async with started(config, terminal, decline) as (multiplexer, outcomes):
        found = await multiplexer.list_tools()
        for outcome in outcomes:
            remembered = len(outcome.upstream.lists.get("tools", ()))
            if outcome.reason is not None and remembered:
                terminal.say(f"         {count(remembered, 'tool')} of {outcome.name} are listed as last seen")
        for name, servers in multiplexer.gateway.core.view(
            multiplexer.gateway.core.modern.plain
        ).routes.tools.collisions.items():
            terminal.tell("warning", f"{name} is left out: {' and '.join(servers)} have it", "yellow")
        total = len(found)
        return (await multiplexer.find_tools(query, k) if query else found), total, outcomes


def _json(found: Sequence[Mapping[str, Any]]) -> str:
    import msgspec

    raw = msgspec.json.encode(found)
    return (msgspec.json.format(raw, indent=2) if stdout_is_terminal() else raw).decode()


def _lines(found: Sequence[Mapping[str, Any]], terminal: Terminal) -> str:
    """One tool a line: for a person cut to the width of the terminal, for a program long enough for anything."""
    room = terminal.width if stdout_is_terminal() else FULL_WIDTH
    width = min(max((len(tool["name"]) for tool in found), default=0), room // 2)
    return "\n".join(
        shorten(f"{one_line(tool['name']):<{width}}  {first_sentence(tool)}".rstrip(), room) for tool in found
    )


def first_sentence(tool: Mapping[str, Any]) -> str:
    """What a tool does, in one sentence."""
    text = one_line(str(tool.get("description") or tool.get("title") or ""))
    head, stop, _ = text.partition(". ")
    return f"{head}." if stop else text


def _conclude(terminal: Terminal, query: str, shown: int, total: int) -> None:
    """A last line for people; programs that read stdout do not get it."""
    if query and not shown:
        terminal.say(f"no tool fits {query!r}; polyplex tools lists all {total}")
    elif terminal.interactive and stdout_is_terminal() and shown:
        of_all = f"{shown} of {count(total, 'tool')}" if shown < total else count(total, "tool")
        terminal.say(terminal.paint(f"\n{of_all}; polyplex call NAME calls one", "dim"))
