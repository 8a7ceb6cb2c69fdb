"""Budgets, previews, summaries and smaller values keep their promises on anything."""

import json
import re
from typing import Any

import jsonschema_rs
from hypothesis import given
from hypothesis import strategies as st

from polyplex.content import kinds
from polyplex.content.budget import FEWEST, Weight, share
from polyplex.content.notices import NOTICE_TOKENS
from polyplex.content.preview import preview
from polyplex.content.shrink import shrink
from polyplex.content.summary import extractive
from polyplex.content.tokens import estimate
from tests.unit.content.texts import KINDS, MARKDOWN, PROSE


@given(st.lists(st.builds(Weight, st.integers(0, 5000), st.booleans()), max_size=60), st.integers(NOTICE_TOKENS, 9000))
def test_what_stays_is_within_the_budget(blocks: list[Weight], budget: int) -> None:
    plan = share(blocks, budget)
    assert plan.tokens <= budget
    assert len(plan.shares) == (len(blocks) if plan.rest is None else plan.rest)
    for block, one in zip(blocks, plan.shares, strict=False):
        assert one.action != "cut" or (block.cuttable and FEWEST <= one.max_tokens < block.tokens)
        assert one.action != "keep" or one.max_tokens == block.tokens
        assert one.action != "move" or one.max_tokens < block.tokens
    assert plan.whole == (sum(block.tokens for block in blocks) <= budget)


@given(
    st.binary(max_size=300),
    st.sampled_from(["", kinds.JSON, kinds.CSV, kinds.TSV, kinds.JSON_LINES, "application/pdf"]),
)
def test_any_bytes_have_a_preview_within_its_budget(data: bytes, kind: str) -> None:
    for magic in (
        b"",
        b"%PDF-",
        b"PK\x03\x04",
        b"\x1f\x8b\x08\x08",
        b"SQLite format 3\0",
        b"[",
        b"{",
        b"RIFF0000WAVEfmt ",
    ):
        whole = magic + data
        for total in (len(whole), len(whole) * 9 + 1):
            assert estimate(preview(whole, kind, total, tail=data, max_tokens=60)) <= 60


@given(st.text() | st.sampled_from([PROSE, MARKDOWN, KINDS["log"]()]), st.integers(-3, 200))
def test_any_text_has_a_summary_within_its_budget(text: str, budget: int) -> None:
    assert estimate(extractive(text, budget)) <= max(budget, 0)
    assert estimate(extractive(text, budget, media_type=kinds.JSON)) <= max(budget, 0)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.text(max_size=60),
    lambda inner: st.lists(inner, max_size=8) | st.dictionaries(st.text(max_size=4), inner, max_size=6),
    max_leaves=40,
)
SCHEMAS = st.sampled_from(
    [
        {},
        {"type": ["array", "object"], "minItems": 2, "items": {"minLength": 5}},
        {
            "anyOf": [
                {"items": {"type": ["object", "array", "string", "null", "number", "boolean"]}},
                {"minProperties": 2},
            ]
        },
        {"additionalProperties": {"maxItems": 3}, "prefixItems": [{"minLength": 2}, {"minItems": 1}]},
        {"uniqueItems": True, "propertyNames": {"maxLength": 4}},
    ]
)


@given(VALUES, SCHEMAS, st.integers(1, 80))
def test_what_is_made_is_valid_in_the_budget_and_says_where_it_was_cut(
    value: Any, schema: dict[str, Any], budget: int
) -> None:
    raw = json.dumps(value).encode()
    found = shrink(raw, schema, budget)
    if found is None:
        return
    made = json.loads(found.raw)
    assert jsonschema_rs.is_valid(schema, made)
    assert estimate(found.raw) <= budget
    assert (made == value) == (not found.cut)
    for pointer in found.cut:
        place = made
        for step in re.findall(r"/([^/]*)", pointer):
            step = step.replace("~1", "/").replace("~0", "~")
            place = place[int(step)] if isinstance(place, list) else place[step]
        assert isinstance(place, list | dict | str)
