from collections.abc import Sequence

import pytest

from polyplex.catalog.lint import confusion
from polyplex.catalog.lint.confusion import Confused, Tally, confused
from polyplex.catalog.lint.facts import Server
from polyplex.catalog.lint.findings import Finding, overrides
from polyplex.catalog.lint.judge import measure, reworded
from polyplex.catalog.lint.queries import Query
from polyplex.catalog.search.index import SearchIndex
from tests.unit.catalog.lint.offers import raw_tool, server

FILES = server(
    raw_tool("read_file", "Read the contents of a text file from disk", {"path": {"type": "string"}}),
    raw_tool("write_file", "Write contents to a text file on disk", {"path": {}, "content": {}}),
    raw_tool("convert_currency", "Convert an amount of money between currencies", {"amount": {}}),
    raw_tool("get_weather", "Get the weather forecast of a city", {"city": {}}),
    name="files",
)
COPY = server(
    raw_tool("read_file", "Read the contents of a text file from disk", {"path": {"type": "string"}}),
    raw_tool("write_file", "Write contents to a text file on disk", {"path": {}, "content": {}}),
    raw_tool("convert_currency", "Convert an amount of money between currencies", {"amount": {}}),
    name="copy",
)


def findings(results: Sequence[Confused], *servers: Server) -> list[Finding]:
    texts = {each.name: each.instructions for each in servers}
    return confusion.findings(results, texts, {each.name: len(each.tools) for each in servers})


def test_tools_that_differ_are_not_confused() -> None:
    assert confused([FILES], SearchIndex()) == []


def test_a_server_that_offers_the_same_is_one_finding() -> None:
    results = [each for each in confused([FILES, COPY], SearchIndex()) if each.same]
    assert len(results) >= 3
    (found,) = findings(results, FILES, COPY)
    assert (found.rule, found.kind) == ("server-duplicate", "server")
    assert found.paste[0].path == ("polyplex", "servers", found.server, "enabled")
    assert overrides([found]) == {}, "switching a server off is no wording"


def test_a_tool_whose_words_are_anothers_is_found_with_what_sets_it_apart() -> None:
    vague = server(raw_tool("sections", "Get the summary of an article section", {"title": {}}), name="wiki")
    other = server(
        raw_tool("summarize_article_section", "Get the summary of an article section", {"title": {}}), name="enc"
    )
    results = confused([vague, other, FILES], SearchIndex())
    assert [(each.tool.key, each.sibling.key) for each in results] == [
        ("wiki__sections", "enc__summarize_article_section")
    ]
    (found,) = findings(results, vague, other, FILES)
    assert found.others == ("enc__summarize_article_section",)
    assert "queries made of its own words" in found.message
    assert found.paste[0].path[-2:] == ("sections", "description")


def test_given_queries_find_what_made_ones_do_not_and_their_words_stay_out() -> None:
    query = Query("clouds rain tomorrow disk file", frozenset({"files__get_weather"}))
    results = confused([FILES], SearchIndex(), [query])
    assert [each.tool.key for each in results] == ["files__get_weather"]
    assert results[0].given.missed == 1
    (found,) = findings(results, FILES)
    assert "1 of 1 given queries" in found.message
    assert not {"clouds", "rain", "tomorrow"} & set(str(found.paste[0].value).split())


def test_of_several_tools_that_are_meant_the_best_found_counts_and_lost_ones_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(confusion, "SHOWN", 2)
    index = SearchIndex()
    index.update(tool.document for tool in FILES.tools)
    both = Query("read the contents of a text file", frozenset({"files__read_file", "files__get_weather"}))
    _, told = confusion.tally(index, FILES.tools, [both], made=False)
    assert told["files__read_file"].missed == 0
    assert (told["files__get_weather"].missed, told["files__get_weather"].lost) == (1, 1)


def test_the_number_of_queries_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confusion, "MAX_QUERIES", 30)
    many = server(*(raw_tool(f"tool_{number}", f"Does the thing {number}") for number in range(30)))
    made, _ = confusion.tally(SearchIndex(), many.tools)
    assert 0 < sum(each.asked for each in made.values()) <= 30


def test_rewording_is_measured_with_the_queries_of_before() -> None:
    query = Query("xylophone lessons", frozenset({"files__get_weather"}))
    fragment = {"polyplex": {"servers": {"files": {"tools": {"get_weather": {"description": "Xylophone lessons"}}}}}}
    result = measure(SearchIndex(), [FILES], reworded([FILES], fragment), [query])
    assert result.queries > 10
    assert (result.given, result.given_after) == (1, 0.0)


def test_the_worst_comes_first_and_nothing_is_divided_by_nothing() -> None:
    assert Tally().rate == 0.0
    one, two = FILES.tools[:2]
    asked = Confused(one, two, Tally(4, 2), Tally(1, 1, 1))
    made = Confused(two, one, Tally(4, 4), Tally())
    assert asked.weight > made.weight
