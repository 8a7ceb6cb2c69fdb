import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyplex.protocol.framing import BYTE_ORDER_MARK, LineDecoder

UNBOUNDED = 1 << 30


def chunked(data: bytes, cuts: list[int]) -> list[bytes]:
    """Cut `data` at the given places, taken modulo its length."""
    places = sorted({cut % (len(data) + 1) for cut in cuts} | {0, len(data)})
    return [data[start:end] for start, end in zip(places, places[1:], strict=False)]


def decode(chunks: list[bytes], max_bytes: int = UNBOUNDED) -> tuple[list[bytes], int]:
    """All frames, the unended one too, and the count of discarded lines."""
    decoder = LineDecoder(max_bytes)
    frames = [frame for chunk in chunks for frame in decoder.feed(chunk)]
    rest = decoder.close()
    return frames + ([rest] if rest else []), decoder.discarded


def test_one_chunk_of_whole_lines() -> None:
    assert LineDecoder(100).feed(b'{"a":1}\n{"b":2}\n') == [b'{"a":1}', b'{"b":2}']


def test_crlf_and_empty_lines_leave_no_trace() -> None:
    assert LineDecoder(100).feed(b"\r\n\n\na\r\n\r\nb\n") == [b"a", b"b"]


def test_crlf_cut_between_its_bytes() -> None:
    decoder = LineDecoder(100)
    assert decoder.feed(b"abc\r") == []
    assert decoder.feed(b"\ndef\n") == [b"abc", b"def"]


def test_a_carriage_return_inside_a_line_is_kept() -> None:
    assert LineDecoder(100).feed(b"a\rb\n") == [b"a\rb"]


@pytest.mark.parametrize("size", [1, 2, 3, 4, 100])
def test_one_byte_order_mark_is_dropped_at_the_start_only(size: int) -> None:
    data = BYTE_ORDER_MARK + b"one\n" + BYTE_ORDER_MARK + b"two\n"
    chunks = [data[at : at + size] for at in range(0, len(data), size)]
    assert decode(chunks) == ([b"one", BYTE_ORDER_MARK + b"two"], 0)


@pytest.mark.parametrize("start", [b"\xef", b"\xef\xbb"])
def test_half_a_byte_order_mark_is_data(start: bytes) -> None:
    assert decode([start]) == ([start], 0)
    assert decode([start, b"x\n"]) == ([start + b"x"], 0)


def test_close_returns_the_line_without_end_once() -> None:
    decoder = LineDecoder(100)
    assert decoder.feed(b"a\nlast") == [b"a"]
    assert decoder.pending_bytes == 4
    assert decoder.close() == b"last"
    assert decoder.close() == b""


@pytest.mark.parametrize("size", [1, 3, 7, 1000])
def test_a_line_too_long_is_discarded_and_the_next_is_decoded(size: int) -> None:
    data = b"12345678\n" + b"x" * 9 + b"\n" + b"y" * 500 + b"\r\nabcdefgh\r\nok\n"
    chunks = [data[at : at + size] for at in range(0, len(data), size)]
    assert decode(chunks, max_bytes=8) == ([b"12345678", b"abcdefgh", b"ok"], 2)


def test_a_line_too_long_is_not_held() -> None:
    decoder = LineDecoder(1000)
    for _ in range(100):
        assert decoder.feed(b"x" * 999) == []
        assert decoder.pending_bytes <= 1001
    assert decoder.feed(b"\nok\n") == [b"ok"]
    assert decoder.discarded == 1


def test_a_line_too_long_without_end_is_not_returned_by_close() -> None:
    assert decode([b"x" * 9], max_bytes=8) == ([], 1)
    assert decode([b"x" * 20], max_bytes=8) == ([], 1)


def test_a_long_line_in_small_pieces_is_joined_whole() -> None:
    line = bytes(range(32, 127)) * 10_000
    data = line + b"\n"
    for size in (1000, 4096, 65536):
        chunks = [data[at : at + size] for at in range(0, len(data), size)]
        assert decode(chunks) == ([line], 0)


def test_fifty_megabytes_in_small_chunks() -> None:
    decoder = LineDecoder(UNBOUNDED)
    piece = b"x" * 65536
    for _ in range(800):
        assert decoder.feed(piece) == []
    assert decoder.pending_bytes == 800 * 65536
    (line,) = decoder.feed(b"\n")
    assert len(line) == 800 * 65536


@given(st.lists(st.binary(max_size=40)), st.lists(st.integers(min_value=0)), st.sampled_from([3, 8, UNBOUNDED]))
def test_chunking_changes_nothing(lines: list[bytes], cuts: list[int], max_bytes: int) -> None:
    data = b"\n".join(lines)
    assert decode(chunked(data, cuts), max_bytes) == decode([data], max_bytes)


@given(st.lists(st.binary(min_size=1, max_size=40).filter(lambda line: not {10, 13} & set(line))))
def test_lines_come_back(lines: list[bytes]) -> None:
    data = BYTE_ORDER_MARK + b"".join(line + b"\n" for line in lines)
    assert decode([data]) == (lines, 0)
