from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyplex.catalog.lint.rules import parameters
from polyplex.catalog.lint.rules.parameters import values_in
from tests.unit.catalog.lint.offers import raw_tool, server

Json = dict[str, Any]


def rules_of(properties: Json, text: str = "Does it", **schema: Any) -> set[str]:
    own = server(raw_tool("get_story", text, properties, schema=schema))
    return {found.rule for rule in parameters.ALL for found in rule(own.tools[0], own)}


def string(description: str | None = None, **more: Any) -> Json:
    return {"type": "string", **more} | ({} if description is None else {"description": description})


@pytest.mark.parametrize(
    ("properties", "rules"),
    [
        ({"query": string()}, set[str]()),
        ({"file_path": string()}, set[str]()),
        ({"include_hidden": {"type": "boolean"}}, set[str]()),
        ({"data": string()}, {"parameter-undescribed"}),
        ({"x": string()}, {"parameter-undescribed"}),
        ({"id": string("The id")}, {"parameter-ambiguous"}),
        ({"id": string("Number of the story, as in its URL")}, set[str]()),
        ({"sort": string("One of: date, rank")}, {"enum-in-prose"}),
        ({"sort": string("'date', 'rank' or 'votes'")}, {"enum-in-prose"}),
        ({"sort": string("'date', 'rank' or 'votes'", enum=["date", "rank", "votes"])}, set[str]()),
        ({"sort": string("A column, such as 'date' or 'rank'")}, set[str]()),
        ({"text": string("Either text or regex, not both"), "regex": string("A pattern")}, set[str]()),
        ({"name": string("Saved as `page-{timestamp}.{png|jpeg|webp}`")}, set[str]()),
        ({"text": string("Examples:\n- The labels of an entry, as JSON: ['frontend', 'urgent']")}, set[str]()),
        ({"answer": string("'accept', 'dismiss', or a string to type")}, set[str]()),
        ({"mode": string("Common values: 'read', 'update'")}, set[str]()),
        ({"size": string("Add 'touch' and 'mobile' to emulate a telephone")}, set[str]()),
        ({"start_date": string("First day")}, {"format-missing"}),
        ({"start_date": string("First day, YYYY-MM-DD")}, set[str]()),
        ({"start_date": string("First day", format="date")}, set[str]()),
        ({"timeout": {"type": "number", "description": "How long to wait"}}, {"unit-missing"}),
        ({"timeout": {"type": "number", "description": "How long to wait, in seconds"}}, set[str]()),
        ({"timeout_ms": {"type": "number", "description": "How long to wait"}}, set[str]()),
        ({"a1": string("Required if b1 is set"), "b1": string("The other part")}, {"parameters-dependent"}),
        ({"a1": string("Required for servers of your own"), "b1": string("The other part")}, set[str]()),
        ({"path": string("(required) Where to begin")}, {"required-in-prose"}),
        ({"text": string("JSON of the stories, each with:\n- name (required): its name")}, set[str]()),
        ({"path": string("(required) Where to begin", default=".")}, set[str]()),
    ],
)
def test_parameters_are_judged(properties: Json, rules: set[str]) -> None:
    assert rules_of(properties) == rules


def test_optional_in_words_and_required_in_the_schema_is_found() -> None:
    assert rules_of({"path": string("(optional) Where to begin")}, required=["path"]) == {"required-in-prose"}


def test_what_a_docstring_says_of_parameters_moves_to_them() -> None:
    text = "Get one story in full.\n\nArgs:\n    data: Name of the story\n    kind: Whatever it is\n"
    own = server(raw_tool("get_story", text, {"data": string(), "kind": string()}, schema={"required": ["data"]}))
    (found,) = parameters.undescribed(own.tools[0], own)
    assert {paste.path[5:]: paste.value for paste in found.paste} == {
        ("parameters", "data"): "Name of the story.",
        ("parameters", "kind"): "Whatever it is.",
        ("description",): "Get one story in full.",
    }


def test_an_id_is_told_by_the_tool_that_lists_such_things() -> None:
    own = server(
        raw_tool("list_stories", "All stories of today"),
        raw_tool("search_story", "Finds stories by their words"),
        raw_tool("get_story", "Gets it", {"id": string()}),
    )
    (found,) = parameters.undescribed(own.tools[2], own)
    assert [paste.value for paste in found.paste] == ["Id of the story, see list_stories."]


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("One of 'a', 'b' or 'c'", ["a", "b", "c"]),
        ('Type ("bar", "pie")', ["bar", "pie"]),
        ("Mode: fast|slow|auto", ["fast", "slow", "auto"]),
        ("Must be one of: asc, desc", ["asc", "desc"]),
        ("Whether to list local ('local') or remote ('remote')", []),
        ("e.g. 'a' or 'b'", []),
        ("'a', 'b', etc", []),
        ("Either a string or null", []),
        ("", []),
    ],
)
def test_closed_lists_of_values_are_told_from_examples(text: str, values: list[str]) -> None:
    assert values_in(text) == values


@given(st.text(alphabet="ab'\"`,| or()oneof:", max_size=300))
def test_any_text_is_searched_for_values_in_bounded_time(text: str) -> None:
    assert len(values_in(text)) != 1


def test_a_long_text_is_searched_in_bounded_time() -> None:
    for unit in ("'a' or ", "a|", "one of a, ", "either a or ", "`"):
        values_in(unit * 5000)
        rules_of({"sort": string(unit * 5000)})
