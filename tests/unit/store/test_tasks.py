import sqlite3
from pathlib import Path

import pytest

from polyplex.store import tasks
from polyplex.store.tasks import StoreFullError, TaskStore


def add(store: TaskStore, identifier: str, caller: str = "me", seconds: float | None = 60, **more: bytes) -> None:
    store.add(identifier, caller, "server", f"local of {identifier}", b"{}", seconds=seconds, **more)


def test_a_task_is_found_by_its_id_and_by_its_servers_id(tmp_path: Path) -> None:
    store = TaskStore(tmp_path / "state.db")
    add(store, "one", result=b"[1]")
    known = store.get("one")
    assert known is not None
    assert (known.caller, known.server, known.local, known.held, known.result) == (
        "me", "server", "local of one", True, b"[1]",
    )  # fmt: skip
    assert store.find("server", "local of one") == store.find("server", "local of one", "me") == known
    assert store.find("server", "local of one", "you") is None
    assert store.get("two") is None


def test_what_was_added_is_there_after_a_restart(tmp_path: Path) -> None:
    first = TaskStore(tmp_path / "state.db")
    add(first, "one")
    first.close()
    assert TaskStore(tmp_path / "state.db").get("one") is not None


def test_each_caller_has_its_own_pages_in_the_order_of_creation() -> None:
    store = TaskStore(None)
    for number in range(5):
        add(store, f"mine {number}")
        add(store, f"yours {number}", "you")
    first = store.page("me", 0, 3)
    rest = store.page("me", first[-1].number, 3)
    assert [each.id for each in (*first, *rest)] == [f"mine {number}" for number in range(5)]


def test_what_has_expired_is_gone() -> None:
    store = TaskStore(None)
    add(store, "old", seconds=0)
    add(store, "kept", seconds=None)
    assert store.get("old") is None
    assert [each.id for each in store.page("me", 0, 9)] == ["kept"]


def test_a_task_is_updated_cancelled_and_forgotten() -> None:
    store = TaskStore(None)
    add(store, "one")
    store.update("one", b'{"a":1}')
    known = store.get("one")
    assert known is not None
    assert (known.task, known.cancelled) == (b'{"a":1}', False)
    store.cancel("one", b'{"a":2}')
    known = store.get("one")
    assert known is not None
    assert (known.task, known.cancelled) == (b'{"a":2}', True)
    store.forget("one")
    assert store.get("one") is None


def test_results_that_are_held_have_a_limit_for_each_caller_and_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "MAX_HELD_PER_CALLER", 2)
    monkeypatch.setattr(tasks, "MAX_HELD_BYTES", 10)
    store = TaskStore(None)
    add(store, "one", result=b"12345")
    with pytest.raises(StoreFullError):
        add(store, "large", "you", result=b"123456")
    add(store, "two", result=b"1")
    with pytest.raises(StoreFullError):
        add(store, "three", result=b"1")
    add(store, "three", "you", result=b"1")
    add(store, "no result")


def test_the_oldest_make_room_but_never_a_held_result(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tasks, "MAX_TASKS", 3)
    monkeypatch.setattr(tasks, "SWEEP_SECONDS", 0.0)
    store = TaskStore(None)
    add(store, "held", result=b"1")
    for number in range(6):
        add(store, f"{number}")
    assert [each.id for each in store.page("me", 0, 99)] == ["held", "3", "4", "5"]


def test_a_database_that_fails_says_so(tmp_path: Path) -> None:
    file = tmp_path / "state.db"
    file.write_bytes(b"no database at all, but a text that is long enough to be looked at" * 20)
    with pytest.raises(sqlite3.Error):
        TaskStore(file)
