import pytest

from polyplex.upstreams.reconnect import BREAKER_FAILURES, FIRST_SECONDS, LONGEST_SECONDS, STEADY_SECONDS, Backoff


def test_delays_double_up_to_the_longest_and_lie_between_half_and_all_of_it() -> None:
    backoff = Backoff(seed=1)
    for failure in range(40):
        whole = min(FIRST_SECONDS * 2**failure, LONGEST_SECONDS)
        assert whole / 2 <= backoff.failed() <= whole


def test_delays_of_two_servers_differ() -> None:
    assert [Backoff(seed=1).failed() for _ in range(3)] != [Backoff(seed=2).failed() for _ in range(3)]
    one, same = Backoff(seed=3), Backoff(seed=3)
    assert [one.failed() for _ in range(9)] == [same.failed() for _ in range(9)]


def test_the_breaker_opens_after_repeated_failures() -> None:
    backoff = Backoff()
    states = [backoff.breaker_open]
    for _ in range(BREAKER_FAILURES + 1):
        backoff.failed()
        states.append(backoff.breaker_open)
    assert states == [False] * BREAKER_FAILURES + [True, True]


@pytest.mark.parametrize(("seconds", "left"), [(0.0, 7), (STEADY_SECONDS - 0.01, 7), (STEADY_SECONDS, 0), (1e9, 0)])
def test_only_a_session_that_lasted_clears_the_count(seconds: float, left: int) -> None:
    backoff = Backoff()
    for _ in range(7):
        backoff.failed()
    backoff.lasted(seconds)
    assert backoff.failures == left
    assert backoff.breaker_open == (left > 0)
