"""Speed of polyplex as shares of nginx, of a direct connection, and as multiples of other gateways, all in one run.

Every round of a cell measures each front right after a direct connection, so that both see the same machine; figures
are medians of per-round ratios. The gateway has core 1 for itself, loader and upstream share core 0; for the direct
figure the upstream has core 1. Run it on a machine that does nothing else.
"""

import argparse
import asyncio
import contextlib
import subprocess
import sys
import time
from collections.abc import Generator
from dataclasses import asdict, dataclass
from pathlib import Path

import msgspec

import report
from client import Refused, WrongAnswer, ready
from fronts import FRONTS, Front, Site, make_site
from processes import (
    BenchError,
    Pinning,
    build,
    end_on_sigterm,
    free_port,
    log_tail,
    memory_kb,
    private_environment,
    program,
    running,
    say,
    start,
    stop,
)


@dataclass(frozen=True, slots=True)
class Cell:
    """One load: `kb` of 0 is the small echo of 100 characters."""

    name: str
    kb: int
    width: int
    seconds: float

    def options(self) -> list[str]:
        """The loader's options for this load."""
        if self.kb:
            arguments = f'{{"kb":{self.kb}}}'
            return [
                "--tool",
                "blob",
                "--arguments",
                arguments,
                "--at-least",
                str(self.kb << 10),
                "--width",
                str(self.width),
            ]
        text = "m" * 100
        return [
            "--tool",
            "echo",
            "--arguments",
            f'{{"message":"{text}"}}',
            "--expects",
            text,
            "--width",
            str(self.width),
        ]


CELLS = [
    Cell("small c1", 0, 1, 1.0),
    Cell("small c16", 0, 16, 1.0),
    Cell("small c64", 0, 64, 1.0),
    Cell("10 KB c1", 10, 1, 0.7),
    Cell("500 KB c1", 500, 1, 1.0),
    Cell("5 MB c1", 5120, 1, 2.0),
]


@dataclass(frozen=True, slots=True)
class Started:
    """A front that is up: how the loader reaches it, and its process when it has one of its own."""

    front: Front
    target: list[str]  # the loader's first arguments, or the command after its --
    process: subprocess.Popen[bytes] | None


def load(site: Site, side: str, era: str, target: list[str], cell: Cell, seconds: float) -> dict[str, float]:
    """One run of the loader. Raises BenchError when it failed or saw a wrong reply."""
    options = [*cell.options(), "--era", era, "--seconds", f"{seconds:.2f}", "--warm", "0.25"]
    arguments = ["http", target[0], *options] if side == "http" else ["stdio", *options, "--", *target]
    command = site.pinning.on(0, [program("loader"), *arguments])
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=seconds + 40)
    except subprocess.TimeoutExpired as error:
        raise BenchError(f"no figures after {seconds + 40:.0f} s") from error
    if done.returncode or not done.stdout:
        raise BenchError(done.stderr[-400:] or f"loader ended with {done.returncode}")
    figures = msgspec.json.decode(done.stdout)
    if not figures["calls"] and not figures["errors"]:
        raise BenchError(f"no call was answered in the {seconds:.1f} s that count")
    if figures["errors"]:
        raise BenchError(f"{figures['errors']} wrong replies among {figures['calls']} right ones: {figures['error']}")
    return figures


def start_front(site: Site, front: Front) -> Started:
    """Start a gateway and wait until it answers. Raises BenchError."""
    port = free_port()
    command = site.pinning.on(1, front.make(site, port))
    log = front.name.replace(" ", "-").replace(">", "")
    environment = private_environment(log)
    if front.side == "stdio":
        settings = [f"{key}={value}" for key, value in environment.items() if key == "HOME" or key.startswith("XDG_")]
        return Started(front, ["env", *settings, *command], None)
    began = time.monotonic()
    process = start(command, log, environment)
    try:
        asyncio.run(probe(port, process))
    except (TimeoutError, OSError, Refused, WrongAnswer) as error:
        stop(process)
        raise BenchError(f"did not answer: {error!r}\n{log_tail(log)}") from error
    say(f"{front.name}: ready after {time.monotonic() - began:.1f} s, {memory_kb(process.pid)['Pss'] / 1024:.0f} MB")
    return Started(front, [f"http://127.0.0.1:{port}/mcp"], process)


async def probe(port: int, process: subprocess.Popen[bytes]) -> None:
    """Wait until the endpoint lists the upstream's two tools."""
    (await ready(port, 2, process)).drop()


@contextlib.contextmanager
def started_fronts(site: Site, wanted: list[Front]) -> Generator[list[Started], None, None]:
    """All fronts that can be started; the others are named with the reason."""
    up: list[Started] = []
    try:
        for front in wanted:
            try:
                up.append(start_front(site, front))
            except BenchError as error:
                say(f"{front.name}: skipped: {error}")
        yield up
    finally:
        for one in up:
            if one.process is not None:
                stop(one.process)


def measure_cell(site: Site, up: list[Started], cell: Cell, rounds: int, scale: float) -> report.Rounds:
    """Rounds of (direct, front) for every front; a front that fails is left out of the rounds that follow."""
    direct_targets = {
        "http": [f"http://127.0.0.1:{site.direct_port}/mcp"],
        "stdio": site.pinning.on(1, [program("upstream"), "--stdio"]),
    }
    measured: report.Rounds = []
    failed: set[str] = set()
    for number in range(rounds):
        figures: dict[str, report.Figures] = {}
        for one in up if number % 2 == 0 else up[::-1]:
            front = one.front
            if front.name in failed or cell.name in front.skipped_cells:
                continue
            try:
                direct = load(
                    site, front.side, front.era, direct_targets[front.side], cell, min(cell.seconds, 0.6) * scale
                )
                figures[front.name] = load(
                    site, front.side, front.era, one.target, cell, cell.seconds * scale * front.stretch
                )
                figures[report.direct_name(front.name)] = direct
            except BenchError as error:
                failed.add(front.name)
                say(f"{front.name}, {cell.name}: failed: {error}")
        measured.append(figures)
    return measured


def measure(arguments: argparse.Namespace) -> tuple[list[report.Row], list[report.Bar]]:
    """The whole run: its rows and what they say of the bars."""
    site = make_site(Pinning.detect(arguments.sched != "none"), arguments.polyplex)
    chosen = [
        front
        for front in FRONTS
        if (arguments.peers or not front.peer) and (not arguments.only or front.name in arguments.only.split(","))
    ]
    cells = [cell for cell in CELLS if not arguments.cells or cell.name in arguments.cells.split(",")]
    rounds, scale = (arguments.rounds or 2, 0.4) if arguments.quick else (arguments.rounds or 3, 1.0)
    upstream = program("upstream")
    rows: list[report.Row] = []
    with contextlib.ExitStack() as stack:
        stack.enter_context(running(site.pinning.on(1, [upstream, "--port", str(site.direct_port)], 2), "direct"))
        stack.enter_context(running(site.pinning.on(0, [upstream, "--port", str(site.behind_port)], 2), "behind"))
        for era, port in site.era_ports.items():
            command = [upstream, "--port", str(port), "--era", era]
            stack.enter_context(running(site.pinning.on(0, command, 2), f"{era}-only"))
        up = stack.enter_context(started_fronts(site, chosen))
        pinned, priority = site.pinning.cores, "real-time" if site.pinning.realtime else "usual"
        say(f"{rounds} rounds; {'pinned' if pinned else 'not pinned'}, {priority} priority")
        for cell in cells:
            measured = measure_cell(site, up, cell, rounds, scale * arguments.stretch)
            new = [row for one in up if (row := report.make_row(one.front, cell.name, measured))]
            say()
            report.print_table(new)
            rows += new
    return rows, report.bars(rows, [front.name for front in chosen], [cell.name for cell in cells])


def parse() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="2 short rounds: shows that all works, ratios are rough")
    parser.add_argument(
        "--peers", action="store_true", help="also mcp-proxy and FastMCP, installed under .cache/bench when missing"
    )
    parser.add_argument("--gate", action="store_true", help="exit with 1 when a bar is missed or was not measured")
    parser.add_argument("--json", metavar="FILE", help="write all rows and bars")
    parser.add_argument("--rounds", type=int, default=0, help="rounds per cell (3; 2 with --quick)")
    parser.add_argument("--stretch", type=float, default=1.0, help="multiply all measuring times")
    parser.add_argument(
        "--only", default="", help="fronts, by name, separated by commas: " + ", ".join(front.name for front in FRONTS)
    )
    parser.add_argument(
        "--cells", default="", help="cells, by name, separated by commas: " + ", ".join(cell.name for cell in CELLS)
    )
    parser.add_argument(
        "--sched",
        choices=["realtime", "none"],
        default="realtime",
        help="priority of measured processes, where permitted",
    )
    parser.add_argument("--polyplex", default="", help="another command to run as polyplex")
    return parser.parse_args()


def main() -> int:
    """Measure, print, judge; the exit status."""
    arguments = parse()
    end_on_sigterm()
    try:
        build()
        rows, demands = measure(arguments)
    except BenchError as error:
        say(f"skipped: {error}")
        return 1 if arguments.gate else 0
    say()
    met = report.print_bars(demands)
    if arguments.json:
        content = {"rows": [asdict(row) for row in rows], "bars": [{**asdict(bar), "met": bar.met} for bar in demands]}
        Path(arguments.json).write_bytes(msgspec.json.format(msgspec.json.encode(content)))
    return 1 if arguments.gate and not met else 0


if __name__ == "__main__":
    sys.exit(main())
