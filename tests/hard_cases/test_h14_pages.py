"""H14: the pages of several servers are one list with cursors of polyplex's own; those of servers stay with them."""

from pathlib import Path
from typing import Any

import pytest

from tests.interaction.stage import Client, Json, RefusedError, stage

ERAS = pytest.mark.parametrize("era", ["legacy", "modern"])
LISTS = {
    "tools/list": ("tools", "name", {"inputSchema": {"type": "object"}}),
    "prompts/list": ("prompts", "name", {}),
    "resources/list": ("resources", "uri", {"name": "r"}),
    "resources/templates/list": ("resourceTemplates", "uriTemplate", {"name": "r"}),
}


def lists(count: int) -> Json:
    """All four lists with `count` entries each."""
    return {
        member: [{key: f"x:{number}" if "uri" in key else f"n{number}"} | rest for number in range(count)]
        for member, key, rest in LISTS.values()
    }


def servers(era: str) -> dict[str, Json]:
    """Three servers whose own pages differ; one of them uses the empty text as a cursor."""
    return {
        "a": lists(5) | {"era": era, "pageSize": 2},
        "b": lists(3) | {"era": era, "pageSize": 1, "emptyCursor": True},
        "c": lists(1) | {"era": era},
    }


async def client_of(on: Any, era: str) -> Client:
    client = on.modern() if era == "modern" else await on.legacy()
    await on.up("a", "b", "c")
    return client


async def pages(client: Client, method: str) -> list[list[str]]:
    """The keys of each page of a list."""
    member, key, _ = LISTS[method]
    found: list[list[str]] = []
    params: Json = {}
    while True:
        result = await client.request(method, params)
        found.append([entry[key] for entry in result[member]])
        if "nextCursor" not in result:
            return found
        params = {"cursor": result["nextCursor"]}


def every(method: str) -> list[str]:
    _, key, _ = LISTS[method]
    sizes = {"a": 5, "b": 3, "c": 1}
    if "uri" in key:
        return [f"{server}+x:{number}" for server, size in sizes.items() for number in range(size)]
    return [f"{server}__n{number}" for server, size in sizes.items() for number in range(size)]


@ERAS
@pytest.mark.parametrize("method", LISTS)
async def test_all_pages_of_all_servers_are_one_list(
    tmp_path: Path, era: str, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with stage(tmp_path, servers(era)) as on:
        client = await client_of(on, era)
        assert await pages(client, method) == [every(method)]
        monkeypatch.setattr("polyplex.gateway.views.PAGE_ENTRIES", 4)
        on.gateway.core.views.changed()
        found = await pages(client, method)
        assert [len(page) for page in found] == [4, 4, 1]
        assert sum(found, []) == every(method)


@ERAS
@pytest.mark.parametrize("cursor", ["", "0", "AAAA", 7])
async def test_a_cursor_that_polyplex_did_not_give_is_refused(
    tmp_path: Path, era: str, cursor: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("polyplex.gateway.views.PAGE_ENTRIES", 4)
    async with stage(tmp_path, servers(era)) as on:
        client = await client_of(on, era)
        given = (await client.request("tools/list"))["nextCursor"]
        for method, wrong in (("tools/list", cursor), ("prompts/list", given), ("tools/list", given[:-2] + "AA")):
            with pytest.raises(RefusedError) as caught:
                await client.request(method, {"cursor": wrong})
            assert caught.value.code == -32602
        assert await client.request("tools/list", {"cursor": given}), "it can be used again"


@ERAS
async def test_a_cursor_stays_good_while_other_entries_come_and_go(
    tmp_path: Path, era: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("polyplex.gateway.views.PAGE_ENTRIES", 4)
    tools = [{"name": name, "inputSchema": {"type": "object"}} for name in ("change", "n1", "n2", "n3", "n4")]
    given = servers(era)
    given["a"]["tools"] = tools
    async with stage(tmp_path, given) as on:
        client = await client_of(on, era)
        first = await client.request("tools/list")
        fewer = [tool for tool in tools if tool["name"] != "n1"]
        await client.call("a__change", member="tools", entries=fewer)
        later = on.modern()
        while "a__n1" in await later.names():
            pass
        second = await client.request("tools/list", {"cursor": first["nextCursor"]})
        assert [tool["name"] for tool in second["tools"]] == ["a__n4", "b__n0", "b__n1", "b__n2"]


@ERAS
async def test_a_server_that_refuses_its_own_cursor_is_asked_from_the_start(tmp_path: Path, era: str) -> None:
    given = servers(era)
    given["a"]["forgetful"] = ["tools/list", "prompts/list", "prompts/list"]
    async with stage(tmp_path, given) as on:
        client = await client_of(on, era)
        assert await pages(client, "tools/list") == [every("tools/list")]
        known = (await pages(client, "prompts/list"))[0]
        assert known == ["a__n0", "a__n1", *every("prompts/list")[5:]], "twice is too often: what came is kept"
        asked = [message["params"].get("cursor") for message in on.received("a", "tools/list")]
        assert asked == [None, "2", None, "2", "4"]
