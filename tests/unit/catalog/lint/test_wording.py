import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyplex.catalog.lint import wording
from polyplex.catalog.lint.words import split
from tests.unit.catalog.lint.offers import raw_tool, server, tool

FRAME = set(split("Takes optionally takes Returns For of and or more id see the"))
WORDS = st.sampled_from(["get", "search", "user", "paper", "list", "Id", "data", "weather", "city", "the", "all", "by"])
NAMES = st.lists(WORDS, min_size=1, max_size=4).map("_".join)
TEXTS = st.lists(WORDS | st.sampled_from([".", "\n", "this tool", "获取"]), max_size=20).map(" ".join)


@pytest.mark.parametrize(
    ("name", "at", "sentence"),
    [
        ("getCurrentStockPrice", "yahoo", "Get current stock price."),
        ("git_create_branch", "git", "Create branch."),
        ("git_status", "git", "Git status."),
        ("mcp_howtocook_whatToEat", "howtocook-mcp", "What to eat."),
        ("x", "s", "X."),
    ],
)
def test_a_name_becomes_a_sentence(name: str, at: str, sentence: str) -> None:
    assert wording.from_name(tool(name, server=at)) == sentence


def test_a_title_that_says_more_is_taken() -> None:
    assert wording.from_name(tool("get_weather", title="Get the weather of tomorrow")) == "Get the weather of tomorrow."
    assert wording.from_name(tool("get_weather", title="Weather")) == "Get weather."


def test_the_summary_leaves_out_what_says_nothing_and_headings() -> None:
    text = "Read file!\n\nNote: mind.\n\nSupports:\n\nThis tool allows you to read texts of any size. Fast."
    assert wording.summary(tool("read_file", text)) == ["Read texts of any size.", "Fast."]


def test_what_sets_a_tool_apart_names_its_server_and_parameters() -> None:
    own = tool("search_papers", "Search for papers.", {"query": {"type": "string"}}, server="arxiv-mcp-server")
    assert wording.set_apart(own, "# Heading\n\nA Model Context Protocol (MCP) server that finds papers of arXiv.") == (
        "Search papers. Arxiv: Finds papers of arXiv. Optionally takes query."
    )
    assert wording.set_apart(own) == "Search papers. For arxiv. Optionally takes query."


def test_another_script_stays_beside_the_name() -> None:
    own = tool("get_news", "获取澎湃新闻热榜。", server="trends-hub")
    assert wording.set_apart(own) == "Get news. 获取澎湃新闻热榜. For trends hub."


def test_the_words_that_only_one_has() -> None:
    one = tool("add_note", "Adds a note to the box", {"text": {}})
    other = tool("delete_note", "Deletes a note of the box", {"number": {}})
    assert wording.apart(one, other) == ["add", "adds", "text"]


def test_a_parameter_is_told_by_the_sentence_that_names_it_alone() -> None:
    text = "Finds trains. `day` must not be in the past. `from` and `to` are stations."
    own = tool("find", text, {"day": {}, "from": {}, "to": {}})
    told = {each.name: wording.parameter(own, each) for each in own.outer}
    assert told == {"day": "`day` must not be in the past.", "from": "", "to": ""}


@given(NAMES, TEXTS, st.dictionaries(NAMES, st.just({"type": "string"}), max_size=8), TEXTS)
def test_no_wording_has_a_word_that_is_not_there(
    name: str, text: str, properties: dict[str, object], about: str
) -> None:
    own = server(raw_tool(name, text, properties), name="hub", instructions=about)
    one = own.tools[0]
    known = {*split(f"{name} {text} {about} hub"), *FRAME}
    known |= {word for parameter in properties for word in split(parameter)}
    made = (wording.description(one), wording.set_apart(one, about), wording.short(one), wording.without_hollow(one))
    for each in (*made, *(wording.parameter(one, parameter, own) for parameter in one.outer)):
        said = {word for word in split(each) if not word.isdigit()}
        singular = {word.removesuffix("s") for word in known}
        assert said <= known | singular, each
        assert not re.search(r"[^\S\n]{2,}", each)
