"""The upstreams of an endurance run, two over stdio and two over HTTP, and their deaths by SIGKILL."""

import asyncio
import os
import shutil
import signal
import subprocess
from types import TracebackType

from client import ready
from processes import CACHE, descendants, free_port, program, start, stop
from soak_ledger import Ledger


class Upstreams:
    """polyplex starts the stdio ones, each under a program name of its own; the HTTP ones are started here."""

    def __init__(self) -> None:
        self.killed = 0
        self.pipes: dict[str, str] = {}
        self.ports = {"neta": free_port(), "netb": free_port()}
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        directory = CACHE / "soak"
        directory.mkdir(parents=True, exist_ok=True)
        for name in ("pipea", "pipeb"):
            (directory / f"upstream-{name}").unlink(missing_ok=True)
            self.pipes[name] = str(shutil.copy2(program("upstream"), directory / f"upstream-{name}"))

    def __enter__(self) -> "Upstreams":
        for name in self.ports:
            self.start_http(name)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in self.processes.values():
            stop(process)

    def start_http(self, name: str) -> None:
        """Start one that knows no session of its predecessor."""
        command = [program("upstream"), "--port", str(self.ports[name]), "--strict"]
        self.processes[name] = start(command, f"soak-{name}")

    async def kill(self, number: int, gateway_pid: int, ledger: Ledger) -> None:
        """Kill the next one in turn; an HTTP one comes back at once, a stdio one when polyplex starts it again."""
        name = [*self.pipes, *self.ports][number % (len(self.pipes) + len(self.ports))]
        if name in self.ports:
            ledger.note_kill(name)
            self.processes[name].send_signal(signal.SIGKILL)
            self.processes[name].wait()
            self.start_http(name)
            (await ready(self.ports[name], 2, self.processes[name], seconds=10)).drop()
            self.killed += 1
            return
        for _ in range(500):
            found = [
                pid
                for pid, (state, text) in descendants(gateway_pid).items()
                if state != "Z" and f"upstream-{name} " in text
            ]
            if found:
                ledger.note_kill(name)
                os.kill(found[0], signal.SIGKILL)
                self.killed += 1
                return
            await asyncio.sleep(0.05)
