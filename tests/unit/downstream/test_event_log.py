from hypothesis import given, settings
from hypothesis import strategies as st

from polyplex.downstream import event_log
from polyplex.downstream.event_log import GENERAL, MAX_BYTES, MAX_EVENTS, MemoryEventLog, event_id


def missed(log: MemoryEventLog, last: bytes) -> list[bytes] | None:
    found = log.after(last.decode())
    return None if found is None else [frame for _, frame in found[1]]


def test_what_came_after_an_event_of_the_same_stream() -> None:
    log = MemoryEventLog()
    one, other = log.open_stream(), log.open_stream()
    first = log.append(one, b"1")
    log.append(other, b"x")
    log.append(GENERAL, b"g")
    second = log.append(one, b"2")
    assert log.after(first.decode()) == (one, [(second, b"2")])
    assert missed(log, event_id(one, 0)) == [b"1", b"2"]
    assert missed(log, event_id(other, 0)) == [b"x"]
    assert missed(log, event_id(GENERAL, 0)) == [b"g"]
    assert missed(log, second) == []


def test_the_latest_event_of_a_stream() -> None:
    log = MemoryEventLog()
    assert log.latest(GENERAL) == b"g-0"
    last = log.append(GENERAL, b"1")
    log.append(log.open_stream(), b"x")
    assert log.latest(GENERAL) == last
    assert missed(log, log.latest(GENERAL)) == []


def test_ids_that_are_made_up() -> None:
    log = MemoryEventLog()
    log.append(GENERAL, b"1")
    for made_up in ("", "-", "g", "g-", "g-2", "g-x", "g--1", "g-1-1", "c1-0", "g-" + "1" * 5000, "g-1 "):
        assert log.after(made_up) is None


def test_the_log_is_bounded_by_number() -> None:
    log = MemoryEventLog()
    for number in range(MAX_EVENTS * 3):
        log.append(GENERAL, b"%d" % number)
    frames = missed(log, event_id(GENERAL, 0))
    assert frames == [b"%d" % number for number in range(MAX_EVENTS * 2, MAX_EVENTS * 3)]


def test_the_log_is_bounded_by_bytes_but_keeps_the_last() -> None:
    log = MemoryEventLog()
    log.append(GENERAL, b"small")
    log.append(GENERAL, b"x" * (MAX_BYTES + 1))
    assert [len(frame) for frame in missed(log, event_id(GENERAL, 0)) or []] == [MAX_BYTES + 1]
    log.append(GENERAL, b"last")
    assert missed(log, event_id(GENERAL, 0)) == [b"last"]


def test_a_stream_that_was_forgotten_and_goes_on_repeats_no_id() -> None:
    log = MemoryEventLog()
    old = log.open_stream()
    ids = {log.append(old, b"1")}
    for _ in range(MAX_EVENTS * 2):
        log.open_stream()
    again = log.append(old, b"2")
    assert again not in ids
    assert missed(log, again) == []
    assert len(log._last) <= MAX_EVENTS


operations = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 40)), max_size=200)


@settings(max_examples=50)
@given(operations)
def test_any_client_gets_each_remembered_event_once_and_in_order(operations: list[tuple[int, int]]) -> None:
    log = MemoryEventLog()
    names = [GENERAL, *(log.open_stream() for _ in range(3))]
    sent: dict[str, list[tuple[bytes, bytes]]] = {name: [] for name in names}
    for number, (stream, size) in enumerate(operations):
        frame = b"%d " % number + b"x" * size
        sent[names[stream]].append((log.append(names[stream], frame), frame))
    for name, events in sent.items():
        assert log.after(event_id(name, 0).decode()) == (name, events)
        for position, (identifier, _) in enumerate(events):
            assert log.after(identifier.decode()) == (name, events[position + 1 :])


@settings(max_examples=50)
@given(st.lists(st.integers(0, MAX_BYTES // 4), max_size=40))
def test_the_bounds_always_hold(sizes: list[int]) -> None:
    log = MemoryEventLog()
    for size in sizes:
        log.append(GENERAL, bytes(size))
        held = [len(frame) for _, _, frame in log._events]
        assert len(held) <= event_log.MAX_EVENTS
        assert sum(held) == log._bytes
        assert sum(held) <= MAX_BYTES or len(held) == 1
