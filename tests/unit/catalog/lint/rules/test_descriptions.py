import pytest

from polyplex.catalog.lint.rules import descriptions
from tests.unit.catalog.lint.offers import Json, raw_tool, server


def rules_of(fields: Json, name: str = "s") -> set[str]:
    own = server(fields, name=name)
    return {found.rule for rule in descriptions.ALL for found in rule(own.tools[0], own)}


LONG = "It reads the file and does much more with it than anybody would ever want to know. " * 30


@pytest.mark.parametrize(
    ("name", "text", "rules"),
    [
        ("read_file", None, {"description-missing"}),
        ("read_file", "  \n", {"description-missing"}),
        ("read_file", "Read a file.", {"description-repeats-name"}),
        ("readFiles", "This tool reads files", {"description-repeats-name"}),
        ("run", "Executes operations", {"description-repeats-name"}),
        ("navigate", "Navigate to pages", {"description-says-nothing"}),
        ("read_file", "Read the complete contents of a text file, with an offset", set[str]()),
        ("read_file", "This tool allows you to read the complete contents of texts", {"description-hollow"}),
        ("read", "A powerful and seamless way into text contents of any folder", {"description-hollow"}),
        ("read", "A robust parser of text contents in any folder", set[str]()),
        ("read", LONG, {"description-long"}),
        ("get_news", "获取澎湃新闻热榜，包含时政要闻", {"description-script"}),
        ("获取新闻", "获取澎湃新闻热榜，包含时政要闻", set[str]()),
    ],
)
def test_descriptions_are_judged(name: str, text: str | None, rules: set[str]) -> None:
    assert rules_of(raw_tool(name, text)) == rules


def test_the_wording_for_a_missing_description_says_what_is_known() -> None:
    own = server(
        raw_tool(
            "search_papers",
            None,
            {"query": {"type": "string"}, "sort": {"enum": ["date", "relevance"]}},
            schema={"required": ["query"]},
            outputSchema={"type": "object", "properties": {"titles": {}, "total": {}}},
        ),
        name="arxiv-mcp-server",
    )
    (found,) = descriptions.missing(own.tools[0], own)
    (paste,) = found.paste
    assert paste.path == ("polyplex", "servers", "arxiv-mcp-server", "tools", "search_papers", "description")
    assert paste.value == (
        "Search papers (arxiv). Takes query, optionally sort (date or relevance). Returns titles and total."
    )


def test_the_wording_for_a_long_description_keeps_its_beginning() -> None:
    own = server(raw_tool("read", f"Reads a file of any size.\n\n{LONG}"))
    (found,) = descriptions.too_long(own.tools[0], own)
    assert str(found.paste[0].value).startswith("Reads a file of any size. It reads")
    assert len(str(found.paste[0].value)) < 1000


def test_praise_and_preamble_go_and_lines_stay() -> None:
    own = server(raw_tool("read", "This tool allows you to reads texts.\n\n- with seamless, powerful offsets"))
    (found,) = descriptions.hollow(own.tools[0], own)
    assert found.paste[0].value == "Read texts.\n\n- with ,  offsets".replace(",  ", ", ")
