"""Merged lists: order, pages, caching, changes, what is set aside, what is remembered (PROTOCOL: 1.8, H14)."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from polyplex.gateway import views
from polyplex.upstreams import fetching, lists
from tests.interaction.stage import Client, Json, RefusedError, Stage, eventually, stage


def tools(*names: str) -> list[Json]:
    return [{"name": name, "inputSchema": {"type": "object"}} for name in names]


def controlled(*names: str) -> Json:
    """A server with these tools and the one that changes them."""
    return {"tools": tools("change", *names)}


async def change(client: Client, server: str, *names: str, times: int = 1) -> None:
    await client.call(f"{server}__change", member="tools", entries=tools("change", *names), times=times)


TOLD = "notifications/tools/list_changed"


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_the_order_is_that_of_the_configuration_and_of_each_server(tmp_path: Path, era: str) -> None:
    many = [f"t{number}" for number in range(7)]
    servers: dict[str, Json] = {
        "z": {"era": era, "tools": tools(*many), "pageSize": 2},
        "m": {"era": era, "tools": tools("b", "a"), "pageSize": 1, "emptyCursor": True},
        "a": {"era": era, "tools": []},
        "b": {"era": era, "tools": tools("x")},
    }
    async with stage(tmp_path, servers) as on:
        client = await on.legacy()
        await on.up(*servers)
        expected = [f"z__{name}" for name in many] + ["m__b", "m__a", "b__x"]
        assert await client.names() == expected
        assert await on.modern().names() == expected


async def test_pages_go_on_where_they_were_while_lists_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(views, "PAGE_ENTRIES", 2)
    async with stage(tmp_path, {"a": controlled("p", "q", "r"), "b": {"tools": tools("s")}}) as on:
        client = await on.legacy()
        await on.up("a", "b")
        first = await client.request("tools/list")
        assert [each["name"] for each in first["tools"]] == ["a__change", "a__p"]
        await change(client, "a", "new", "p", "q")
        await client.until(lambda: client.notices(TOLD))
        second = await client.request("tools/list", {"cursor": first["nextCursor"]})
        assert [each["name"] for each in second["tools"]] == ["a__q", "b__s"]
        assert "nextCursor" not in second


@pytest.mark.parametrize("cursor", ["", "nonsense", 7, {}])
async def test_a_cursor_that_is_not_ours_is_invalid(tmp_path: Path, cursor: Any) -> None:
    async with stage(tmp_path, {"a": {}}) as on:
        client = await on.legacy()
        with pytest.raises(RefusedError) as caught:
            await client.request("tools/list", {"cursor": cursor})
        assert caught.value.code in (-32602, -32600)


async def test_a_cursor_of_one_list_is_invalid_for_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(views, "PAGE_ENTRIES", 2)
    async with stage(tmp_path, {"a": {}}) as on:
        client = await on.legacy()
        cursor = (await client.request("tools/list"))["nextCursor"]
        with pytest.raises(RefusedError) as caught:
            await client.request("prompts/list", {"cursor": cursor})
        assert caught.value.code == -32602


async def test_caching_of_the_merged_list_is_the_most_careful_of_its_parts(tmp_path: Path) -> None:
    servers: dict[str, Json] = {
        "a": {"era": "modern", "ttlMs": 7000},
        "b": {"era": "modern", "ttlMs": 3000},
        "c": {"era": "legacy"},
    }
    async with stage(tmp_path, servers) as on:
        await on.up(*servers)
        result = await on.modern().request("tools/list")
        assert (result["ttlMs"], result["cacheScope"], result["resultType"]) == (3000, "public", "complete")
        legacy = await (await on.legacy()).request("tools/list")
        assert {"ttlMs", "cacheScope", "resultType"} & set(legacy) == set()


async def test_one_private_part_makes_the_whole_private(tmp_path: Path) -> None:
    servers: dict[str, Json] = {"a": {"era": "modern"}, "b": {"era": "modern", "cacheScope": "private"}}
    async with stage(tmp_path, servers) as on:
        await on.up(*servers)
        assert (await on.modern().request("tools/list"))["cacheScope"] == "private"


async def test_a_list_without_a_server_that_is_still_starting_may_not_be_cached(tmp_path: Path) -> None:
    servers: dict[str, Json] = {"a": {"era": "modern"}, "b": {"silent": ["server/discover", "initialize"]}}
    async with stage(tmp_path, servers, firstListWaitSeconds=0.0) as on:
        await on.up("a")
        assert (await on.modern().request("tools/list"))["ttlMs"] == 0


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_a_change_is_told_once_to_whoever_listed_and_only_if_something_differs(tmp_path: Path, era: str) -> None:
    async with stage(tmp_path, {"a": controlled("x") | {"era": era}}) as on:
        listed, other = await on.legacy(), await on.legacy()
        await on.up("a")
        await listed.names()
        await change(listed, "a", "x", "y", times=5)
        await listed.until(lambda: listed.notices(TOLD))
        assert await listed.names() == ["a__change", "a__x", "a__y"]
        lists = len(on.received("a", "tools/list"))
        await change(listed, "a", "x", "y")
        await eventually(lambda: len(on.received("a", "tools/list")) > lists)
        await change(listed, "a", "z")
        await listed.until(lambda: len(listed.notices(TOLD)) > 1)
        assert await listed.names() == ["a__change", "a__z"]
        assert len(listed.notices(TOLD)) == 2, "the second change changed nothing"
        assert other.notices(TOLD) == [], "it never listed"


async def test_a_change_of_one_server_does_not_list_the_others_anew(tmp_path: Path) -> None:
    async with stage(tmp_path, {"a": controlled(), "b": controlled()}) as on:
        client = await on.legacy()
        await on.up("a", "b")
        await client.names()
        before = len(on.received("b", "tools/list"))
        await change(client, "a", "new")
        await client.until(lambda: client.notices(TOLD))
        assert len(on.received("b", "tools/list")) == before
        assert len(client.notices("notifications/prompts/list_changed")) == 0


async def test_tools_that_cannot_be_used_are_set_aside_and_their_siblings_stay(tmp_path: Path) -> None:
    broken: list[Any] = [
        {"name": "no schema"},
        {"name": "array", "inputSchema": {"type": "array"}},
        7,
        {"inputSchema": {}},
    ]
    async with stage(tmp_path, {"a": {"tools": [*broken, *tools("good", "good")]}}) as on:
        client = await on.legacy()
        await on.up("a")
        assert await client.names() == ["a__good"]
        _, health = on.gateway.health()
        servers: Any = health["servers"]
        aside = servers["a"]["setAside"]
        assert [each["name"] for each in aside] == ["no schema", "array", "7", '{"inputSchema": {}}']
        assert all(each["reason"] for each in aside)


async def test_allow_and_deny_hide_and_refuse_tools(tmp_path: Path) -> None:
    limits = {"a": {"allow": ["read_*", "write"], "deny": ["*_secret"]}}
    named = tools("read_a", "read_secret", "write", "writer")
    async with stage(tmp_path, {"a": {"tools": named}}, servers=limits) as on:
        client = await on.legacy()
        await on.up("a")
        assert await client.names() == ["a__read_a", "a__write"]
        for hidden in ("a__read_secret", "a__writer"):
            with pytest.raises(RefusedError, match="unknown tool"):
                await client.call(hidden)
        assert on.received("a", "tools/call") == []


async def test_bare_names_that_collide_are_an_error_that_names_both(tmp_path: Path) -> None:
    servers = {"a": {"tools": tools("same", "x")}, "b": {"tools": tools("same", "y")}}
    async with stage(tmp_path, servers, naming="bare") as on:
        client = await on.legacy()
        await on.up("a", "b")
        assert await client.names() == ["x", "y"]
        assert (await client.value("y", k=1))["called"]["name"] == "y"
        with pytest.raises(RefusedError, match="'a' and 'b'") as caught:
            await client.call("same")
        assert caught.value.code == -32602


def manifests(on: Stage) -> list[Path]:
    return sorted((on.folder / "manifests").glob("*.json"))


def edit(file: Path, names: list[str]) -> None:
    """Put other tools into a manifest."""
    remembered = json.loads(file.read_text())
    remembered["lists"]["tools"]["entries"] = tools(*names)
    file.write_text(json.dumps(remembered))


async def test_a_first_list_does_not_wait_for_a_server_that_is_remembered(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    waiting: Json = {"tools": tools("x"), "waitFor": str(gate)}
    gate.touch()
    async with stage(tmp_path, {"a": waiting}) as on:
        await on.up("a")
        await eventually(lambda: len(manifests(on)) == 2)
    gate.unlink()
    for file in manifests(on):
        edit(file, ["remembered"])
    async with stage(tmp_path, {"a": waiting}, firstListWaitSeconds=1000.0) as on:
        client = await on.legacy()
        assert await client.names() == ["a__remembered"]
        gate.touch()
        await on.up("a")
        await client.until(lambda: client.notices(TOLD))
        assert await client.names() == ["a__x"]
        with pytest.raises(RefusedError, match="unknown tool"):
            await client.call("a__remembered")


@pytest.mark.parametrize("content", ["", "{", "[]", '{"lists": 1}', "\x00"])
async def test_a_broken_manifest_is_ignored_and_replaced(tmp_path: Path, content: str) -> None:
    async with stage(tmp_path, {"a": {"tools": tools("x")}}) as on:
        await on.up("a")
        await eventually(lambda: len(manifests(on)) == 2)
    for file in manifests(on):
        file.write_text(content)
    async with stage(tmp_path, {"a": {"tools": tools("x")}}) as on:
        client = await on.legacy()
        assert await client.names() == ["a__x"]
        await on.up("a")
        await eventually(lambda: all("inputSchema" in file.read_text() for file in manifests(on)))
    assert sorted((tmp_path / "manifests").iterdir()) == manifests(on), "no half-written file is left"


async def test_a_first_list_waits_a_little_and_the_rest_joins_later(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    servers: dict[str, Json] = {"a": {"tools": tools("x")}, "b": {"tools": tools("y"), "waitFor": str(gate)}}
    async with stage(tmp_path, servers, firstListWaitSeconds=0.5) as on:
        await on.up("a")
        client = await on.legacy()
        assert await client.names() == ["a__x"]
        gate.touch()
        await client.until(lambda: client.notices(TOLD))
        assert await client.names() == ["a__x", "b__y"]


async def test_lists_of_many_clients_at_once_are_equal(tmp_path: Path) -> None:
    async with stage(tmp_path, {"a": {}, "b": {"era": "modern"}}) as on:
        clients = [await on.legacy() for _ in range(4)] + [on.modern() for _ in range(4)]
        await on.up("a", "b")
        lists = await asyncio.gather(*(client.names() for client in clients))
        assert all(names == lists[0] for names in lists)


async def test_a_call_waits_for_the_lists_that_its_server_is_still_giving(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lists, "LIST_SECONDS", 1.0)
    servers: dict[str, Json] = {"a": {"era": "legacy", "silent": ["prompts/list"]}, "b": {}}
    async with stage(tmp_path, servers, firstListWaitSeconds=0.1) as on:
        await on.up("b")
        client = await on.legacy()
        assert (await client.call("a__echo", x=1))["content"]


async def test_a_list_that_fails_is_told_of_and_not_remembered(tmp_path: Path) -> None:
    servers: dict[str, Json] = {"a": {"era": "legacy", "refuse": {"tools/list": {"code": -32603, "message": "no"}}}}
    async with stage(tmp_path, servers) as on:
        await on.up("a")
        servers_now: Any = on.gateway.health()[1]["servers"]
        assert [item["reason"] for item in servers_now["a"]["setAside"]] == ["tools/list failed: no [tools]"]
        assert not manifests(on)


async def test_a_list_that_is_not_answered_hides_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetching, "LATE_SECONDS", 0.1)
    servers: dict[str, Json] = {"a": {"silent": ["resources/list", "prompts/list"], "tools": tools("x")}}
    async with stage(tmp_path, servers) as on:
        await on.up("a")
        client = await on.legacy()
        assert await client.names() == ["a__x"]
        servers_now: Any = on.gateway.health()[1]["servers"]
        reasons = [item["reason"] for item in servers_now["a"]["setAside"]]
        assert reasons == [
            "resources/list has not been answered yet [resources]",
            "prompts/list has not been answered yet [prompts]",
        ]
        assert not manifests(on), "what is not whole is not remembered"


async def test_a_list_that_comes_late_joins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetching, "LATE_SECONDS", 0.1)
    servers: dict[str, Json] = {"a": {"slow": {"prompts/list": "tools/call"}, "prompts": [{"name": "p"}]}}
    async with stage(tmp_path, servers) as on:
        await on.up("a")
        client = await on.legacy()
        assert (await client.request("prompts/list", {}))["prompts"] == []
        await client.call("a__echo")  # which lets it come
        await client.until(lambda: client.notices("notifications/prompts/list_changed"))
        (prompt,) = (await client.request("prompts/list", {}))["prompts"]
        assert prompt["name"] == "a__p"
        assert on.gateway.health()[1]["servers"]["a"].get("setAside", []) == []  # type: ignore[index]
