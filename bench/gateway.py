"""Starting polyplex for the measurements of memory, endurance and start-up, and judging figures against limits."""

import contextlib
import shlex
import subprocess
import sys
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from client import HttpClient, ready
from processes import BenchError, free_port, log_tail, private_environment, say, start, stop


def polyplex_command(given: str) -> list[str]:
    """The command line that is polyplex: `given`, or the one of this interpreter."""
    return shlex.split(given) if given else [sys.executable, "-m", "polyplex"]


@dataclass(frozen=True, slots=True)
class Running:
    """A polyplex that serves HTTP."""

    process: subprocess.Popen[bytes]
    port: int
    client: HttpClient

    @property
    def pid(self) -> int:
        """Its process id."""
        return self.process.pid


@contextlib.asynccontextmanager
async def serving(polyplex: list[str], config: str, name: str, tools: int) -> AsyncGenerator[Running, None]:
    """polyplex with a config, from when it lists that many tools. Raises BenchError when it never does."""
    port = free_port()
    command = [*polyplex, "serve", "--config", config, "--http", f"127.0.0.1:{port}"]
    process = start(command, name, private_environment(name))
    try:
        try:
            client = await ready(port, tools, process)
        except TimeoutError as error:
            raise BenchError(f"polyplex did not list {tools} tools: {error}\n{log_tail(name)}") from error
        yield Running(process, port, client)
        client.drop()
    finally:
        stop(process)


@dataclass(slots=True)
class Verdict:
    """Collects figures with their limits."""

    met: bool = True
    rows: list[dict[str, object]] = field(default_factory=lambda: list[dict[str, object]]())

    def at_most(self, name: str, value: float, limit: float, unit: str = "") -> None:
        """Judge a figure that must not pass its limit, and print it."""
        good = value <= limit
        self.met &= good
        self.rows.append({"name": name, "value": value, "limit": limit, "unit": unit, "met": good})
        say(f"{'met' if good else 'MISSED':>7}  {value:,.2f} {unit} (at most {limit:,.2f})  {name}")

    def conclude(self, path: str | None) -> int:
        """Write all figures to `path` where there is one; returns the exit status."""
        if path:
            Path(path).write_bytes(msgspec.json.format(msgspec.json.encode(self.rows)))
        return 0 if self.met else 1
