import pytest

from polyplex.errors import RpcError
from polyplex.gateway.states import State, States
from polyplex.store.seal import KeyRing, key_of

RING = KeyRing([key_of("a secret of the test")])


class Clock:
    """Seconds since 1970, as the test says."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize(
    ("caller", "digest", "passed", "says"),
    [
        ("me", b"d", 5.0, None),
        ("you", b"d", 5.0, "given to somebody else"),
        ("me", b"e", 5.0, "belongs to another request"),
        ("me", b"d", 5000.0, "has expired"),
    ],
)
def test_a_state_is_good_for_its_caller_its_request_and_a_time(
    caller: str, digest: bytes, passed: float, says: str | None
) -> None:
    clock = Clock()
    states = States(lambda: RING, clock)
    state = State("parked", "me", b"d", states.expiry(60.0), call="c", round=2)
    text = states.seal(state)
    clock.now += passed
    if says is None:
        assert states.open(text, caller, digest) == state
        return
    with pytest.raises(RpcError, match=says) as refused:
        states.open(text, caller, digest)
    assert refused.value.code == -32602
