"""The books of an endurance run: which calls were answered, which failed and why, and samples of polyplex's size."""

import asyncio
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from client import Message, WrongAnswer, error_of, text_of
from processes import memory_kb, open_files


@dataclass(frozen=True, slots=True)
class Sample:
    """Resident memory and open descriptors at one moment."""

    rss_kb: int
    files: int


def grown(values: Sequence[float]) -> float:
    """How much the last fifth lies above the second fifth (the first is warm-up), by medians."""
    fifth = max(len(values) // 5, 1)
    return statistics.median(values[-fifth:]) - statistics.median(values[fifth : 2 * fifth])


@dataclass(slots=True)
class Ledger:
    """Counts every call once. An upstream is down from its kill until its first good answer."""

    patience: float
    done: int = 0
    failed: int = 0
    abandoned: int = 0
    unexplained: int = 0
    sessions_left_open: int = 0
    wrong: list[str] = field(default_factory=lambda: list[str]())
    recoveries: list[float] = field(default_factory=lambda: list[float]())
    samples: list[Sample] = field(default_factory=lambda: list[Sample]())
    killed_at: dict[str, float] = field(default_factory=lambda: dict[str, float]())
    down: set[str] = field(default_factory=lambda: set[str]())
    finished: bool = False
    marks: list[tuple[int, asyncio.Event]] = field(default_factory=lambda: list[tuple[int, asyncio.Event]]())

    def sample(self, pid: int) -> None:
        """Take a sample of a process."""
        self.samples.append(Sample(memory_kb(pid)["Rss"], open_files(pid)))

    def note_kill(self, upstream: str) -> None:
        """From now on this upstream may fail."""
        self.killed_at[upstream] = time.monotonic()
        self.down.add(upstream)

    def count(self) -> None:
        """One more call is over; wakes whom its number was a mark for."""
        self.done += 1
        while self.marks and self.marks[0][0] <= self.done:
            self.marks.pop(0)[1].set()

    async def reached(self, calls: int) -> None:
        """Wait until that many calls are over."""
        if self.finished or self.done >= calls:
            return
        event = asyncio.Event()
        self.marks.append((calls, event))
        self.marks.sort(key=lambda mark: mark[0])
        await event.wait()

    def finish(self) -> None:
        """The clients have ended: nobody waits for more calls."""
        self.finished = True
        for _, event in self.marks:
            event.set()

    def book(self, upstream: str, text: str, began: float, answer: Message) -> bool:
        """Book an answer to the call that carried `text`; answers whether the call succeeded."""
        self.count()
        said = text_of(answer)
        if said == text:
            if upstream in self.down and began > self.killed_at[upstream]:
                self.down.discard(upstream)
                self.recoveries.append(time.monotonic() - self.killed_at[upstream])
            return True
        if said is not None:
            self.wrong.append(f"{upstream}: sent {text!r}, got {said!r}")
            return False
        self.failed += 1
        if began > self.killed_at.get(upstream, 0.0) + 1.0 and upstream not in self.down:
            self.unexplained += 1
            if self.unexplained <= 3:
                self.wrong.append(f"{upstream} failed without a kill: {error_of(answer)[:200]}")
        return False

    def book_silence(self, upstream: str, error: BaseException) -> None:
        """Book a call that got no answer, or one that breaks the protocol."""
        self.count()
        kind = (
            "broken answer"
            if isinstance(error, WrongAnswer)
            else f"no answer in {self.patience:.0f} s or connection lost"
        )
        self.wrong.append(f"{upstream}: {kind}: {error!r}")
