"""Several processes in one payload folder, each sweeping while the others write: nobody loses anything."""

import asyncio
import hashlib
import subprocess
import sys
from pathlib import Path

import pytest

from polyplex.config.model import PayloadOptions
from polyplex.errors import PayloadMissing
from polyplex.store.open_store import open_store

NEIGHBOUR = Path(__file__).with_name("payload_neighbour.py")


async def run(folder: Path, caller: str) -> dict[str, str]:
    """What one process leaves behind: ids and hashes."""
    command = [sys.executable, str(NEIGHBOUR), str(folder), caller, "24"]
    process = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    said, failed = await process.communicate()
    assert process.returncode == 0, failed.decode()
    return dict(line.split() for line in said.decode().splitlines())


async def test_processes_share_a_folder(tmp_path: Path) -> None:
    """Two of them write for the same caller, whose folder comes and goes."""
    callers = ("me", "you", "me")
    left = await asyncio.gather(*(run(tmp_path, caller) for caller in callers))
    store = open_store(PayloadOptions(store=f"file:{tmp_path}"), tmp_path)
    assert await store.sweep() == 0
    for caller, payloads in zip(callers, left, strict=True):
        assert len(payloads) == 12
        other = "you" if caller == "me" else "me"
        for identifier, digest in payloads.items():
            async with store.opened(caller, identifier) as opened:
                data = b"".join([chunk async for chunk in opened.chunks()])
            assert hashlib.sha256(data).hexdigest() == digest
            with pytest.raises(PayloadMissing):
                await store.stat(other, identifier)
    await store.close()
