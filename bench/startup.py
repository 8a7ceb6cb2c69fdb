"""Start-up with 20 stdio servers of which one never answers and one dies: when are the other 18 usable?

Usable means: a client has initialized, tools/list shows all 18, and a call on each was answered. The time is compared
with what the slowest of the 18 takes alone, asked directly.
"""

import argparse
import asyncio
import sys
import time

from client import HttpClient, Refused, StdioClient, WrongAnswer, text_of
from configs import stdio_server, write_config
from gateway import Verdict, polyplex_command
from processes import HERE, BenchError, end_on_sigterm, free_port, log_tail, private_environment, say, start, stop

GOOD = 18
LIMIT = 1.5


def server_command(name: str, manner: str, seconds: float) -> list[str]:
    """The command of one server."""
    return [sys.executable, "-S", str(HERE / "slow_server.py"), name, manner, f"{seconds:.3f}"]


def server_commands(slowest: float) -> dict[str, list[str]]:
    """18 that answer after a tenth of `slowest` up to all of it, one that never does, one that dies."""
    delays = [slowest * (0.1 + 0.9 * number / (GOOD - 1)) for number in range(GOOD)]
    good = {f"s{number:02}": server_command(f"s{number:02}", "answers", delay) for number, delay in enumerate(delays)}
    bad = {manner: server_command(manner, manner, 0) for manner in ("silent", "dies")}
    return {"silent": bad["silent"], **good, "dies": bad["dies"]}


async def alone(command: list[str]) -> float:
    """Seconds from start to an answered call of one server, asked directly."""
    began = time.monotonic()
    client = await StdioClient.start(command)
    try:
        await client.open()
        await client.request("tools/list", {})
        await client.call("who", {})
        return time.monotonic() - began
    finally:
        await client.close()


async def connect(port: int) -> HttpClient:
    """A client as soon as the endpoint takes one."""
    while True:
        client = HttpClient(port)
        try:
            await client.open()
        except (OSError, EOFError, Refused):
            client.drop()
            await asyncio.sleep(0.01)
        else:
            return client


async def usable(port: int, names: list[str], began: float) -> tuple[float, float, int]:
    """Seconds until all are usable, seconds until the first list was answered, and how many tools it showed."""
    client = await connect(port)
    first: tuple[float, int] | None = None
    wanted = {f"{name}__who" for name in names}
    while True:
        tools = {tool["name"] for tool in (await client.request("tools/list", {}))["result"]["tools"]}
        first = first or (time.monotonic() - began, len(tools & wanted))
        if wanted <= tools:
            break
        await asyncio.sleep(0.02)
    for name in names:
        said = await client.call(f"{name}__who", {})
        if text_of(said) != name:
            raise BenchError(f"{name} was asked who it is and said {said}")
    client.drop()
    return time.monotonic() - began, first[0], first[1]


async def through_polyplex(
    polyplex: list[str], config: str, names: list[str], environment: dict[str, str]
) -> tuple[float, float, int]:
    """Start polyplex anew and time it."""
    port = free_port()
    began = time.monotonic()
    process = start([*polyplex, "serve", "--config", config, "--http", f"127.0.0.1:{port}"], "startup", environment)
    try:
        async with asyncio.timeout(60):
            return await usable(port, names, began)
    except TimeoutError as error:
        raise BenchError(f"the {GOOD} servers were not usable in 60 s:\n{log_tail('startup')}") from error
    finally:
        stop(process)


async def measure(polyplex: list[str], verdict: Verdict, slowest: float) -> None:
    """Once with nothing known of the servers, once with what the first start has left on disk."""
    commands = server_commands(slowest)
    names = [name for name in commands if name not in ("silent", "dies")]
    reference = await alone(commands[names[-1]])
    say(f"the slowest of {GOOD} alone: {reference:.2f} s")
    config = write_config("startup", {name: stdio_server(command) for name, command in commands.items()})
    environment = private_environment("startup")
    for kind in ("first start", "start with known servers"):
        total, listed, shown = await through_polyplex(polyplex, config, names, environment)
        say(f"{kind}: first list after {listed:.2f} s with {shown} of {GOOD} tools; all usable after {total:.2f} s")
        verdict.at_most(f"{kind}: time until {GOOD} of 20 are usable", total / reference, LIMIT, "x the slowest alone")


def main() -> int:
    """Measure, print, judge; 1 when the limit is passed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--slowest", type=float, default=2.0, help="seconds that the slowest server sleeps before it answers"
    )
    parser.add_argument("--polyplex", default="", help="another command to run as polyplex")
    parser.add_argument("--json", metavar="FILE", help="write all figures")
    arguments = parser.parse_args()
    verdict = Verdict()
    end_on_sigterm()
    try:
        asyncio.run(measure(polyplex_command(arguments.polyplex), verdict, arguments.slowest))
    except (BenchError, Refused, WrongAnswer, OSError) as error:
        say(f"failed: {error!r}")
        return 1
    return verdict.conclude(arguments.json)


if __name__ == "__main__":
    sys.exit(main())
