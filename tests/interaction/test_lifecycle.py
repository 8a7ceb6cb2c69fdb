"""Restarts, time-outs, lazy start, idle stop, and what a call gets meanwhile."""

import asyncio
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from polyplex.upstreams import upstream as upstream_module
from polyplex.upstreams.reconnect import FIRST_SECONDS
from polyplex.upstreams.upstream import State
from tests.interaction.scripted_http import scripted_http
from tests.interaction.stage import Client, Json, RefusedError, Stage, eventually, stage, text
from tests.process.children import gone


def options(**each: object) -> Json:
    """The options of server `a`."""
    return {"a": each}


async def up(on: Stage) -> Client:
    client = await on.legacy()
    await on.up("a")
    return client


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_the_death_of_a_server_fails_all_its_calls_and_no_other(tmp_path: Path, era: str) -> None:
    async with stage(tmp_path, {"a": {"era": era}, "b": {"era": era}}) as on:
        client = await on.legacy()
        await on.up("a", "b")
        other = client.begin("b__hold")
        pending = [client.begin("a__hold") for _ in range(3)]
        pending.append(client.begin("a__die"))
        for identifier in pending:
            result = await client.response(identifier)
            assert result["isError"] is True
            assert "'a'" in text(result)
            assert "exited with code 3" in text(result)
            assert "polyplex reconnects" in text(result)
        assert (await client.value("a__echo", x=1))["arguments"] == {"x": 1}
        await client.call("b__release")
        assert await client.response(other)
        assert len(on.pids("a")) == 2
        assert len(on.received("a", "tools/call")) == 5, "what was lost is never sent again"
        assert [len(answers) for answers in client.responses.values()] == [1] * len(client.responses)


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_a_call_under_way_at_the_end_of_its_session_names_its_server(tmp_path: Path, era: str) -> None:
    async with stage(tmp_path, {"a": {"era": era}}) as on:
        client = await up(on)
        identifier = client.begin("a__hold")
        await eventually(lambda: on.received("a", "tools/call"))
        client.session.close("polyplex is stopping")
        result = await client.response(identifier)
        assert result["isError"] is True
        assert "'a' was cancelled: polyplex is stopping" in text(result)
        assert [len(answers) for answers in client.responses.values()] == [1] * len(client.responses)


async def test_a_dead_server_fails_other_methods_with_an_error_that_names_it(tmp_path: Path) -> None:
    settings: Json = {"deadly": ["resources/read"], "resources": [{"uri": "x:1", "name": "x"}]}
    async with stage(tmp_path, {"a": settings}) as on:
        client = await up(on)
        with pytest.raises(RefusedError, match="'a' failed during the request") as caught:
            await client.request("resources/read", {"uri": "a+x:1"})
        assert (caught.value.code, caught.value.data) == (-32603, {"server": "a"})


async def test_a_server_that_cannot_start_is_an_answer_and_the_breaker_opens(tmp_path: Path) -> None:
    async with stage(tmp_path, {"a": {}}) as on:
        client = await up(on)
        upstream = on.upstreams("a")[0]
        script = on.journal_file("a")
        script.unlink()
        script.mkdir()  # from now on the server cannot write its journal and ends at once
        await client.call("a__die")
        said: list[str] = []
        while not upstream._backoff.breaker_open:
            result = await client.call("a__echo")
            assert result["isError"] is True
            said.append(text(result))
        assert all("Nothing was sent" in each and "'a'" in each for each in said)
        assert upstream.state is State.WAITING
        result = await client.call("a__echo")
        assert "the next attempt is in" in text(result)
        script.rmdir()
        await eventually(lambda: upstream.state is State.READY)
        assert (await client.value("a__echo", x=1))["arguments"] == {"x": 1}


async def test_impatient_callers_do_not_use_up_the_attempts_of_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempts: list[float] = []
    connect = upstream_module.connect

    async def counted(*arguments: Any) -> Any:
        attempts.append(asyncio.get_running_loop().time())
        return await connect(*arguments)

    monkeypatch.setattr(upstream_module, "connect", counted)
    async with stage(tmp_path, {"a": {}}) as on:
        client = await up(on)
        script = on.journal_file("a")
        script.unlink()
        script.mkdir()  # from now on the server cannot write its journal and ends at once
        await client.call("a__die")
        attempts.clear()
        while len(attempts) < 4:
            await client.call("a__echo")
        script.rmdir()
    pauses = [after - before for before, after in pairwise(attempts)]
    assert min(pauses) >= FIRST_SECONDS / 2, "a call starts the next attempt early, but not at once"


async def test_a_call_times_out_and_the_server_is_told(tmp_path: Path) -> None:
    async with stage(tmp_path, {"a": {}}, servers=options(timeoutSeconds=0.3)) as on:
        client = await up(on)
        result = await client.call("a__hold")
        assert result["isError"] is True
        assert "'a' did not answer in time" in text(result)
        assert "timeoutSeconds" in text(result)
        journal = await client.value("a__journal")
        (held,) = [each for each in journal if each.get("params", {}).get("name") == "hold"]
        (cancelled,) = [each for each in journal if each["method"] == "notifications/cancelled"]
        assert cancelled["params"]["requestId"] == held["id"]
        assert len(on.pids("a")) == 1, "it answered the health check, so it is not started anew"


async def test_a_server_that_hangs_is_started_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upstream_module, "HEALTH_SECONDS", 0.3)
    async with stage(tmp_path, {"a": {"era": "dual"}}, servers=options(timeoutSeconds=0.3)) as on:
        client = await up(on)
        result = await client.call("a__hang")
        assert "did not answer in time" in text(result)
        await eventually(lambda: len(on.pids("a")) == 2)
        await gone(on.pids("a")[0])
        assert (await client.value("a__echo", x=1))["arguments"] == {"x": 1}


async def test_progress_keeps_a_call_alive_up_to_the_hard_limit(tmp_path: Path) -> None:
    limits = options(timeoutSeconds=0.6, maxTimeoutSeconds=1.5)
    async with stage(tmp_path, {"a": {}}, servers=limits) as on:
        client = await up(on)
        params: Json = {"name": "a__progress", "arguments": {"hold": "k"}, "_meta": {"progressToken": "t"}}
        identifier = client.send("tools/call", params)
        await client.until(lambda: client.notices("notifications/progress"))
        connection = on.upstreams("a")[0].connection
        assert connection is not None
        (exchange,) = [each for each in connection.in_flight.values() if each.method == "tools/call"]
        token = exchange.id.decode()
        for step in range(2, 40):
            frame = {"progressToken": int(token), "progress": step}
            await client.call("a__notify", method="notifications/progress", params=frame)
            if exchange.done():
                break
            await client.call("a__delay", seconds=0.05)
        result = await client.response(identifier)
        assert "took too long" in text(result), "progress never stopped, the hard limit ended it"
        assert len(client.notices("notifications/progress")) > 4


async def test_a_lazy_server_starts_at_its_first_call(tmp_path: Path) -> None:
    async with stage(tmp_path, {"a": {}}, servers=options(lazy=True)) as on:
        await up(on)
        assert len(on.pids("a")) == 1, "nothing was known of it, so it was started to list"
        await eventually(lambda: list((tmp_path / "manifests").glob("*.json")))
    async with stage(tmp_path, {"a": {}}, servers=options(lazy=True)) as on:
        client = await on.legacy()
        assert "a__echo" in await client.names()
        assert len(on.pids("a")) == 1, "its lists are remembered"
        assert (await client.value("a__echo", x=1))["arguments"] == {"x": 1}
        assert len(on.pids("a")) == 2


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_an_idle_server_is_stopped_and_starts_again_at_the_next_call(tmp_path: Path, era: str) -> None:
    async with stage(tmp_path, {"a": {"era": era}}, servers=options(idleSeconds=0.3)) as on:
        client = await up(on)
        await client.call("a__echo")
        (upstream,) = on.upstreams("a")
        await eventually(lambda: upstream.state is State.IDLE)
        await gone(*on.pids("a"))
        ready, health = on.gateway.health()
        assert ready
        assert health["ready"] is True
        assert "a__echo" in await client.names()
        assert (await client.value("a__echo", x=1))["arguments"] == {"x": 1}
        assert len(on.pids("a")) == 2


async def test_a_server_with_a_call_under_way_is_not_idle(tmp_path: Path) -> None:
    async with stage(tmp_path, {"a": {}}, servers=options(idleSeconds=0.2)) as on:
        client = await up(on)
        upstream = on.upstreams("a")[0]
        identifier = client.begin("a__hold")
        await client.call("a__delay", seconds=0.8)
        assert upstream.state is State.READY
        await client.call("a__release")
        assert text(await client.response(identifier)) == '"released"'
        assert len(on.pids("a")) == 1


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_a_server_whose_resources_are_watched_is_not_idle(tmp_path: Path, era: str) -> None:
    settings: Json = {"era": era, "resources": [{"uri": "x:1", "name": "x"}]}
    async with stage(tmp_path, {"a": settings, "b": {}}, servers=options(idleSeconds=0.2)) as on:
        client = await up(on)
        upstream = on.upstreams("a")[0]
        await client.request("resources/subscribe", {"uri": "a+x:1"})
        await client.call("b__delay", seconds=0.8)
        assert upstream.state is State.READY
        await client.request("resources/unsubscribe", {"uri": "a+x:1"})
        await eventually(lambda: upstream.state is State.IDLE)


async def test_a_server_that_dies_while_listing_is_tried_again_with_its_reason(tmp_path: Path) -> None:
    async with stage(tmp_path, {"a": {"deadly": ["tools/list"]}, "b": {}}) as on:
        client = await on.legacy()
        await on.up("b")
        upstream = on.upstreams("a")[0]
        await eventually(lambda: upstream.error)
        assert upstream.error is not None
        assert "exited with code 7" in upstream.error
        assert upstream.state in (State.WAITING, State.CONNECTING)
        assert (await client.value("b__echo", x=1))["arguments"] == {"x": 1}


async def test_a_lost_http_session_is_opened_again_and_the_call_is_sent_once_more(tmp_path: Path) -> None:
    async with (
        scripted_http(era="legacy") as server,
        stage(tmp_path, {"a": {"url": server.url, "type": "http"}}) as on,
    ):
        client = await up(on)
        await eventually(lambda: "GET" in [method for method, _, _ in server.requests])
        server.forget()
        assert (await client.value("a__echo", x=1))["arguments"] == {"x": 1}
        ran = [each for each in server.script.journal if each.get("method") == "tools/call"]
        assert len(ran) == 1
        handshakes = [each for each in server.script.journal if each.get("method") == "initialize"]
        assert len(handshakes) == 2
        await eventually(lambda: [method for method, _, _ in server.requests].count("GET") == 2)
        server.forget()
        assert (await client.value("a__echo", x=2))["arguments"] == {"x": 2}


async def test_calls_under_way_when_a_session_is_lost_are_all_sent_once_more(tmp_path: Path) -> None:
    async with (
        scripted_http(era="legacy") as server,
        stage(tmp_path, {"a": {"url": server.url, "type": "http"}}) as on,
    ):
        client = await up(on)
        for turn in range(4):
            server.forget()
            values = await asyncio.gather(*(client.value("a__echo", x=(turn, each)) for each in range(12)))
            assert [value["arguments"]["x"] for value in values] == [[turn, each] for each in range(12)]


async def test_a_refused_connection_is_tried_again_and_then_reported(tmp_path: Path) -> None:
    async with scripted_http(era="legacy") as server:
        async with stage(tmp_path, {"a": {"url": server.url, "type": "http"}}) as on:
            client = await up(on)
            await server.stop()
            result = await client.call("a__echo", x=1)
            assert result["isError"] is True
            assert "'a'" in text(result)
            await server.start()
            await eventually(lambda: on.upstreams("a")[0].state is State.READY)
            assert (await client.value("a__echo", x=2))["arguments"] == {"x": 2}
        journal = [each["params"]["arguments"] for each in server.script.journal if each.get("method") == "tools/call"]
        assert journal == [{"x": 2}]


async def test_everything_ends_while_servers_start(tmp_path: Path) -> None:
    silent: Json = {"silent": ["initialize", "server/discover"]}
    async with stage(tmp_path, {"a": silent, "b": {}, "c": silent}, firstListWaitSeconds=0.0) as on:
        client = await on.legacy({"roots": {}})
        identifier = client.begin("a__echo")
        client.cancel(identifier)
        await on.up("b")


async def test_a_client_that_leaves_while_a_server_starts_is_forgotten(tmp_path: Path) -> None:
    settings: Json = {"late": True, "era": "legacy", "silent": ["server/discover"]}
    async with stage(tmp_path, {"a": settings}, firstListWaitSeconds=0.0) as on:
        client = await on.legacy({"sampling": {}})
        client.close()
        await on.up("a")
        assert [upstream.users for upstream in on.upstreams("a")] == [set()]
        assert len(on.pids("a")) == 1
