import logging
from pathlib import Path

import pytest

from polyplex.gateway import usage
from polyplex.gateway.usage import Usage
from polyplex.store.usage import Counts, read_usage
from tests.interaction.stage import eventually


async def test_what_was_counted_is_kept_when_the_gateway_stops(tmp_path: Path) -> None:
    counted = Usage(tmp_path / "state.db")
    counted.add("s", "t", 1000, 40, offloaded=800)
    counted.add("s", "t", 400)
    await counted.stop()
    assert [each.counts for each in read_usage(tmp_path / "state.db")] == [Counts(2, 1400, 140, 800)]


async def test_it_is_written_in_between_and_goes_on_from_there(tmp_path: Path) -> None:
    counted = Usage(tmp_path / "state.db")
    counted.add("s", "t", 8)
    await counted.flush()
    assert read_usage(tmp_path / "state.db")[0].counts.calls == 1
    counted.add("s", "t", 8)
    await counted.stop()
    assert read_usage(tmp_path / "state.db")[0].counts.calls == 2


async def test_the_timer_writes_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(usage, "FLUSH_SECONDS", 0.0)
    counted = Usage(tmp_path / "state.db")
    counted.add("s", "t", 8)
    await eventually(lambda: read_usage(tmp_path / "state.db"))
    await counted.stop()


def is_empty(folder: Path) -> bool:
    return not list(folder.iterdir())


async def test_a_process_without_calls_opens_nothing(tmp_path: Path) -> None:
    counted = Usage(tmp_path / "state.db")
    await counted.stop()
    counted.add("s", "late", 8)
    await counted.stop()
    assert is_empty(tmp_path)


async def test_a_database_that_fails_is_said_once_and_disturbs_no_call(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("no folder", encoding="utf-8")
    counted = Usage(tmp_path / "file" / "state.db")
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            counted.add("s", "t", 8)
            await counted.flush()
        await counted.stop()
    assert len(caplog.records) == 1
    assert "count what results cost" in caplog.text


async def test_what_waits_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(usage, "MAX_WAITING", 2)
    counted = Usage(tmp_path / "state.db")
    for name in "abcd":
        counted.add("s", name, 8)
    await counted.stop()
    assert [each.tool for each in read_usage(tmp_path / "state.db")] == ["a", "b"]
