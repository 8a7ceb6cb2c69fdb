import sqlite3
import threading
from pathlib import Path

import pytest

from polyplex.store import usage
from polyplex.store.usage import Counts, UsageStore, read_usage


def test_counts_add_up_over_writes_and_restarts(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    for _ in range(2):
        store = UsageStore(path)
        store.add({("s", "t"): Counts(2, 100, 25, 7), ("s", "u"): Counts(1, 4, 1)})
        store.close()
    first, second = read_usage(path)
    assert (first.server, first.tool, first.counts) == ("s", "t", Counts(4, 200, 50, 14))
    assert second.counts == Counts(2, 8, 2)
    assert first.first <= first.last


def test_where_nothing_was_counted_nothing_is_made(tmp_path: Path) -> None:
    assert read_usage(tmp_path / "state.db") == []
    assert list(tmp_path.iterdir()) == []


def test_the_tools_called_longest_ago_make_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(usage, "MAX_ROWS", 3)
    now = iter(range(1, 100))
    monkeypatch.setattr(usage.time, "time", lambda: float(next(now)))
    store = UsageStore(None)
    for tool in "abcda":
        store.add({("s", tool): Counts(1)})
    assert [(each.tool, each.counts.calls) for each in store.all()] == [("a", 1), ("c", 1), ("d", 1)]


def test_processes_that_count_at_the_same_time_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "state.db"

    def count() -> None:
        store = UsageStore(path)
        for _ in range(20):
            store.add({("s", "t"): Counts(1, 10, 2)})
        store.close()

    UsageStore(path).close()
    threads = [threading.Thread(target=count) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert read_usage(path)[0].counts == Counts(60, 600, 120)


def test_a_write_that_fails_changes_nothing() -> None:
    store = UsageStore(None)
    store.add({("s", "t"): Counts(1)})
    with pytest.raises(OverflowError):
        store.add({("s", "t"): Counts(1), ("s", "u"): Counts(1 << 70)})
    assert [(each.tool, each.counts.calls) for each in store.all()] == [("t", 1)]


def test_a_file_that_is_no_database_is_an_error_of_the_database(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    path.write_bytes(b"no database at all, but long enough to be taken for one" * 20)
    with pytest.raises(sqlite3.DatabaseError):
        read_usage(path)
