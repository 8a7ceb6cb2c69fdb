"""A day of calls in minutes: many small calls, clients that come and go, upstreams that are killed.

Every call carries a text of its own and must come back with exactly that text, once. A call that meets a killed
upstream may fail, but must say so: by isError or a JSON-RPC error, in time. Memory and file descriptors of polyplex
must stay flat after warm-up, and no child may be left, neither as a zombie nor after the end.
"""

import argparse
import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass

import uvloop

from client import Refused, WrongAnswer
from configs import http_server, stdio_server, write_config
from gateway import Running, Verdict, polyplex_command, serving
from processes import BenchError, build, descendants, end_on_sigterm, log_tail, open_files, say, wait_gone
from soak_clients import Crowd, Plan
from soak_ledger import Ledger, grown
from soak_upstreams import Upstreams

SESSION_KB = 20  # what a session that its client never ended may hold until it expires
FLAT_MB = 8.0
FLAT_FILES = 8
LONGEST_RECOVERY = 30.0


async def kill_on_schedule(upstreams: Upstreams, gateway: Running, ledger: Ledger, kills: int, calls: int) -> None:
    """Kill one upstream after the other, spread evenly over the calls; the last tenth is left in peace."""
    for number in range(kills):
        await ledger.reached(int(calls * (0.05 + 0.85 * number / max(kills, 1))))
        await upstreams.kill(number, gateway.pid, ledger)


async def watch(gateway: Running, ledger: Ledger, calls: int) -> None:
    """Sample memory and descriptors, and say how far it is."""
    began = time.monotonic()
    for step in range(1, 41):
        await ledger.reached(calls * step // 40)
        ledger.sample(gateway.pid)
        if step % 4 == 0:
            rate = ledger.done / (time.monotonic() - began)
            size = ledger.samples[-1]
            say(
                f"{ledger.done:>9,} calls, {rate:,.0f}/s, {ledger.failed:,} failed; "
                f"{size.rss_kb / 1024:.1f} MB, {size.files} files"
            )


@dataclass(frozen=True, slots=True)
class Before:
    """What polyplex had before its first client."""

    files: int
    children: int


async def judge_end(gateway: Running, verdict: Verdict, before: Before, pooled: int, ledger: Ledger) -> None:
    """After the last client: descriptors and children are as before the first, but for pooled connections."""
    await asyncio.sleep(1.0)
    ledger.sample(gateway.pid)
    children = descendants(gateway.pid)
    verdict.at_most(
        "file descriptors at the end (as at the start, with a pool for the HTTP upstreams)",
        ledger.samples[-1].files,
        before.files + pooled + FLAT_FILES,
    )
    verdict.at_most("zombies among its children", sum(state == "Z" for state, _ in children.values()), 0)
    verdict.at_most("children more than before the first client", len(children) - before.children, 0)


async def judge_shutdown(gateway: Running, verdict: Verdict) -> None:
    """SIGTERM: it ends by itself, and so do its children."""
    family = set(descendants(gateway.pid))
    began = time.monotonic()
    gateway.process.send_signal(signal.SIGTERM)
    with contextlib.suppress(subprocess.TimeoutExpired):
        await asyncio.to_thread(gateway.process.wait, 20)
    verdict.at_most("seconds from SIGTERM to its end", time.monotonic() - began, 15, "s")
    left = await asyncio.to_thread(wait_gone, family, 2.0)
    verdict.at_most("children left after its end", len(left), 0)
    for pid in left:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def judge(ledger: Ledger, verdict: Verdict, plan: Plan) -> None:
    """What the ledger and the samples say."""
    for wrong in ledger.wrong[:10]:
        say(f"         wrong: {wrong}")
    verdict.at_most("calls not answered exactly once, by their own text or by an error", len(ledger.wrong), 0)
    verdict.at_most("calls missing from the plan", plan.calls - ledger.done, 0)
    verdict.at_most("failures of upstreams that were not killed", ledger.unexplained, 0)
    verdict.at_most("slowest recovery of a killed upstream", max(ledger.recoveries, default=0.0), LONGEST_RECOVERY, "s")
    memory = [sample.rss_kb / 1024 for sample in ledger.samples[:-1]]
    files = [float(sample.files) for sample in ledger.samples[:-1]]
    allowed = FLAT_MB + ledger.sessions_left_open * SESSION_KB / 1024
    slope = grown(memory) / max(plan.calls * 0.6, 1) * 1e6
    say(
        f"         memory after warm-up {memory[len(memory) // 4]:.1f} MB, at the end {memory[-1]:.1f} MB, "
        f"slope {slope:+.2f} MB per million calls"
    )
    verdict.at_most(
        f"memory grown since warm-up ({ledger.sessions_left_open} sessions were left open)",
        grown(memory),
        allowed,
        "MB",
    )
    verdict.at_most("file descriptors grown since warm-up", grown(files), FLAT_FILES + plan.clients)


async def measure(polyplex: list[str], verdict: Verdict, plan: Plan, kills: int) -> None:
    """The whole run."""
    ledger = Ledger(plan.patience)
    with Upstreams() as upstreams:
        servers = {name: stdio_server([path, "--stdio"]) for name, path in upstreams.pipes.items()}
        servers |= {name: http_server(port) for name, port in upstreams.ports.items()}
        config = write_config("soak", servers)
        async with serving(polyplex, config, "soak", tools=2 * len(servers)) as gateway:
            before = Before(open_files(gateway.pid), len(descendants(gateway.pid)))
            crowd = Crowd(plan, ledger, gateway.port, [*servers], [*polyplex, "serve", "--config", config, "--stdio"])
            began = time.monotonic()
            async with asyncio.TaskGroup() as group:
                group.create_task(kill_on_schedule(upstreams, gateway, ledger, kills, plan.calls))
                group.create_task(watch(gateway, ledger, plan.calls))
                await crowd.run()
                ledger.finish()
            seconds = time.monotonic() - began
            say(
                f"{ledger.done:,} calls in {seconds:.0f} s, {ledger.failed:,} failed and said so, "
                f"{ledger.abandoned:,} abandoned by their client"
            )
            say(f"{crowd.opened:,} sessions: {crowd.summary()}; {upstreams.killed} kills")
            judge(ledger, verdict, plan)
            await judge_end(gateway, verdict, before, plan.clients * len(upstreams.ports), ledger)
            await judge_shutdown(gateway, verdict)


def main() -> int:
    """Run, print, judge; 1 when anything was lost, doubled or left."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=1_000_000)
    parser.add_argument("--reconnects", type=int, default=1_000)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--clients", type=int, default=16, help="clients at the same time")
    parser.add_argument(
        "--patience", type=float, default=90.0, help="seconds after which a call counts as never answered"
    )
    parser.add_argument("--polyplex", default="", help="another command to run as polyplex")
    parser.add_argument("--json", metavar="FILE", help="write all figures")
    arguments = parser.parse_args()
    plan = Plan(arguments.calls, arguments.reconnects, arguments.clients, arguments.patience)
    verdict = Verdict()
    end_on_sigterm()
    try:
        build()
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(measure(polyplex_command(arguments.polyplex), verdict, plan, arguments.kills))
    except (BenchError, Refused, WrongAnswer, OSError) as error:
        say(f"failed: {error!r}\n{log_tail('soak')}")
        return 1
    return verdict.conclude(arguments.json)


if __name__ == "__main__":
    sys.exit(main())
