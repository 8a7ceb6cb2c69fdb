"""Queries of models and of URIs: forgiving where the meaning is clear, plain where it is not."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyplex.errors import PayloadQueryError
from polyplex.gateway.results.queries import read_query, uri_query

URI = "polyplex://payload/abc"


@pytest.mark.parametrize(
    ("uri", "base", "arguments"),
    [
        (URI, URI, {}),
        (URI + "?offset=5&limit=7", URI, {"offset": "5", "limit": "7"}),
        (URI + "?json_path=%24.a%5B0%5D", URI, {"json_path": "$.a[0]"}),
        (URI + "#lines=3-4", URI, {"lines": "3-4"}),
    ],
)
def test_the_query_of_a_uri(uri: str, base: str, arguments: dict[str, str]) -> None:
    assert uri_query(uri) == (base, arguments)


@pytest.mark.parametrize(
    ("arguments", "way", "first", "limit"),
    [
        ({}, "text", 1, None),
        ({"offset": "-5", "limit": 7.0}, "text", 1, 7),
        ({"lines": "10-19"}, "lines", 10, 10),
        ({"lines": 5}, "lines", 5, None),
        ({"lines": [2, 4]}, "lines", 2, 3),
        ({"lines": " 2 , 4 "}, "lines", 2, 3),
        ({"lines": "-50"}, "lines", -50, None),
        ({"page": "3", "limit": 10}, "page", 3, 10),
        ({"grep": "x", "regex": "true"}, "grep", 1, None),
    ],
)
def test_what_is_meant(arguments: dict[str, Any], way: str, first: int, limit: int | None) -> None:
    query = read_query({"uri": URI} | arguments)
    assert (query.way, query.first, query.limit) == (way, first, limit)


@pytest.mark.parametrize(
    "arguments",
    [
        {"lines": "x"}, {"lines": "9-3"}, {"lines": "-3-5"}, {"lines": [1, 2, 3]}, {"limit": 0}, {"limit": "many"},
        {"offset": 1.5}, {"offset": True}, {"page": 1, "grep": "x"}, {"other": 1}, {"page": {}},
    ],
)  # fmt: skip
def test_what_is_not(arguments: dict[str, Any]) -> None:
    with pytest.raises(PayloadQueryError):
        read_query(arguments)


@given(
    st.dictionaries(
        st.sampled_from(["uri", "offset", "limit", "lines", "page", "json_path", "grep", "regex", "context", "cursor"]),
        st.none() | st.integers() | st.floats() | st.text() | st.booleans() | st.lists(st.integers() | st.text()),
    )
)
def test_nothing_else_is_ever_raised(arguments: dict[str, Any]) -> None:
    try:
        query = read_query(arguments)
    except PayloadQueryError:
        return
    assert query.limit is None or query.limit >= 1
