"""When to try again: backoff with jitter, and a breaker that opens after repeated failures and probes half-open."""

import random
from typing import Final

FIRST_SECONDS: Final = 0.25
LONGEST_SECONDS: Final = 60.0
BREAKER_FAILURES: Final = 5
RECENT_FAILURES: Final = 2
STEADY_SECONDS: Final = 5.0


class Backoff:
    """Counts failures. A session that lasted `STEADY_SECONDS` clears the count; shorter ones count as failures."""

    __slots__ = ("_random", "failures")

    def __init__(self, seed: int | None = None) -> None:
        self.failures = 0
        self._random = random.Random(seed)  # noqa: S311 - spreads load, protects nothing

    @property
    def breaker_open(self) -> bool:
        """True once calls fail at once instead of waiting for another attempt."""
        return self.failures >= BREAKER_FAILURES

    def failed(self) -> float:
        """Count a failure; returns the seconds to wait, between half and all of a doubling delay."""
        self.failures += 1
        delay = min(FIRST_SECONDS * 2 ** (self.failures - 1), LONGEST_SECONDS)
        return delay * (0.5 + self._random.random() / 2)

    def connected(self) -> None:
        """A session could be opened: the breaker closes, but the next quick loss is not waited out from the start."""
        self.failures = min(self.failures, RECENT_FAILURES)

    def lasted(self, seconds: float) -> None:
        """A session ended after having been usable for that long."""
        if seconds >= STEADY_SECONDS:
            self.failures = 0
