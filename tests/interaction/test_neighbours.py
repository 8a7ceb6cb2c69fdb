"""A slow, silent, noisy or broken server delays and hides nothing of the others; sessions end with their clients."""

import asyncio
from pathlib import Path

import pytest

from polyplex.upstreams import pool
from tests.interaction.stage import Client, Json, eventually, stage, text
from tests.process.children import gone

SILENT = ["initialize", "server/discover"]
BAD: dict[str, Json] = {
    "silent": {"silent": SILENT},
    "listless": {"silent": ["tools/list", "resources/list", "prompts/list"]},
    "crashing": {"exit": 1, "stderr": ["no database"]},
    "refusing": {"era": "legacy", "refuse": {"initialize": {"code": 1, "message": "no"}}},
    "erring": {"refuse": {"tools/list": {"code": -32603, "message": "no tools today"}}},
    "broken": {"broken": {"tools/list": {"tools": 7}, "prompts/list": None, "resources/list": []}},
    "noisy": {"stderr": ["x" * 200] * 400},
}


@pytest.mark.parametrize("wait", [0.0, 0.5])
async def test_good_servers_are_used_as_if_the_bad_ones_were_not_there(tmp_path: Path, wait: float) -> None:
    servers = {"good": {"era": "legacy"}} | BAD | {"fine": {"era": "modern"}}
    async with stage(tmp_path, servers, firstListWaitSeconds=wait) as on:
        await on.up("good", "fine")
        client = await on.legacy({"sampling": {}})
        for server in ("good", "fine"):
            assert f"{server}__echo" in await client.names()
            assert (await client.value(f"{server}__echo", x=1))["arguments"] == {"x": 1}
        await on.up("noisy", "erring", "broken")
        assert (await client.value("noisy__echo", x=1))["arguments"] == {"x": 1}
        ready, health = on.gateway.health()
        assert not ready
        assert isinstance(health["servers"], dict)
        assert set(health["servers"]) == set(servers)


async def test_calls_pass_each_other(tmp_path: Path) -> None:
    async with stage(tmp_path, {"a": {"era": "legacy"}, "b": {"era": "modern"}}) as on:
        client = await on.legacy()
        await on.up("a", "b")
        held = [client.begin(f"{server}__hold") for server in ("a", "b") for _ in range(20)]
        answers = [client.begin(f"{server}__echo", n=n) for server in ("a", "b") for n in range(20)]
        for identifier in answers:
            await client.response(identifier)
        for server in ("a", "b"):
            assert await client.value(f"{server}__release") == 20
        assert {text(await client.response(identifier)) for identifier in held} == {'"released"'}


async def test_what_is_no_message_on_stdout_is_skipped(tmp_path: Path) -> None:
    lines = [
        "starting",
        "",
        "{",
        '{"jsonrpc": "2.0"}',
        "null",
        '"text"',
        "[1, 2]",
        "[]",
        '{"id": 3, "result": 1}',
        "\x1b[0m",
    ]
    async with stage(tmp_path, {"a": {}}) as on:
        client = await on.legacy()
        await on.up("a")
        identifier = client.begin("a__hold")
        assert await client.value("a__noise", lines=lines) == "quiet again"
        assert await client.value("a__release") == 1
        assert text(await client.response(identifier)) == '"released"'
        assert len(on.pids("a")) == 1


async def test_a_call_to_a_server_that_is_still_starting_waits_for_it(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    async with stage(tmp_path, {"a": {"waitFor": str(gate)}}, firstListWaitSeconds=0.0) as on:
        client = await on.legacy()
        identifier = client.begin("a__echo", x=1)
        await client.request("ping")
        assert str(identifier) not in client.responses
        gate.touch()
        assert (await client.response(identifier))["content"]


async def process_of(client: Client) -> int:
    return await client.value("a__pid")


async def test_isolated_sessions_have_processes_of_their_own_that_end_with_them(tmp_path: Path) -> None:
    async with stage(tmp_path, {"a": {}}, servers={"a": {"isolation": "session"}}) as on:
        one, two = await on.legacy(), await on.legacy()
        first, second = await process_of(one), await process_of(two)
        assert first != second
        assert await process_of(one) == first
        one.close()
        await gone(first)
        assert await process_of(two) == second
        on.gateway.closed(one.session)


async def test_shared_isolation_keeps_one_process_whatever_clients_can(tmp_path: Path) -> None:
    async with stage(tmp_path, {"a": {"era": "legacy"}}, servers={"a": {"isolation": "shared"}}) as on:
        clients = [await on.legacy({"roots": {}}) for _ in range(2)]
        assert len({await process_of(client) for client in clients}) == 1


async def test_a_process_that_nobody_uses_ends_but_the_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "REAP_SECONDS", 0.2)
    async with stage(tmp_path, {"a": {"era": "legacy"}}) as on:
        plain = await on.legacy()
        shared = await process_of(plain)
        able = [await on.legacy({"sampling": {}}) for _ in range(2)]
        first, second = [await process_of(client) for client in able]
        assert first == second != shared
        able[0].close()
        assert await process_of(able[1]) == first
        able[1].close()
        await gone(first)
        plain.close()
        assert await process_of(await on.legacy()) == shared
        assert len(on.upstreams("a")) == 1


async def test_a_client_that_leaves_has_its_calls_cancelled(tmp_path: Path) -> None:
    async with stage(tmp_path, {"a": {}}) as on:
        leaving, staying = await on.legacy(), await on.legacy()
        leaving.begin("a__hold")
        await leaving.call("a__echo")
        leaving.close()
        await eventually(lambda: on.received("a", "notifications/cancelled"))
        assert await staying.value("a__release") == 0
        assert len(leaving.responses) == 2


async def test_many_clients_at_once_find_one_process(tmp_path: Path) -> None:
    async with stage(tmp_path, {"a": {"era": "legacy"}, "b": {"era": "modern"}}, start=False) as on:
        clients = await asyncio.gather(*(on.legacy() for _ in range(20)))
        values = await asyncio.gather(*(client.value("a__pid") for client in clients))
        assert len(set(values)) == 1
        values = await asyncio.gather(*(client.value("b__pid") for client in clients))
        assert len(set(values)) == 1
