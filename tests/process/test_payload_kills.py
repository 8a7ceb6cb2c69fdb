"""kill -9 at every step of writing payloads: then none is half there, and no acknowledged one lost."""

import asyncio
import hashlib
import subprocess
import sys
from pathlib import Path

import pytest

from polyplex.config.model import PayloadOptions
from polyplex.errors import PayloadMissing
from polyplex.store.open_store import open_store

WRITER = Path(__file__).with_name("payload_writer.py")
LANES = 4


def files_in(folder: Path) -> list[Path]:
    """All files in a folder and below."""
    return [path for path in folder.rglob("*") if path.is_file()]


async def check(folder: Path, said: list[str]) -> None:
    """Restart, and look at all that is there."""
    store = open_store(PayloadOptions(store=f"file:{folder}"), folder)
    acknowledged = dict(line.split() for line in said if line != "done" and not line.startswith("-"))
    deleted = {line.split()[1] for line in said if line.startswith("-")}
    await store.sweep()
    names = {path.name for path in files_in(folder)}
    assert not [name for name in names if name.endswith(".part")]
    for identifier in names:
        async with store.opened("caller", identifier) as opened:
            data = b"".join([chunk async for chunk in opened.chunks()])
        assert (
            hashlib.sha256(data).hexdigest()
            == opened.payload.sha256
            == acknowledged.get(identifier, opened.payload.sha256)
        )
        assert len(data) == opened.payload.size
    # The oldest make room where the limit is reached; everything younger than one that is there must be there.
    lost = [identifier for identifier in acknowledged if identifier not in names and identifier not in deleted]
    kept = [identifier for identifier in acknowledged if identifier in names]
    order = list(acknowledged)
    assert all(order.index(gone) < order.index(there) for gone in lost for there in kept)
    assert len(lost) <= 3
    for identifier in lost:
        with pytest.raises(PayloadMissing):
            await store.stat("caller", identifier)
    await store.put("caller", b"and it goes on")
    await store.close()


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("lane", range(LANES))
async def test_a_kill_at_any_step_leaves_whole_payloads(tmp_path: Path, when: str, lane: int) -> None:
    """Each lane takes every fourth step."""
    command = [sys.executable, str(WRITER), str(tmp_path), str(lane + 1), str(LANES), when]
    process = await asyncio.create_subprocess_exec(*command, stderr=subprocess.PIPE)
    _, failed = await process.communicate()
    assert process.returncode == 0, failed.decode()
    runs = sorted((path for path in files_in(tmp_path) if path.suffix == ".said"), key=lambda path: int(path.stem))
    assert len(runs) > 10
    for run in runs:
        await check(run.with_suffix(""), run.read_text().splitlines())
    assert "done" in runs[-1].read_text()
