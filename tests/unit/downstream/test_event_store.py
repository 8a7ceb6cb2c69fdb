import asyncio
import sqlite3
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyplex.downstream.event_log import EventLog, event_id
from polyplex.downstream.event_store import EVENT_COST, LARGE_BYTES, SESSION_EVENTS, STREAMS, EventOptions, EventStore
from tests.process.http_stage import until

PLENTY = 100 * 1024 * 1024


@asynccontextmanager
async def event_store(**options: Any) -> AsyncGenerator[EventStore]:
    store = EventStore(EventOptions(**options))
    try:
        yield store
    finally:
        await store.close()


async def everything(log: EventLog, last: bytes) -> tuple[list[tuple[bytes, bytes]], int]:
    """All events after one, page by page, and how many are lost."""
    name = await log.stream_of(last.decode())
    assert name is not None
    events: list[tuple[bytes, bytes]] = []
    lost = 0
    while last != log.latest(name):
        missed = await log.after(name, last)
        assert missed.position != last
        last = missed.position
        events += missed.events
        lost += missed.lost
    return events, lost


async def missed(log: EventLog, last: bytes) -> list[bytes]:
    return [frame for _, frame in (await everything(log, last))[0]]


def files(folder: Path) -> list[Path]:
    return list(folder.iterdir())


def stored(file: Path) -> list[bytes]:
    database = sqlite3.connect(file)
    try:
        return [frame for (frame,) in database.execute("SELECT frame FROM frames ORDER BY id")]
    finally:
        database.close()


def consistent(store: EventStore, logs: list[Any]) -> None:
    """What the store counts is what is there."""
    held = [event for log in logs for stream in log._streams.values() for event in stream.events.values()]
    assert len(store._all) == len(held)
    assert store._all.nbytes == sum(event.size for event in held)
    assert sum(log.order.nbytes for log in logs) == store._all.nbytes
    assert store._resident_bytes == sum(event.size for event in store._resident.values())
    assert all(event.frame is not None or event.stored for event in held)


# -- streams and ids
async def test_what_came_after_an_event_of_the_same_stream() -> None:
    async with event_store() as store:
        log = store.open_log()
        one, other = log.open_stream(), log.open_stream()
        first = log.append(one, b"1")
        log.append(other, b"x")
        log.append(log.general, b"g")
        second = log.append(one, b"2")
        assert await everything(log, first) == ([(second, b"2")], 0)
        assert await missed(log, event_id(one, 0)) == [b"1", b"2"]
        assert await missed(log, event_id(other, 0)) == [b"x"]
        assert await missed(log, event_id(log.general, 0)) == [b"g"]
        assert await missed(log, second) == []
        assert log.latest(one) == second


async def test_ids_that_are_made_up() -> None:
    async with event_store() as store:
        log = store.open_log()
        last = log.append(log.general, b"1").decode()
        assert await log.stream_of(last) == log.general
        for made_up in ("", "-", "g", last[:-1], last[:-1] + "2", last + "1" * 20, last + " ", last[:-1] + "-1"):
            assert await log.stream_of(made_up) is None
        assert await log.stream_of(last[:-1] + "\u0661") is None


async def test_an_id_of_another_session_means_nothing() -> None:
    async with event_store() as store:
        mine, other = store.open_log(), store.open_log()
        for log in (mine, other):
            log.append(log.open_stream(), b"secret")
        foreign = other.append(other.open_stream(), b"x").decode()
        assert await mine.stream_of(foreign) is None
        assert other.is_own(foreign)
        assert not mine.is_own(foreign)


# -- bounds
async def test_a_session_is_bounded_by_number_and_tells_what_is_lost() -> None:
    async with event_store() as store:
        log, other = store.open_log(), store.open_log()
        kept = other.append(other.general, b"other")
        for number in range(SESSION_EVENTS * 2):
            log.append(log.general, b"%d" % number)
        events, lost = await everything(log, event_id(log.general, 0))
        assert [frame for _, frame in events] == [b"%d" % n for n in range(SESSION_EVENTS, SESSION_EVENTS * 2)]
        assert lost == SESSION_EVENTS
        assert await missed(other, event_id(other.general, 0)) == [b"other"], kept
        consistent(store, [log, other])


async def test_what_is_owed_goes_last_and_something_takes_its_place() -> None:
    async with event_store(max_bytes=8 * 40_000, memory_bytes=PLENTY) as store:
        log = store.open_log()
        stream = log.open_stream()
        log.append(stream, b"first notice")
        log.append(stream, b"result", b"the result is gone")
        for number in range(100):
            log.append(log.general, b"%d" % number + bytes(1000))
        assert await missed(log, event_id(stream, 0)) == [b"result"]
        assert (await everything(log, event_id(stream, 0)))[1] == 1
        big = log.append(stream, bytes(39_000), b"the big one is gone")
        assert await missed(log, big) == []
        events, lost = await everything(log, event_id(stream, 0))
        assert [frame[:30] for _, frame in events] == [bytes(30)]
        assert lost == 2, "what takes the place of a result goes as any notice, where even that is too much"
        consistent(store, [log])


async def test_all_sessions_together_are_bounded() -> None:
    async with event_store(max_bytes=100_000, memory_bytes=PLENTY) as store:
        logs = [store.open_log() for _ in range(20)]
        for log in logs:
            log.append(log.general, bytes(9_000))
        assert store._all.nbytes <= 100_000
        counts = [len(await missed(log, event_id(log.general, 0))) for log in logs]
        assert counts == [0] * counts.count(0) + [1] * counts.count(1), "the oldest go first"
        consistent(store, logs)


async def test_the_newest_is_kept_however_large_it_is() -> None:
    async with event_store(max_bytes=1000, memory_bytes=1000) as store:
        log = store.open_log()
        log.append(log.general, b"small")
        log.append(log.general, b"x" * 5000)
        assert await missed(log, event_id(log.general, 0)) == [b"x" * 5000]


async def test_age_takes_the_result_last_and_leaves_word_for_as_long_again() -> None:
    async with event_store(max_age_seconds=100.0) as store:
        log = store.open_log()
        stream = log.open_stream()
        log.append(stream, b"notice")
        log.append(stream, b"result", b"gone")
        log.append(stream, b"question", b"")
        now = asyncio.get_running_loop().time()
        store.tick(now + 99)
        assert len(await missed(log, event_id(stream, 0))) == 3
        store.tick(now + 101)
        assert await everything(log, event_id(stream, 0)) == ([(event_id(stream, 2), b"gone")], 2)
        store.tick(now + 202)
        assert await everything(log, event_id(stream, 0)) == ([], 3)
        consistent(store, [log])


async def test_finished_streams_are_forgotten_before_open_ones() -> None:
    async with event_store() as store:
        log = store.open_log()
        oldest, finished = log.open_stream(), log.open_stream()
        for stream in (oldest, finished):
            log.append(stream, b"1")
        log.finish(finished)
        for _ in range(STREAMS - 2):
            log.open_stream()
        assert await log.stream_of(event_id(finished, 1).decode()) is None
        assert await missed(log, event_id(oldest, 0)) == [b"1"]
        assert log.latest(finished) == event_id(finished, 0)
        assert await log.after(finished, event_id(finished, 0)) == ([], event_id(finished, 0), 0)
        consistent(store, [log])


async def test_a_closed_log_keeps_nothing() -> None:
    async with event_store() as store:
        log = store.open_log()
        log.append(log.general, b"1", b"gone")
        log.close()
        later = log.append(log.general, b"2")
        assert later == event_id(log.general, 2)
        assert len(store._all) == 0
        consistent(store, [log])


# -- the database
async def test_nothing_is_written_while_memory_has_room(tmp_path: Path) -> None:
    async with event_store(database=tmp_path / "state.db") as store:
        log = store.open_log()
        for number in range(1000):
            log.append(log.general, b"%d" % number)
        store.tick(asyncio.get_running_loop().time())
        assert len(await missed(log, event_id(log.general, 0))) == 1000
    assert files(tmp_path) == []


async def test_a_large_event_goes_to_the_database_at_once_and_leaves_it(tmp_path: Path) -> None:
    file = tmp_path / "state.db"
    async with event_store(database=file) as store:
        log = store.open_log()
        large = bytes(LARGE_BYTES)
        log.append(log.general, b"before")
        log.append(log.general, large)
        log.append(log.general, b"after")
        assert await missed(log, event_id(log.general, 0)) == [b"before", large, b"after"]
        await until(lambda: store._on_their_way == 0)
        assert stored(file) == [large]
        assert await missed(log, event_id(log.general, 0)) == [b"before", large, b"after"]
        log.close()
        store.tick(0.0)
        await store.read([])
        assert stored(file) == []


async def test_what_memory_has_no_room_for_is_read_back(tmp_path: Path) -> None:
    file = tmp_path / "state.db"
    async with event_store(database=file, memory_bytes=50 * (EVENT_COST + 100)) as store:
        logs = [store.open_log() for _ in range(3)]
        frames = [b"%d" % number + bytes(90) for number in range(600)]
        for position, frame in enumerate(frames):
            logs[position % 3].append(logs[position % 3].general, frame, b"gone" if position % 5 == 0 else None)
            if position % 20 == 0:
                await until(lambda: store._on_their_way == 0)
        await until(lambda: store._on_their_way == 0)
        assert stored(file)
        assert store._resident_bytes <= 50 * (EVENT_COST + 100)
        for number, log in enumerate(logs):
            assert await missed(log, event_id(log.general, 0)) == frames[number::3]
        consistent(store, logs)
    assert stored(file) == []


@pytest.mark.parametrize("moment", ["before", "later"])
async def test_a_database_that_fails_leaves_memory_and_honest_gaps(tmp_path: Path, moment: str) -> None:
    file = tmp_path / "state.db"
    if moment == "before":
        file.mkdir()
    async with event_store(database=file, memory_bytes=100_000) as store:
        log = store.open_log()
        if moment == "later":
            log.append(log.general, bytes(LARGE_BYTES))
            await until(lambda: store._on_their_way == 0)
            other = sqlite3.connect(file)
            other.execute("DROP TABLE frames")
        stream = log.open_stream()
        log.append(stream, b"result", b"gone")
        for _ in range(4):
            for _ in range(50):
                log.append(stream, bytes(1000))
            await until(lambda: store._on_their_way == 0)
        assert store._database is None
        assert store._resident_bytes <= 100_000
        events, lost = await everything(log, event_id(stream, 0))
        assert (len(events) + lost, events[0][1]) == (201, b"result")
        assert lost
        consistent(store, [log])


def test_a_store_that_is_closed_at_the_wrong_moment(tmp_path: Path) -> None:
    async def run() -> None:
        store = EventStore(EventOptions(database=tmp_path / "state.db"))
        log = store.open_log()
        log.append(log.general, bytes(LARGE_BYTES))
        await store.close()
        log.append(log.general, bytes(LARGE_BYTES))
        log.close()

    asyncio.run(run())
    assert stored(tmp_path / "state.db") == []


# -- everything at random
operation = st.tuples(st.integers(0, 3), st.sampled_from([0, 10, 400, 3000, LARGE_BYTES + 1]), st.booleans())


@settings(max_examples=60, deadline=None)
@given(st.lists(operation, max_size=80), st.booleans(), st.sampled_from([20_000, 300_000, PLENTY]))
def test_events_come_once_in_order_or_are_counted(
    operations: list[tuple[int, int, bool]], disk: bool, nbytes: int
) -> None:
    async def run(folder: str) -> None:
        database = Path(folder) / "state.db" if disk else None
        async with event_store(max_bytes=nbytes * 8, memory_bytes=nbytes // 2, database=database) as store:
            log = store.open_log()
            names = [log.general, *(log.open_stream() for _ in range(3))]
            sent: dict[str, list[tuple[bytes, bytes, bytes | None]]] = {name: [] for name in names}
            for number, (stream, size, owed) in enumerate(operations):
                frame, instead = b"%d " % number + bytes(size), b"gone" if owed else None
                sent[names[stream]].append((log.append(names[stream], frame, instead), frame, instead))
                if number % 7 == 0:
                    await asyncio.sleep(0)
            for name, events in sent.items():
                for start in range(len(events) + 1):
                    given, lost = await everything(log, event_id(name, start))
                    rest = events[start:]
                    assert len(given) + lost == len(rest)
                    whole = {identifier: (frame, instead) for identifier, frame, instead in rest}
                    assert [each for each in whole if each in dict(given)] == [identifier for identifier, _ in given]
                    assert all(frame in whole[identifier] for identifier, frame in given)
                    assert lost == 0 or nbytes != PLENTY
            consistent(store, [log])

    with TemporaryDirectory() as folder:
        asyncio.run(run(folder))
