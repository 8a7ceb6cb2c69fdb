"""What keeping and reading large results costs: a put of 500 KB and 50 MB, and parts of payloads of 1 MB and 1 GB.

    python bench/payloads.py [--folder FOLDER] [--large-mb 1024]

Prints lower quartiles, the ratio of the large payload to the small one for each part, and how memory grows while the
large one is written and read. Ends with 1 where a part of the large payload, once its index is there, takes more than
`RATIO_LIMIT` times as long, or memory grows by more than `MEMORY_LIMIT_MB`.
"""

import argparse
import asyncio
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

from polyplex.config.model import PayloadOptions
from polyplex.store.open_store import open_store
from polyplex.store.payload import Payload
from polyplex.store.payload_store import PayloadStore
from polyplex.store.reading.reader import PayloadReader

OWNER = "bench"
TIMES = 60
RATIO_LIMIT = 3.0
MEMORY_LIMIT_MB = 64.0
CHUNK = 256 * 1024
PART = 64 * 1024


async def timed(work: Callable[[], Awaitable[object]], times: int = TIMES) -> float:
    """Lower quartile of milliseconds: others may use the machine."""
    taken: list[float] = []
    for _ in range(times):
        begun = time.perf_counter()
        await work()
        taken.append((time.perf_counter() - begun) * 1000)
    return statistics.quantiles(taken, n=4)[0]


def rows(size: int) -> bytes:
    """Rows of CSV, about so many bytes."""
    block = "".join(f"{number},name {number},{number * 7 % 1000}\n" for number in range(10_000)).encode()
    return (block * (size // len(block) + 1))[:size].rpartition(b"\n")[0] + b"\n"


async def write(store: PayloadStore, size: int) -> Payload:
    """A table of that size, in chunks as an upstream's result comes."""
    data = rows(4 << 20)
    async with store.writer(OWNER, "text/csv") as writer:
        await writer.write(b"id,name,score\n")
        while writer.size < size:
            for start in range(0, len(data), CHUNK):
                await writer.write(data[start : start + CHUNK])
                if writer.size >= size:
                    break
        return await writer.commit()


async def put_costs(store: PayloadStore) -> None:
    """Keeping results that are there already."""
    for size in (500_000, 50_000_000):
        data = rows(size)
        processor = time.process_time()
        times = 100 if size < 1_000_000 else 5
        wall = await timed(lambda kept=data: store.put(OWNER, kept, "text/csv"), times)
        processor = (time.process_time() - processor) * 1000 / times
        print(f"put {size // 1000:>6} KB      {wall:8.2f} ms   {processor:8.2f} ms of CPU")


def parts_of(reader: PayloadReader, payload: Payload, lines: int) -> dict[str, Callable[[], Awaitable[object]]]:
    """The ways to read 64 KB or less from the middle of a payload."""
    middle, uri = payload.size // 2, payload.uri
    return {
        "bytes, 64 KB": lambda: reader.bytes(OWNER, uri, offset=middle, limit=PART),
        "text, 64 KB": lambda: reader.text(OWNER, uri, offset=middle, limit=PART),
        "100 lines": lambda: reader.lines(OWNER, uri, first=lines // 2, count=100),
        "a page of 50 rows": lambda: reader.page(OWNER, uri, record=lines // 2, page_size=50),
        "grep, 20 matches": lambda: reader.grep(OWNER, uri, "7,name", max_matches=20, cursor=f"{middle}.1"),
    }


async def measure(folder: Path, large_bytes: int) -> bool:
    """Print all of it; whether it is within the limits."""
    store = open_store(PayloadOptions(store=f"file:{folder}", max_bytes=2 * large_bytes + (1 << 30)), folder)
    reader = PayloadReader(store, seconds=600)
    small = await write(store, 1 << 20)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begun = time.perf_counter()
    large = await write(store, large_bytes)
    print(f"write {large.size >> 20:>6} MB    {large.size / (time.perf_counter() - begun) / 1e6:8.0f} MB/s")
    quartiles: list[dict[str, float]] = []
    for payload in (small, large):
        begun = time.perf_counter()
        total = (await reader.lines(OWNER, payload.uri, first=-1)).total or 0
        counted = time.perf_counter()
        await reader.page(OWNER, payload.uri, record=total - 2, page_size=1)
        split = time.perf_counter()
        print(
            f"index {payload.size >> 20:>6} MB    {(counted - begun) * 1000:8.0f} ms for lines, "
            f"{(split - counted) * 1000:.0f} ms for records, once"
        )
        quartiles.append({name: await timed(read) for name, read in parts_of(reader, payload, total).items()})
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak) / 1024
    fine = grown <= MEMORY_LIMIT_MB
    for name in quartiles[0]:
        at_small, at_large = quartiles[0][name], quartiles[1][name]
        ratio = at_large / at_small
        fine = fine and ratio <= RATIO_LIMIT
        print(f"{name:<18} {at_small:8.2f} ms at 1 MB {at_large:8.2f} ms at {large.size >> 20} MB   {ratio:.2f}")
    print(f"memory grew by     {grown:8.1f} MB while {large.size >> 20} MB were written and read")
    await put_costs(store)
    await store.close()
    return fine


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, help="where to write; a temporary folder otherwise")
    parser.add_argument("--large-mb", type=int, default=1024, help="the size of the large payload")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder, prefix="polyplex-bench-") as folder:
        return 0 if asyncio.run(measure(Path(folder), options.large_mb << 20)) else 1


if __name__ == "__main__":
    sys.exit(main())
