"""A server whose stream takes long to take in lets everything else have its turn."""

import pytest

from polyplex.transports import http_client
from polyplex.transports.http_client import Connection
from tests.process.conftest import LoopFactory
from tests.process.http_stage import Peer, raw_server
from tests.process.test_http_client import ask, pool_to


async def test_a_stream_that_takes_long_to_take_in_arrives_whole_in_turns(
    loop_factory: LoopFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_client, "TURN_SECONDS", -1.0)
    rests: list[bool] = []
    rested = Connection._rested  # pyright: ignore[reportPrivateUsage]

    def note(connection: Connection) -> None:
        rests.append(True)
        rested(connection)

    monkeypatch.setattr(Connection, "_rested", note)
    piece = b"x" * 65536
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    chunks = [b"%x\r\n%b\r\n" % (len(piece), piece) for _ in range(20)]

    async def script(peer: Peer) -> None:
        for _ in range(2):
            await peer.request()
            await peer.say(head, *chunks, b"0\r\n\r\n")

    async with raw_server(script) as server, pool_to(server) as pool:
        assert await ask(pool, streaming=True).outcome() == piece * 20
        assert rests
        assert await ask(pool, streaming=True).outcome() == piece * 20
