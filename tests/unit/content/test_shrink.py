import json
from typing import Any

import jsonschema_rs
import pytest

from polyplex.content.shrink import shrink
from polyplex.content.tokens import estimate
from tests.unit.content.texts import PROSE, _rows

ROWS = _rows(500)
ROW = {"type": "object", "properties": {"id": {"type": "integer"}, "at": {"type": "string", "format": "date-time"}}}
TABLE = {
    "type": "object",
    "properties": {"rows": {"type": "array", "items": {"$ref": "#/$defs/row"}}},
    "$defs": {"row": ROW},
}


def shrunk(value: Any, schema: dict[str, Any], budget: int) -> tuple[Any, tuple[str, ...]]:
    found = shrink(json.dumps(value).encode(), schema, budget)
    assert found is not None
    made = json.loads(found.raw)
    assert estimate(found.raw) <= budget
    assert jsonschema_rs.is_valid(schema, made)
    return made, found.cut


def test_what_fits_is_the_same_bytes() -> None:
    raw = b'{ "rows" : [ ] }'
    found = shrink(raw, TABLE, 100)
    assert found is not None
    assert (found.raw, found.cut) == (raw, ())


def test_an_array_is_cut_from_its_end() -> None:
    made, cut = shrunk({"rows": ROWS, "total": 500}, TABLE, 2000)
    assert made["rows"] == ROWS[: len(made["rows"])]
    assert made["total"] == 500
    assert len(made["rows"]) > 15
    assert cut == ("/rows",)


def test_what_a_schema_asks_for_is_left() -> None:
    schema = {
        "type": "object",
        "properties": {
            "few": {"type": "array", "minItems": 3},
            "code": {"type": "string", "pattern": "^x+$"},
            "when": {"type": "string", "format": "uri"},
            "text": {"type": "string", "minLength": 50},
            "choice": {"enum": ["e" * 300, "f"]},
        },
        "required": ["few", "code"],
    }
    value = {"few": ["y" * 400] * 9, "code": "x" * 200, "when": "a:" + "b" * 100, "text": PROSE, "choice": "e" * 300}
    made, cut = shrunk(value, schema, 480)
    assert len(made["few"]) >= 3
    assert (made["code"], made["when"], made["choice"]) == (value["code"], value["when"], value["choice"])
    assert len(made["text"]) >= 50
    assert made["text"].endswith("…")
    assert "/text" in cut


def test_a_map_loses_members_that_no_schema_names() -> None:
    schema = {"type": "object", "properties": {"last": {"type": "integer"}}, "minProperties": 2}
    made, cut = shrunk({**{f"k{n}": n for n in range(2000)}, "last": 1}, schema, 200)
    assert made["last"] == 1
    assert 2 <= len(made) < 100
    assert cut == ("",)


def test_an_element_that_must_be_there_stays_or_nothing_is_made() -> None:
    schema = {"type": "array", "contains": {"const": "needed"}}
    assert shrink(json.dumps(["x" * 50] * 500 + ["needed"]).encode(), schema, 200) is None
    made, _ = shrunk(["needed", *["x" * 50] * 500], schema, 200)
    assert made[0] == "needed"


def test_strings_that_become_equal_are_left_whole_where_they_must_differ() -> None:
    schema = {"type": "array", "uniqueItems": True}
    made, _ = shrunk([PROSE[:100] + str(number) for number in range(300)], schema, 300)
    assert len(set(made)) == len(made)


@pytest.mark.parametrize(
    ("raw", "schema"),
    [
        (b"[1", {}),
        (b'"\xff"', {}),
        (b"[" * 100_000, {}),
        (b"[5]", {"type": "string"}),
        (b"[5]", {"type": "nonsense"}),
        (b"[5]", {"$ref": "https://example.invalid/schema.json"}),
        (b"[5]", {"$ref": "#/nowhere"}),
        (b"[" + b"1," * 5000 + b"1]", {"minItems": 5001}),
        (b"[" + b"1," * 5000 + b"1]", {"const": [1] * 5001}),
    ],
)
def test_what_cannot_be_made_smaller_or_is_not_valid_gives_nothing(raw: bytes, schema: dict[str, Any]) -> None:
    assert shrink(raw, schema, 50) is None


def test_no_budget_gives_nothing() -> None:
    assert shrink(b"[]", {}, 0) is None


def test_references_in_circles_are_followed_once() -> None:
    tree = {
        "$ref": "#/$defs/n",
        "$defs": {"n": {"type": "object", "properties": {"next": {"$ref": "#/$defs/n"}, "t": {"type": "string"}}}},
    }
    value: dict[str, Any] = {"t": PROSE * 9}
    for _ in range(20):
        value = {"next": value, "t": "x"}
    made, cut = shrunk(value, tree, 400)
    assert made["t"] == "x"
    assert cut == ("/next" * 20 + "/t",)
