"""Tools in other words than their server's own: what clients see, how they are found, and where calls go."""

import logging
from pathlib import Path
from typing import Any

import pytest

from tests.interaction.stage import Json, eventually, stage, text, value

SCHEMA: Json = {
    "type": "object",
    "properties": {
        "q": {"type": "string", "description": "q"},
        "where": {"type": "object", "properties": {"lang": {"type": "string"}}},
        "items": {"type": "array", "items": {"type": "object", "properties": {"id": {"type": "integer"}}}},
    },
}
SERVER: Json = {
    "tools": [
        {
            "name": "do",
            "title": "Do",
            "description": "Does it.",
            "inputSchema": SCHEMA,
            "annotations": {"title": "Do!", "readOnlyHint": True},
        },
        {"name": "echo", "inputSchema": {"type": "object"}},
    ]
}
WORDS: Json = {
    "name": "search_books",
    "title": "Search books",
    "description": "Finds books in the library by title or author.",
    "parameters": {"q": "Title or author.", "where.lang": "Language.", "items.id": "Number of a shelf."},
}


def options(**tools: Any) -> Json:
    return {"servers": {"a": {"tools": tools}}}


@pytest.mark.parametrize("naming", ["prefix", "bare"])
async def test_clients_see_the_configured_words_and_the_original_in_meta(tmp_path: Path, naming: str) -> None:
    name = "a__search_books" if naming == "prefix" else "search_books"
    async with stage(tmp_path, {"a": SERVER}, naming=naming, **options(do=WORDS)) as on:
        await on.up("a")
        client = await on.legacy()
        tool, other = (await client.request("tools/list"))["tools"]
        assert (tool["name"], tool["title"], tool["description"]) == (name, WORDS["title"], WORDS["description"])
        assert tool["annotations"] == {"readOnlyHint": True}
        properties = tool["inputSchema"]["properties"]
        assert properties["q"] == {"type": "string", "description": "Title or author."}
        assert properties["where"]["properties"]["lang"]["description"] == "Language."
        assert properties["items"]["items"]["properties"]["id"]["description"] == "Number of a shelf."
        assert tool["_meta"]["polyplex/original"] == {
            "name": "do",
            "title": "Do",
            "description": "Does it.",
            "parameters": {"q": "q", "where.lang": None, "items.id": None},
        }
        assert "polyplex/original" not in other.get("_meta", {})
        assert value(await client.call(name, q="x"))["called"]["name"] == "do"
        found = text(await client.call("polyplex__find_tools", query="find a book by its author"))
        assert f"{name}(q?: string, " in found
        result = await client.call("polyplex__call_tool", name=name, arguments={"q": 5})
        assert "- q: expected string, got 5" in text(result)


async def test_a_name_that_is_taken_sets_the_tool_aside_and_says_so(tmp_path: Path) -> None:
    async with stage(tmp_path, {"a": SERVER}, **options(echo={"name": "do"})) as on:
        await on.up("a")
        client = await on.legacy()
        assert await client.names() == ["a__do"]
        (aside,) = on.upstreams("a")[0].set_aside
        assert aside.name == "echo"
        assert "its name 'a__do' is that of the tool 'do'" in aside.reason


async def test_with_bare_names_a_configured_name_may_collide_with_another_servers(tmp_path: Path) -> None:
    async with stage(
        tmp_path,
        {"a": SERVER, "b": {"tools": [{"name": "x", "inputSchema": {"type": "object"}}]}},
        naming="bare",
        **options(echo={"name": "x"}),
    ) as on:
        await on.up("a", "b")
        client = await on.legacy()
        result = await client.call("polyplex__call_tool", name="x")
        assert "is offered by 'a' and 'b'" in text(result)


async def test_what_the_server_does_not_have_is_said_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "polyplex.upstreams")
    tools = {"dd": {"title": "x"}, "do": {"parameters": {"q": "x", "qq": "y", "where.x.y": "z"}}}
    async with stage(tmp_path, {"a": SERVER}, **options(**tools)) as on:
        await on.up("a")
        client = await on.legacy()
        await client.names()
        await eventually(lambda: on.upstreams("a")[0].lists)
        told = [record.getMessage() for record in caplog.records]
        assert told == [
            "a: there is no tool 'dd', of which polyplex.servers speaks",
            "a: the tool 'do' has no parameter 'qq', of which polyplex.servers speaks",
            "a: the tool 'do' has no parameter 'where.x.y', of which polyplex.servers speaks",
        ]
