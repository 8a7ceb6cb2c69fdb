import pytest

from polyplex.catalog.lint.rules import resources
from tests.unit.catalog.lint.offers import Json, raw_tool, server

ID: Json = {"story_id": {"type": "string"}}


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        (raw_tool("list_icons", "Lists all icons"), True),
        (raw_tool("get_story", "Gets a story", ID, schema={"required": ["story_id"]}), True),
        (raw_tool("get_story", "Gets a story", ID), False),
        (raw_tool("get_current_time", "Gets the time"), False),
        (raw_tool("search_icons", "Finds icons", {"query": {}}), False),
        (raw_tool("list_icons", "Lists all icons", annotations={"readOnlyHint": False}), False),
        (raw_tool("get_started", "Creates a project"), False),
        (raw_tool("delete_icons", "Deletes all icons"), False),
        (raw_tool("get", "Gets it"), False),
    ],
)
def test_lookups_are_told_from_tools(fields: Json, found: bool) -> None:
    assert bool(list(resources.looked_up(server(fields)))) is found


def test_the_proposed_uris_tell_tools_apart() -> None:
    own = server(
        raw_tool("get_story", "", ID, schema={"required": ["story_id"]}),
        raw_tool("get_story_with_comments", "", ID, schema={"required": ["story_id"]}),
        raw_tool("list_icons"),
        name="My News",
    )
    (found,) = resources.looked_up(own)
    assert [paste.value.get("uri") or paste.value["uriTemplate"] for paste in found.paste] == [
        "my-news://icons",
        "my-news://story/{story_id}",
        "my-news://story-with-comments/{story_id}",
    ]


@pytest.mark.parametrize(
    ("name", "text", "found"),
    [
        ("create_ticket", "", True),
        ("ticket", "Creates a new ticket", True),
        ("inbox", "All mails. Reading it marks them as seen.", True),
        ("created tickets", "Tickets that were created last week", False),
        ("Order list", "The orders", False),
        ("post", "A post of the blog", False),
        ("readme", "", False),
    ],
)
def test_resources_that_change_something_are_errors(name: str, text: str, found: bool) -> None:
    own = server(resources=[{"uri": "x://y", "name": name, "description": text}])
    judged = list(resources.changing(own.resources[0], own))
    assert bool(judged) is found
    assert all(each.severity == "error" and each.kind == "resource" for each in judged)


def test_entries_without_description_are_one_finding() -> None:
    own = server(
        resources=[{"uri": "x://y", "name": "a"}, {"uri": "x://z", "name": "b", "description": "B"}],
        prompts=[{"name": "c"}],
    )
    (found,) = resources.undescribed(own)
    assert found.message == "2 resources and prompts have no description (a, c)"
