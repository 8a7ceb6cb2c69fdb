"""Ends the children of a polyplex that was killed and could not do so itself.

One helper process holds the read end of a pipe whose write end only polyplex has, and is told there which process
groups live. When the pipe ends, polyplex is gone: after a moment (the children see the end of their stdin at the same
time) it sends the groups that are left SIGTERM, then SIGKILL. The helper runs this very file as a script without site
packages, so this module imports little and nothing of polyplex.
"""

import contextlib
import os
import signal
import sys
import time

STDIN_END_SECONDS = 1.0
TERMINATE_SECONDS = 2.0
POLL_SECONDS = 0.05


def read_start_time(pid: int) -> str:
    """Return when `pid` started, in the unit of /proc, or nothing where that is not known."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123 - pathlib would double the size of the helper
            # The name, in parentheses, may itself hold spaces and parentheses; the start time is field 22.
            return file.read().rpartition(b")")[2].split()[19].decode()
    except (OSError, IndexError):
        return ""


def signal_group(group: int, number: int, start_time: str = "") -> bool:
    """Send signal `number` (0: only look) to a process group; False when there is none.

    A leader that started at another time than `start_time` is a stranger who got the same id: it is left alone.
    """
    if group <= 1:
        raise ValueError(f"{group} is not the process group of a child")
    if start_time and read_start_time(group) not in ("", start_time):
        return False
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def wait_for_groups(groups: dict[int, str], seconds: float) -> None:
    """Wait until the groups are gone, at most `seconds`, and drop those that are."""
    deadline = time.monotonic() + seconds
    while True:
        for group in [group for group, start in groups.items() if not signal_group(group, 0, start)]:
            del groups[group]
        if not groups or time.monotonic() > deadline:
            return
        time.sleep(POLL_SECONDS)  # noqa: TID251 - the helper has no event loop


def end_groups(groups: dict[int, str]) -> None:
    """Let the groups end by themselves, then ask them to, then kill them."""
    wait_for_groups(groups, STDIN_END_SECONDS)
    for group, start in groups.items():
        signal_group(group, signal.SIGTERM, start)
    wait_for_groups(groups, TERMINATE_SECONDS)
    for group, start in groups.items():
        signal_group(group, signal.SIGKILL, start)


def run_helper() -> None:
    """Run the helper: read `+group start` and `-group` lines from stdin to its end, then end what is left."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    os.chdir("/")
    groups: dict[int, str] = {}
    rest = b""
    while chunk := os.read(0, 65536):
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            group, _, start = line[1:].decode().partition(" ")
            if line.startswith(b"+"):
                groups[int(group)] = start
            else:
                groups.pop(int(group), None)
    end_groups(groups)


class Reaper:
    """Our side of the helper process: started with the first group, started again should it die."""

    def __init__(self) -> None:
        self._groups: dict[int, str] = {}
        self._write_end = -1
        self.pid = 0

    def watch(self, group: int) -> None:
        """See that the process group `group`, whose leader has just been started, does not outlive us."""
        self._groups[group] = read_start_time(group)
        self._tell(f"+{group} {self._groups[group]}\n")

    def forget(self, group: int) -> None:
        """The process group `group` has ended."""
        if self._groups.pop(group, None) is not None:
            self._tell(f"-{group}\n")

    def close(self) -> None:
        """Let the helper go, as at the end of our own process."""
        if self._write_end >= 0:
            os.close(self._write_end)
            self._write_end = -1

    def _tell(self, line: str) -> None:
        if self._write_end >= 0:
            try:
                os.write(self._write_end, line.encode())
                return
            except BlockingIOError:
                return  # The helper is stopped or starved. It is a net below the net; polyplex must not wait for it.
            except OSError:
                self.close()
        if self._groups:
            self._start()

    def _start(self) -> None:
        # A frozen program has no interpreter that could run a file; it does without the helper.
        if not sys.executable or getattr(sys, "frozen", False):
            return
        import subprocess

        read_end, self._write_end = os.pipe()
        os.set_blocking(self._write_end, False)
        # Of the environment only what the interpreter itself may need to start; secrets have no business there.
        needed = {name: value for name, value in os.environ.items() if name.startswith(("LD_LIBRARY", "DYLD_"))}
        try:
            process = subprocess.Popen(  # noqa: S603 - our own interpreter and file
                [sys.executable, "-I", "-S", __file__],
                stdin=read_end,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=needed,
                start_new_session=True,
            )
        except OSError:
            self.close()
            return
        finally:
            os.close(read_end)
        # Popen would warn that the process still runs when we end. It is meant to: it outlives us by design.
        process.returncode = 0
        _collect(self.pid)
        self.pid = process.pid
        for group, start in self._groups.items():
            self._tell(f"+{group} {start}\n")


def _collect(pid: int) -> None:
    """Take away the remains of a helper that died."""
    if pid:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)


class _OfThisProcess:
    reaper = Reaper()


def current_reaper() -> Reaper:
    """Return the reaper of this process; a fork gets its own."""
    return _OfThisProcess.reaper


def _start_anew() -> None:
    # A fork that kept the write end would hide our end from the helper.
    _OfThisProcess.reaper.close()
    _OfThisProcess.reaper = Reaper()


if __name__ == "__main__":
    run_helper()
else:
    os.register_at_fork(after_in_child=_start_anew)
