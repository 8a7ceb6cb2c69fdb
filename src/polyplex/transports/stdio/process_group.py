"""The end of a child and of its process group: noticed, collected, signalled as a whole, watched by the reaper."""

import asyncio
import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from polyplex.transports.stdio.reaper import current_reaper, read_start_time, signal_group

TERMINATE_SECONDS: Final = 2.0
KILL_SECONDS: Final = 0.5
POLL_SECONDS: Final = 0.01
MAX_POLL_SECONDS: Final = 0.2
SCAN_AFTER_SECONDS: Final = 0.05
COLLECT_SECONDS: Final = 0.5


class ExitReason(StrEnum):
    """Why a child is no longer there."""

    EXITED = "exited"
    SIGNALLED = "signalled"
    CLOSED_STDOUT = "closed stdout"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class ExitStatus:
    """How a child ended. `returncode` is negative for a signal, None where it is not known."""

    reason: ExitReason
    returncode: int | None

    def __str__(self) -> str:
        match self.reason:
            case ExitReason.STOPPED:
                return "was stopped"
            case ExitReason.CLOSED_STDOUT:
                return "closed its stdout without ending, and was stopped"
            case ExitReason.SIGNALLED:
                return f"was ended by {_signal_name(-(self.returncode or 0))}"
            case ExitReason.EXITED:
                return f"exited with code {self.returncode}"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


class ExitWatch:
    """Tells the event loop when a child has ended, and collects it: no zombie stays.

    Not left to the loop: uvloop lets children inherit descriptors they must not have, the plain loop spends a thread
    on each child. Here it is a descriptor of the process where the system has them (Linux 5.3), a thread elsewhere.
    """

    def __init__(self, process: subprocess.Popen[bytes], on_exit: Callable[[], None]) -> None:
        self._process, self._on_exit = process, on_exit
        self._loop = asyncio.get_running_loop()
        self._fd = -1
        try:
            self._fd = os.pidfd_open(process.pid)
        except (AttributeError, OSError):
            threading.Thread(target=self._wait, name=f"wait for {process.pid}", daemon=True).start()
        else:
            self._loop.add_reader(self._fd, self._collect)

    def close(self) -> None:
        """Watch no more, and collect the child if it has ended or is about to."""
        if self._fd >= 0:
            self._loop.remove_reader(self._fd)
            os.close(self._fd)
            self._fd = -1
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(COLLECT_SECONDS)

    def _collect(self) -> None:
        self.close()
        self._on_exit()

    def _wait(self) -> None:
        self._process.wait()
        with contextlib.suppress(RuntimeError):  # the loop has been closed
            self._loop.call_soon_threadsafe(self._on_exit)


class ProcessGroup:
    """The group led by child `pid`, which has just been started in a session of its own."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._start_time = read_start_time(pid)
        self._leader_collected = False
        self._ended = False
        current_reaper().watch(pid)

    def signal(self, number: int) -> bool:
        """Send signal `number` (0: only look) to all of the group; False when none is left."""
        if self._ended:
            return False
        if self._leader_collected:
            _collect_orphans(self.pid)
        return signal_group(self.pid, number, self._start_time)

    async def end(self) -> None:
        """End whatever the leader, which has been collected, has left behind."""
        self._leader_collected = True
        if self.signal(signal.SIGTERM) and not await self._gone_within(TERMINATE_SECONDS):
            self.signal(signal.SIGKILL)
            await self._gone_within(KILL_SECONDS)
        self.forget()

    def forget(self) -> None:
        """Never signal the group again: its id may soon be that of another."""
        self._ended = True
        current_reaper().forget(self.pid)

    async def _gone_within(self, seconds: float) -> bool:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + seconds
        pause = POLL_SECONDS
        while self.signal(0):
            if pause > SCAN_AFTER_SECONDS and only_zombies(self.pid):
                return True
            if loop.time() > deadline:
                return False
            await asyncio.sleep(pause)
            pause = min(2 * pause, MAX_POLL_SECONDS)
        return True


def only_zombies(group: int) -> bool:
    """Whether all that is left of a group has ended and waits for a process 1 that does not care to collect it.

    A look at every process of the system, so for the rare group that does not go. False where there is no /proc.
    """
    states: set[bytes] = set()
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, IndexError):
            state, _, member_of = entry.read_bytes().rpartition(b")")[2].split()[:3]
            if int(member_of) == group:
                states.add(state)
    return bool(states) and states <= {b"Z", b"X"}


def _collect_orphans(group: int) -> None:
    """Collect the ended processes of a group that are ours by inheritance: where we are process 1 of a container."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-group, os.WNOHANG) != (0, 0):
            pass
