"""Constraints that a provider has no keyword for, as words for the model."""

import json
from typing import Any, Final

from polyplex.catalog.export.nodes import UNSET, Node

_MAX_NOTE: Final = 400
_MAX_NOTES: Final = 1200
_LIMIT_WORDS: Final = {
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "minimum": "at least {}",
    "maximum": "at most {}",
    "exclusiveMinimum": "more than {}",
    "exclusiveMaximum": "less than {}",
    "multipleOf": "a multiple of {}",
    "pattern": "pattern: {}",
    "format": "format: {}",
    "minItems": "at least {} items",
    "maxItems": "at most {} items",
    "uniqueItems": "no item twice",
    "minProperties": "at least {} properties",
    "maxProperties": "at most {} properties",
}


def brief(value: Any, limit: int) -> str:
    """Compact JSON of a value, cut to a number of characters."""
    try:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError):
        text = repr(type(value).__name__)
    return shorten(text, limit)


def shorten(text: str, limit: int) -> str:
    """At most `limit` characters; where something is cut, at a space if one is near, and with an ellipsis."""
    if len(text) <= limit:
        return text
    head = text[: limit - 1]
    space = head.rfind(" ", limit * 3 // 4)
    return (head[:space] if space > 0 else head).rstrip() + "…"


def limit_words(name: str, value: Any) -> str:
    """One assertion in words."""
    return _LIMIT_WORDS[name].format(value)


def describe(node: Node, lost: list[str], limit: int) -> str:
    """The description of a node with what its schema does not say, at most `limit` characters."""
    said = node.description.strip()
    notes = [shorten(note, _MAX_NOTE) for note in (*lost, *node.notes) if note not in said]
    if not notes:
        return shorten(said, limit)
    text = shorten("; ".join(dict.fromkeys(notes)), _MAX_NOTES)
    text = text[:1].upper() + text[1:]
    if not said:
        return shorten(text, limit)
    room = max(limit - len(text) - 1, limit // 2)
    said = shorten(said, room)
    joint = " " if said[-1:] in ".!?…:" else ". "
    return shorten(said + joint + text, limit)


def default_words(node: Node) -> str:
    """The default of a node in words; nothing where there is none."""
    return "" if node.default is UNSET else f"default: {brief(node.default, 100)}"
