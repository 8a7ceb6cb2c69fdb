import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyplex.errors import LocalProtocolError, RemoteProtocolError
from polyplex.protocol.framing import BYTE_ORDER_MARK
from polyplex.protocol.sse import COMMENT, SseDecoder, SseEvent, encode_event

UNBOUNDED = 1 << 30
FIELDS = [
    b"data",
    b"event",
    b"id",
    b"retry",
    b":",
    b": ",
    b" ",
    b"\n",
    b"\r",
    b"\r\n",
    b"\0",
    b"7",
    b"x",
    BYTE_ORDER_MARK,
]
streams = st.lists(st.sampled_from(FIELDS) | st.binary(max_size=5)).map(b"".join)
one_line = st.binary(max_size=20).filter(lambda value: not {0, 10, 13} & set(value))


def decode(*chunks: bytes, max_event_bytes: int = UNBOUNDED) -> list[SseEvent]:
    decoder = SseDecoder(max_event_bytes)
    return [event for chunk in chunks for event in decoder.feed(chunk)]


def test_one_message() -> None:
    assert decode(b'event: message\ndata: {"a":1}\n\n') == [SseEvent(b"message", b'{"a":1}')]


def test_the_event_is_message_unless_named() -> None:
    assert decode(b"data: 1\n\nevent: endpoint\ndata: 2\n\ndata: 3\n\nevent:\ndata: 4\n\n") == [
        SseEvent(b"message", b"1"),
        SseEvent(b"endpoint", b"2"),
        SseEvent(b"message", b"3"),
        SseEvent(b"message", b"4"),
    ]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_line_ends_in_any_chunks(end: bytes, size: int) -> None:
    data = BYTE_ORDER_MARK + end.join([b"id: 1", b"data: a", b"data: b", b"", b": ping", b"", b"data: c", b"", b""])
    chunks = [data[at : at + size] for at in range(0, len(data), size)]
    assert decode(*chunks) == [SseEvent(b"message", b"a\nb", b"1"), SseEvent(b"message", b"c")]


def test_an_event_ended_by_cr_does_not_wait_for_a_newline() -> None:
    decoder = SseDecoder(100)
    assert decoder.feed(b"data: a\r\n\r") == [SseEvent(b"message", b"a")]
    assert decoder.feed(b"\ndata: b\n\n") == [SseEvent(b"message", b"b")]


def test_only_one_space_after_the_colon_is_dropped() -> None:
    assert decode(b"data:a\n\ndata:  b\n\ndata\n\ndata:\n\n") == [
        SseEvent(b"message", b"a"),
        SseEvent(b"message", b" b"),
        SseEvent(b"message", b""),
        SseEvent(b"message", b""),
    ]


def test_data_lines_are_joined() -> None:
    assert decode(b"data\ndata: \ndata: x\n\n") == [SseEvent(b"message", b"\n\nx")]


def test_comments_and_unknown_fields_are_ignored() -> None:
    assert decode(COMMENT + b": note\nfoo: bar\nDATA: no\ndata: x\n\n") == [SseEvent(b"message", b"x")]


def test_an_event_without_data_id_and_retry_is_dropped_with_its_name() -> None:
    assert decode(b"event: gone\n\ndata: x\n\n") == [SseEvent(b"message", b"x")]


def test_a_priming_event_is_reported() -> None:
    assert decode(b"id: 7\ndata:\n\nid: 8\n\nretry: 3000\n\n") == [
        SseEvent(b"message", b"", b"7"),
        SseEvent(b"message", b"", b"8"),
        SseEvent(b"message", b"", None, 3000),
    ]


def test_an_id_is_that_of_its_event_and_may_be_empty() -> None:
    assert [event.id for event in decode(b"id: 1\ndata: a\n\ndata: b\n\nid\ndata: c\n\n")] == [b"1", None, b""]


def test_an_id_with_nul_is_ignored() -> None:
    assert decode(b"id: a\0b\ndata: x\n\n") == [SseEvent(b"message", b"x")]


@pytest.mark.parametrize("value", [b"", b"-1", b"1.5", b"soon", b"1 ", b"\xd9\xa1", b"9" * 5000])
def test_a_retry_that_is_no_number_is_ignored(value: bytes) -> None:
    assert decode(b"retry: " + value + b"\ndata: x\n\n") == [SseEvent(b"message", b"x")]


def test_an_event_that_never_ends_is_dropped() -> None:
    assert decode(b"data: x\n") == []


@pytest.mark.parametrize("size", [1, 5, 10_000])
@pytest.mark.parametrize(
    "stream", [b"data: " + b"x" * 101, b"data: " + b"x" * 101 + b"\n\n", b"data: 0123456789\n" * 10, b": " + b"x" * 200]
)
def test_an_event_too_large_is_refused(stream: bytes, size: int) -> None:
    with pytest.raises(RemoteProtocolError, match="larger than 100 bytes"):
        decode(*(stream[at : at + size] for at in range(0, len(stream), size)), max_event_bytes=100)


@pytest.mark.parametrize("size", [1, 5, 10_000])
def test_an_event_of_just_the_allowed_size_passes(size: int) -> None:
    stream = (b"data: " + b"x" * 100 + b"\n\n") * 3
    events = decode(*(stream[at : at + size] for at in range(0, len(stream), size)), max_event_bytes=100)
    assert events == [SseEvent(b"message", b"x" * 100)] * 3


def test_a_long_data_line_in_pieces() -> None:
    data = bytes(range(32, 127)) * 20_000
    stream = encode_event(data, id=b"1")
    for size in (999, 4096, 65536):
        chunks = [stream[at : at + size] for at in range(0, len(stream), size)]
        assert decode(*chunks) == [SseEvent(b"message", data, b"1")]


def test_fifty_megabytes_in_small_chunks() -> None:
    piece = b"x" * 65536
    decoder = SseDecoder(UNBOUNDED)
    assert decoder.feed(b"data: ") == []
    for _ in range(800):
        assert decoder.feed(piece) == []
    (event,) = decoder.feed(b"\n\n")
    assert len(event.data) == 800 * 65536


def test_encode() -> None:
    assert encode_event(b"{}") == b"event: message\ndata: {}\n\n"
    assert encode_event(b"", event=None, id=b"5", retry=10) == b"id: 5\nretry: 10\ndata: \n\n"
    assert encode_event(b"a\r\nb\rc\n", event=None) == b"data: a\ndata: b\ndata: c\ndata: \n\n"


@pytest.mark.parametrize("bad", [b"a\nb", b"a\rb", b"a\0b"])
def test_encode_refuses_what_cannot_be_written(bad: bytes) -> None:
    with pytest.raises(LocalProtocolError):
        encode_event(b"", event=bad)
    with pytest.raises(LocalProtocolError):
        encode_event(b"", id=bad)


@given(streams, st.lists(st.integers(min_value=0)))
def test_chunking_changes_nothing(stream: bytes, cuts: list[int]) -> None:
    places = sorted({cut % (len(stream) + 1) for cut in cuts} | {0, len(stream)})
    chunks = [stream[start:end] for start, end in zip(places, places[1:], strict=False)]
    assert decode(*chunks) == decode(stream)


@given(streams)
def test_byte_by_byte_changes_nothing(stream: bytes) -> None:
    assert decode(*(bytes([byte]) for byte in stream)) == decode(stream)


@given(
    st.binary(max_size=60).filter(lambda data: 13 not in data),
    one_line.filter(bool),
    st.none() | one_line,
    st.none() | st.integers(min_value=0, max_value=10**10 - 1),
)
def test_round_trip(data: bytes, event: bytes, id: bytes | None, retry: int | None) -> None:
    stream = COMMENT + encode_event(data, event=event, id=id, retry=retry)
    assert decode(stream, stream) == [SseEvent(event, data, id, retry)] * 2
