"""Large results by reference: what reaches the client, how long it takes, and what memory it takes, against inline.

Two polyplex processes stand before one upstream over HTTP, one that passes results on and one that stores them.
"""

import argparse
import asyncio
import os
import socket
import statistics
import sys
import time
from pathlib import Path

import msgspec

from client import Refused, WrongAnswer, ready, request_body
from configs import http_server, write_config
from gateway import Running, Verdict, polyplex_command, serving
from processes import BenchError, build, end_on_sigterm, free_port, memory_kb, program, reset_peak, running, say

SIZES_KB = (500, 50 << 10)
TIME_LIMIT = 1.5  # an offloaded result of 500 KB, against the same passed on
TOKENS_LIMIT = 1000
PEAK_LIMIT = 0.5  # of the size of a result of 50 MB
BATCH = 20


class Caller:
    """A client with as little of its own as can be: one blocking connection, answers of known length, not decoded."""

    def __init__(self, running: Running) -> None:
        self._socket = socket.create_connection(("127.0.0.1", running.port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._client = running.client
        self._buffer = bytearray(1 << 20)

    def call(self, kb: int) -> tuple[float, int, bytes]:
        """One call: its seconds, the bytes of its answer, and the first of them."""
        body = request_body(7, "tools/call", {"name": "up__blob", "arguments": {"kb": kb}}, "legacy")
        request = self._client.head("POST", "tools/call", "", len(body)) + body
        began = time.perf_counter()
        self._socket.sendall(request)
        view = memoryview(self._buffer)
        got = 0
        while (end := self._buffer.find(b"\r\n\r\n", 0, got)) < 0:
            got += self._take(view[got:])
        head = bytes(self._buffer[:end]).lower()
        first = bytes(self._buffer[end + 4 : got])
        if b"content-length:" not in head:  # a call that took long is answered by an event stream
            while not first.endswith(b"\r\n0\r\n\r\n"):
                count = self._take(view)
                first += bytes(view[:count])
            return time.perf_counter() - began, len(first), first
        length = int(head.partition(b"content-length:")[2].partition(b"\r\n")[0])
        left = length - len(first)
        while left > 0:
            count = self._take(view[: min(left, len(self._buffer))])
            first = first if len(first) > 1 << 16 else first + bytes(view[:count])
            left -= count
        return time.perf_counter() - began, length, first

    def _take(self, view: memoryview) -> int:
        count = self._socket.recv_into(view)
        if not count:
            raise BenchError("polyplex closed the connection")
        return count


def checked(answer: bytes, length: int, kb: int, stored: bool) -> None:
    """Raise `WrongAnswer` for an answer that is not what this side gives."""
    small = length < kb << 9
    if small is not stored or (stored and b"resource_link" not in answer) or b'"isError":true' in answer:
        raise WrongAnswer(f"{kb} KB came back as {length} bytes: {answer[:300]!r}")


def cpu_seconds(pid: int) -> float:
    """What a process has used of the processor, its threads included."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure_cpu(running: Running, caller: Caller, kb: int, calls: int) -> float:
    """Processor seconds of one call."""
    before = cpu_seconds(running.pid)
    for _ in range(calls):
        caller.call(kb)
    return (cpu_seconds(running.pid) - before) / calls


def measure_time(inline: Caller, offloaded: Caller, kb: int, rounds: int) -> tuple[float, float, float]:
    """The median seconds of both, and the median of their ratios in batches that alternate."""
    ratios: list[float] = []
    times: dict[bool, list[float]] = {False: [], True: []}
    size = BATCH if kb < 10_000 else 2
    for number in range(rounds):
        medians: dict[bool, float] = {}
        for stored in (False, True) if number % 2 else (True, False):
            caller = offloaded if stored else inline
            batch: list[float] = []
            for _ in range(size):
                seconds, length, first = caller.call(kb)
                checked(first, length, kb, stored)
                batch.append(seconds)
            medians[stored] = statistics.median(batch)
            times[stored].append(medians[stored])
        ratios.append(medians[True] / medians[False])
    return statistics.median(times[False]), statistics.median(times[True]), statistics.median(ratios)


def measure_peak(running: Running, caller: Caller, kb: int) -> float:
    """The growth of the resident memory while one result passes, as a multiple of its size."""
    caller.call(1)
    before = memory_kb(running.pid)["Rss"]
    reset_peak(running.pid)
    caller.call(kb)
    return (memory_kb(running.pid)["Hwm"] - before) / kb


def tokens_of(answer: bytes, length: int) -> int:
    """What a model pays for the texts of an answer, as polyplex estimates it."""
    from polyplex.content.tokens import estimate

    try:
        blocks = msgspec.json.decode(answer)["result"]["content"]
    except msgspec.DecodeError:
        return round(estimate(answer[: 1 << 16]) * length / min(len(answer), 1 << 16))
    return sum(estimate(msgspec.json.encode({k: v for k, v in block.items() if k != "_meta"})) for block in blocks)


def with_limits(plain: str) -> str:
    """The same configuration with the limits that polyplex has by default; its path."""
    config = msgspec.json.decode(Path(plain).read_bytes())
    config["polyplex"] |= {"payloads": {"maxBytes": 1 << 30}, "results": {}}
    path = Path(plain.replace("inline", "stored"))
    path.write_bytes(msgspec.json.encode(config))
    return str(path)


async def measure(polyplex: list[str], verdict: Verdict, rounds: int) -> None:
    """All figures."""
    port = free_port()
    with running([program("upstream"), "--port", str(port)], "results-upstream") as upstream:
        (await ready(port, 2, upstream, seconds=10)).drop()
        server = {"up": http_server(port)}
        plain = write_config("results-inline", server)
        bounded = with_limits(plain)
        async with (
            serving(polyplex, plain, "results-inline", 2) as one,
            serving(polyplex, bounded, "results-stored", 3) as two,
        ):
            measure_both(one, two, verdict, rounds)


def measure_both(one: Running, two: Running, verdict: Verdict, rounds: int) -> None:
    """Compare the process that passes results on with the one that stores them."""
    inline, offloaded = Caller(one), Caller(two)
    for kb in SIZES_KB:
        _, through, raw = inline.call(kb)
        _, reached, answer = offloaded.call(kb)
        tokens, all_tokens = tokens_of(answer, reached), tokens_of(raw, through)
        say(
            f"{kb:,} KB: {reached:,} bytes reach the client instead of {through:,}, {tokens:,} tokens of {all_tokens:,}"
        )
        verdict.at_most(f"tokens of an offloaded result of {kb:,} KB", tokens, TOKENS_LIMIT, "tokens")
        passing, storing, ratio = measure_time(inline, offloaded, kb, rounds if kb < 10_000 else max(rounds // 6, 3))
        say(f"{kb:,} KB: {passing * 1e3:.2f} ms passed on, {storing * 1e3:.2f} ms stored")
        verdict.at_most(
            f"time of an offloaded result of {kb:,} KB", ratio, TIME_LIMIT if kb < 10_000 else 5.0, "x inline"
        )
        calls = 200 if kb < 10_000 else 4
        used = [measure_cpu(running, caller, kb, calls) * 1e3 for running, caller in ((one, inline), (two, offloaded))]
        say(f"{kb:,} KB: {used[0]:.2f} ms of the processor passed on, {used[1]:.2f} ms stored")
        peaks = [measure_peak(running, caller, kb) for running, caller in ((one, inline), (two, offloaded))]
        say(f"{kb:,} KB: peak memory +{peaks[0]:.2f} of its size passed on, +{peaks[1]:.2f} stored")
        if kb > 10_000:
            verdict.at_most(f"peak while {kb >> 10} MB are stored", peaks[1], PEAK_LIMIT, "x its size")


def main() -> int:
    """Measure, print, judge; 1 when a limit is passed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--polyplex", default="", help="another command to run as polyplex")
    parser.add_argument("--json", metavar="FILE", help="write all figures")
    arguments = parser.parse_args()
    verdict = Verdict()
    end_on_sigterm()
    try:
        build()
        asyncio.run(measure(polyplex_command(arguments.polyplex), verdict, arguments.rounds))
    except (BenchError, Refused, WrongAnswer, TimeoutError, OSError) as error:
        say(f"failed: {error!r}")
        return 1
    return verdict.conclude(arguments.json)


if __name__ == "__main__":
    sys.exit(main())
