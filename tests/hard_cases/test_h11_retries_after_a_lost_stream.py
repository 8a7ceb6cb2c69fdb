"""H11: a modern stream has no resumption, so what was lost with it is lost: only what cannot have run is sent again.

That a tool is only read from, or may be called twice, is what its server says of it; a gateway that repeats a call on
such a word can do harm in silence. The client is told instead, and may call again: it knows what it called.
"""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.interaction.parked import ABLE, ACCEPTED, FORM, first_round, retry
from tests.interaction.scripted_http import ScriptedHttp, scripted_http
from tests.interaction.stage import META, Client, Json, RefusedError, Stage, eventually, stage, text, value

ERAS = pytest.mark.parametrize("era", ["legacy", "modern"])
HINTS: list[Json] = [
    {},
    {"readOnlyHint": True},
    {"idempotentHint": True},
    {"readOnlyHint": True, "idempotentHint": True},
]
UNKNOWN = "Whether it took effect is unknown"
LOST: list[tuple[str, Json]] = [
    ("tools/call", {"name": "a__hold", "arguments": {"key": "k"}}),
    ("prompts/get", {"name": "a__p"}),
    ("resources/read", {"uri": "a+file:///x"}),
    ("completion/complete", {"ref": {"type": "ref/prompt", "name": "a__p"}, "argument": {"name": "x", "value": "y"}}),
]


@asynccontextmanager
async def modern_server(folder: Path, **settings: Any) -> AsyncGenerator[tuple[Stage, ScriptedHttp]]:
    settings = {"prompts": [{"name": "p"}], "resources": [{"uri": "file:///x", "name": "x"}]} | settings
    async with (
        scripted_http(era="modern", **settings) as server,
        stage(folder, {"a": {"url": server.url, "type": "http"}}) as on,
    ):
        await on.up("a")
        yield on, server


async def client_of(on: Stage, era: str) -> Client:
    client = on.modern(ABLE) if era == "modern" else await on.legacy(ABLE, create=lambda params: ACCEPTED)
    for method, member, key in (
        ("tools/list", "tools", "name"),
        ("prompts/list", "prompts", "name"),
        ("resources/list", "resources", "uri"),
    ):
        await client.names(method, member, key)
    return client


def received(server: ScriptedHttp, method: str) -> list[Json]:
    return [message for message in server.script.journal if message.get("method") == method]


def cut(server: ScriptedHttp) -> None:
    """Every stream breaks; the server stays."""
    for writer in list(server._writers):
        writer.transport.abort()


async def outcome(client: Client, identifier: Any) -> str:
    """What the client is told."""
    try:
        return text(await client.response(identifier))
    except RefusedError as error:
        return error.message


@ERAS
@pytest.mark.parametrize(("method", "params"), LOST, ids=[method for method, _ in LOST])
async def test_a_request_whose_stream_is_lost_is_not_sent_again_and_the_client_is_told(
    tmp_path: Path, era: str, method: str, params: Json
) -> None:
    silent = [] if method == "tools/call" else [method]
    async with modern_server(tmp_path, silent=silent) as (on, server):
        client = await client_of(on, era)
        identifier = client.send(method, params)
        await eventually(lambda: received(server, method))
        cut(server)
        assert UNKNOWN in await outcome(client, identifier)
        await client.value("a__echo", x=1)
        assert len([each for each in received(server, method) if each["params"].get("name") != "echo"]) == 1


@pytest.mark.parametrize("hints", HINTS, ids=lambda hints: "-".join(hints) or "none")
async def test_hints_of_the_server_are_no_leave_to_call_twice(tmp_path: Path, hints: Json) -> None:
    tool = {"name": "hold", "inputSchema": {"type": "object"}, "annotations": hints}
    async with modern_server(tmp_path, tools=[tool]) as (on, server):
        client = await client_of(on, "modern")
        identifier = client.begin("a__hold", key="k")
        await eventually(lambda: received(server, "tools/call"))
        cut(server)
        assert UNKNOWN in await outcome(client, identifier)
        again = client.begin("a__hold", key="k")
        await eventually(lambda: len(received(server, "tools/call")) == 2)
        client.cancel(again)


@ERAS
async def test_a_stream_that_ends_or_breaks_after_progress_is_lost_as_well(tmp_path: Path, era: str) -> None:
    async with modern_server(tmp_path) as (on, server):
        client = await client_of(on, era)
        params = {"name": "a__progress", "arguments": {"count": 3, "hold": "k"}, "_meta": {"progressToken": "t"}}
        identifier = client.send("tools/call", params)
        await client.until(lambda: len(client.notices("notifications/progress")) == 3)
        cut(server)
        assert UNKNOWN in await outcome(client, identifier)
        assert len(received(server, "tools/call")) == 1


@ERAS
async def test_what_could_not_be_sent_is_sent_once_the_server_is_back(tmp_path: Path, era: str) -> None:
    async with modern_server(tmp_path) as (on, server):
        client = await client_of(on, era)
        await server.stop()
        identifier = client.begin("a__echo", x=1)
        told = await outcome(client, identifier)
        assert "Nothing was sent" in told or '"x": 1' in told
        await server.start()
        await on.up("a")
        assert (await client.value("a__echo", x=2))["arguments"] == {"x": 2}
        calls = [each["params"]["arguments"] for each in received(server, "tools/call")]
        assert calls.count({"x": 2}) == 1 and calls.count({"x": 1}) <= 1


@ERAS
@pytest.mark.parametrize("lost", [1, 2])
async def test_a_round_whose_stream_is_lost_is_not_repeated(tmp_path: Path, era: str, lost: int) -> None:
    """The answers to a server's questions may have taken effect; so they are not given twice."""
    async with modern_server(tmp_path) as (on, server):
        client = await client_of(on, era)
        params: Json = {"name": "a__rounds", "arguments": {"rounds": 3, "questions": {"f": QUESTION}}}
        stop_answering(server, lambda message: message.get("params", {}).get("requestState") == str(lost))
        if era == "legacy":
            identifier = client.send("tools/call", params)
        else:
            result = await first_round(client, params)
            for _ in range(lost - 1):
                result = await client.request("tools/call", retry(params, result))
            identifier = client.send("tools/call", retry(params, result))
        await eventually(lambda: len(received(server, "tools/call")) == lost + 1)
        cut(server)
        assert UNKNOWN in await outcome(client, identifier)
        await client.value("a__echo", x=1)
        states = [each["params"].get("requestState") for each in received(server, "tools/call")]
        assert states == [None, *map(str, range(1, lost + 1)), None]


async def test_a_stdio_server_that_dies_is_started_anew_and_its_calls_are_not(tmp_path: Path) -> None:
    async with stage(tmp_path, {"a": {"era": "modern"}}) as on:
        client = on.modern()
        held = client.begin("a__hold", key="k")
        await eventually(lambda: on.received("a", "tools/call"))
        assert UNKNOWN in text(await client.call("a__die"))
        assert UNKNOWN in await outcome(client, held)
        assert await client.value("a__pid") == on.pids("a")[-1]
        names = [each["params"]["name"] for each in on.received("a", "tools/call")]
        assert sorted(names) == ["die", "hold", "pid"]


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
async def test_a_server_that_answers_with_a_status_is_not_asked_again(tmp_path: Path, status: int) -> None:
    async with modern_server(tmp_path) as (on, server):
        client = await client_of(on, "modern")
        refuse_with(server, status)
        told = await outcome(client, client.begin("a__echo", x=1))
        assert f"HTTP {status}" in told
        assert (UNKNOWN in told) is (status >= 500)
        server.__dict__.pop("_stream_answer")
        await client.value("a__echo", x=2)
        assert [each["params"]["arguments"] for each in received(server, "tools/call")] == [{"x": 2}]
        assert len([each for each in server.requests if "tools/call" in str(each[2])]) == 2


async def test_a_lost_stream_of_notifications_is_opened_again_and_the_lists_are_fetched_anew(tmp_path: Path) -> None:
    """There is no replay, so what was said meanwhile is learned by asking; no call of a client is repeated for it."""
    async with modern_server(tmp_path) as (on, server):
        client = await client_of(on, "modern")
        await client.value("a__echo", x=1)
        await eventually(lambda: received(server, "subscriptions/listen"))
        listed = len(received(server, "tools/list"))
        server.script.lists["tools"] = [{"name": "fresh", "inputSchema": {"type": "object"}}]
        cut(server)
        await eventually(lambda: len(received(server, "subscriptions/listen")) >= 2)
        await eventually(lambda: len(received(server, "tools/list")) > listed)
        await eventually(lambda: [each.key for each in on.upstreams("a")[0].lists["tools"]] == ["a__fresh"])
        assert await client.names() == ["a__fresh"]
        assert len(received(server, "tools/call")) == 1
        ids = [each["params"]["_meta"][META + "protocolVersion"] for each in received(server, "subscriptions/listen")]
        assert set(ids) == {"2026-07-28"}


@ERAS
async def test_a_call_is_given_up_once_and_the_next_one_works(tmp_path: Path, era: str) -> None:
    async with modern_server(tmp_path) as (on, server):
        client = await client_of(on, era)
        held = [client.begin("a__hold", key=f"k{number}") for number in range(5)]
        await eventually(lambda: len(received(server, "tools/call")) == 5)
        cut(server)
        for identifier in held:
            assert UNKNOWN in await outcome(client, identifier)
        assert value(await client.call("a__echo", x=1))["arguments"] == {"x": 1}
        assert len(received(server, "tools/call")) == 6


QUESTION: Json = {"method": "elicitation/create", "params": FORM}


def stop_answering(server: ScriptedHttp, which: Callable[[Json], bool]) -> None:
    """These messages are received, and stay without an answer."""
    answer = server.script.receive

    def receive(message: Json, send: Callable[[Json], None]) -> None:
        answer(message, (lambda reply: None) if which(message) else send)

    server.script.receive = receive


def refuse_with(server: ScriptedHttp, status: int) -> None:
    """Every request is answered with a status alone."""

    async def refuse(message: Json, reader: Any, writer: Any) -> None:
        writer.write(f"HTTP/1.1 {status} No\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".encode())

    server._stream_answer = refuse
