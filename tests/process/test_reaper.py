"""No child survives polyplex, however polyplex ends."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from polyplex.transports.stdio.reaper import current_reaper, read_start_time, signal_group
from tests.process.children import DEADLINE_SECONDS, ECHO, gone, is_alive, running, write_script

# Ignores the end of stdin and SIGTERM, and has a child that does the same.
STUBBORN = """
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if len(sys.argv) == 1:
        process = subprocess.Popen([sys.executable, "-S", __file__, "grandchild"], stdin=subprocess.DEVNULL)
        say(f"{os.getpid()} {process.pid}")
    while True: time.sleep(60)
"""

PARENT = """
import asyncio, sys
import {loop}
from polyplex.transports.stdio import ChildProcess
from polyplex.transports.stdio.reaper import current_reaper

async def main():
    children = []
    for script in sys.argv[1:]:
        reported = asyncio.Event()
        def on_frame(frame, reported=reported):
            print(frame.decode(), flush=True)
            reported.set()
        child = ChildProcess("test", sys.executable, ["-S", script], {{}}, None, on_frame, lambda status: None)
        await child.start()
        child.write(b"0")
        await reported.wait()
        children.append(child)
    print("reaper", current_reaper().pid, flush=True)
    if {ends}:
        await asyncio.gather(*(child.stop() for child in children))
    else:
        await asyncio.Event().wait()

with asyncio.Runner(loop_factory={loop}.new_event_loop) as runner:
    runner.run(main())
"""


@pytest.mark.parametrize("loop", ["uvloop", "asyncio"])
async def test_children_and_grandchildren_of_a_killed_parent_vanish(tmp_path: Path, loop: str) -> None:
    scripts = [write_script(tmp_path, STUBBORN, "stubborn.py"), write_script(tmp_path, ECHO, "tame.py")]
    parent = await asyncio.create_subprocess_exec(
        sys.executable, "-c", PARENT.format(loop=loop, ends=False), *map(str, scripts), stdout=subprocess.PIPE
    )
    pids: list[int] = []
    reaper = 0
    assert parent.stdout is not None
    async with asyncio.timeout(DEADLINE_SECONDS):
        while not reaper:
            words = (await parent.stdout.readline()).decode().split()
            assert words
            if words[0] == "reaper":
                reaper = int(words[1])
            elif words != ["0"]:
                pids += map(int, words)
    assert len(pids) == 2
    assert all(map(is_alive, [*pids, reaper]))
    parent.kill()
    await parent.wait()
    await gone(*pids, reaper)


async def test_the_helper_ends_with_a_parent_that_ends_normally(tmp_path: Path) -> None:
    source = PARENT.format(loop="uvloop", ends=True)
    script = write_script(tmp_path, ECHO)
    parent = await asyncio.create_subprocess_exec(
        sys.executable, "-W", "error", "-c", source, str(script), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    async with asyncio.timeout(DEADLINE_SECONDS):
        stdout, stderr = await parent.communicate()
    assert (parent.returncode, stderr) == (0, b"")
    assert stdout.split()[:2] == [b"0", b"reaper"]
    await gone(int(stdout.split()[2]))


async def test_one_helper_serves_all_and_comes_again_when_it_dies(tmp_path: Path) -> None:
    script = write_script(tmp_path, ECHO)
    async with running(script):
        first = current_reaper().pid
        async with running(script):
            assert current_reaper().pid == first
        os.kill(first, signal.SIGKILL)
        await gone(first)
        async with running(script):
            second = current_reaper().pid
            assert second != first
            assert is_alive(second)
    with pytest.raises(ChildProcessError):
        os.waitpid(first, os.WNOHANG)  # noqa: ASYNC222 - does not block


async def test_the_helper_is_small_and_holds_nothing_of_ours(tmp_path: Path) -> None:
    async with running(write_script(tmp_path, ECHO)):
        process = Path(f"/proc/{current_reaper().pid}")
        if not process.exists():  # noqa: ASYNC240
            pytest.skip("needs /proc")
        async with asyncio.timeout(DEADLINE_SECONDS):
            while b"reaper.py" not in (process / "cmdline").read_bytes():  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        assert {path.name for path in (process / "fd").iterdir()} <= {"0", "1", "2", "3"}
        assert b"HOME=" not in (process / "environ").read_bytes()
        pages = int((process / "statm").read_text().split()[1])
        assert pages * os.sysconf("SC_PAGE_SIZE") < 16 << 20


async def test_a_group_that_is_not_the_one_meant_is_left_alone() -> None:
    stranger = await asyncio.create_subprocess_exec("sleep", "600", start_new_session=True)
    start_time = read_start_time(stranger.pid)
    assert start_time
    assert not signal_group(stranger.pid, signal.SIGKILL, "1")
    assert signal_group(stranger.pid, 0, start_time)
    assert signal_group(stranger.pid, signal.SIGKILL, start_time)
    assert await stranger.wait() == -signal.SIGKILL
    assert not signal_group(stranger.pid, 0, start_time)


@pytest.mark.parametrize("group", [-1, 0, 1])
async def test_never_everybody(group: int) -> None:
    with pytest.raises(ValueError, match="not the process group of a child"):
        signal_group(group, 0)
