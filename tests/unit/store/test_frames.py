import sqlite3
import time
from pathlib import Path

from polyplex.store.frames import FrameStore


def rows(file: Path) -> list[tuple[int, bytes]]:
    database = sqlite3.connect(file)
    try:
        return database.execute("SELECT id, frame FROM frames ORDER BY id").fetchall()
    finally:
        database.close()


def test_frames_are_written_read_and_deleted_in_the_order_of_the_calls(tmp_path: Path) -> None:
    store = FrameStore(tmp_path / "state.db")
    assert store.write([(number, b"%d" % number) for number in range(1200)], 60).result()
    assert store.read(range(1300)).result() == {number: b"%d" % number for number in range(1200)}
    store.delete(range(1199))
    assert store.read(range(1300)).result() == {1199: b"1199"}
    store.close().result()


def test_nothing_is_left_of_a_process_that_ends_and_all_of_another(tmp_path: Path) -> None:
    file = tmp_path / "state.db"
    one, other = FrameStore(file), FrameStore(file)
    one.write([(1, b"one")], 60)
    other.write([(1, b"other")], 60).result()
    one.close().result()
    assert [frame for _, frame in rows(file)] == [b"other"]
    assert other.read([1]).result() == {1: b"other"}
    other.close().result()
    assert rows(file) == []


def test_what_a_killed_process_left_behind_is_deleted_once_it_expired(tmp_path: Path) -> None:
    file = tmp_path / "state.db"
    killed = FrameStore(file)
    killed.write([(1, b"old")], -1).result()
    killed.write([(2, b"young")], 3600).result()
    store = FrameStore(file)
    store.sweep()
    assert store.read([1, 2]).result() == {}
    assert [frame for _, frame in rows(file)] == [b"young"]
    store.close().result()
    killed.close().result()


def test_nothing_is_opened_before_the_first_frame(tmp_path: Path) -> None:
    file = tmp_path / "new" / "state.db"
    store = FrameStore(file)
    store.sweep()
    store.delete([1])
    store.close().result()
    assert not file.parent.exists()


def test_a_database_that_cannot_be_used_takes_and_gives_nothing(tmp_path: Path) -> None:
    file = tmp_path / "state.db"
    file.write_bytes(b"this is no database, although it is long enough to be one" * 40)
    store = FrameStore(file)
    assert not store.write([(1, b"x")], 60).result()
    assert store.read([1]).result() == {}
    store.sweep()
    store.close().result()


def test_a_batch_that_fails_leaves_nothing_half_written(tmp_path: Path) -> None:
    store = FrameStore(tmp_path / "state.db")
    assert store.write([(2, b"2")], 60).result()
    assert not store.write([(1, b"1"), (2, b"again")], time.time()).result()
    assert store.read([1, 2]).result() == {2: b"2"}
    store.close().result()
