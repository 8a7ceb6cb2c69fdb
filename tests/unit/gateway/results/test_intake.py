"""A stream becomes payloads while it comes in, and leaves none where it does not come to its end."""

import asyncio
import json
from collections.abc import Generator
from pathlib import Path

import pytest

from polyplex.config.model import PayloadOptions
from polyplex.errors import PayloadRefused, RemoteProtocolError
from polyplex.gateway.results.intake import HIGH_BYTES, Intake
from polyplex.gateway.results.keeper import Keeper
from polyplex.gateway.results.limits import Limits
from polyplex.store.open_store import open_store
from polyplex.transports.body import BodyStream, stream_of

LIMITS = Limits(1000, 20_000)
TEXT = "The quick brown fox.\n" * 50_000
RESULT = json.dumps({"content": [{"type": "text", "text": TEXT}, {"type": "text", "text": "y" * 2000}]}).encode()


class Tap:
    """A source that the test opens and closes."""

    def __init__(self) -> None:
        self.paused = self.aborted = False

    def pause(self) -> None:
        self.paused = True

    def resume(self) -> None:
        self.paused = False

    def abort(self) -> None:
        self.aborted = True


@pytest.fixture
def keeper(tmp_path: Path) -> Generator[Keeper]:
    made = Keeper(PayloadOptions(max_bytes=8 << 20), open_store(PayloadOptions(max_bytes=8 << 20), tmp_path))
    yield made
    asyncio.run(made.close())


def files(folder: Path) -> list[Path]:
    """All that the store keeps, besides what it needs to know of itself."""
    return [file for file in (folder / "payloads").rglob("*") if file.is_file() and file.stat().st_size > 1000]


def intake(stream: BodyStream, keeper: Keeper) -> Intake:
    return Intake(stream, keeper, "me", "a__tool", LIMITS)


async def test_a_whole_result(keeper: Keeper) -> None:
    kept, parts, members = await intake(stream_of(memoryview(RESULT)), keeper).run(5)
    first, second = (block["text"] for block in json.loads(kept)["content"])
    assert not members and set(parts) == {first, second}
    part = parts[first]
    assert part.payload.size == len(TEXT) and "50,000 lines" in part.shape
    assert await keeper.read("me", part.payload, 1 << 30) == TEXT.encode()
    assert parts[second].payload.origin == "a__tool"


async def test_what_is_cut_short_leaves_nothing(keeper: Keeper, tmp_path: Path) -> None:
    tap = Tap()
    stream = BodyStream(tap, RESULT[:-1500], len(RESULT) + 1)
    task = asyncio.create_task(intake(stream, keeper).run(5))
    await asyncio.sleep(0)
    stream.finish(ConnectionError("the server has gone"))
    with pytest.raises(ConnectionError, match="has gone"):
        await task
    assert not files(tmp_path)


async def test_who_is_not_waited_for_leaves_nothing(keeper: Keeper, tmp_path: Path) -> None:
    tap = Tap()
    task = asyncio.create_task(intake(BodyStream(tap, RESULT[:-1500], len(RESULT) + 1), keeper).run(5))
    while not files(tmp_path):  # noqa: ASYNC110 - the first part is stored by a thread
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert tap.aborted and not files(tmp_path)


@pytest.mark.parametrize("end", [b"", b"}", b"}}}", b"\xff}"])
async def test_what_is_no_result_leaves_nothing(keeper: Keeper, tmp_path: Path, end: bytes) -> None:
    stream = BodyStream(Tap(), RESULT[:-1] + end, len(RESULT))
    stream.finish(None)
    with pytest.raises(RemoteProtocolError):
        await intake(stream, keeper).run(5)
    assert not files(tmp_path)


async def test_a_stream_that_stands_still(keeper: Keeper, tmp_path: Path) -> None:
    with pytest.raises(TimeoutError):
        await intake(BodyStream(Tap(), RESULT[:-1500], len(RESULT)), keeper).run(0.05)
    assert not files(tmp_path)


async def test_what_the_store_refuses(keeper: Keeper, tmp_path: Path) -> None:
    large = json.dumps({"content": [{"type": "text", "text": "x" * (9 << 20)}]}).encode()
    with pytest.raises(PayloadRefused):
        await intake(stream_of(memoryview(large)), keeper).run(5)
    assert not files(tmp_path)


async def test_a_source_that_is_faster_waits(keeper: Keeper) -> None:
    tap = Tap()
    stream = BodyStream(tap, RESULT[:100], len(RESULT) + 1)
    task = asyncio.create_task(intake(stream, keeper).run(5))
    await asyncio.sleep(0)
    position = 100
    while position < len(RESULT) and not tap.paused:
        stream.feed(RESULT[position : position + 65536])
        position += 65536
    assert tap.paused and position <= HIGH_BYTES + 2 * 65536
    while position < len(RESULT):
        if tap.paused:
            await asyncio.sleep(0)
            continue
        stream.feed(RESULT[position : position + 65536])
        position += 65536
    stream.feed(b"}")
    stream.finish(None)
    kept, parts, _ = await task
    assert len(parts) == 2 and len(kept) < 500
