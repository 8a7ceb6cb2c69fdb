"""Which tools are taken for each other, measured: how often a query that means one finds a sibling first."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final, Protocol

import msgspec
from msgspec import Struct

from polyplex.catalog.lint import wording
from polyplex.catalog.lint.facts import Server, Tool
from polyplex.catalog.lint.findings import Finding, Paste, override
from polyplex.catalog.lint.queries import Query, of_tool
from polyplex.catalog.lint.words import split, telling
from polyplex.catalog.search import Document, Found

DEPTH: Final = 10
SHOWN: Final = 5
LEAST_RATE: Final = 0.5
LEAST_MISSED: Final = 2
LEAST_DOUBLE: Final = 3
SAME: Final = 0.7
SAME_NAMED: Final = 0.2
MAX_QUERIES: Final = 4_000


class Index(Protocol):
    """What is asked of a search index."""

    def update(self, documents: Iterable[Document]) -> None:
        """Hold exactly these documents."""
        ...

    def search(self, query: str, k: int = 8) -> Found:
        """The `k` tools that fit best."""
        ...


class Tally(Struct):
    """What became of the queries that mean one tool.

    `missed` found another first, `own` of them in the tool's own words; `lost` did not find it among the first at all.
    `ahead` counts the tools found first instead.
    """

    asked: int = 0
    missed: int = 0
    lost: int = 0
    own: int = 0
    ahead: Counter[str] = msgspec.field(default_factory=Counter[str])
    example: str = ""

    @property
    def rate(self) -> float:
        """The share of queries that found another tool first."""
        return self.missed / self.asked if self.asked else 0.0


class Confused(Struct, frozen=True):
    """One tool, the sibling that is found in its place, and the tallies of made and of given queries."""

    tool: Tool
    sibling: Tool
    made: Tally
    given: Tally

    @property
    def weight(self) -> float:
        """How badly: what was really asked counts more than what was made up; no wording helps what is the same."""
        told = 1.0 + self.given.rate + 0.5 * self.given.lost / self.given.asked if self.given.missed else 0.0
        return max(self.made.rate * (0.5 if self.same else 1.0), told)

    @property
    def same(self) -> bool:
        """Whether two servers offer the same, as far as a reader of both sees."""
        tool, sibling = self.tool, self.sibling
        if tool.server == sibling.server or not (tool.description and sibling.description):
            return False
        share = alike(tool, sibling)
        return share >= SAME or (share >= SAME_NAMED and split(tool.name) == split(sibling.name))


def tally(
    index: Index, tools: Sequence[Tool], queries: Iterable[Query] = (), *, made: bool = True
) -> tuple[dict[str, Tally], dict[str, Tally]]:
    """By public name what became of made queries, about `MAX_QUERIES` and one a tool at least, and of given ones."""
    own: dict[str, Tally] = {}
    room = max(1, MAX_QUERIES // max(1, len(tools)))
    for tool in tools if made else ():
        result = own[tool.key] = Tally()
        for query in of_tool(tool)[:room]:
            note(result, query.text, tool.key, {tool.key}, found(index, query.text), own=query.own)
    told: dict[str, Tally] = {}
    for query in queries:
        keys = found(index, query.text)
        # Of several tools that are meant, the one that is found best counts; the others where none of theirs is near.
        best = min(query.relevant, key=lambda each: (keys.index(each) if each in keys else DEPTH, each))
        note(told.setdefault(best, Tally()), query.text, best, query.relevant, keys)
        for key in query.relevant - {best}:
            if key not in keys[:SHOWN]:
                note(told.setdefault(key, Tally()), query.text, key, query.relevant, keys)
    return own, told


def found(index: Index, query: str) -> list[str]:
    """The public names that a query finds, best first."""
    return [hit.key for hit in index.search(query, DEPTH).hits]


def note(
    result: Tally, query: str, key: str, relevant: Collection[str], keys: Sequence[str], *, own: bool = True
) -> None:
    """Count one query; `own` where it is in the tool's own words, or was given."""
    result.asked += 1
    ahead = next((each for each in keys[:SHOWN] if each not in relevant), "")
    lost = key not in keys[:SHOWN]
    if ahead and (lost or keys[0] == ahead):
        result.missed += 1
        result.lost += lost
        result.own += own
        result.ahead[ahead] += 1
        result.example = result.example or query


def confused(servers: Sequence[Server], index: Index, queries: Sequence[Query] = ()) -> list[Confused]:
    """The tools that are confused with others, worst first. The index holds their documents afterwards."""
    tools = [tool for server in servers for tool in server.tools]
    index.update(tool.document for tool in tools)
    return of_tallies(tools, *tally(index, tools, queries))


def of_tallies(every: Sequence[Tool], made: Mapping[str, Tally], given: Mapping[str, Tally]) -> list[Confused]:
    """The tools that are confused with others, worst first, by what became of made and of given queries."""
    tools = {tool.key: tool for tool in every}
    results: list[Confused] = []
    for key, tool in tools.items():
        own, told = made.get(key, Tally()), given.get(key, Tally())
        ahead = told.ahead if told.missed else own.ahead
        often = own.rate >= LEAST_RATE and own.missed >= min(LEAST_MISSED, own.asked) and own.own > 0
        if (often or told.missed) and ahead:
            sibling = next(other for other, _ in ahead.most_common() if other in tools)
            results.append(Confused(tool, tools[sibling], own, told))
    return sorted(results, key=lambda each: (-each.weight, -each.made.rate, each.tool.key))


def findings(results: Sequence[Confused], texts: Mapping[str, str], sizes: Mapping[str, int]) -> list[Finding]:
    """A finding for each confused tool, one for a pair that does the same, one for servers that do.

    `texts` are the servers' instructions, `sizes` how many tools they have.
    """
    twice: dict[frozenset[str], set[frozenset[str]]] = {}
    for each in results:
        if each.same:
            servers = frozenset((each.tool.server, each.sibling.server))
            twice.setdefault(servers, set()).add(frozenset((each.tool.key, each.sibling.key)))
    doubles = {
        servers: pairs
        for servers, pairs in twice.items()
        if len(pairs) >= LEAST_DOUBLE and 2 * len(pairs) >= min(sizes.get(server, 0) for server in servers)
    }
    reported: set[frozenset[str]] = set()
    found: list[Finding] = []
    for each in results:
        servers = frozenset((each.tool.server, each.sibling.server))
        pair = servers if servers in doubles else frozenset((each.tool.key, each.sibling.key))
        if each.same and pair in reported:
            continue
        reported.add(pair)
        if each.same and servers in doubles:
            found.append(_double(each.tool.server, each.sibling.server, doubles[servers]))
        else:
            found.append(_finding(each, texts.get(each.tool.server, "")))
    return found


def _double(server: str, other: str, pairs: Collection[frozenset[str]]) -> Finding:
    """One server that offers what another does."""
    return Finding(
        rule="server-duplicate",
        severity="warning",
        harm=70,
        server=server,
        kind="server",
        message=f"{len(pairs)} of its tools do the same as those of {other}: a model has to choose between equals",
        advice="keep one of the two servers",
        others=tuple(sorted(key for pair in pairs for key in pair)),
        paste=(Paste("config", ("polyplex", "servers", server, "enabled"), False),),
    )


def alike(tool: Tool, sibling: Tool) -> float:
    """How far a reader sees the same in two tools: the share of telling words that both have, 0 to 1."""
    own, theirs = (
        telling(f"{each.name} {each.title} {wording.docstring_of(each).summary}") for each in (tool, sibling)
    )
    return len(own & theirs) / len(own | theirs) if own | theirs else 1.0


def _finding(each: Confused, server_text: str) -> Finding:
    tool, sibling, same = each.tool, each.sibling, each.same
    words = wording.apart(tool, sibling)[:8]
    counts: list[str] = []
    if each.made.asked and each.made.missed:
        counts.append(f"{each.made.missed} of {each.made.asked} queries made of its own words")
    if each.given.missed:
        counts.append(f"{each.given.missed} of {each.given.asked} given queries")
    text = wording.set_apart(tool, server_text)
    said = " and ".join(counts)
    if same:
        advice = "deny one of the two, or say when to use which"
    elif words:
        advice = f"say what only it has: {', '.join(words)}"
    else:
        advice = "nothing in its words tells it apart: say when to use which, or deny one"
    harm = 46 + 30 * min(1.0, each.made.rate) * (0.5 if same else 1.0) + (14 if each.given.missed else 0)
    harm += 0 if words else 8
    return Finding(
        rule="tool-duplicate" if same else "tool-confused",
        severity="warning",
        harm=min(89.0, harm),
        server=tool.server,
        name=tool.name,
        key=tool.key,
        message=f"{'does the same as' if same else 'is taken for'} {sibling.key}: {said} find that first "
        f"(such as {wording.value_of(each.made.example or each.given.example)!r})",
        advice=advice,
        others=(sibling.key,),
        paste=(override(tool.server, tool.name, "description", value=text),) if text != tool.description else (),
    )
