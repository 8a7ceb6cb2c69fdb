"""Typed answers as values of the asked schema."""

from typing import Any

import pytest

from polyplex.cli.elicitation import choices, read_value

NAMED = {"type": "string", "oneOf": [{"const": "r", "title": "Red"}, {"const": "g", "title": "Green"}]}
LEGACY = {"type": "string", "enum": ["r", "g"], "enumNames": ["Red", "Green"]}
SEVERAL = {"type": "array", "items": {"type": "string", "enum": ["a", "b", "c"]}}


@pytest.mark.parametrize(
    ("text", "field", "value"),
    [
        ("hello", {"type": "string"}, "hello"),
        ("7", {"type": "string"}, "7"),
        ("7", {"type": "integer"}, 7),
        ("2.5", {"type": "number"}, 2.5),
        ("Yes", {"type": "boolean"}, True),
        ("n", {"type": "boolean"}, False),
        ("green", NAMED, "g"),
        ("2", NAMED, "g"),
        ("r", NAMED, "r"),
        ("Green", LEGACY, "g"),
        ("a, 3", SEVERAL, ["a", "c"]),
    ],
)
def test_a_text_is_read_as_the_field_asks(text: str, field: dict[str, Any], value: object) -> None:
    assert read_value(text, field) == value


@pytest.mark.parametrize(
    ("text", "field", "message"),
    [
        ("", {"type": "string"}, "an answer is needed"),
        ("x", {"type": "integer"}, "a whole number is expected"),
        ("x", {"type": "number"}, "a number is expected"),
        ("5", {"type": "integer", "maximum": 4}, "from any to 4"),
        ("perhaps", {"type": "boolean"}, "answer y or n"),
        ("blue", NAMED, "one of: r, g"),
        ("a, x", SEVERAL, "one of: a, b, c"),
    ],
)
def test_what_does_not_fit_is_asked_again_with_the_reason(text: str, field: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_value(text, field)


def test_choices_have_titles() -> None:
    assert choices(NAMED) == choices(LEGACY) == {"r": "Red", "g": "Green"}
    assert choices({"type": "string"}) == {}
