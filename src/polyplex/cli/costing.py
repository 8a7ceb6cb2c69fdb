"""What tools and results cost, put together: by server, by way of listing, and what to do about it."""

from typing import Final

import msgspec

from polyplex.catalog.cost import ServerCost, cost_of_list, cost_of_server
from polyplex.cli.configuration import count
from polyplex.config.model import Expose
from polyplex.content.tokens import EstimatingTokenizer, Tokenizer
from polyplex.gateway.app import Gateway
from polyplex.gateway.exposure import listed_tokens
from polyplex.gateway.profile import Profile
from polyplex.store.usage import ToolUsage

SMALL_SHARE: Final = 0.02
ENOUGH_CALLS: Final = 100
MOST_UNUSED: Final = 3
LARGE_TOOL: Final = 500
LARGE_RESULTS: Final = 20_000


class Listed(msgspec.Struct, frozen=True, rename="camel"):
    """What one way of listing costs, and saves against listing everything."""

    lists: str
    tools: int
    tokens: int
    saved: int


class Results(msgspec.Struct, frozen=True, rename="camel"):
    """What results have cost, in all and by tool, dearest first; tokens are estimates."""

    calls: int
    tokens: int
    bytes: int
    offloaded_bytes: int
    tools: list[ToolUsage]


class Costs(msgspec.Struct, frozen=True, rename="camel"):
    """All that is printed with --json. `estimated_tokens` is the estimate by which `auto` decides."""

    tokenizer: str
    exact: bool
    tokens: int
    instructions_tokens: int
    budget_tokens: int
    estimated_tokens: int
    servers: list[ServerCost]
    auto: Listed
    search: Listed
    results: Results | None
    hints: list[str]


def costs_of(gateway: Gateway, counter: Tokenizer, usage: list[ToolUsage] | None) -> Costs:
    """Everything that is known, dearest server first."""
    view = gateway.core.view(gateway.core.modern.plain)
    texts = view.server_texts()
    servers = [
        cost_of_server(each.config.name, each.lists, texts.get(each.config.name, ""), counter.count)
        for each in view.upstreams
    ]
    servers.sort(key=lambda each: (-each.tokens, each.name))
    total = sum(server.tokens for server in servers)

    def listed(expose: Expose) -> Listed:
        found = view.shown(Profile(expose=expose))
        tokens = cost_of_list(found.entries, counter.count)
        return Listed("search" if found.searching else "all", len(found.entries), tokens, max(0, total - tokens))

    options = gateway.core.config.options
    auto, search = listed("auto"), listed("search")
    results = None if usage is None else _results(usage)
    return Costs(
        tokenizer=counter.name,
        exact=counter.name != EstimatingTokenizer.name,
        tokens=total,
        instructions_tokens=sum(server.instructions_tokens for server in servers),
        budget_tokens=options.tool_budget_tokens,
        estimated_tokens=sum(map(listed_tokens, view.routes.tools.entries)),
        servers=servers,
        auto=auto,
        search=search,
        results=results,
        hints=hints(servers, total, auto, search, options.expose, results),
    )


def _results(usage: list[ToolUsage]) -> Results:
    return Results(
        sum(each.counts.calls for each in usage),
        sum(each.counts.tokens for each in usage),
        sum(each.counts.bytes for each in usage),
        sum(each.counts.offloaded for each in usage),
        sorted(usage, key=lambda each: (-each.counts.tokens, each.server, each.tool)),
    )


def hints(
    servers: list[ServerCost], total: int, auto: Listed, search: Listed, expose: str, results: Results | None
) -> list[str]:
    """What to do, the largest saving first."""
    found: list[str] = []
    if expose == "all" and search.saved > total // 2:
        found.append(
            f'"expose": "auto" or "search" lists {count(search.tools, "tool")} and saves {search.saved:,} tokens'
        )
    if expose == "auto" and auto.lists == "search":
        found.append('pin what is used in every conversation ("pinnedTools"): pinned tools are listed beside search')
    calls = results.calls if results is not None else 0
    used = {(each.server, each.tool) for each in (results.tools if results is not None else ())}
    unused_servers: list[tuple[int, str]] = []
    for server in servers if calls >= ENOUGH_CALLS else []:
        unused = [tool for tool in server.tools if (server.name, tool.local) not in used]
        spared = sum(tool.tokens for tool in unused)
        if used and unused and spared > SMALL_SHARE * total:
            what = (
                "none of its tools was"
                if len(unused) == len(server.tools)
                else f"{len(unused)} of {len(server.tools)} tools were not"
            )
            unused_servers.append(
                (-spared, f"{server.name}: {what} called in {calls:,} calls; denying saves {spared:,} tokens")
            )
    found += [text for _, text in sorted(unused_servers)[:MOST_UNUSED]]
    if servers and servers[0].tools and total:
        dearest = max((tool for server in servers for tool in server.tools), key=lambda each: each.tokens)
        if dearest.tokens > total // 10 and dearest.tokens > LARGE_TOOL:
            found.append(f"{dearest.name} alone takes {dearest.tokens:,} tokens; polyplex lint proposes shorter words")
    most = results.tools[0] if results is not None and results.tools else None
    if results is not None and most is not None and most.counts.tokens > max(LARGE_RESULTS, results.tokens // 2):
        found.append(f'{most.server} {most.tool}: most of what results cost; "maxTokens" of the tool bounds them')
    return found
