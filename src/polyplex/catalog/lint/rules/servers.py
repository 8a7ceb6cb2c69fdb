"""Rules for a server as a whole."""

from collections.abc import Iterator, Sequence
from statistics import median
from typing import Final

from polyplex.catalog.lint import wording
from polyplex.catalog.lint.facts import Server, Tool
from polyplex.catalog.lint.findings import Finding, Paste, override
from polyplex.catalog.lint.words import listed
from polyplex.content.tokens import estimate
from polyplex.protocol.jsonrpc import encode_json

MANY_TOOLS: Final = 8
TOO_MANY_TOOLS: Final = 40
LONG_INSTRUCTIONS: Final = 800
OUTLIER_TOKENS: Final = 1500
OUTLIER_TIMES: Final = 5


def cost_of(tool: Tool) -> int:
    """About how many tokens a tool takes of a list."""
    return estimate(encode_json(tool.shown()))


def set_aside(server: Server) -> Iterator[Finding]:
    """Entries that are not offered at all."""
    for each in server.set_aside:
        yield Finding(
            rule="not-offered",
            severity="error",
            harm=88,
            server=server.name,
            kind="server",
            name=each.name,
            message=f"{each.name or 'an entry'} is not offered: {each.reason}",
            advice="mend it in the server; until then clients do not see it",
        )


def instructions(server: Server) -> Iterator[Finding]:
    """Many tools and no word on how they go together, or more words than a model should carry along."""
    cost = estimate(server.instructions)
    if not server.instructions.strip() and len(server.tools) >= MANY_TOOLS:
        yield Finding(
            rule="instructions-missing",
            severity="note",
            harm=13,
            server=server.name,
            kind="server",
            message=f"offers {len(server.tools)} tools and no instructions",
            advice="say in some sentences what it is for and in which order its tools are used; search reads them too",
        )
    if cost > LONG_INSTRUCTIONS:
        yield Finding(
            rule="instructions-long",
            severity="warning",
            harm=min(50.0, 20 + cost / 100),
            server=server.name,
            kind="server",
            message=f"its instructions take about {cost} tokens of every conversation",
            advice="keep what holds for all tools; the rest belongs to their descriptions, or to a resource",
        )


def many_tools(server: Server) -> Iterator[Finding]:
    """More tools than anybody chooses from."""
    if len(server.tools) > TOO_MANY_TOOLS:
        cost = sum(map(cost_of, server.tools))
        yield Finding(
            rule="tools-many",
            severity="note",
            harm=20,
            server=server.name,
            kind="server",
            message=f"offers {len(server.tools)} tools, about {cost} tokens",
            advice='deny what you do not use, or let models search: "expose": "search"',
        )


def outliers(servers: Sequence[Server]) -> Iterator[Finding]:
    """Tools that cost many times what others do."""
    costs = {tool.key: cost_of(tool) for server in servers for tool in server.tools}
    usual = median(costs.values()) if costs else 0
    for server in servers:
        for tool in server.tools:
            cost = costs[tool.key]
            if cost > OUTLIER_TOKENS and cost > OUTLIER_TIMES * usual:
                yield _outlier(tool, cost, usual)


def _outlier(tool: Tool, cost: int, usual: float) -> Finding:
    words = estimate(tool.description)
    paste: tuple[Paste, ...] = ()
    if words > cost / 2:
        paste = (override(tool.server, tool.name, "description", value=wording.short(tool)),)
        where = "most of it its description"
    else:
        largest = sorted(tool.outer, key=lambda each: -len(encode_json(each.schema)))[:2]
        where = f"most of it the schema of {listed([each.name for each in largest])}" if largest else "its schema"
    return Finding(
        rule="cost-outlier",
        severity="warning",
        harm=min(58.0, 25 + cost / 200),
        server=tool.server,
        name=tool.name,
        key=tool.key,
        message=f"takes about {cost} tokens, {cost / max(usual, 1):.0f} times the usual: {where}",
        advice="shorten it, or deny it where it is not used",
        paste=paste,
    )


ALL = (set_aside, instructions, many_tools)
