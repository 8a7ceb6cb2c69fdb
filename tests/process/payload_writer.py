"""Writes payloads until a step of the file system is reached, and is killed there, before or after the step.

    python payload_writer.py FOLDER FIRST STRIDE before|after

A process of its own does that for each step, FIRST and every STRIDE-th after it, in `FOLDER/<step>`, until one comes
to its end. What it says goes to `FOLDER/<step>.said`: `<id> <sha256>` for each payload that was acknowledged, `- <id>`
for each that it is about to delete, and `done` at its end.
"""

import asyncio
import hashlib
import itertools
import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from polyplex.config.model import PayloadOptions
from polyplex.store import local_files, syncing
from polyplex.store.open_store import open_store

STEPS = (
    "open",
    "close",
    "write",
    "fstat",
    "fdatasync",
    "fsync",
    "fchmod",
    "rename",
    "mkdir",
    "unlink",
    "flock",
    "rmdir",
)
SIZES = (700, 1_200_000, 0, 2_500_000, 40_000)


def kill_at(step: int, *, after: bool) -> None:
    """Count the steps of the store, in whichever thread they are, and end at one of them. No clean-up runs."""
    counter, lock = itertools.count(1), threading.Lock()

    def counted(work: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: Any, **named: Any) -> Any:
            with lock:
                here = next(counter) == step
            if here and not after:
                os.kill(os.getpid(), signal.SIGKILL)
            try:
                return work(*arguments, **named)
            finally:
                if here:
                    os.kill(os.getpid(), signal.SIGKILL)

        return run

    class Counted:
        """A module, or `Path`, whose steps are counted."""

        def __init__(self, of: Any) -> None:
            self._of = of

        def __getattr__(self, name: str) -> Any:
            found = getattr(self._of, name)
            return counted(found) if name in STEPS else found

    for module in (local_files, syncing):
        module.os = Counted(os)  # type: ignore[attr-defined]
    local_files.fcntl = Counted(local_files.fcntl)  # type: ignore[assignment]
    syncing._fdatasync = counted(os.fdatasync)  # pyright: ignore[reportPrivateUsage, reportConstantRedefinition]
    for name in ("rename", "mkdir", "unlink", "rmdir"):
        setattr(Path, name, counted(getattr(Path, name)))


async def write(folder: Path) -> None:
    store = open_store(PayloadOptions(store=f"file:{folder}", max_bytes=3_000_000), folder)
    for number, size in enumerate(SIZES):
        data = os.urandom(size)
        async with store.writer("caller", "text/plain", origin="test") as writer:
            for start in range(0, size, 400_000):
                await writer.write(data[start : start + 400_000])
            if number == 1:
                continue  # given up
            payload = await writer.commit()
        say(f"{payload.id} {hashlib.sha256(data).hexdigest()}")
        if number == 2:
            say(f"- {payload.id}")
            await store.delete("caller", payload.id)
    await store.close()
    say("done")


def say(line: str) -> None:
    """A whole line at once, or nothing."""
    os.write(1, f"{line}\n".encode())


def killed(folder: Path, step: int, *, after: bool) -> bytes:
    """What was said by a process that was killed at that step."""
    said = folder / f"{step}.said"
    child = os.fork()  # this process has one thread
    if not child:
        os.dup2(os.open(said, os.O_WRONLY | os.O_CREAT), 1)
        kill_at(step, after=after)
        asyncio.run(write(folder / str(step)))
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if status not in (0, signal.SIGKILL):
        raise SystemExit(f"step {step} ended with {status}")
    return said.read_bytes()


if __name__ == "__main__":
    for number in range(int(sys.argv[2]), 1000, int(sys.argv[3])):
        if b"done" in killed(Path(sys.argv[1]), number, after=sys.argv[4] == "after"):
            break
