"""Our own stdin and stdout as an endpoint: a real process, with all that stdin and stdout can be."""

import os
import pty
import socket
import subprocess
import sys
import termios
import threading
from pathlib import Path

import pytest

ECHO_SERVER = """
import asyncio, os, subprocess, sys
import {loop}
from polyplex.transports.stdio import StdioEndpointTransport

async def main():
    ended = asyncio.Event()
    pending = asyncio.Queue()
    if not sys.stdout.isatty():
        print("printed before the start")
    transport = StdioEndpointTransport(pending.put_nowait, ended.set, max_frame_bytes=64 << 20)
    await transport.start()
    print("printed after it", flush=True)
    os.write(1, b"written to 1\\n")
    subprocess.run(["echo", "from a subprocess"], stdin=subprocess.DEVNULL)
    {extra}
    async def echo():
        while True:
            transport.write(await pending.get())
            await transport.drain()
    echoing = asyncio.create_task(echo())
    await ended.wait()
    while pending.qsize():
        await asyncio.sleep(0)
    await asyncio.sleep(0)
    await transport.close(10)
    echoing.cancel()
    print(transport.buffered_bytes, transport.discarded_frames, file=sys.stderr)
    assert not transport.write(b"late")

with asyncio.Runner(loop_factory={loop}.new_event_loop) as runner:
    runner.run(main())
"""
STRAY = ["printed before the start", "printed after it", "written to 1", "from a subprocess"]
DEADLINE_SECONDS = 30.0


@pytest.fixture(params=["uvloop", "asyncio"])
def server(request: pytest.FixtureRequest) -> list[str]:
    """The command of an echo server on either event loop."""
    return [sys.executable, "-W", "error", "-c", ECHO_SERVER.format(loop=request.param, extra="")]


@pytest.fixture(autouse=True)
def buffered_stdout(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the server buffer what it prints, as it does by default."""
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)


def assert_stray_output(stderr: bytes, *, discarded: int = 0, expected: list[str] = STRAY) -> None:
    """All that was printed has come out of stderr, and nothing went wrong."""
    assert sorted(stderr.decode().splitlines()) == sorted([*expected, f"0 {discarded}"])


def test_pipes(server: list[str]) -> None:
    result = subprocess.run(server, input=b'{"a":1}\r\n\n2\nlast', capture_output=True, timeout=DEADLINE_SECONDS)
    assert result.stdout == b'{"a":1}\n2\nlast\n'
    assert_stray_output(result.stderr)
    assert result.returncode == 0


def test_fifty_megabytes(server: list[str]) -> None:
    frame = b"0123456789abcdef" * (50 << 16) + b"\n"
    result = subprocess.run(server, input=frame, capture_output=True, timeout=DEADLINE_SECONDS)
    assert result.stdout == frame
    assert_stray_output(result.stderr)


def test_a_frame_too_large_is_dropped(server: list[str]) -> None:
    frame = b"x" * (65 << 20) + b"\nok\n"
    result = subprocess.run(server, input=frame, capture_output=True, timeout=DEADLINE_SECONDS)
    assert result.stdout == b"ok\n"
    assert_stray_output(result.stderr, discarded=1)


def test_files(server: list[str], tmp_path: Path) -> None:
    lines = b"".join(b"%d\n" % number for number in range(100_000))
    (tmp_path / "in").write_bytes(lines)
    with (tmp_path / "in").open("rb") as stdin, (tmp_path / "out").open("wb") as stdout:
        result = subprocess.run(server, stdin=stdin, stdout=stdout, stderr=subprocess.PIPE, timeout=DEADLINE_SECONDS)
    assert (tmp_path / "out").read_bytes() == lines
    assert_stray_output(result.stderr)


def test_nothing_to_read_and_nobody_to_write_to(server: list[str]) -> None:
    null = subprocess.DEVNULL
    result = subprocess.run(server, stdin=null, stdout=null, stderr=subprocess.PIPE, timeout=DEADLINE_SECONDS)
    assert_stray_output(result.stderr)


def test_two_socket_pairs_as_node_gives(server: list[str]) -> None:
    our_in, its_in = socket.socketpair()
    our_out, its_out = socket.socketpair()
    with our_in, our_out:
        with its_in, its_out:
            process = subprocess.Popen(server, stdin=its_in.fileno(), stdout=its_out.fileno(), stderr=subprocess.PIPE)
        our_in.sendall(b"1\n2\n")
        our_in.shutdown(socket.SHUT_WR)
        with our_out.makefile("rb") as lines:
            assert lines.read() == b"1\n2\n"
        assert_stray_output(process.communicate(timeout=DEADLINE_SECONDS)[1])


def test_one_socket_both_ways_as_inetd_gives(server: list[str]) -> None:
    ours, its = socket.socketpair()
    with ours:
        with its:
            process = subprocess.Popen(server, stdin=its.fileno(), stdout=its.fileno(), stderr=subprocess.PIPE)
        ours.sendall(b"1\n2\n")
        with ours.makefile("rb") as lines:
            assert [lines.readline(), lines.readline()] == [b"1\n", b"2\n"]
            ours.shutdown(socket.SHUT_WR)
            assert lines.read() == b""
        assert_stray_output(process.communicate(timeout=DEADLINE_SECONDS)[1])


def test_a_terminal_stays_blocking(server: list[str]) -> None:
    ours, its = pty.openpty()
    attributes = termios.tcgetattr(its)
    attributes[3] &= ~termios.ECHO
    termios.tcsetattr(its, termios.TCSANOW, attributes)
    process = subprocess.Popen(server, stdin=its, stdout=its, stderr=subprocess.PIPE)
    os.write(ours, b"1\n")
    assert os.read(ours, 100) == b"1\r\n"
    assert os.get_blocking(its)
    os.write(ours, b"\x04")
    assert_stray_output(process.communicate(timeout=DEADLINE_SECONDS)[1], expected=STRAY[1:])
    os.close(its)
    os.close(ours)


def test_a_client_that_reads_slowly_gets_all(server: list[str]) -> None:
    process = subprocess.Popen(server, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    line = b"x" * 9999 + b"\n"
    assert process.stdin is not None and process.stdout is not None and process.stderr is not None

    def feed(stdin: int) -> None:
        with os.fdopen(stdin, "wb") as file:
            file.write(line * 2000)

    feeder = threading.Thread(target=feed, args=(os.dup(process.stdin.fileno()),))
    process.stdin.close()
    feeder.start()
    received = 0
    while data := process.stdout.read(65536):
        received += len(data)
    feeder.join(DEADLINE_SECONDS)
    assert received == 2000 * len(line)
    with process.stdout, process.stderr:
        assert_stray_output(process.stderr.read())
        assert process.wait(DEADLINE_SECONDS) == 0


def test_a_client_that_is_gone_ends_nothing_by_surprise(server: list[str]) -> None:
    process = subprocess.Popen(server, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdin is not None and process.stdout is not None and process.stderr is not None
    process.stdout.close()
    with process.stdin as stdin:
        stdin.write(b"x\n" * 100)
        stdin.flush()
    with process.stderr:
        assert_stray_output(process.stderr.read())
    assert process.wait(DEADLINE_SECONDS) == 0


@pytest.mark.parametrize("source", ["pipe", "file"])
def test_a_paused_endpoint_reads_no_more(tmp_path: Path, source: str) -> None:
    extra = """
    transport.pause_reading()
    await asyncio.sleep(0.2)
    assert not ended.is_set()
    assert pending.qsize() <= 300_000
    transport.resume_reading()
"""
    command = [sys.executable, "-c", ECHO_SERVER.format(loop="uvloop", extra=extra)]
    data = b"1\n" * 500_000
    if source == "pipe":
        result = subprocess.run(command, input=data, capture_output=True, timeout=DEADLINE_SECONDS)
    else:
        (tmp_path / "in").write_bytes(data)
        with (tmp_path / "in").open("rb") as stdin:
            result = subprocess.run(command, stdin=stdin, capture_output=True, timeout=DEADLINE_SECONDS)
    assert_stray_output(result.stderr)
    assert result.stdout == data


def test_without_stderr_stray_output_goes_nowhere(server: list[str]) -> None:
    command = ["sh", "-c", 'exec "$@" 2>&-', "sh", *server]
    result = subprocess.run(command, input=b"1\n", capture_output=True, timeout=DEADLINE_SECONDS)
    assert result.stdout == b"1\n"
