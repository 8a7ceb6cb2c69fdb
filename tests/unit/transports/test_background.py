import asyncio

from polyplex.transports.background import Background, wait_all


async def test_tasks_are_held_until_they_are_done() -> None:
    background = Background()
    done: list[int] = []
    go_on = asyncio.Event()

    async def work(number: int) -> None:
        await go_on.wait()
        done.append(number)

    for number in range(3):
        background.start(work(number))
    go_on.set()
    await background.finish()
    assert sorted(done) == [0, 1, 2]
    assert not background._tasks
    await background.finish()


async def test_cancelling_what_runs() -> None:
    background = Background()
    task = background.start(asyncio.Event().wait())  # pyright: ignore[reportArgumentType]
    background.cancel()
    await background.finish()
    assert task.cancelled()


async def test_the_late_ones_are_cancelled() -> None:
    ended: list[str] = []
    last = asyncio.Event()

    async def quick() -> None:
        ended.append("quick")

    async def slow() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("slow")
            last.set()

    await wait_all([quick(), slow()], 0.05)
    async with asyncio.timeout(5):
        await last.wait()
    assert ended == ["quick", "slow"]
    await wait_all([], 1)
