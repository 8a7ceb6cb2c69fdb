"""Records are counted right where they are counted at all, however the bytes come."""

import json
from itertools import cycle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyplex.content import kinds, records
from polyplex.gateway.results.counting import Counter, count

CELLS = st.text(alphabet='ab,;"\n é', max_size=8)


def quoted(cell: str) -> str:
    return '"' + cell.replace('"', '""') + '"'


@given(
    st.lists(st.lists(CELLS, min_size=2, max_size=2), min_size=1, max_size=30), st.lists(st.integers(1, 20), min_size=1)
)
def test_rows_with_line_ends_in_quotes(rows: list[list[str]], sizes: list[int]) -> None:
    data = "".join(",".join(map(quoted, row)) + "\n" for row in [["id\n", "name"], *rows]).encode()
    counter, position = Counter(kinds.CSV), 0
    for size in cycle([len(data), *sizes] if len(sizes) % 2 else [4096]):
        counter.feed(data[position : position + size])
        position += size
        if position >= len(data):
            break
    header = records.split(data[:2048], "csv").header is not None
    assert counter.records == len(rows) + 1 - header


@pytest.mark.parametrize(
    ("data", "media_type", "expected"),
    [
        (b"a\nb\nc", kinds.PLAIN, 3),
        (b"a\nb\n", kinds.PLAIN, 2),
        (b'{"a":1}\n{"a":2}\n', kinds.JSON_LINES, 2),
        (json.dumps(list(range(1000))).encode(), kinds.JSON, 1000),
        (b'{"a": 1}', kinds.JSON, None),
        (b"[1, 2", kinds.JSON, None),
        (b"\x00\x01", "application/octet-stream", None),
        (b'id,name\n1,"never closed\n2,b\n', kinds.CSV, None),
    ],
)
def test_counts(data: bytes, media_type: str, expected: int | None) -> None:
    assert count(data, media_type) == expected
