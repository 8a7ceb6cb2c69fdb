"""One of several processes that share a payload folder: writes, reads back, deletes and sweeps, all at once.

    python payload_neighbour.py FOLDER CALLER ROUNDS

Prints `<id> <sha256>` for each payload that it leaves behind.
"""

import asyncio
import hashlib
import os
import random
import sys
from pathlib import Path

from polyplex.config.model import PayloadOptions
from polyplex.store.open_store import open_store


async def main(folder: Path, caller: str, rounds: int) -> None:
    store = open_store(PayloadOptions(store=f"file:{folder}"), folder)
    chance = random.Random(caller)

    async def one(number: int) -> str | None:
        data = os.urandom(chance.choice((10, 5_000, 1_500_000)))
        async with store.writer(caller) as writer:
            for start in range(0, len(data), 600_000):
                await writer.write(data[start : start + 600_000])
            payload = await writer.commit()
        if number % 3 == 0:
            await store.sweep()
        async with store.opened(caller, payload.uri) as opened:
            assert b"".join([chunk async for chunk in opened.chunks()]) == data
        if number % 2:
            assert await store.delete(caller, payload.uri)
            return None
        return f"{payload.id} {hashlib.sha256(data).hexdigest()}"

    for first in range(0, rounds, 4):
        for line in await asyncio.gather(*(one(first + number) for number in range(4))):
            if line is not None:
                print(line)
    await store.close()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])))
