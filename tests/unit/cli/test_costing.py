from polyplex.catalog.cost import ServerCost, ToolCost
from polyplex.cli.costing import Listed, Results, hints
from polyplex.store.usage import Counts, ToolUsage


def server(name: str, *tokens: int) -> ServerCost:
    tools = [ToolCost(f"{name}__t{number}", f"t{number}", each, 0, 0) for number, each in enumerate(tokens)]
    return ServerCost(name, sum(tokens), tools, 0, 0, 0, 0, 0)


def used(name: str, tool: str, tokens: int = 10, calls: int = 1000) -> Results:
    return Results(calls, tokens, 40, 0, [ToolUsage(name, tool, Counts(calls, 40, tokens), 0, 0)])


ALL = Listed("all", 4, 1000, 0)
SEARCH = Listed("search", 2, 200, 800)


def test_where_everything_is_listed_searching_is_proposed() -> None:
    assert hints([server("a", 400), server("b", 600)], 1000, ALL, SEARCH, "all", None)[0] == (
        '"expose": "auto" or "search" lists 2 tools and saves 800 tokens'
    )


def test_tools_that_were_never_called_are_named_once_calls_are_known() -> None:
    servers = [server("a", 400, 100), server("b", 300)]
    assert hints(servers, 800, ALL, SEARCH, "auto", None) == []
    assert hints(servers, 800, ALL, SEARCH, "auto", used("a", "t0")) == [
        "b: none of its tools was called in 1,000 calls; denying saves 300 tokens",
        "a: 1 of 2 tools were not called in 1,000 calls; denying saves 100 tokens",
    ]


def test_few_calls_say_nothing_and_many_servers_are_three() -> None:
    servers = [server(name, 400) for name in "abcdef"]
    assert hints(servers, 2400, ALL, SEARCH, "auto", used("a", "t0", calls=99)) == []
    assert len(hints(servers, 2400, ALL, SEARCH, "auto", used("a", "t0"))) == 3


def test_pinning_is_proposed_where_auto_searches() -> None:
    assert "pinnedTools" in hints([server("a", 100)], 100, SEARCH, SEARCH, "auto", None)[0]


def test_one_dear_tool_and_one_talkative_tool_are_named() -> None:
    found = hints([server("a", 5000, 10)], 5010, ALL, ALL, "auto", used("a", "t0", 100_000))
    assert "a__t0 alone takes 5,000 tokens" in found[-2]
    assert "a t0: most of what results cost" in found[-1]


def test_without_servers_there_is_nothing_to_do() -> None:
    assert hints([], 0, Listed("all", 0, 0, 0), Listed("all", 0, 0, 0), "auto", None) == []
