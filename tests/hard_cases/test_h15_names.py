"""H15: what is renamed in a list is renamed wherever it is named, both ways."""

from pathlib import Path
from typing import Any

import pytest

from tests.interaction.stage import Client, Json, Stage, stage, value

ERAS = pytest.mark.parametrize("era", ["legacy", "modern"])
APP = "ui://app/v"
LINK: Json = {"type": "resource_link", "uri": "file:///x", "name": "x"}
EMBEDDED: Json = {"type": "resource", "resource": {"uri": "db://7", "text": "t"}}
APP_META: Json = {"ui": {"resourceUri": APP, "visibility": ["app"]}, "ui/resourceUri": APP, "vendor": "file:///x"}


def server(era: str) -> Json:
    """Two of these offer the same names and URIs."""
    messages = [{"role": "user", "content": block} for block in (LINK, EMBEDDED)]
    schema = {"type": "object"}
    tools = [{"name": name, "inputSchema": schema, "_meta": APP_META} for name in ("result", "echo", "update")]
    return {
        "era": era,
        "tools": tools,
        "prompts": [{"name": "p", "arguments": [{"name": "w"}]}],
        "messages": messages,
        "resources": [{"uri": "file:///x", "name": "x"}, {"uri": APP, "name": "app"}],
        "resourceTemplates": [{"uriTemplate": "db://{id}", "name": "d"}],
    }


async def client_of(on: Stage, era: str) -> Client:
    client = on.modern() if era == "modern" else await on.legacy()
    await on.up("a", "b")
    return client


def stage_of(folder: Path, era: str) -> Any:
    return stage(folder, {"a": server(era), "b": server(era)})


@ERAS
async def test_every_name_and_uri_that_is_listed_leads_back_to_its_server(tmp_path: Path, era: str) -> None:
    async with stage_of(tmp_path, era) as on:
        client = await client_of(on, era)
        for name in ("a", "b"):
            assert (await client.value(f"{name}__echo", x=1))["name"] == "echo"
            assert (await client.request("prompts/get", {"name": f"{name}__p"}))["messages"]
        assert [len(on.received(name, "tools/call")) for name in ("a", "b")] == [1, 1]
        for uri in await client.names("resources/list", "resources", "uri"):
            contents = (await client.request("resources/read", {"uri": uri}))["contents"]
            assert [each["uri"] for each in contents] == [uri]
        assert [each["params"]["uri"] for each in on.received("b", "resources/read")] == ["file:///x", APP]


@ERAS
async def test_uris_in_results_and_prompts_can_be_read(tmp_path: Path, era: str) -> None:
    async with stage_of(tmp_path, era) as on:
        client = await client_of(on, era)
        result = await client.call("b__result", content=[LINK, EMBEDDED], _meta=APP_META)
        messages = (await client.request("prompts/get", {"name": "b__p"}))["messages"]
        for link, embedded in (result["content"], [message["content"] for message in messages]):
            assert (link["uri"], embedded["resource"]["uri"]) == ("b+file:///x", "b+db://7")
            for uri in (link["uri"], embedded["resource"]["uri"]):
                await client.request("resources/read", {"uri": uri})
        assert [each["params"]["uri"] for each in on.received("b", "resources/read")] == ["file:///x", "db://7"] * 2
        assert on.received("a", "resources/read") == []


@ERAS
async def test_the_app_of_a_tool_is_found_by_its_link(tmp_path: Path, era: str) -> None:
    async with stage_of(tmp_path, era) as on:
        client = await client_of(on, era)
        tools = {tool["name"]: tool["_meta"] for tool in (await client.request("tools/list"))["tools"]}
        result = await client.call("b__result", content=[], _meta=APP_META)
        for meta in (tools["b__echo"], result["_meta"]):
            assert meta["ui"] == {"resourceUri": "ui://b/app/v", "visibility": ["app"]}
            assert (meta["ui/resourceUri"], meta["vendor"]) == ("ui://b/app/v", "file:///x")
        await client.request("resources/read", {"uri": "ui://b/app/v"})
        assert [each["params"]["uri"] for each in on.received("b", "resources/read")] == [APP]


@ERAS
@pytest.mark.parametrize(
    ("reference", "local"),
    [
        ({"type": "ref/prompt", "name": "b__p"}, {"type": "ref/prompt", "name": "p"}),
        ({"type": "ref/resource", "uri": "b+db://{id}"}, {"type": "ref/resource", "uri": "db://{id}"}),
        ({"type": "ref/resource", "uri": "b+file:///x"}, {"type": "ref/resource", "uri": "file:///x"}),
    ],
)
async def test_references_of_completions_are_the_servers_own(
    tmp_path: Path, era: str, reference: Json, local: Json
) -> None:
    async with stage_of(tmp_path, era) as on:
        client = await client_of(on, era)
        params = {"ref": reference | {"title": "kept"}, "argument": {"name": "w", "value": "v"}}
        result = await client.request("completion/complete", params)
        assert value({"content": [{"text": result["completion"]["values"][0]}]}) == local | {"title": "kept"}
        assert on.received("a", "completion/complete") == []


@ERAS
async def test_the_uris_of_subscriptions_are_the_servers_own(tmp_path: Path, era: str) -> None:
    updated = "notifications/resources/updated"
    async with stage_of(tmp_path, era) as on:
        client = await client_of(on, era)
        if era == "legacy":
            await client.request("resources/subscribe", {"uri": "b+file:///x"})
        else:
            client.send("subscriptions/listen", {"notifications": {"resourceSubscriptions": ["b+file:///x"]}})
            await client.until(lambda: client.frames)
            assert client.frames[0]["params"]["notifications"] == {"resourceSubscriptions": ["b+file:///x"]}
        for name in ("a", "b"):
            await client.call(f"{name}__update", uri="file:///x")
        await client.until(lambda: client.notices(updated))
        assert [params["uri"] for params in client.notices(updated)] == ["b+file:///x"]
