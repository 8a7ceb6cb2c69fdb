"""Building the C programs, starting processes on one core, reading their memory, and ending them."""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
CACHE = HERE.parent / ".cache" / "bench"
SOURCES = {"upstream": ["upstream.c"], "loader": ["loader.c", "loader_http.c", "loader_stdio.c"]}
HEADERS = ["wire.h", "loader.h"]


class BenchError(Exception):
    """The benchmark cannot go on; the message says why and what to do."""


def say(text: str = "") -> None:
    """Print one line at once."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def end_on_sigterm() -> None:
    """Let SIGTERM end this program as Ctrl-C does, so that what it has started is stopped."""

    def interrupt(_signal: int, _frame: object) -> None:
        os.kill(os.getpid(), signal.SIGINT)

    signal.signal(signal.SIGTERM, interrupt)


def build() -> None:
    """Compile the loader and the upstream into CACHE where they are older than their sources."""
    CACHE.mkdir(parents=True, exist_ok=True)
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    for name, sources in SOURCES.items():
        program = CACHE / name
        newest = max((HERE / source).stat().st_mtime for source in [*sources, *HEADERS])
        if program.exists() and program.stat().st_mtime >= newest:
            continue
        if compiler is None:
            raise BenchError(
                "no C compiler (cc, gcc or clang) on PATH; on Debian or Ubuntu: apt-get install gcc libc6-dev"
            )
        command = [compiler, "-O2", "-Wall", "-o", str(program), *(str(HERE / source) for source in sources)]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.returncode:
            raise BenchError(f"{' '.join(command)} failed:\n{result.stderr}")


def program(name: str) -> str:
    """The path of a compiled program."""
    return str(CACHE / name)


def free_port() -> int:
    """A TCP port on 127.0.0.1 that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def private_environment(name: str) -> dict[str, str]:
    """An environment with new state, cache and config directories: nothing of the user is read or written."""
    root = CACHE / "state" / name
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir(parents=True)
    own = {f"XDG_{kind}_HOME": str(root / kind.lower()) for kind in ("STATE", "CACHE", "CONFIG", "DATA")}
    return {**os.environ, **own, "HOME": str(root)}


@dataclass(frozen=True, slots=True)
class Pinning:
    """How measured processes are run: on which cores, and at real-time priority or not."""

    cores: bool
    realtime: bool

    @classmethod
    def detect(cls, realtime: bool) -> "Pinning":
        """Pin when there are two cores to pin to; real-time priority only when asked for and permitted."""
        cores = shutil.which("taskset") is not None and (os.cpu_count() or 1) >= 2
        permitted = (
            realtime
            and shutil.which("chrt") is not None
            and not subprocess.call(["chrt", "-f", "1", "true"], stderr=subprocess.DEVNULL)
        )
        return cls(cores, permitted)

    def on(self, core: int, command: Sequence[str], priority: int = 1) -> list[str]:
        """`command`, run on `core` only."""
        prefix = ["chrt", "-f", str(priority)] if self.realtime else []
        return [*prefix, *(["taskset", "-c", str(core)] if self.cores else []), *command]


def start(command: Sequence[str], log: str, environment: dict[str, str] | None = None) -> subprocess.Popen[bytes]:
    """Start a process in a group of its own, its output in CACHE/logs."""
    (CACHE / "logs").mkdir(parents=True, exist_ok=True)
    with (CACHE / "logs" / f"{log}.log").open("ab") as output:
        return subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True, env=environment
        )


def stop(process: subprocess.Popen[bytes], patience: float = 5.0) -> int:
    """SIGTERM, then SIGKILL for the whole group; answers the exit status."""
    with contextlib.suppress(ProcessLookupError):
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(patience)
        os.killpg(process.pid, signal.SIGKILL)
    return process.wait()


@contextlib.contextmanager
def running(
    command: Sequence[str], log: str, environment: dict[str, str] | None = None
) -> Generator[subprocess.Popen[bytes], None, None]:
    """A process that runs as long as the block."""
    process = start(command, log, environment)
    try:
        yield process
    finally:
        stop(process)


def log_tail(log: str, size: int = 600) -> str:
    """The end of what a started process has printed."""
    path = CACHE / "logs" / f"{log}.log"
    return path.read_bytes()[-size:].decode(errors="replace") if path.exists() else ""


def memory_kb(pid: int) -> dict[str, int]:
    """Rss, Pss and the peak (Hwm) of one process in KB."""
    figures: dict[str, int] = {}
    for file, keys in (("smaps_rollup", ("Rss", "Pss")), ("status", ("VmHWM",))):
        for line in Path(f"/proc/{pid}/{file}").read_text().splitlines():
            key = line.split(":")[0]
            if key in keys:
                figures[key.removeprefix("Vm").capitalize()] = int(line.split()[1])
    return figures


def reset_peak(pid: int) -> None:
    """Let the peak of a process start again from its present size."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")


def open_files(pid: int) -> int:
    """The number of file descriptors of a process."""
    return sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())


def descendants(pid: int) -> dict[int, tuple[str, str]]:
    """All living descendants: pid -> (state letter, command line)."""
    parents: dict[int, tuple[int, str]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                parents[int(entry.name)] = (int(fields[1]), fields[0])
    found: dict[int, tuple[str, str]] = {}
    ring = {pid}
    while ring:
        ring = {child for child, (parent, _) in parents.items() if parent in ring}
        for child in ring:
            with contextlib.suppress(OSError):
                text = Path(f"/proc/{child}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                found[child] = (parents[child][1], text.strip())
    return found


def wait_gone(pids: set[int], seconds: float) -> set[int]:
    """Wait until none of the processes lives; answers those that still do."""
    end = time.monotonic() + seconds
    left = set(pids)
    while left and time.monotonic() < end:
        left = {pid for pid in left if Path(f"/proc/{pid}").exists()}
        time.sleep(0.02)
    return left
