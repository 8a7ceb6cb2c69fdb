import asyncio

import pytest

from polyplex.transports.stdio import pipes
from polyplex.transports.stdio.pipes import FrameReader


class Transport(asyncio.ReadTransport):
    """Notes whether it may be read from."""

    def __init__(self) -> None:
        super().__init__()
        self.reading = True

    def pause_reading(self) -> None:
        assert self.reading, "paused twice"
        self.reading = False

    def resume_reading(self) -> None:
        assert not self.reading, "resumed twice"
        self.reading = True

    def close(self) -> None:
        pass


@pytest.fixture
def reading(monkeypatch: pytest.MonkeyPatch) -> tuple[FrameReader, Transport, list[bytes]]:
    """A reader for which every chunk takes too long."""
    monkeypatch.setattr(pipes, "TURN_SECONDS", -1.0)
    frames: list[bytes] = []
    reader, transport = FrameReader(frames.append, lambda: None, 1000), Transport()
    reader.connection_made(transport)
    return reader, transport, frames


Reading = tuple[FrameReader, Transport, list[bytes]]


async def test_a_chunk_that_takes_long_lets_everything_else_have_a_turn(reading: Reading) -> None:
    reader, transport, frames = reading
    reader.data_received(b"1\n2\n")
    assert frames == [b"1", b"2"]
    assert not transport.reading
    await asyncio.sleep(0)
    assert transport.reading


async def test_a_chunk_that_is_quick_is_followed_by_the_next(reading: Reading, monkeypatch: pytest.MonkeyPatch) -> None:
    reader, transport, _ = reading
    monkeypatch.setattr(pipes, "TURN_SECONDS", 3600.0)
    reader.data_received(b"1\n")
    assert transport.reading


async def test_a_turn_of_the_others_does_not_end_a_pause(reading: Reading) -> None:
    reader, transport, _ = reading
    reader.data_received(b"1\n")
    reader.pause()
    await asyncio.sleep(0)
    assert not transport.reading
    reader.resume()
    assert transport.reading


async def test_pausing_and_resuming_within_a_turn_changes_nothing(reading: Reading) -> None:
    reader, transport, _ = reading
    reader.data_received(b"1\n")
    reader.pause()
    reader.resume()
    assert not transport.reading
    await asyncio.sleep(0)
    assert transport.reading
