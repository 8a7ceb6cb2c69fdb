"""The HTTP endpoint: who may talk to it, what is where, and what becomes of modern requests."""

import asyncio
import json

import pytest

from polyplex.downstream.session import Call
from polyplex.errors import RpcError
from polyplex.protocol import jsonrpc
from polyplex.protocol.revisions import LATEST_MODERN
from polyplex.transports.body import BodyStream
from polyplex.transports.exchange import Reply
from tests.process.conftest import LoopFactory
from tests.process.endpoint_stage import NOTE, PREFIX, http_endpoint, initialize, modern, notification, request
from tests.process.http_stage import until


class Source:
    """Where a body comes from."""

    def __init__(self) -> None:
        self.paused = self.aborted = False

    def pause(self) -> None:
        self.paused = True

    def resume(self) -> None:
        self.paused = False

    def abort(self) -> None:
        self.aborted = True


# -- who, and where
@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "localhost:7332"}, 200),
        ({"Host": "127.0.0.1"}, 200),
        ({"Host": "[::1]:7332"}, 200),
        ({"Host": "own.example:443"}, 200),
        ({"Host": "evil.example"}, 403),
        ({"Host": "localhost.evil.example"}, 403),
        ({"Host": ""}, 403),
        ({"Origin": "http://localhost:3000"}, 200),
        ({"Origin": "https://own.example"}, 200),
        ({"Origin": "https://app.example"}, 200),
        ({"Origin": "https://app.example.evil"}, 403),
        ({"Origin": "http://app.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "file://"}, 403),
    ],
)
async def test_host_and_origin(loop_factory: LoopFactory, headers: dict[str, str], status: int) -> None:
    options = {"allowed_hosts": ("own.example",), "allowed_origins": ("https://app.example",)}
    async with http_endpoint(**options) as stage, stage.client() as client:
        for _ in range(2):
            for path in ("/healthz", "/mcp"):
                await client.send(None, headers, "GET", path)
                response = await client.connection.response()
                assert response.status == (status if path == "/healthz" or status == 403 else 400)


async def test_a_request_without_host_is_refused(loop_factory: LoopFactory) -> None:
    async with http_endpoint() as stage, stage.client() as client:
        await client.connection.send(b"GET /healthz HTTP/1.1\r\n\r\n")
        assert (await client.connection.response()).status == 403


@pytest.mark.parametrize("name", ["Host", "Origin", "Mcp-Session-Id", "Mcp-Method", "MCP-Protocol-Version"])
async def test_a_routing_header_that_comes_twice_is_refused(loop_factory: LoopFactory, name: str) -> None:
    async with http_endpoint() as stage, stage.client() as client:
        twice = f"{name}: localhost\r\n{name}: localhost\r\n"
        await client.connection.send(f"POST /mcp HTTP/1.1\r\n{twice}Content-Length: 2\r\n\r\n{{}}".encode())
        response = await client.connection.response()
        assert response.status == 400
        assert f"{name.lower()} appears twice" in json.loads(response.body)["error"]["message"]


@pytest.mark.parametrize(
    ("method", "path", "status", "body"),
    [
        ("GET", "/healthz", 200, b'{"status":"ok"}'),
        ("GET", "/readyz", 200, b'{"ready":true}'),
        ("GET", "/metrics", 200, b"metric 1\n"),
        ("GET", "/nothing", 404, b'{"error":"not found; the MCP endpoint is /mcp"}'),
        ("POST", "/healthz", 404, b""),
        ("PUT", "/mcp", 405, b""),
        ("OPTIONS", "/mcp", 405, b""),
        ("POST", "/sse", 405, b""),
        ("GET", "/messages/", 405, b""),
    ],
)
async def test_what_is_where(loop_factory: LoopFactory, method: str, path: str, status: int, body: bytes) -> None:
    async with http_endpoint() as stage, stage.client() as client:
        await client.send(None, None, method, path)
        response = await client.connection.response()
        assert (response.status, response.body) == (status, body)
        if status == 405:
            assert response.headers["allow"]


async def test_a_body_of_another_kind_is_refused(loop_factory: LoopFactory) -> None:
    async with http_endpoint() as stage, stage.client() as client:
        assert (await client.post(initialize("2025-11-25"), {"Content-Type": "text/plain"})).status == 415
        kind = {"Content-Type": "Application/JSON; charset=utf-8"}
        assert (await client.post(initialize("2025-11-25"), kind)).status == 200


async def test_a_body_that_is_too_large_is_refused(loop_factory: LoopFactory) -> None:
    async with http_endpoint(max_body_bytes=1000) as stage, stage.client() as client:
        assert (await client.post(request("tools/call", x="x" * 1000))).status == 413


# -- modern requests
async def test_a_modern_call_is_answered_with_json(loop_factory: LoopFactory) -> None:
    async with http_endpoint() as stage, stage.client("ignored") as client:
        body, headers = modern("tools/call", "abc", name="a", x=1)
        response = await client.post(body, headers)
        assert response.status == 200
        assert "mcp-session-id" not in response.headers
        assert json.loads(response.body)["id"] == "abc"
        assert json.loads(response.body)["result"]["x"] == 1
        assert stage.gateway.calls[0].headers is not None
        assert not stage.endpoint.busy


@pytest.mark.parametrize(
    ("change", "status", "code"),
    [
        ({"Mcp-Method": "tools/list"}, 400, -32020),
        ({"Mcp-Method": ""}, 400, -32020),
        ({"Mcp-Name": "b"}, 400, -32020),
        ({"Mcp-Name": "=?base64?!!?="}, 400, -32020),
        ({"MCP-Protocol-Version": "2025-11-25"}, 400, -32020),
        ({"MCP-Protocol-Version": "2027-01-01"}, 400, -32020),
    ],
)
async def test_headers_that_differ_from_the_body(
    loop_factory: LoopFactory, change: dict[str, str], status: int, code: int
) -> None:
    async with http_endpoint() as stage, stage.client() as client:
        body, headers = modern("tools/call", 7, name="a")
        response = await client.post(body, headers | change)
        answer = json.loads(response.body)
        assert (response.status, answer["error"]["code"], answer["id"]) == (status, code, 7)
        assert not stage.gateway.calls


@pytest.mark.parametrize(
    ("meta", "revision", "code"),
    [
        ({"protocolVersion": "2027-01-01", "clientCapabilities": {}}, "2027-01-01", -32022),
        ({"protocolVersion": LATEST_MODERN}, LATEST_MODERN, -32602),
        ({"clientCapabilities": {}}, LATEST_MODERN, -32602),
        ({"protocolVersion": LATEST_MODERN, "clientCapabilities": 1}, LATEST_MODERN, -32602),
        ({"protocolVersion": 1, "clientCapabilities": {}}, LATEST_MODERN, -32602),
        ({}, LATEST_MODERN, -32602),
        ({}, "2027-01-01", -32022),
        ({}, "1999-01-01", -32022),
    ],
)
async def test_envelopes_that_are_not_right(
    loop_factory: LoopFactory, meta: dict[str, object], revision: str, code: int
) -> None:
    async with http_endpoint() as stage, stage.client() as client:
        body = request("tools/list", 7, _meta={PREFIX + key: value for key, value in meta.items()})
        response = await client.post(body, {"MCP-Protocol-Version": revision, "Mcp-Method": "tools/list"})
        assert (response.status, json.loads(response.body)["error"]["code"]) == (400, code)
        if code == -32022:
            assert json.loads(response.body)["error"]["data"] == {"supported": [LATEST_MODERN], "requested": revision}


@pytest.mark.parametrize("method", ["initialize", "ping", "logging/setLevel", "resources/subscribe"])
async def test_methods_of_the_legacy_era_do_not_exist(loop_factory: LoopFactory, method: str) -> None:
    async with http_endpoint() as stage, stage.client() as client:
        response = await client.post(*modern(method))
        assert (response.status, json.loads(response.body)["error"]["code"]) == (404, -32601)


@pytest.mark.parametrize(
    ("code", "status"), [(-32601, 404), (-32020, 400), (-32021, 400), (-32022, 400), (-32602, 200), (-32603, 200)]
)
async def test_the_status_tells_of_some_errors(loop_factory: LoopFactory, code: int, status: int) -> None:
    async def fail(call: Call) -> Reply:
        return Reply.failure(code, "no")

    async with http_endpoint() as stage, stage.client() as client:
        stage.gateway.on["tools/list"] = fail
        response = await client.post(*modern("tools/list"))
        assert (response.status, json.loads(response.body)["error"]["code"]) == (status, code)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"{", -32700),
        (b'{"jsonrpc":"2.0","id":1}', -32600),
        (b'[{"jsonrpc":"2.0","id":1,"method":"tools/list"}]', -32600),
        (b'{"jsonrpc":"2.0","id":1,"result":{}}', -32600),
    ],
)
async def test_what_is_no_modern_message(loop_factory: LoopFactory, body: bytes, code: int) -> None:
    async with http_endpoint() as stage, stage.client() as client:
        response = await client.post(body, {"MCP-Protocol-Version": LATEST_MODERN})
        assert (response.status, json.loads(response.body)["error"]["code"]) == (400, code)


async def test_a_modern_notification_is_accepted(loop_factory: LoopFactory) -> None:
    async with http_endpoint() as stage, stage.client(revision=LATEST_MODERN) as client:
        response = await client.post(notification("notifications/whatever"))
        assert (response.status, response.body) == (202, b"")


@pytest.mark.parametrize("method", ["GET", "DELETE"])
async def test_modern_clients_have_nothing_but_post(loop_factory: LoopFactory, method: str) -> None:
    async with http_endpoint() as stage, stage.client(revision=LATEST_MODERN) as client:
        await client.send(None, None, method)
        response = await client.connection.response()
        assert (response.status, response.headers["allow"]) == (405, "POST")


async def test_what_comes_before_the_answer_makes_it_a_stream(loop_factory: LoopFactory) -> None:
    async def progress(call: Call) -> Reply:
        call.send(NOTE % 1)
        call.send(NOTE.replace(b",", b",\r\n") % 2)
        return Reply(b'{"a":\n1}')

    async with http_endpoint() as stage, stage.client() as client:
        stage.gateway.on["tools/call"] = progress
        body, headers = modern("tools/call", 9, name="a")
        await client.send(body, headers)
        head = await client.connection.head()
        assert head.headers["content-type"] == "text/event-stream"
        events = await client.events()
        assert [event["frame"].get("params", {}).get("progress") for event in events] == [1, 2, None]
        assert events[2]["frame"] == {"jsonrpc": "2.0", "id": 9, "result": {"a": 1}}
        assert not any("id" in event for event in events), "nothing can be resumed in this revision"
        response = await client.post(body, headers | {"Accept": "application/json"})
        assert json.loads(response.body)["result"] == {"a": 1}


@pytest.mark.parametrize("when", ["before anything came", "in the stream"])
async def test_a_modern_client_that_leaves_cancels_its_call(loop_factory: LoopFactory, when: str) -> None:
    async with http_endpoint() as stage, stage.client() as client:

        async def wait(call: Call) -> Reply:
            if when == "in the stream":
                call.send(NOTE % 1)
            return await stage.gateway.wait(call)

        stage.gateway.on["tools/list"] = wait
        await client.send(*modern("tools/list"))
        await until(lambda: stage.gateway.calls)
        if when == "in the stream":
            await client.connection.head()
        client.connection.close()
        await until(lambda: stage.gateway.cancelled)
        await until(lambda: not stage.endpoint.busy)


async def test_calls_of_one_connection_are_answered_in_order(loop_factory: LoopFactory) -> None:
    async with http_endpoint() as stage, stage.client() as client:
        stage.gateway.on["tools/list"] = stage.gateway.wait
        await client.send(*modern("tools/list", 1))
        await client.send(*modern("prompts/list", 1))
        await until(lambda: stage.gateway.calls)
        stage.gateway.release.set()
        assert json.loads((await client.connection.response()).body)["result"] == {"late": True}
        assert "_meta" in json.loads((await client.connection.response()).body)["result"]


async def test_a_quiet_call_shows_signs_of_life(loop_factory: LoopFactory) -> None:
    async with http_endpoint() as stage, stage.client() as client:
        stage.gateway.on["tools/list"] = stage.gateway.wait
        await client.send(*modern("tools/list"))
        await until(lambda: stage.endpoint._active)
        (call,) = stage.endpoint._active
        now = asyncio.get_running_loop().time()
        call.keep_alive(now + 5)
        assert call._writer is None
        call.keep_alive(now + 15)
        await client.connection.head()
        assert await client.connection.chunk() == b": keep-alive\n\n"
        stage.gateway.release.set()
        assert [event["frame"]["result"] for event in await client.events()] == [{"late": True}]


async def test_a_large_result_goes_through_as_it_comes(loop_factory: LoopFactory) -> None:
    source = Source()
    stream = BodyStream(source, b'"', 1_000_003)

    async def large(call: Call) -> Reply:
        return Reply(stream=stream)

    async with http_endpoint() as stage, stage.client() as client:
        stage.gateway.on["tools/call"] = large
        await client.send(*modern("tools/call", 5, name="a"))
        assert (await client.connection.head()).headers["content-length"] == str(
            len('{"jsonrpc":"2.0","id":5,"result":') + 1_000_003
        )
        await until(lambda: not source.paused)
        assert stage.endpoint.busy
        for call in stage.endpoint._active:
            call.keep_alive(asyncio.get_running_loop().time() + 100)
        for _ in range(1000):
            stream.feed(b"x" * 1000)
        stream.feed(b'"}')
        stream.finish(None)
        body = await client.connection.reader.readexactly(len('{"jsonrpc":"2.0","id":5,"result":') + 1_000_003)
        assert json.loads(body)["result"] == "x" * 1_000_000
        assert not stage.endpoint.busy


@pytest.mark.parametrize("how", ["cut short", "left"])
async def test_a_large_result_that_stops_in_the_middle(loop_factory: LoopFactory, how: str) -> None:
    source = Source()
    stream = BodyStream(source, b'"x', 1000)

    async def large(call: Call) -> Reply:
        return Reply(stream=stream)

    async with http_endpoint() as stage, stage.client() as client:
        stage.gateway.on["tools/call"] = large
        await client.send(*modern("tools/call", 5, name="a"))
        await client.connection.head()
        await until(lambda: not source.paused)
        if how == "cut short":
            stream.finish(RpcError(-32603, "broken"))
            assert len(await client.connection.rest()) < 1000
        else:
            client.connection.close()
            await until(lambda: source.aborted)
        await until(lambda: not stage.endpoint.busy)


async def test_a_slow_client_holds_the_source_back(loop_factory: LoopFactory) -> None:
    source = Source()
    stream = BodyStream(source, b"", 1 << 30)

    async def large(call: Call) -> Reply:
        return Reply(stream=stream)

    async with http_endpoint() as stage, stage.client() as client:
        client.connection.writer.transport.pause_reading()  # pyright: ignore[reportAttributeAccessIssue]
        stage.gateway.on["tools/call"] = large
        await client.send(*modern("tools/call", 5, name="a"))
        await until(lambda: stage.endpoint._active and not source.paused)
        fed = 0
        while not source.paused:
            stream.feed(bytes(1 << 20))
            fed += 1
            await asyncio.sleep(0)
        assert fed < 64
        client.connection.writer.transport.resume_reading()  # pyright: ignore[reportAttributeAccessIssue]
        reading = asyncio.create_task(client.connection.reader.read(-1))
        await until(lambda: not source.paused)
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)


async def test_a_failure_inside_is_an_answer(loop_factory: LoopFactory, caplog: pytest.LogCaptureFixture) -> None:
    async def fail(call: Call) -> Reply:
        raise LookupError("a mistake")

    async with http_endpoint() as stage, stage.client() as client:
        stage.gateway.on["tools/call"] = fail
        response = await client.post(*modern("tools/call", 5, name="a"))
        assert json.loads(response.body)["error"]["code"] == jsonrpc.INTERNAL_ERROR
        assert "a mistake" in caplog.text
        assert b"a mistake" not in response.body


@pytest.mark.parametrize("method", ["tools/list", "initialize"])
async def test_closing_cancels_what_is_under_way_and_says_so(loop_factory: LoopFactory, method: str) -> None:
    async with http_endpoint() as stage, stage.client() as client:
        stage.gateway.on[method] = stage.gateway.wait
        body, headers = modern(method) if method == "tools/list" else (initialize("2025-11-25"), None)
        await client.send(body, headers)
        await until(lambda: stage.gateway.calls)
        stage.endpoint.stop_accepting()
        assert stage.endpoint.busy
        await stage.endpoint.close()
        assert stage.gateway.cancelled
        error = json.loads((await client.connection.response()).body)["error"]
        assert "polyplex is stopping" in error["message"]


async def test_a_stream_ends_with_the_answer_that_says_why(loop_factory: LoopFactory) -> None:
    async def chat(call: Call) -> Reply:
        call.send(NOTE % 1)
        try:
            return await stage.gateway.wait(call)
        finally:
            call.send(NOTE % 2)

    async with http_endpoint() as stage, stage.client() as client:
        stage.gateway.on["tools/call"] = chat
        await client.send(*modern("tools/call", name="a"))
        await client.connection.head()
        assert (await client.event())["frame"]["method"] == "notifications/progress"
        await stage.endpoint.close()
        (last,) = await client.events()
        assert last["frame"]["result"]["isError"] is True
