"""`polyplex cost`: tokens of every tool and of what results cost, what `auto` lists, and what to do about it."""

import sqlite3
from typing import Final, cast

import msgspec

from polyplex.catalog.cost import ServerCost
from polyplex.cli.arguments import Request, UsageError
from polyplex.cli.commands import COST
from polyplex.cli.configuration import count, load, warn
from polyplex.cli.costing import Costs, costs_of
from polyplex.cli.progress import Outcome
from polyplex.cli.session import decline, run, started
from polyplex.cli.table import Row, table
from polyplex.cli.terminal import LABEL_WIDTH, Terminal, one_line, stdout_is_terminal, write_result
from polyplex.config import Config, state_database
from polyplex.config.model import RESERVED_SERVER
from polyplex.content.tokens import EstimatingTokenizer, Tokenizer, TokenizerMissing, best_tokenizer, tokenizer
from polyplex.store.usage import ToolUsage, read_usage

TOOLS_SHOWN: Final = 5


def cost(request: Request) -> int:
    """Count. The exit code is 1 when no server could be started."""
    terminal = Terminal()
    limit = _limit(request.options.get("k"))
    config = load(request.options.get("config"))
    warn(config, terminal)
    counter = _tokenizer(request.options.get("tokenizer"), terminal)
    costs, outcomes = run(_costs(config, counter, terminal), terminal, verbose=request.has("verbose"))
    write_result(_json(costs) if request.has("json") else shown(costs, limit))
    return 1 if outcomes and all(outcome.reason is not None for outcome in outcomes) else 0


def _limit(text: str | None) -> int:
    if text is None:
        return TOOLS_SHOWN
    if not text.isascii() or not text.isdigit():
        raise UsageError(f"-k takes a number; not {text!r}", COST)
    return int(text)


def _tokenizer(name: str | None, terminal: Terminal) -> Tokenizer:
    """The tokenizer that is asked for. Raises `UsageError` where it is asked for and not installed."""
    if name == EstimatingTokenizer.name:
        return cast(Tokenizer, EstimatingTokenizer())
    if name is not None:
        try:
            return tokenizer(name)
        except TokenizerMissing as error:
            raise UsageError(f"--tokenizer {name}: {error}", COST) from None
    best = best_tokenizer()
    if best.name == EstimatingTokenizer.name:
        terminal.tell("note", "tokens are estimated; pip install 'polyplex[tokens]' for exact counts")
    return best


async def _costs(config: Config, counter: Tokenizer, terminal: Terminal) -> tuple[Costs, list[Outcome]]:
    async with started(config, terminal, decline) as (multiplexer, outcomes):
        return costs_of(multiplexer.gateway, counter, _usage(config, terminal)), outcomes


def _usage(config: Config, terminal: Terminal) -> list[ToolUsage] | None:
    """What results have cost; None where it is not known."""
    try:
        usage = read_usage(state_database(config.options.state))
    except (sqlite3.Error, OSError) as error:
        terminal.tell(
            "warning", f"what results cost is not known: the state database cannot be read: {error}", "yellow"
        )
        return None
    # All configurations count in one database; what the servers of others did says nothing about these.
    return [each for each in usage if each.server in config.servers or each.server == RESERVED_SERVER]


def _json(costs: Costs) -> str:
    raw = msgspec.json.encode(costs)
    return (msgspec.json.format(raw, indent=2) if stdout_is_terminal() else raw).decode()


def shown(costs: Costs, limit: int) -> str:
    """The costs as a table and what follows from them."""
    import sys

    page = Terminal(sys.stdout)
    used = {(each.server, each.tool): each for each in (costs.results.tools if costs.results is not None else ())}
    rows: list[Row] = []
    for server in costs.servers:
        if not server.tools:  # it did not start, or has none
            continue
        rows.append(_server_row(server, costs, used))
        rows += [_tool_row(server, tool_index, costs, used) for tool_index in range(min(limit, len(server.tools)))]
        rest = server.tools[limit:]
        if rest:
            tokens = sum(tool.tokens for tool in rest)
            rows.append(
                Row(
                    (f"  {count(len(rest), 'more tool')}", _number(tokens), _share(tokens, costs.tokens), "", ""),
                    dim=True,
                )
            )
    rows.append(_total_row(costs))
    head = ("server and tools", "tokens", "share", "calls", "result tokens")
    parts = [table(head, rows, page), "", *(_line(page, label, text) for label, text in _notes(costs))]
    return "\n".join(parts)


def _server_row(server: ServerCost, costs: Costs, used: dict[tuple[str, str], ToolUsage]) -> Row:
    own = [each for (name, _), each in used.items() if name == server.name]
    calls, tokens = sum(each.counts.calls for each in own), sum(each.counts.tokens for each in own)
    name = f"{one_line(server.name)} ({count(len(server.tools), 'tool')})"
    cells = (name, _number(server.tokens), _share(server.tokens, costs.tokens), _some(calls), _some(tokens))
    return Row(cells, bold=True)


def _tool_row(server: ServerCost, index: int, costs: Costs, used: dict[tuple[str, str], ToolUsage]) -> Row:
    tool = server.tools[index]
    usage = used.get((server.name, tool.local))
    calls, tokens = (usage.counts.calls, usage.counts.tokens) if usage is not None else (0, 0)
    return Row(
        (
            f"  {one_line(tool.name)}",
            _number(tool.tokens),
            _share(tool.tokens, costs.tokens),
            _some(calls),
            _some(tokens),
        )
    )


def _total_row(costs: Costs) -> Row:
    tools = sum(len(server.tools) for server in costs.servers)
    results = costs.results
    calls, tokens = (results.calls, results.tokens) if results is not None else (0, 0)
    name = f"all ({count(tools, 'tool')})"
    return Row(
        (name, _number(costs.tokens), _share(costs.tokens, costs.tokens), _some(calls), _some(tokens)), bold=True
    )


def _notes(costs: Costs) -> list[tuple[str, str]]:
    kind = f"{costs.tokenizer}{'' if costs.exact else ', so about'}"
    lines = [("tokens", f"{kind}: name, description and input schema of each tool")]
    if costs.instructions_tokens:
        lines.append(("besides", f"{_number(costs.instructions_tokens)} tokens of instructions"))
    for noun in ("resources", "prompts"):
        number = sum(getattr(server, noun) for server in costs.servers)
        tokens = sum(getattr(server, f"{noun}_tokens") for server in costs.servers)
        if number:
            lines.append(("besides", f"{_number(tokens)} tokens where {number} {noun} are listed to a model"))
    auto = costs.auto
    what = "all tools" if auto.lists == "all" else f"{count(auto.tools, 'tool')}, search tools among them"
    saved = f", saves {_number(auto.saved)}" if auto.saved else ""
    lines.append(("auto", f"lists {what}: {_number(auto.tokens)} tokens{saved}"))
    spent, budget = _number(costs.estimated_tokens), _number(costs.budget_tokens)
    lines.append(("budget", f"{budget} tokens for all tools, which auto estimates at {spent}"))
    if auto.lists == "all" and costs.search.saved:
        lines.append(
            ("search", f"would list {_number(costs.search.tokens)} tokens, saves {_number(costs.search.saved)}")
        )
    if costs.results is not None and costs.results.calls:
        results = costs.results
        kept = f", {_number(results.offloaded_bytes)} bytes of them kept as payloads" if results.offloaded_bytes else ""
        calls = f"{count(results.calls, 'call')}, of {_number(results.bytes)} bytes"
        lines.append(("results", f"about {_number(results.tokens)} tokens in {calls}{kept}"))
    lines += [("do", hint) for hint in costs.hints]
    return lines


def _line(page: Terminal, label: str, text: str) -> str:
    return f"{label:<{LABEL_WIDTH}}{page.wrapped(text, LABEL_WIDTH)}"


def _number(value: int) -> str:
    return f"{value:,}"


def _some(value: int) -> str:
    return _number(value) if value else ""


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.0%}" if whole else ""
