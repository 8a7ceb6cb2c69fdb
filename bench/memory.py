"""Memory of polyplex: idle with 20 upstreams, for each further idle session, and while a result of 50 MB passes."""

import argparse
import asyncio
import resource
import statistics
import sys
from collections.abc import Awaitable, Callable

from client import HttpClient, Refused, StdioClient, WrongAnswer, ready, text_of, until_listed
from configs import http_server, stdio_server, write_config
from gateway import Running, Verdict, polyplex_command, serving
from processes import (
    BenchError,
    build,
    descendants,
    end_on_sigterm,
    free_port,
    memory_kb,
    private_environment,
    program,
    reset_peak,
    running,
    say,
)

UPSTREAMS = 20
IDLE_LIMIT_MB = 60.0
SESSION_LIMIT_KB = 20.0
PASSING_LIMIT = 3.0
RESULT_KB = 50 << 10


def raise_file_limit() -> int:
    """Allow as many descriptors as the system permits; answers the limit. Children inherit it."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


async def settled_kb(pid: int) -> float:
    """Resident memory once it has come to rest: the median of a few readings."""
    readings: list[int] = []
    for _ in range(5):
        await asyncio.sleep(0.3)
        readings.append(memory_kb(pid)["Rss"])
    return statistics.median(readings)


async def open_sessions(port: int, count: int, stream: bool) -> list[HttpClient]:
    """Open idle sessions: without a connection, or each with its GET stream open."""
    clients: list[HttpClient] = []
    for _ in range(count):
        client = HttpClient(port)
        await client.open()
        if stream:
            status = await client.open_stream()
            if status != 200:
                raise BenchError(f"the GET stream of a session was answered {status}")
        elif client.writer is not None:
            client.writer.close()
        clients.append(client)
    return clients


async def measure_sessions(gateway: Running, verdict: Verdict, count: int) -> None:
    """Bytes per further session, first without and then with an open stream."""
    for stream in (False, True):
        kind = "with an open GET stream" if stream else "without a connection"
        clients = await open_sessions(gateway.port, max(count // 10, 1), stream)
        before = await settled_kb(gateway.pid)
        clients += await open_sessions(gateway.port, count, stream)
        grown = await settled_kb(gateway.pid) - before
        verdict.at_most(f"each of {count} further idle sessions {kind}", grown / count, SESSION_LIMIT_KB, "KB")
        for client in clients:
            client.drop()


async def measure_idle(polyplex: list[str], verdict: Verdict, sessions: int) -> None:
    """Idle memory with many stdio upstreams, and that of sessions on top."""
    servers = {f"up{number:02}": stdio_server([program("upstream"), "--stdio"]) for number in range(UPSTREAMS)}
    config = write_config("memory-idle", servers)
    async with serving(polyplex, config, "memory-idle", tools=2 * UPSTREAMS) as gateway:
        own = await settled_kb(gateway.pid)
        family = descendants(gateway.pid)
        helpers = [pid for pid, (_, command) in family.items() if program("upstream") not in command]
        helping = sum(memory_kb(pid)["Rss"] for pid in helpers)
        pss = memory_kb(gateway.pid)["Pss"] / 1024
        say(f"Pss {pss:.1f} MB; {len(helpers)} helper processes, {helping / 1024:.1f} MB resident")
        say(f"{len(family) - len(helpers)} upstream processes, which are not counted")
        name = f"resident, idle, {UPSTREAMS} stdio upstreams connected, with its helper processes"
        verdict.at_most(name, (own + helping) / 1024, IDLE_LIMIT_MB, "MB")
        await measure_sessions(gateway, verdict, sessions)


async def measure_passing(pid: int, call: Callable[[int], Awaitable[str | None]], name: str, verdict: Verdict) -> None:
    """The peak above the resting size while one large result passes, as a multiple of the result's size."""
    await call(1)
    before = await settled_kb(pid)
    reset_peak(pid)
    text = await call(RESULT_KB)
    if text is None or len(text.encode()) < RESULT_KB << 9:
        raise BenchError(f"{name}: the large result came back as {str(text)[:200]}")
    extra = memory_kb(pid)["Hwm"] - before
    after = await settled_kb(pid) - before
    say(f"{name}: peak +{extra / 1024:.0f} MB, kept afterwards {after / 1024:+.0f} MB")
    verdict.at_most(f"peak while {RESULT_KB >> 10} MB pass, {name}", extra / RESULT_KB, PASSING_LIMIT, "x its size")


async def measure_large_over_http(
    polyplex: list[str], verdict: Verdict, server: dict[str, object], name: str, pause: float = 0
) -> None:
    """A large result for a client over HTTP, which starts reading after a pause."""
    config = write_config("memory-large", {"up": server}, bare=True)
    async with serving(polyplex, config, "memory-large", tools=2) as gateway:

        async def call(kb: int) -> str | None:
            return text_of(await gateway.client.call("blob", {"kb": kb}, pause if kb > 1 else 0))

        await measure_passing(gateway.pid, call, name, verdict)


async def measure_large_on_stdio(polyplex: list[str], verdict: Verdict, port: int) -> None:
    """A large result for a client over stdio, from an upstream over HTTP."""
    config = write_config("memory-large", {"up": http_server(port)}, bare=True)
    client = await StdioClient.start(
        [*polyplex, "serve", "--config", config, "--stdio"], private_environment("memory-stdio")
    )
    try:
        await client.open()
        async with asyncio.timeout(60):
            await until_listed(client, 2)

        async def call(kb: int) -> str | None:
            return text_of(await client.call("blob", {"kb": kb}))

        await measure_passing(client.pid, call, "stdio->http", verdict)
    finally:
        await client.close()


async def measure(polyplex: list[str], verdict: Verdict, sessions: int) -> None:
    """All figures."""
    await measure_idle(polyplex, verdict, sessions)
    port = free_port()
    with running([program("upstream"), "--port", str(port)], "memory-upstream") as upstream:
        (await ready(port, 2, upstream, seconds=10)).drop()
        await measure_large_over_http(polyplex, verdict, http_server(port), "http->http")
        await measure_large_over_http(
            polyplex, verdict, http_server(port), "http->http, the client pauses 2 s before it reads", pause=2
        )
        await measure_large_over_http(polyplex, verdict, stdio_server([program("upstream"), "--stdio"]), "http->stdio")
        await measure_large_on_stdio(polyplex, verdict, port)


def main() -> int:
    """Measure, print, judge; 1 when a limit is passed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=1000)
    parser.add_argument("--polyplex", default="", help="another command to run as polyplex")
    parser.add_argument("--json", metavar="FILE", help="write all figures")
    arguments = parser.parse_args()
    verdict = Verdict()
    end_on_sigterm()
    try:
        build()
        permitted = raise_file_limit()
        sessions = min(arguments.sessions, (permitted - 200) // 2)
        asyncio.run(measure(polyplex_command(arguments.polyplex), verdict, sessions))
    except (BenchError, Refused, WrongAnswer, TimeoutError, OSError) as error:
        say(f"failed: {error!r}")
        return 1
    return verdict.conclude(arguments.json)


if __name__ == "__main__":
    sys.exit(main())
