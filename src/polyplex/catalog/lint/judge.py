"""Everything together: all rules over all servers, and what the proposed wordings would change."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct

from polyplex.catalog.lint import confusion
from polyplex.catalog.lint.confusion import Confused, Index, Tally
from polyplex.catalog.lint.facts import Server, Tool, as_object
from polyplex.catalog.lint.findings import Finding, ordered
from polyplex.catalog.lint.queries import Query
from polyplex.catalog.lint.rules import annotations, descriptions, names, parameters, resources, schemas, servers

TOOL_RULES: Final[tuple[Callable[[Tool, Server], Iterator[Finding]], ...]] = (
    *descriptions.ALL,
    *schemas.ALL,
    *parameters.ALL,
    *annotations.ALL,
    *names.ALL,
)
SERVER_RULES: Final[tuple[Callable[[Server], Iterator[Finding]], ...]] = (
    *servers.ALL,
    names.server_name,
    names.twins,
    names.style,
    annotations.missing,
    resources.looked_up,
    resources.undescribed,
)


class Measured(Struct, frozen=True):
    """How often queries find another tool first, before and after the proposed wordings, 0 to 1."""

    queries: int
    before: float
    after: float
    given: int = 0
    given_before: float = 0.0
    given_after: float = 0.0


class Rates(Struct, frozen=True):
    """How many made and given queries there were, and which share of them found another tool first."""

    queries: int = 0
    missed: float = 0.0
    given: int = 0
    given_missed: float = 0.0


class Report(Struct, frozen=True):
    """The findings, worst first; with an index, the confused tools and how often queries failed (`before`)."""

    findings: list[Finding]
    confused: list[Confused]
    before: Rates = Rates()


def judge(offers: Sequence[Server], index: Index | None = None, queries: Sequence[Query] = ()) -> Report:
    """Judge what servers offer. Without an index nothing is measured, and no confusion found."""
    found = list(judged(offers))
    if index is None:
        return Report(ordered(found), [])
    tools = [tool for server in offers for tool in server.tools]
    index.update(tool.document for tool in tools)
    made, given = confusion.tally(index, tools, queries)
    results = confusion.of_tallies(tools, made, given)
    texts = {server.name: server.instructions for server in offers}
    found += confusion.findings(results, texts, {server.name: len(server.tools) for server in offers})
    return Report(ordered(found), results, _rates(made, given))


def judged(offers: Sequence[Server]) -> Iterator[Finding]:
    """What the rules find that look at one server at a time."""
    for server in offers:
        for tool in server.tools:
            for rule in TOOL_RULES:
                yield from rule(tool, server)
        for resource in server.resources:
            yield from resources.changing(resource, server)
        for server_rule in SERVER_RULES:
            yield from server_rule(server)
    yield from servers.outliers(offers)


def reworded(offers: Iterable[Server], overrides: Mapping[str, Any]) -> list[Server]:
    """The servers as clients and search see them with a fragment of overrides in the configuration."""
    options = as_object(as_object(overrides.get("polyplex")).get("servers"))
    return [
        msgspec.structs.replace(
            server,
            tools=tuple(
                _reworded(tool, as_object(as_object(as_object(options.get(server.name)).get("tools")).get(tool.name)))
                for tool in server.tools
            ),
        )
        for server in offers
    ]


def _reworded(tool: Tool, own: Mapping[str, Any]) -> Tool:
    if not own:
        return tool
    told = as_object(own.get("parameters"))
    known = tool.document
    document = msgspec.structs.replace(
        known,
        name=own.get("name", known.name),
        title=own.get("title", known.title),
        description=own.get("description", known.description),
        parameters=tuple(
            msgspec.structs.replace(each, description=told.get(each.name, each.description))
            for each in known.parameters
        ),
    )
    return msgspec.structs.replace(tool, description=document.description, title=document.title, document=document)


def measure(
    index: Index,
    before: Sequence[Server],
    after: Sequence[Server],
    queries: Sequence[Query] = (),
    known: Rates | None = None,
) -> Measured:
    """What rewording changes for the same queries: those made of the words before, and the given ones.

    `known` are the rates before, where they have been measured. The index holds the reworded tools afterwards.
    """
    tools = [tool for server in before for tool in server.tools]

    def rates(offers: Sequence[Server]) -> Rates:
        index.update(tool.document for server in offers for tool in server.tools)
        return _rates(*confusion.tally(index, tools, queries))

    first = rates(before) if known is None else known
    then = rates(after)
    return Measured(first.queries, first.missed, then.missed, first.given, first.given_missed, then.given_missed)


def _rates(made: Mapping[str, Tally], given: Mapping[str, Tally]) -> Rates:
    return Rates(*_rate(made.values()), *_rate(given.values()))


def _rate(tallies: Iterable[Tally]) -> tuple[int, float]:
    every = list(tallies)
    asked = sum(each.asked for each in every)
    return asked, sum(each.missed for each in every) / asked if asked else 0.0
