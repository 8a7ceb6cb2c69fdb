"""A client whose connections break after any byte gets every event of its call once, in order, and the result."""

import asyncio
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from polyplex.downstream.event_store import EventOptions
from polyplex.downstream.http import HttpEndpoint, HttpOptions
from polyplex.downstream.session import Call
from polyplex.protocol.sse import SseDecoder
from polyplex.transports.exchange import Reply
from polyplex.transports.http_server import ServerConnection
from tests.process.endpoint_stage import NOTE, ScriptedGateway, initialize, request

LATEST = "2025-11-25"


class Wire(asyncio.Transport):
    """Keeps what the server writes."""

    def __init__(self) -> None:
        super().__init__()
        self.written = bytearray()
        self.ended = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written += data

    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview]) -> None:
        for data in list_of_data:
            self.written += data

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return default

    def get_write_buffer_size(self) -> int:
        return 0

    def close(self) -> None:
        self.ended = True

    abort = close


def unchunked(body: bytes) -> tuple[bytes, bool]:
    """The data in a chunked body as far as it goes, and whether it is whole."""
    data = b""
    while b"\r\n" in body:
        size, _, rest = body.partition(b"\r\n")
        length = int(size, 16)
        data += rest[:length]
        if length == 0:
            return data, True
        body = rest[length + 2 :]
    return data, False


class CutClient:
    """A client by the letter of the specification, on wires that are cut."""

    def __init__(self, endpoint: HttpEndpoint) -> None:
        self._endpoint = endpoint
        self.headers = ""
        self.last: str | None = None
        self.got: list[Any] = []

    async def exchange(self, head: str, body: bytes, meanwhile: Callable[[], None], cut: float) -> bytes:
        """Send a request, and take in the share `cut` of what is written until nothing more comes."""
        wire, connection = Wire(), ServerConnection(self._endpoint._server)
        self._endpoint._server.admit(connection)
        connection.connection_made(wire)
        lines = f"{head} HTTP/1.1\r\nHost: localhost\r\nAccept: application/json, text/event-stream\r\n{self.headers}"
        connection.data_received(f"{lines}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        await settle(wire)
        meanwhile()
        await settle(wire)
        seen = bytes(wire.written[: round(cut * len(wire.written))])
        connection.connection_lost(ConnectionResetError())
        return seen

    async def begin(self, revision: str) -> None:
        body = json.dumps(initialize(revision)).encode()
        answer = await self.exchange("POST /mcp", body, lambda: None, 1.0)
        start = answer.lower().index(b"mcp-session-id: ") + len("mcp-session-id: ")
        session = answer[start : answer.index(b"\r\n", start)].decode()
        self.headers = f"Mcp-Session-Id: {session}\r\n"

    async def stream(self, meanwhile: Callable[[], None], cut: float, call: bytes = b"") -> bool:
        """Call, or take up the stream; True once that has ended in good order."""
        if call:
            seen = await self.exchange("POST /mcp", call, meanwhile, cut)
        else:
            self.headers, headers = f"{self.headers}Last-Event-ID: {self.last}\r\n", self.headers
            seen = await self.exchange("GET /mcp", b"", meanwhile, cut)
            self.headers = headers
        _, _, body = seen.partition(b"\r\n\r\n")
        data, whole = unchunked(body)
        for event in SseDecoder(1 << 24).feed(data):
            if event.id is not None:
                self.last = event.id.decode()
            if event.data:
                frame = json.loads(event.data)
                self.got.append(frame["params"]["progress"] if "params" in frame else frame["result"]["late"])
        return whole


async def settle(wire: Wire) -> None:
    """Let the endpoint run until it writes nothing more; a read from the database takes a thread."""
    quiet = 0
    while quiet < 4:
        size = len(wire.written)
        await asyncio.sleep(0)
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        replaying = [task for task in others if "_catch_up" in repr(task) or "_resume" in repr(task)]
        if replaying:
            await asyncio.wait(replaying, timeout=10)
        quiet = quiet + 1 if len(wire.written) == size else 0


async def written(endpoint: HttpEndpoint) -> None:
    """Wait for the disk: what it cannot keep up with is lost, and told as lost."""
    logs: Any = endpoint._legacy._logs
    while logs._on_their_way:  # noqa: ASYNC110
        await asyncio.sleep(0)


loss = st.tuples(st.integers(0, 3), st.integers(0, 3), st.floats(0, 1))


@settings(max_examples=120, deadline=None)
@given(
    losses=st.lists(loss, max_size=12),
    revision=st.sampled_from(["2025-03-26", "2025-06-18", LATEST]),
    after=st.integers(0, 2),
    padding=st.sampled_from([0, 0, 30_000]),
)
def test_wherever_the_connection_is_cut_every_event_comes_once(
    losses: list[tuple[int, int, float]], revision: str, after: int, padding: int
) -> None:
    async def run(folder: str) -> None:
        gateway = ScriptedGateway()
        gateway.on["tools/call"] = _late(gateway)
        events = EventOptions(memory_bytes=200_000, database=Path(folder) / "state.db")
        endpoint = HttpEndpoint(gateway, HttpOptions(events=events), lambda: (True, {}), lambda: b"")
        client, sent = CutClient(endpoint), 0

        def notes(count: int) -> None:
            nonlocal sent
            for _ in range(count):
                sent += 1
                gateway.calls[-1].send(NOTE.replace(b"{", b"{" + b" " * padding, 1) % sent)

        await client.begin(revision)
        await client.stream(lambda: notes(1), 1.0, json.dumps(request("tools/call", 5)).encode())
        assert client.last is not None
        for before, during, cut in losses:
            notes(before)
            assert not await client.stream(lambda during=during: notes(during), cut)
            await written(endpoint)
        notes(after)
        gateway.release.set()
        while endpoint.busy:  # noqa: ASYNC110
            await asyncio.sleep(0)
        assert await client.stream(lambda: None, 1.0)
        assert client.got == [*range(1, sent + 1), True]
        await endpoint.close()

    with TemporaryDirectory() as folder:
        asyncio.run(run(folder))


def _late(gateway: ScriptedGateway) -> Any:
    async def call(call: Call) -> Reply:
        return await gateway.wait(call)

    return call
