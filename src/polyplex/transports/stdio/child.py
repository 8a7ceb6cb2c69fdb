"""A child process that speaks frames over its stdin and stdout: the client half of the stdio transport.

Knows nothing of messages; `polyplex.upstreams` is above, `polyplex.protocol.framing` below. The shutdown ladder is that
of the specification (2025-11-25, Lifecycle, Shutdown): stdin closed, SIGTERM, SIGKILL, here to the whole process group.
"""

import asyncio
import os
import signal
import subprocess
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Final

from polyplex.errors import UpstreamLost, UpstreamUnavailable
from polyplex.transports.stdio.command import explain_start_failure, find_program
from polyplex.transports.stdio.pipes import MAX_FRAME_BYTES, FrameReader, FrameWriter, open_pipe, read_rest
from polyplex.transports.stdio.process_group import ExitReason, ExitStatus, ExitWatch, ProcessGroup
from polyplex.transports.stdio.stderr_tail import StderrTail

STOP_GRACE_SECONDS: Final = 2.0
# How long what is left of the group may go on writing after its leader has ended.
LINGER_SECONDS: Final = 0.5
# How long a child that has closed its stdout may take to end by itself.
CLOSED_STDOUT_SECONDS: Final = 1.0
KILL_SECONDS: Final = 5.0


class _StderrProtocol(asyncio.Protocol):
    def __init__(self, tail: StderrTail) -> None:
        self._tail = tail

    def data_received(self, data: bytes) -> None:
        self._tail.feed(data)


class ChildProcess:
    """One child in a process group of its own.

    `on_frame` gets each frame in order; `on_exit` comes exactly once, after the last frame and after the last of
    stderr, for every child whose `start` succeeded (possibly before `start` returns). Both are plain functions and
    must not block. When the event loop is torn down around a running child, it is killed and `on_exit` does not come.
    """

    def __init__(
        self,
        name: str,
        command: str,
        args: Sequence[str],
        env: Mapping[str, str],
        cwd: str | None,
        on_frame: Callable[[bytes], None],
        on_exit: Callable[[ExitStatus], None],
        max_frame_bytes: int = MAX_FRAME_BYTES,
        on_stderr_line: Callable[[str], None] | None = None,
    ) -> None:
        self.name = name
        self._command, self._args, self._env, self._cwd = command, tuple(args), dict(env), cwd
        self._on_exit = on_exit
        self._reader = FrameReader(on_frame, self._note_stdout_closed, max_frame_bytes)
        self._writer = FrameWriter()
        self._stderr = StderrTail(on_stderr_line)
        # The two things that end a child, and either of them.
        self._exited, self._stdout_closed, self._ending = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._process: subprocess.Popen[bytes] | None = None
        self._stderr_transport: asyncio.ReadTransport | None = None
        self._group: ProcessGroup | None = None
        self._exit_watch: ExitWatch | None = None
        self._supervisor: asyncio.Task[None] | None = None
        self._ladder: asyncio.Task[None] | None = None
        self._reading = asyncio.Event()
        self._reading.set()
        self._stopping = False
        self._closed_stdout = False

    @property
    def pid(self) -> int | None:
        """The process id, and the id of the process group; None before `start`."""
        return None if self._group is None else self._group.pid

    @property
    def discarded_frames(self) -> int:
        """How many frames were longer than `max_frame_bytes` and thrown away."""
        return self._reader.discarded

    @property
    def buffered_bytes(self) -> int:
        """Bytes written that the child's pipe has not taken yet."""
        return self._writer.buffered_bytes

    def stderr_tail(self) -> list[str]:
        """The last lines of stderr, at most 200 or 64 KiB, as clean text."""
        return self._stderr.lines()

    async def start(self) -> None:
        """Start the child. Raises UpstreamUnavailable with what is wrong and what to do."""
        if self._process is not None:
            raise RuntimeError(f"{self.name} has been started before")
        program = find_program(self.name, self._command, self._env, self._cwd)
        pipes = [open_pipe(large=True), open_pipe(large=True), open_pipe(large=False)]
        (child_in, our_in), (our_out, child_out), (our_err, child_err) = pipes
        ours = [our_in, our_out, our_err]
        try:
            group = self._spawn(program, child_in, child_out, child_err)
            await _uncancelled(self._connect(ours))
        except BaseException:
            self._abandon()
            for fd in ours:
                os.close(fd)
            raise
        finally:
            for fd in (child_in, child_out, child_err):
                os.close(fd)
        self._supervisor = asyncio.create_task(self._supervise(group), name=f"child {self.name}")  # noqa: TID251 - kept

    def write(self, frame: bytes) -> None:
        """Send one frame (the newline is added). Raises UpstreamUnavailable, with nothing sent, if it cannot be."""
        if not self._writer.write(frame):
            raise UpstreamUnavailable(self.name, "its process is not running, or has closed its stdin")

    async def drain(self) -> None:
        """Wait while more than 1 MiB waits for the child to read it. Raises UpstreamLost when the child is gone."""
        await self._writer.drain()
        if self._writer.closed:
            raise UpstreamLost(self.name, "its process ended, or closed its stdin, while it was being written to")

    def pause_reading(self) -> None:
        """Read no more of the child's stdout: it will block when its pipe is full."""
        self._reader.pause()
        self._reading.clear()

    def resume_reading(self) -> None:
        """Read again."""
        self._reader.resume()
        self._reading.set()

    async def stop(self, grace: float = STOP_GRACE_SECONDS) -> None:
        """Close stdin, after `grace` seconds send SIGTERM, after `grace` more SIGKILL, and wait for the group's end.

        May be called again and concurrently; a cancelled call does not stop the ladder.
        """
        if self._supervisor is None or self._group is None:
            return
        self._stopping = True
        self._reading.set()
        if not self._exited.is_set():
            self._descend_once(self._group, grace)
        await asyncio.shield(self._supervisor)

    def kill(self) -> None:
        """Send the whole group SIGKILL at once. `stop` still has to be awaited for the rest."""
        if self._group is not None:
            self._group.signal(signal.SIGKILL)

    def _spawn(self, program: str, stdin: int, stdout: int, stderr: int) -> ProcessGroup:
        command = [program, *self._args]
        try:
            self._process = subprocess.Popen(  # noqa: S603 - running what is configured is what we are for
                command,
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                env=self._env,
                cwd=self._cwd,
                start_new_session=True,
            )
        except OSError as error:
            raise explain_start_failure(self.name, program, error) from error
        except ValueError as error:  # a NUL in an argument or a variable
            raise UpstreamUnavailable(self.name, f"{program} cannot run: {error}") from error
        self._group = ProcessGroup(self._process.pid)
        self._exit_watch = ExitWatch(self._process, self._note_exit)
        return self._group

    async def _connect(self, ours: list[int]) -> None:
        """Connect our ends of the pipes; an end leaves `ours` when a transport owns it."""
        loop = asyncio.get_running_loop()
        await loop.connect_write_pipe(lambda: self._writer, os.fdopen(ours.pop(0), "wb", buffering=0))
        await loop.connect_read_pipe(lambda: self._reader, os.fdopen(ours.pop(0), "rb", buffering=0))
        stderr = os.fdopen(ours.pop(0), "rb", buffering=0)
        self._stderr_transport, _ = await loop.connect_read_pipe(lambda: _StderrProtocol(self._stderr), stderr)

    def _abandon(self) -> None:
        """End the child without the help of the event loop, which is about to go."""
        self.kill()
        if self._exit_watch is not None and not self._exited.is_set():
            self._exit_watch.close()
        if self._group is not None:
            self._group.forget()
        self._writer.abort()
        self._reader.close()
        if self._stderr_transport is not None:
            self._stderr_transport.close()

    def _note_exit(self) -> None:
        self._exited.set()
        self._ending.set()

    def _note_stdout_closed(self) -> None:
        self._stdout_closed.set()
        self._ending.set()

    async def _supervise(self, group: ProcessGroup) -> None:
        """See the child to its end: last frames, exit report, survivors of its group."""
        try:
            await self._ending.wait()
            if not await _within(CLOSED_STDOUT_SECONDS, self._exited):
                await self._end_silent_child(group)
            self._writer.abort()
            await self._read_last_frames(group)
            self._close()
            self._report_exit()
            await group.end()
            if self._ladder is not None:
                await self._ladder
        except asyncio.CancelledError:
            self._abandon()
            raise

    async def _end_silent_child(self, group: ProcessGroup) -> None:
        self._closed_stdout = self._ladder is None
        self._descend_once(group, STOP_GRACE_SECONDS)
        await self._exited.wait()

    def _descend_once(self, group: ProcessGroup, grace: float) -> None:
        if self._ladder is None:
            name = f"stop {self.name}"
            self._ladder = asyncio.create_task(self._descend(group, grace), name=name)  # noqa: TID251 - kept

    async def _descend(self, group: ProcessGroup, grace: float) -> None:
        """The shutdown ladder."""
        self._writer.close()
        if await _within(grace, self._exited):
            return
        self._writer.abort()
        group.signal(signal.SIGTERM)
        if await _within(grace, self._exited):
            return
        group.signal(signal.SIGKILL)
        if not await _within(KILL_SECONDS, self._exited):
            # Not even SIGKILL ends a process that hangs in the kernel. Nobody must wait for it for ever.
            self._note_exit()

    async def _read_last_frames(self, group: ProcessGroup) -> None:
        """Wait for the end of stdout. Others of the group may hold it open: they get a moment, then they are ended."""
        while not await _within(LINGER_SECONDS, self._stdout_closed):
            if self._stopping or self._reading.is_set():
                await group.end()
                self._reader.read_rest()
                return
            await self._reading.wait()

    def _close(self) -> None:
        if self._stderr_transport is not None:
            read_rest(self._stderr_transport, self._stderr.feed)
            self._stderr_transport.close()

    def _report_exit(self) -> None:
        returncode = None if self._process is None else self._process.returncode
        if self._closed_stdout:
            reason = ExitReason.CLOSED_STDOUT
        elif self._ladder is not None:
            reason = ExitReason.STOPPED
        else:
            reason = ExitReason.SIGNALLED if (returncode or 0) < 0 else ExitReason.EXITED
        try:
            self._on_exit(ExitStatus(reason, returncode))
        except Exception as error:  # noqa: BLE001 - whatever the owner did wrong
            context = {"message": f"the exit of {self.name} could not be handled", "exception": error}
            asyncio.get_running_loop().call_exception_handler(context)


async def _uncancelled(work: Coroutine[None, None, None]) -> None:
    """Finish `work` even when cancelled meanwhile: a loop that is interrupted in it loses track of descriptors."""
    task = asyncio.create_task(work)  # noqa: TID251 - awaited
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await task
        raise


async def _within(seconds: float, event: asyncio.Event) -> bool:
    """Wait for `event`, at most `seconds`; whether it came."""
    if event.is_set():
        return True
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return False
    return True
