import asyncio

import pytest

from polyplex.transports.body import BodyStream


class Source:
    """Keeps what it was told."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def pause(self) -> None:
        self.told.append("pause")

    def resume(self) -> None:
        self.told.append("resume")

    def abort(self) -> None:
        self.told.append("abort")


def test_the_source_waits_until_somebody_takes_the_bytes() -> None:
    source = Source()
    stream = BodyStream(source, b"head", 9)
    assert source.told == ["pause"]
    stream.feed(b"12")
    pieces: list[bytes | memoryview] = []
    ends: list[Exception | None] = []
    stream.attach(pieces.append, ends.append)
    assert pieces == [b"head", b"12"]
    assert source.told == ["pause", "resume"]
    stream.feed(b"345")
    stream.finish(None)
    assert b"".join(pieces) == b"head12345"
    assert ends == [None]


def test_a_body_that_ended_before_anybody_took_it() -> None:
    source = Source()
    stream = BodyStream(source, b"", 1)
    stream.feed(b"1")
    error = ConnectionError()
    stream.finish(error)
    pieces: list[bytes | memoryview] = []
    ends: list[Exception | None] = []
    stream.attach(pieces.append, ends.append)
    assert (pieces, ends) == ([b"1"], [error])
    assert source.told == ["pause"], "a source that has ended is left alone: it serves others now"


def test_after_the_end_the_source_is_left_alone() -> None:
    source = Source()
    stream = BodyStream(source, b"1", 1)
    stream.attach(lambda data: None, lambda error: None)
    stream.finish(None)
    for act in (stream.pause, stream.resume, stream.abort):
        act()
    assert source.told == ["pause", "resume"]


def test_an_aborted_body_tells_nothing_more() -> None:
    source = Source()
    stream = BodyStream(source, b"", 10)
    heard: list[object] = []
    stream.attach(heard.append, heard.append)
    stream.abort()
    stream.finish(None)
    assert heard == []
    assert source.told == ["pause", "resume", "abort"]


async def test_reading_the_whole() -> None:
    source = Source()
    stream = BodyStream(source, b"a", 3)
    reading = asyncio.create_task(stream.read())
    await asyncio.sleep(0)
    stream.feed(b"bc")
    stream.finish(None)
    assert await reading == b"abc"


async def test_reading_what_is_cut_short() -> None:
    stream = BodyStream(Source(), b"a", 3)
    stream.finish(ConnectionError("cut"))
    with pytest.raises(ConnectionError, match="cut"):
        await stream.read()


async def test_a_reader_that_is_cancelled_gives_the_rest_up() -> None:
    source = Source()
    reading = asyncio.create_task(BodyStream(source, b"a", 3).read())
    await asyncio.sleep(0)
    reading.cancel()
    await asyncio.gather(reading, return_exceptions=True)
    assert source.told[-1] == "abort"
