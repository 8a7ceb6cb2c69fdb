"""The outline says where a value ends, however its bytes come, and takes nothing that is not JSON."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyplex.errors import RemoteProtocolError
from polyplex.gateway.results.outline import MAX_DEPTH, MAX_WORD_BYTES, Outline

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
VALUES: st.SearchStrategy[Any] = st.recursive(SCALARS, lambda c: st.lists(c) | st.dictionaries(st.text(), c))
TOKENS = (b"[", b"]", b"{", b"}", b",", b":", b'"a"', b"1", b"true", b" ", b"-", b"01", b'"\\u00"', b'"\\n"', b"1e")


def end_of(raw: bytes, sizes: list[int]) -> int | None:
    """Where the value at the beginning ends, fed in pieces; -1 for not at all, None for what is malformed."""
    outline, position, turn = Outline(), 0, 0
    try:
        while position < len(raw):
            size = sizes[turn % len(sizes)]
            end = outline.feed(raw[position : position + size])
            if end >= 0:
                return position + end
            position, turn = position + size, turn + 1
    except RemoteProtocolError:
        return None
    return -1


@given(
    st.lists(VALUES) | st.dictionaries(st.text(), VALUES),
    st.booleans(),
    st.sampled_from([None, 1]),
    st.sampled_from([b"", b',"a":1}}', b"}}", b"]", b' , "x']),
    st.lists(st.integers(1, 9), min_size=1),
)
def test_a_value_ends_where_it_ends(
    value: Any, ascii_only: bool, indent: int | None, rest: bytes, sizes: list[int]
) -> None:
    raw = json.dumps(value, ensure_ascii=ascii_only, indent=indent).encode()
    assert end_of(raw + rest, sizes) == len(raw)


@given(st.lists(st.sampled_from(TOKENS), max_size=12), st.lists(st.integers(1, 9), min_size=1))
def test_what_no_parser_takes_has_no_end(tokens: list[bytes], sizes: list[int]) -> None:
    raw = b"[" + b"".join(tokens)
    ends = [end for end in range(1, len(raw) + 1) if is_json(raw[:end])]
    found = end_of(raw, sizes)
    if found is not None and found >= 0:
        assert ends and found == ends[0]
    else:
        # What follows the value in one piece may be found out to be malformed; the end itself is never missed.
        assert not ends or found is None


def is_json(raw: bytes) -> bool:
    try:
        json.loads(raw)
    except ValueError:
        return False
    return True


@pytest.mark.parametrize(
    "raw",
    [
        b"[1 2]",
        b"[1,]",
        b"{1:2}",
        b'{"a"}',
        b'["\x01"]',
        b'["\\x"]',
        b"[01]",
        b"[tru]",
        b"[}",
        b'{"a":1,}',
        b'["\\u00g0"]',
    ],
)
def test_malformed(raw: bytes) -> None:
    assert end_of(raw, [len(raw)]) is None
    assert end_of(raw + b" " * 10, [1]) is None


def test_depth_and_words_have_bounds() -> None:
    assert end_of(b"[" * MAX_DEPTH + b"]" * MAX_DEPTH, [100]) == 2 * MAX_DEPTH
    assert end_of(b"[" * (MAX_DEPTH + 1), [100]) is None
    assert end_of(b"[" + b"1" * (MAX_WORD_BYTES + 10), [64]) is None


def test_many_deep_values_in_one_piece() -> None:
    deep = b"[" * 300 + b"]" * 300
    raw = b"[" + b",".join([deep] * 50) + b"]"
    assert end_of(raw, [len(raw)]) == len(raw)
    assert end_of(raw[:-1] + b"}", [len(raw)]) is None
