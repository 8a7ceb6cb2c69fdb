"""Resources and prompts as constant tools, for clients that know nothing but tools."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.interaction.parked import ABLE, ANSWERS, PARAMS, first_round, retry
from tests.interaction.stage import Client, Json, Stage, stage, text

CONTENT: Json = {
    "resources": [
        {"uri": "note:1", "name": "Groceries", "description": "What to buy.", "mimeType": "text/plain", "size": 12},
        {"uri": "note:2", "name": "Travel plans"},
        {"uri": "missing:1", "name": "Gone"},
    ],
    "resourceTemplates": [{"uriTemplate": "db://{table}", "name": "Tables", "description": "A table of the database."}],
    "prompts": [
        {"name": "greet", "description": "Greets.", "arguments": [{"name": "who", "required": True}, {"name": "how"}]}
    ],
    "tools": [],
}
LIST, READ = "polyplex__list_resources", "polyplex__read_resource"
PROMPTS, GET = "polyplex__list_prompts", "polyplex__get_prompt"
ERAS = pytest.mark.parametrize("era", ["legacy", "modern"])
BOTH: Json = {"asTools": ["resources", "prompts"]}


async def client_of(on: Stage, era: str, capabilities: Json | None = None) -> Client:
    return await on.legacy(capabilities or {}) if era == "legacy" else on.modern(capabilities)


@ERAS
@pytest.mark.parametrize("expose", ["all", "search"])
async def test_they_are_listed_where_the_configuration_says(tmp_path: Path, era: str, expose: str) -> None:
    async with stage(tmp_path, {"a": CONTENT}, expose=expose, asTools=["prompts"]) as on:
        await on.up("a")
        client = await client_of(on, era)
        names = await client.names()
        assert [name for name in names if name not in ("polyplex__find_tools", "polyplex__call_tool")] == [PROMPTS, GET]


@ERAS
async def test_resources_are_listed_found_and_read(tmp_path: Path, era: str) -> None:
    async with stage(tmp_path, {"a": CONTENT, "b": {"tools": []}}, **BOTH) as on:
        await on.up("a", "b")
        client = await client_of(on, era)
        assert text(await client.call(LIST)).splitlines() == [
            "a+note:1 – Groceries (text/plain, 12 bytes): What to buy.",
            "a+note:2 – Travel plans",
            "a+missing:1 – Gone",
            "a+db://{table} – Tables: A table of the database.",
        ]
        assert text(await client.call(LIST, query="travel plans")).splitlines()[0] == "a+note:2 – Travel plans"
        assert text(await client.call(LIST, server="b")) == "Nothing is there."
        assert "There is no server 'c'" in text(await client.call(LIST, server="c"))
        result = await client.call(READ, uri="a+note:1")
        assert result["content"] == [{"type": "text", "text": "note:1"}]
        assert (await client.call(READ, uri="a+db://x"))["content"][0]["text"] == "db://x"
        for uri in ("a+missing:1", "nowhere:1"):
            failed = await client.call(READ, uri=uri)
            assert failed["isError"] is True


@ERAS
async def test_prompts_are_listed_and_got(tmp_path: Path, era: str) -> None:
    async with stage(tmp_path, {"a": CONTENT}, **BOTH) as on:
        await on.up("a")
        client = await client_of(on, era)
        assert text(await client.call(PROMPTS)) == "a__greet(who, how?) – Greets."
        direct = await client.request("prompts/get", {"name": "a__greet", "arguments": {"who": "Ada"}})
        said = [message["content"]["text"] for message in direct["messages"]]
        result = await client.call(GET, name="a__greet", arguments={"who": "Ada"})
        assert [block["text"] for block in result["content"]] == said
        assert "- arguments.who: expected string, got 7" in text(
            await client.call(GET, name="a__greet", arguments={"who": 7})
        )
        failed = await client.call(GET, name="a__nothing")
        assert (failed["isError"], text(failed)) == (True, "unknown prompt: a__nothing")


async def test_a_long_list_goes_on_by_its_cursor(tmp_path: Path) -> None:
    many = {"resources": [{"uri": f"n:{number}", "name": "word " * 15} for number in range(100)], "tools": []}
    async with stage(tmp_path, {"a": many}, search={"budgetTokens": 500}, **BOTH) as on:
        await on.up("a")
        client = await on.legacy()
        seen: list[str] = []
        given: Json = {}
        while True:
            answer = text(await client.call(LIST, **given))
            assert len(answer) < 500 * 4
            lines = answer.splitlines()
            seen += [line.partition(" ")[0] for line in lines if line.startswith("a+n:")]
            if lines[-1].startswith("a+n:"):
                break
            given = {"cursor": lines[-1].rpartition(" ")[2]}
        assert seen == [f"a+n:{number}" for number in range(100)]
        failed = await client.call(LIST, cursor="made-up")
        assert (failed["isError"], "invalid cursor" in text(failed)) == (True, True)


async def test_a_question_in_the_middle_of_reading_reaches_a_legacy_client(tmp_path: Path) -> None:
    async with stage(tmp_path, {"a": CONTENT | _asking("elicitation/create")}, **BOTH) as on:
        await on.up("a")
        client = await on.legacy({"elicitation": {}}, create=lambda params: {"action": "accept", "content": {}})
        result = await client.call(READ, uri="a+note:1")
        assert result["content"] == [{"type": "text", "text": "note:1"}]
        assert len(client.asked("elicitation/create")) == 1


async def test_a_modern_client_is_asked_by_the_answer_and_its_retry_is_a_tool_result(tmp_path: Path) -> None:
    async with stage(tmp_path, {"a": CONTENT | _asking("elicitation/create")}, **BOTH) as on:
        await on.up("a")
        client = on.modern(ABLE)
        params = {"name": READ, "arguments": {"uri": "a+note:1"}}
        first = await first_round(client, params)
        final = await client.request("tools/call", retry(params, first))
        assert final == {"resultType": "complete", "content": [{"type": "text", "text": "note:1"}]}
        again = await client.request("tools/call", retry(params, first))
        assert again == final
        assert json.dumps(ANSWERS["elicitation/create"]) in json.dumps(on.journal("a"))


def _asking(method: str) -> dict[str, Any]:
    return {"era": "legacy", "asking": {"resources/read": [{"method": method, "params": PARAMS[method]}]}}


async def test_a_large_resource_is_bounded_as_any_result_and_can_be_read_on(tmp_path: Path) -> None:
    contents = [{"uri": "note:1", "mimeType": "text/plain", "text": "".join(f"line {n}\n" for n in range(8_000))}]
    answers = {"era": "legacy", "broken": {"resources/read": {"contents": contents}}}
    async with stage(tmp_path, {"a": CONTENT | answers}, results={"maxTokens": 1000}, **BOTH) as on:
        await on.up("a")
        client = await on.legacy()
        result = await client.call(READ, uri="a+note:1")
        assert len(json.dumps(result)) < 8000
        uri = re.findall(r"polyplex://payload/[\w-]+", json.dumps(result))[0]
        part = await client.call("polyplex__read_payload", uri=uri, lines="7000-7001")
        assert "line 6999" in json.dumps(part)
        assert "line 0" in json.dumps(await client.call(READ, uri=uri))


@pytest.mark.parametrize(("revision", "kind"), [("2024-11-05", "resource"), ("2025-03-26", "audio")])
async def test_sound_is_given_as_the_clients_revision_has_it(tmp_path: Path, revision: str, kind: str) -> None:
    contents = [{"uri": "file:///a", "blob": "AA==", "mimeType": "audio/wav"}]
    server: Json = {"era": "legacy", "broken": {"resources/read": {"contents": contents}}}
    async with stage(tmp_path, {"a": server}, asTools=["resources"]) as on:
        await on.up("a")
        client = await on.legacy({}, revision)
        result = await client.call("polyplex__read_resource", uri="a+file:///a")
        assert [block["type"] for block in result["content"]] == [kind]


async def test_broken_contents_become_text_and_the_rest_stays(tmp_path: Path) -> None:
    link = {"type": "resource_link", "uri": "a+file:///x", "name": "x"}
    several = [link, {"type": "text", "text": "listed"}]
    messages = [{"role": "user", "content": "plain"}, {"role": "user", "content": several}, {"content": {}}]
    server: Json = {
        "era": "legacy",
        "prompts": [{"name": "p"}],
        "broken": {
            "resources/read": {"contents": [None, {"uri": "file:///a"}, {"uri": "file:///a", "text": "t"}]},
            "prompts/get": {"messages": messages},
        },
    }
    async with stage(tmp_path, {"a": server}, asTools=["resources", "prompts"]) as on:
        await on.up("a")
        client = await on.legacy()
        read = await client.call("polyplex__read_resource", uri="a+file:///a")
        assert [block["text"] for block in read["content"]] == ["null", '{"uri":"a+file:///a"}', "t"]
        said = await client.call("polyplex__get_prompt", name="a__p")
        assert said["content"][1] == link
        assert [block.get("text") for block in said["content"]] == ["plain", None, "user: listed", "{}"]
