"""What is shown and what is read on are the whole text: nothing lost, nothing twice, nothing over the budget."""

import json
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from polyplex.content import kinds
from polyplex.content.borders import fence_closing
from polyplex.content.cut import cut
from polyplex.content.graphemes import safe_border
from polyplex.content.tokens import estimate
from tests.property.test_messages import VALUES, spellings
from tests.unit.content.texts import KINDS

ANY = st.text(st.characters() | st.sampled_from('\r\n\u0301\u200d\U0001f1e6\U0001f3fd\x1b[m0;`#- ,"')).map(
    lambda text: text * 3
)
REAL = st.sampled_from(sorted(KINDS)).map(lambda name: KINDS[name]())
TYPES = st.sampled_from(
    [
        None,
        kinds.JSON,
        kinds.JSON_LINES,
        kinds.CSV,
        kinds.TSV,
        kinds.MARKDOWN,
        kinds.LOG,
        kinds.CODE,
        kinds.PLAIN,
        "x/y",
    ]
)
BUDGETS = st.integers(0, 400)


@given(ANY | REAL, BUDGETS, TYPES, st.booleans())
def test_what_is_shown_and_what_is_read_on_is_the_text(text: str, budget: int, kind: str | None, tail: bool) -> None:
    made = cut(text, budget, media_type=kind, tail=tail)
    assert made.kept == text[: made.end] + made.closing or not made.kept
    assert estimate(made.kept) + estimate(made.tail) <= max(budget, 0) or made.whole
    assert 0 <= made.end <= made.resume <= made.total == len(text)
    assert text[made.end : made.resume].strip(" \t\r\n,") == ""
    encoded = text.encode("utf-8", "surrogatepass")
    assert encoded[: made.end_bytes].decode("utf-8", "surrogatepass") == text[: made.end]
    assert encoded[made.resume_bytes :].decode("utf-8", "surrogatepass") == text[made.resume :]
    assert made.total_bytes == len(encoded)
    if made.tail:
        assert made.tail_start is not None
        assert made.tail_start >= made.resume
        assert made.tail == text[made.tail_start :]
    assert made.whole == (estimate(text) <= budget)


@given(ANY, st.integers(0, 100))
def test_a_character_is_never_broken(text: str, at: int) -> None:
    place = safe_border(text, at)
    assert place <= max(0, min(at, len(text)))
    if 0 < place < len(text):
        assert not ("\ud800" <= text[place - 1] <= "\udbff" and "\udc00" <= text[place] <= "\udfff")
        if place < at and at - place < 128:
            assert safe_border(text, place) == place


@given(
    VALUES.flatmap(lambda value: spellings([value, {"items": [value] * 3, "text": 'aé\n"' * 20}] * 4)),
    st.integers(4, 300),
)
def test_a_cut_json_is_json(text: str, budget: int) -> None:
    made = cut(text, budget, media_type=kinds.JSON)
    if made.kind == "json":
        shown = msgspec.json.decode(made.kept)
        assert is_beginning(shown, json.loads(text))
        if made.records_shown is not None and made.key is None:
            assert shown == json.loads(text)[: made.records_shown]


def is_beginning(shown: Any, whole: Any) -> bool:
    """Whether a value is the other one with less at its end."""
    if isinstance(shown, list) and isinstance(whole, list):
        return len(shown) <= len(whole) and all(
            is_beginning(a, b) if place == len(shown) - 1 else a == b
            for place, (a, b) in enumerate(zip(shown, whole, strict=False))
        )
    if isinstance(shown, dict) and isinstance(whole, dict):
        last = list(shown)[-1:]
        return all(key in whole and (is_beginning(shown[key], whole[key]) if [key] == last else True) for key in shown)
    return whole.startswith(shown) if isinstance(shown, str) and isinstance(whole, str) else shown == whole


@given(
    st.lists(st.sampled_from(["```", "~~~", "````", "```py", "text", "", "    ```", "~~~ x"]), max_size=12).map(
        "\n".join
    )
)
def test_a_fence_that_is_open_is_closed(text: str) -> None:
    assert fence_closing(text + fence_closing(text)) == ""
