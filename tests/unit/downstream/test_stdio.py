import asyncio
import functools
import json
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from polyplex.downstream import stdio
from polyplex.downstream.session import Call
from polyplex.transports.exchange import Reply
from polyplex.transports.stdio import StdioEndpointTransport
from tests.process.endpoint_stage import PREFIX, ScriptedGateway, initialize, modern, notification, request
from tests.process.http_stage import until

DEADLINE_SECONDS = 10.0


class Stage:
    """The endpoint behind two pipes."""

    def __init__(self, endpoint: stdio.StdioEndpoint, gateway: ScriptedGateway, write: int) -> None:
        self.endpoint, self.gateway, self._write = endpoint, gateway, write
        self.reader = asyncio.StreamReader()

    def say(self, *messages: object) -> None:
        for message in messages:
            line = message if isinstance(message, bytes) else json.dumps(message).encode()
            os.write(self._write, line + b"\n")

    async def line(self) -> Any:
        async with asyncio.timeout(DEADLINE_SECONDS):
            return json.loads(await self.reader.readline())

    def end(self) -> None:
        os.close(self._write)
        self._write = -1

    async def close(self) -> None:
        if self._write >= 0:
            self.end()
        await self.endpoint.close()


@asynccontextmanager
async def stdio_endpoint(monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[Stage]:
    (stdin, write), (read, stdout), null = os.pipe(), os.pipe(), os.open(os.devnull, os.O_WRONLY)
    transport = functools.partial(StdioEndpointTransport, stdin_fd=stdin, stdout_fd=stdout, stderr_fd=null)
    monkeypatch.setattr(stdio, "StdioEndpointTransport", transport)
    gateway = ScriptedGateway()
    stage = Stage(stdio.StdioEndpoint(gateway), gateway, write)
    await stage.endpoint.start()
    os.close(stdin)
    pipe, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(stage.reader), os.fdopen(read, "rb", buffering=0)
    )
    try:
        yield stage
    finally:
        await stage.close()
        pipe.close()
        os.close(stdout)
        os.close(null)


async def test_a_legacy_client(monkeypatch: pytest.MonkeyPatch) -> None:
    async with stdio_endpoint(monkeypatch) as on:
        on.say(initialize("2025-11-25"))
        assert (await on.line())["result"] == {"protocolVersion": "2025-11-25"}
        on.say(notification("notifications/initialized"), request("tools/call", "a", x=1))
        assert await on.line() == {"jsonrpc": "2.0", "id": "a", "result": {"x": 1}}
        assert on.gateway.notices[0][1] == "notifications/initialized"
        assert not on.endpoint.busy
        on.end()
        async with asyncio.timeout(DEADLINE_SECONDS):
            await on.endpoint.ended()
    assert len(on.gateway.ended) == 2


async def test_a_modern_client_and_both_eras_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    async with stdio_endpoint(monkeypatch) as on:
        on.say(modern("server/discover", 1)[0])
        assert (await on.line())["id"] == 1
        on.say(request("tools/call", 2, arguments={PREFIX + "protocolVersion": "x"}))
        assert (await on.line())["id"] == 2
        on.say(modern("tools/call", 3, name="a")[0])
        assert (await on.line())["id"] == 3
        assert [str(call.session.era) for call in on.gateway.calls] == ["modern", "legacy", "modern"]


@pytest.mark.parametrize(
    ("meta", "code"),
    [
        ({"protocolVersion": "2027-01-01", "clientCapabilities": {}}, -32022),
        ({"protocolVersion": "2026-07-28"}, -32602),
        ({"protocolVersion": "2026-07-28", "clientCapabilities": 1}, -32602),
    ],
)
async def test_envelopes_that_are_not_right(
    monkeypatch: pytest.MonkeyPatch, meta: dict[str, object], code: int
) -> None:
    async with stdio_endpoint(monkeypatch) as on:
        on.say(request("tools/list", 7, _meta={PREFIX + key: value for key, value in meta.items()}))
        answer = await on.line()
        assert (answer["id"], answer["error"]["code"]) == (7, code)
        on.say(request("server/discover", 8))
        assert (await on.line())["error"]["code"] == -32602
        assert not on.gateway.calls


async def test_what_is_no_message_is_answered_and_the_rest_served(monkeypatch: pytest.MonkeyPatch) -> None:
    async with stdio_endpoint(monkeypatch) as on:
        on.say(b"rubbish", b"", b"[]", [request("tools/call")], b'{"jsonrpc":"2.0","id":"x"}', b"\xff")
        answers = [await on.line() for _ in range(5)]
        assert [answer["error"]["code"] for answer in answers] == [-32700, -32600, -32600, -32600, -32700]
        assert answers[3]["id"] == "x"
        on.say(notification("notifications/unusable"), notification("notifications/cancelled", requestId={"a": 1}))
        on.say({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": [1]})
        on.say({"jsonrpc": "2.0", "id": 1, "result": {}}, request("tools/call", 2))
        assert (await on.line())["id"] == 2


async def test_batches_of_the_one_revision_that_has_them(monkeypatch: pytest.MonkeyPatch) -> None:
    async with stdio_endpoint(monkeypatch) as on:
        on.say(initialize("2025-03-26"))
        await on.line()
        on.say([request("tools/call", 1), notification("notifications/x"), 5], [notification("notifications/x")])
        on.say(request("tools/call", 2))
        assert sorted("error" in answer for answer in await on.line()) == [False, True]
        assert (await on.line())["id"] == 2


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_a_cancelled_call_gets_no_answer(monkeypatch: pytest.MonkeyPatch, era: str) -> None:
    async with stdio_endpoint(monkeypatch) as on:
        on.gateway.on["tools/list"] = on.gateway.wait
        for identifier in (1, 2):
            on.say(modern("tools/list", identifier)[0] if era == "modern" else request("tools/list", identifier))
        await until(lambda: len(on.gateway.calls) == 2)
        assert on.endpoint.busy
        on.say(notification("notifications/cancelled", requestId=1))
        await until(lambda: on.gateway.cancelled)
        on.gateway.release.set()
        assert (await on.line())["id"] == 2


@pytest.mark.parametrize("method", ["tools/list", "tools/call"])
async def test_a_call_cancelled_in_the_breath_it_is_made(monkeypatch: pytest.MonkeyPatch, method: str) -> None:
    async with stdio_endpoint(monkeypatch) as on:
        on.gateway.on[method] = on.gateway.wait
        cancelled = json.dumps(notification("notifications/cancelled", requestId=1)).encode()
        on.say(json.dumps(request(method, 1)).encode() + b"\n" + cancelled, request("prompts/list", 2))
        assert (await on.line())["id"] == 2
        assert not on.endpoint.busy
        on.gateway.release.set()
        on.say(request(method, 1))
        assert (await on.line())["result"] == {"late": True}


async def test_frames_before_the_answer_and_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    async def ask(call: Call) -> Reply:
        call.send(b'{"jsonrpc":"2.0",\n"method":"notifications/x"}')
        answer = await call.session.ask("roots/list", None, call.send)
        return Reply(answer.result)

    async with stdio_endpoint(monkeypatch) as on:
        on.gateway.on["tools/call"] = ask
        on.say(request("tools/call", 1))
        assert (await on.line())["method"] == "notifications/x"
        on.say({"jsonrpc": "2.0", "id": (await on.line())["id"], "result": {"roots": []}})
        assert (await on.line())["result"] == {"roots": []}


async def test_closing_cancels_what_is_under_way_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    async with stdio_endpoint(monkeypatch) as on:
        on.gateway.on["tools/list"] = on.gateway.wait
        on.say(request("tools/list"))
        await until(lambda: on.gateway.calls)
        await on.close()
        assert "polyplex is stopping" in (await on.line())["error"]["message"]
        assert await on.reader.read() == b""
    assert on.gateway.cancelled


NOTES = 200
NOTE = b'{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"%b"}}' % (b"x" * 65536)


async def flood(call: Call) -> Reply:
    """Says more than fits into the pipe, all at once."""
    for _ in range(NOTES):
        call.send(NOTE)
    return Reply(b"{}")


async def test_what_a_client_does_not_read_is_dropped_but_never_an_answer(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(stdio, "MAX_UNREAD_WITH_NOTICES", 20 * len(NOTE))
    async with stdio_endpoint(monkeypatch) as on:
        on.reader._limit = 1 << 20  # pyright: ignore[reportAttributeAccessIssue]
        on.gateway.on["tools/call"] = flood
        on.say(request("tools/call", 1))
        lines = [await on.line()]
        while "id" not in lines[-1]:
            lines.append(await on.line())
        assert 20 <= len(lines) - 1 < NOTES
        assert "the client does not read" in caplog.text


async def test_the_end_of_stdin_is_noticed_while_the_client_does_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stdio, "HANG_UP_SECONDS", 0.01)
    async with stdio_endpoint(monkeypatch) as on:
        on.gateway.on["tools/call"] = flood
        on.say(request("tools/call", 1))
        await until(lambda: on.endpoint._pause is not None)  # pyright: ignore[reportPrivateUsage]
        on.end()
        async with asyncio.timeout(DEADLINE_SECONDS):
            await on.endpoint.ended()
