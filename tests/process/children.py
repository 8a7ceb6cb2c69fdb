"""Children for the tests of stdio: Python scripts, and what is recorded of them."""

import asyncio
import os
import signal
import sys
import textwrap
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from polyplex.transports.stdio import ChildProcess, ExitStatus

DEADLINE_SECONDS = 20.0
ECHO = """
    for line in sys.stdin.buffer:
        sys.stdout.buffer.write(line)
        sys.stdout.buffer.flush()
"""


def write_script(directory: Path, source: str, name: str = "child.py") -> Path:
    """Write a script; it gets `os`, `signal`, `subprocess`, `sys`, `time` and `say(text)`, which prints and flushes."""
    head = """
        import os, signal, subprocess, sys, time
        def say(text):
            sys.stdout.write(str(text) + "\\n")
            sys.stdout.flush()
    """
    path = directory / name
    path.write_text(textwrap.dedent(head) + textwrap.dedent(source), encoding="utf-8")
    return path


class Recorder:
    """A child and everything that came of it."""

    def __init__(self, script: Path, *, max_frame_bytes: int = 256 << 20, args: tuple[str, ...] = ()) -> None:
        self.frames: list[bytes] = []
        self.exits: list[ExitStatus] = []
        self.stderr_lines: list[str] = []
        self.changed = asyncio.Event()
        self.child = ChildProcess(
            "test",
            sys.executable,
            ["-S", str(script), *args],
            {"PATH": os.environ["PATH"]},
            str(script.parent),
            self._on_frame,
            self._on_exit,
            max_frame_bytes,
            self.stderr_lines.append,
        )

    def _on_frame(self, frame: bytes) -> None:
        assert not self.exits, "a frame after the exit"
        self.frames.append(frame)
        self.changed.set()

    def _on_exit(self, status: ExitStatus) -> None:
        self.exits.append(status)
        self.changed.set()

    async def until(self, condition: Callable[[], object]) -> None:
        """Wait for frames or the exit until `condition` holds."""
        async with asyncio.timeout(DEADLINE_SECONDS):
            while not condition():
                self.changed.clear()
                await self.changed.wait()

    async def frames_until(self, count: int) -> list[bytes]:
        """Wait for `count` frames."""
        await self.until(lambda: len(self.frames) >= count or self.exits)
        return self.frames

    async def exit(self) -> ExitStatus:
        """Wait for the exit."""
        await self.until(lambda: self.exits)
        return self.exits[0]

    async def stop(self, grace: float = 5.0) -> None:
        """Stop the child; its exit must then have been reported once."""
        async with asyncio.timeout(DEADLINE_SECONDS):
            await self.child.stop(grace)
        assert len(self.exits) == 1


@asynccontextmanager
async def running(
    script: Path, *, max_frame_bytes: int = 256 << 20, args: tuple[str, ...] = ()
) -> AsyncGenerator[Recorder]:
    """Start a child, and see that nothing of it is left."""
    recorder = Recorder(script, max_frame_bytes=max_frame_bytes, args=args)
    await recorder.child.start()
    try:
        yield recorder
    finally:
        recorder.child.kill()
        await recorder.stop()


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and waits to be collected does not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    try:
        state = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0]
    except OSError:
        return Path("/proc/self").exists() is False
    return state not in (b"Z", b"X")


async def gone(*pids: int) -> None:
    """Wait until the processes have ended; fails, and kills them, when they do not."""
    try:
        async with asyncio.timeout(DEADLINE_SECONDS):
            while any(map(is_alive, pids)):  # noqa: ASYNC110 - nobody tells of processes that are not our own
                await asyncio.sleep(0.02)
    except TimeoutError:
        left = [pid for pid in pids if is_alive(pid)]
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        raise AssertionError(f"still alive: {left}") from None
