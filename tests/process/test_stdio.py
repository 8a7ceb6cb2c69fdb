"""The client half of stdio with real children, on uvloop and on plain asyncio."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from polyplex.errors import UpstreamLost, UpstreamUnavailable
from polyplex.transports.stdio import ChildProcess, ExitReason, ExitStatus
from polyplex.transports.stdio.process_group import only_zombies
from polyplex.transports.stdio.reaper import signal_group
from tests.process.children import DEADLINE_SECONDS, ECHO, Recorder, gone, is_alive, running, write_script
from tests.process.conftest import LoopFactory

pytestmark = pytest.mark.usefixtures("loop_factory")
IGNORE_EOF = "while True: time.sleep(60)\n"
MEGABYTE = 1 << 20


def never_called(_: object) -> None:
    raise AssertionError("called although nothing was started")


async def test_frames_both_ways_and_stop_by_stdin(tmp_path: Path) -> None:
    async with running(write_script(tmp_path, ECHO)) as recorder:
        for number in range(100):
            recorder.child.write(b'{"n":%d}' % number)
        assert await recorder.frames_until(100) == [b'{"n":%d}' % number for number in range(100)]
        pid = recorder.child.pid
        await recorder.stop()
        assert recorder.exits == [ExitStatus(ExitReason.STOPPED, 0)]
        assert pid is not None
        assert not is_alive(pid)


async def test_raw_line_ends_never_reach_the_child(tmp_path: Path) -> None:
    async with running(write_script(tmp_path, ECHO)) as recorder:
        recorder.child.write(b'{\r\n"a": 1,\r"b": 2\n}')
        recorder.child.write(b"2")
        assert await recorder.frames_until(2) == [b'{  "a": 1, "b": 2 }', b"2"]


async def test_stop_is_idempotent_and_shared(tmp_path: Path) -> None:
    async with running(write_script(tmp_path, ECHO)) as recorder:
        await asyncio.gather(*(recorder.stop() for _ in range(3)))
        await recorder.stop()
        assert len(recorder.exits) == 1


async def test_stop_before_start_does_nothing() -> None:
    await ChildProcess("test", "true", [], {}, None, never_called, never_called).stop()


async def test_a_cancelled_stop_still_stops(tmp_path: Path) -> None:
    async with running(write_script(tmp_path, "say(1)\n" + IGNORE_EOF)) as recorder:
        await recorder.frames_until(1)
        first = asyncio.create_task(recorder.child.stop(0.2))
        await asyncio.sleep(0)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        assert (await recorder.exit()).reason is ExitReason.STOPPED


async def test_a_child_that_ignores_the_end_of_stdin_gets_sigterm(tmp_path: Path) -> None:
    async with running(write_script(tmp_path, "say('up')\n" + IGNORE_EOF)) as recorder:
        await recorder.frames_until(1)
        await recorder.stop(grace=0.2)
        assert recorder.exits == [ExitStatus(ExitReason.STOPPED, -signal.SIGTERM)]


async def test_a_child_that_ignores_sigterm_gets_sigkill(tmp_path: Path) -> None:
    source = "signal.signal(signal.SIGTERM, lambda *_: say('no'))\nsay('up')\n" + IGNORE_EOF
    async with running(write_script(tmp_path, source)) as recorder:
        await recorder.frames_until(1)
        await recorder.stop(grace=0.3)
        assert recorder.frames == [b"up", b"no"]
        assert recorder.exits == [ExitStatus(ExitReason.STOPPED, -signal.SIGKILL)]


async def test_a_child_that_does_not_read_can_be_stopped(tmp_path: Path) -> None:
    async with running(write_script(tmp_path, "say('up')\n" + IGNORE_EOF)) as recorder:
        recorder.child.write(b"x" * (8 * MEGABYTE))
        await recorder.frames_until(1)
        await recorder.stop(grace=0.2)
        assert recorder.exits == [ExitStatus(ExitReason.STOPPED, -signal.SIGTERM)]


@pytest.mark.parametrize("handler", ["signal.SIG_DFL", "signal.SIG_IGN"])
async def test_grandchildren_end_with_the_child(tmp_path: Path, handler: str) -> None:
    grandchild = f"import signal, time; signal.signal(signal.SIGTERM, {handler}); print(1, flush=True); time.sleep(600)"
    source = f"""
        process = subprocess.Popen([sys.executable, "-S", "-c", {grandchild!r}], stdin=subprocess.DEVNULL)
        say(process.pid)
        sys.stdin.read()
    """
    async with running(write_script(tmp_path, source)) as recorder:
        frames = await recorder.frames_until(2)
        pid = int(max(frames, key=len))
        await recorder.stop()
        await gone(pid)
        assert recorder.exits == [ExitStatus(ExitReason.STOPPED, 0)]


async def test_the_last_frames_come_before_the_exit(tmp_path: Path) -> None:
    source = """
        sys.stderr.write("why\\n")
        for number in range(20000): sys.stdout.write(f"{number}\\n")
        sys.stdout.write("no newline")
        sys.stdout.flush()
        os._exit(3)
    """
    async with running(write_script(tmp_path, source)) as recorder:
        assert await recorder.exit() == ExitStatus(ExitReason.EXITED, 3)
        assert recorder.frames == [b"%d" % number for number in range(20000)] + [b"no newline"]
        assert recorder.child.stderr_tail() == ["why"]
        assert str(recorder.exits[0]) == "exited with code 3"


async def test_frames_wait_for_a_paused_reader_beyond_the_exit(tmp_path: Path) -> None:
    source = "for number in range(20000): sys.stdout.write(f'{number}\\n')\nsys.stdout.flush()\nos.kill(os.getpid(), 9)"
    script = write_script(tmp_path, source)
    recorder = Recorder(script)
    recorder.child.pause_reading()
    await recorder.child.start()
    pid = recorder.child.pid
    assert pid is not None
    await gone(pid)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(1.0):
            await recorder.changed.wait()
    assert not recorder.frames
    recorder.child.resume_reading()
    assert await recorder.exit() == ExitStatus(ExitReason.SIGNALLED, -signal.SIGKILL)
    assert len(recorder.frames) == 20000
    assert str(recorder.exits[0]) == "was ended by SIGKILL"
    await recorder.stop()


async def test_stop_does_not_wait_for_a_paused_reader(tmp_path: Path) -> None:
    async with running(write_script(tmp_path, "for _ in range(9): say('x')\nsys.stdin.read()")) as recorder:
        recorder.child.pause_reading()
        await recorder.stop()
        assert recorder.exits == [ExitStatus(ExitReason.STOPPED, 0)]
        assert recorder.frames == [b"x"] * 9


async def test_a_child_that_closes_stdout_is_ended(tmp_path: Path) -> None:
    async with running(write_script(tmp_path, "say('last')\nos.close(1)\nsys.stdin.read()")) as recorder:
        status = await recorder.exit()
        assert status.reason is ExitReason.CLOSED_STDOUT
        assert recorder.frames == [b"last"]


@pytest.mark.parametrize("new_session", [False, True])
async def test_a_grandchild_that_holds_stdout_does_not_hide_the_exit(tmp_path: Path, new_session: bool) -> None:
    source = f"""
        process = subprocess.Popen(["sleep", "600"], stdin=subprocess.DEVNULL, start_new_session={new_session})
        say(process.pid)
        os._exit(0)
    """
    async with running(write_script(tmp_path, source)) as recorder:
        assert await recorder.exit() == ExitStatus(ExitReason.EXITED, 0)
        pid = int(recorder.frames[0])
        if new_session:  # out of reach: nothing but a control group could hold it
            assert is_alive(pid)
            os.kill(pid, signal.SIGKILL)
        await gone(pid)


async def test_the_end_of_stdin_reaches_each_child(tmp_path: Path) -> None:
    script = write_script(tmp_path, ECHO)
    async with running(script) as first, running(script) as second, running(script) as third:
        for recorder in (first, third, second):
            recorder.child.write(b"1")
            await recorder.frames_until(1)
            await recorder.stop(grace=60)
            assert recorder.exits == [ExitStatus(ExitReason.STOPPED, 0)]


async def test_a_line_of_fifty_megabytes_both_ways(tmp_path: Path) -> None:
    frame = b'{"text":"' + b"0123456789abcdef" * (50 * MEGABYTE // 16) + b'"}'
    async with running(write_script(tmp_path, ECHO)) as recorder:
        recorder.child.write(frame)
        await recorder.child.drain()
        await recorder.frames_until(1)
        assert recorder.frames == [frame]
        assert recorder.child.buffered_bytes == 0


async def test_a_frame_too_large_is_dropped_and_counted(tmp_path: Path) -> None:
    source = "say('x' * 3000000)\nsay('ok')\nsys.stdin.read()"
    async with running(write_script(tmp_path, source), max_frame_bytes=MEGABYTE) as recorder:
        assert await recorder.frames_until(1) == [b"ok"]
        assert recorder.child.discarded_frames == 1


async def test_drain_holds_a_writer_back_until_the_child_reads(tmp_path: Path) -> None:
    frame = b"x" * MEGABYTE
    ready = tmp_path / "ready"
    blocked = f"say('up')\nwhile not os.path.exists({str(ready)!r}): time.sleep(0.01)\nwhile os.read(0, 1 << 20): pass"
    async with running(write_script(tmp_path, blocked)) as recorder:
        await recorder.frames_until(1)
        for _ in range(4):
            recorder.child.write(frame)
        draining = asyncio.create_task(recorder.child.drain())
        done, _ = await asyncio.wait({draining}, timeout=0.2)
        assert not done
        ready.touch()
        async with asyncio.timeout(DEADLINE_SECONDS):
            await draining
        await recorder.stop()
        assert recorder.exits == [ExitStatus(ExitReason.STOPPED, 0)]


async def test_a_paused_reader_holds_the_child_back(tmp_path: Path) -> None:
    source = """
        block = "x" * 999 + "\\n"
        for number in range(64 * 1024):
            sys.stdout.write(block)
            if number % 1024 == 0:
                open("progress", "w").write(str(number))
        sys.stdout.flush()
        sys.stdin.read()
    """
    recorder = Recorder(write_script(tmp_path, source))
    recorder.child.pause_reading()
    await recorder.child.start()
    progress = tmp_path / "progress"
    async with asyncio.timeout(DEADLINE_SECONDS):
        while not progress.exists():  # noqa: ASYNC110 - the child has no other way to tell
            await asyncio.sleep(0.02)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.5):
            await recorder.frames_until(512)  # more than the one chunk that may have been read before the pause
    assert int(progress.read_text() or 0) <= 4 * 1024
    recorder.child.resume_reading()
    await recorder.frames_until(64 * 1024)
    await recorder.stop()
    assert recorder.frames == [b"x" * 999] * (64 * 1024)


async def test_drain_raises_when_the_child_dies_meanwhile(tmp_path: Path) -> None:
    async with running(write_script(tmp_path, "say('up')\n" + IGNORE_EOF)) as recorder:
        await recorder.frames_until(1)
        recorder.child.write(b"x" * (8 * MEGABYTE))
        draining = asyncio.create_task(recorder.child.drain())
        await asyncio.sleep(0)
        recorder.child.kill()
        with pytest.raises(UpstreamLost, match="test: its process ended"):
            async with asyncio.timeout(DEADLINE_SECONDS):
                await draining


async def test_write_after_the_exit_is_refused(tmp_path: Path) -> None:
    async with running(write_script(tmp_path, "os._exit(0)")) as recorder:
        await recorder.exit()
        with pytest.raises(UpstreamUnavailable, match="not running"):
            recorder.child.write(b"{}")


async def test_stderr_is_drained_kept_and_cleaned(tmp_path: Path) -> None:
    source = r"""
        for number in range(1000): sys.stderr.write(f"line {number}\n")
        sys.stderr.buffer.write(b"\x1b[31mred\x1b[0m \xff\x07 \x1b]0;title\x07end\r\n\n")
        sys.stderr.flush()
        say("done")
        sys.stdin.read()
    """
    async with running(write_script(tmp_path, source)) as recorder:
        await recorder.frames_until(1)
        await recorder.stop()
        tail = recorder.child.stderr_tail()
        assert tail == [f"line {number}" for number in range(801, 1000)] + ["red \ufffd end"]
        assert recorder.stderr_lines == [f"line {number}" for number in range(1000)] + ["red \ufffd end"]


async def test_a_flood_of_stderr_delays_nothing_and_keeps_nothing(tmp_path: Path) -> None:
    source = """
        block = ("e" * 1023 + "\\n").encode() * 1024
        for _ in range(64): os.write(2, block)
        say("done")
        sys.stdin.read()
    """
    async with running(write_script(tmp_path, source)) as recorder:
        await recorder.frames_until(1)
        assert sum(map(len, recorder.child.stderr_tail())) <= 64 << 10
        assert recorder.child.stderr_tail()[-1] == "e" * 1023


@pytest.mark.parametrize(
    ("command", "cwd", "message"),
    [
        ("no-such-command", None, 'the command "no-such-command" was not found in PATH; install it, or give its full'),
        ("npx", None, "npx comes with Node.js"),
        ("./missing", None, "missing does not exist"),
        ("./plain", None, "plain is not executable; chmod"),
        (".", None, "not found in PATH"),
        ("./", None, "is a directory"),
        ("", None, '"command" is empty'),
        ("./plain", "/no/such/directory", "working directory /no/such/directory does not exist"),
        ("./orphan", None, "the interpreter in its first line does not exist"),
        ("./garbage", None, "no #! line"),
    ],
)
async def test_a_child_that_cannot_start_says_why(tmp_path: Path, command: str, cwd: str | None, message: str) -> None:
    (tmp_path / "plain").touch()
    for name, content in (("orphan", b"#!/no/such/interpreter\n"), ("garbage", b"\x00\x01\x02 garbage")):
        (tmp_path / name).write_bytes(content)
        (tmp_path / name).chmod(0o755)
    before = set(os.listdir("/proc/self/fd"))  # noqa: PTH208
    child = ChildProcess("test", command, [], {"PATH": ""}, cwd or str(tmp_path), never_called, never_called)
    with pytest.raises(UpstreamUnavailable) as caught:
        await child.start()
    assert message in str(caught.value)
    assert str(caught.value).startswith("test: ")
    assert child.pid is None
    await child.stop()
    assert len(set(os.listdir("/proc/self/fd")) - before) == 0  # noqa: PTH208


async def test_descriptors_are_given_back(tmp_path: Path) -> None:
    script = write_script(tmp_path, ECHO)
    async with running(script):
        pass
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    for _ in range(5):
        async with running(script) as recorder:
            recorder.child.write(b"1")
            await recorder.frames_until(1)
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208


async def test_a_handler_that_fails_does_not_end_the_connection(tmp_path: Path) -> None:
    problems: list[str] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: problems.append(context["message"]))
    frames: list[bytes] = []
    done = asyncio.Event()

    def on_frame(frame: bytes) -> None:
        frames.append(frame)
        raise ValueError(frame)

    def on_exit(_: ExitStatus) -> None:
        done.set()
        raise ValueError("exit")

    script = write_script(tmp_path, "say(1)\nsay(2)")
    environment = {"PATH": os.environ["PATH"]}
    child = ChildProcess("test", sys.executable, ["-S", str(script)], environment, None, on_frame, on_exit)
    await child.start()
    async with asyncio.timeout(DEADLINE_SECONDS):
        await done.wait()
    await child.stop()
    assert frames == [b"1", b"2"]
    assert problems == ["a frame could not be handled"] * 2 + ["the exit of test could not be handled"]


async def test_the_child_sees_its_environment_and_directory_only(tmp_path: Path) -> None:
    source = """
        say(sorted(os.environ))
        say(os.getcwd())
        say(os.getpgid(0) == os.getpid())
        say([fd for fd in range(100) if os.path.exists(f"/proc/self/fd/{fd}")])
    """
    async with running(write_script(tmp_path, source)) as recorder:
        await recorder.exit()
        names, cwd, leads, descriptors = recorder.frames
        assert set(eval(names)) <= {"PATH", "LC_CTYPE"}
        assert cwd == str(tmp_path).encode()
        assert leads == b"True"
        assert descriptors == b"[0, 1, 2]"


def test_a_loop_that_is_torn_down_leaves_no_child(tmp_path: Path, loop_factory: LoopFactory) -> None:
    script = write_script(tmp_path, "say('up')\n" + IGNORE_EOF)

    async def start_and_leave() -> int:
        recorder = Recorder(script)
        await recorder.child.start()
        await recorder.frames_until(1)
        assert recorder.child.pid is not None
        return recorder.child.pid

    with asyncio.Runner(loop_factory=loop_factory) as runner:
        pid = runner.run(start_and_leave())
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


async def test_a_start_that_is_cancelled_leaves_no_child(tmp_path: Path) -> None:
    marker = tmp_path / "pid"
    script = write_script(tmp_path, f"open({str(marker)!r}, 'w').write(str(os.getpid()))\n" + IGNORE_EOF)
    recorder = Recorder(script)
    starting = asyncio.create_task(recorder.child.start())
    await asyncio.sleep(0)
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    assert recorder.child.pid is not None
    await gone(recorder.child.pid)
    assert not recorder.exits


async def test_the_exit_is_noticed_without_process_descriptors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "pidfd_open", raising=False)
    async with running(write_script(tmp_path, "say('last')\nos._exit(4)")) as recorder:
        assert await recorder.exit() == ExitStatus(ExitReason.EXITED, 4)
        assert recorder.frames == [b"last"]
    async with running(write_script(tmp_path, ECHO)) as recorder:
        await recorder.stop()
        assert recorder.exits == [ExitStatus(ExitReason.STOPPED, 0)]


async def test_a_group_of_zombies_counts_as_gone() -> None:
    process = subprocess.Popen(["sh", "-c", "exit 0"], start_new_session=True)  # noqa: ASYNC220 - no loop may collect it
    try:
        await gone(process.pid)
        assert signal_group(process.pid, 0)
        assert only_zombies(process.pid)
        assert not only_zombies(os.getpgid(0))
    finally:
        process.wait()
    assert not only_zombies(process.pid)


async def test_start_twice_is_refused(tmp_path: Path) -> None:
    async with running(write_script(tmp_path, ECHO)) as recorder:
        with pytest.raises(RuntimeError, match="started before"):
            await recorder.child.start()
