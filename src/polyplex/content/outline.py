"""A JSON value's shape in one line: `{id: integer, tags: [2 string], owner?: {name: string}}`."""

from collections.abc import Sequence
from typing import Any, Final

from polyplex.content.values import is_array, is_object

_MOST_KEYS: Final = 24
_MOST_ELEMENTS: Final = 50
_DEEPEST: Final = 4
_LONGEST_KEY: Final = 60


def outline(value: Any, depth: int = _DEEPEST, keys: int = _MOST_KEYS) -> str:
    """The shape of a value: keys with their types, arrays with their lengths; deeper levels are left out."""
    if is_object(value):
        return _object([value], depth, keys)
    if is_array(value):
        return f"[{len(value):,} {_elements(value, depth - 1, keys)}]" if value else "[]"
    return type_name(value)


def type_name(value: Any) -> str:
    """The JSON type of a value; long strings with their length."""
    if isinstance(value, str):
        return f"string of {len(value):,}" if len(value) > 200 else "string"
    if value is None or isinstance(value, bool):
        return "null" if value is None else "boolean"
    if isinstance(value, int | float):
        return "integer" if isinstance(value, int) else "number"
    return "object" if is_object(value) else "array"


def _elements(values: Sequence[Any], depth: int, keys: int) -> str:
    """What the elements of an array are, together."""
    sample = values[:_MOST_ELEMENTS]
    objects = [value for value in sample if is_object(value)]
    lists = [value for value in sample if is_array(value)]
    kinds = dict.fromkeys(
        type_name(value).partition(" of ")[0] for value in sample if not isinstance(value, dict | list)
    )
    found = list(kinds)
    if objects:
        found.append(_object(objects, depth, keys))
    if lists:
        found.append("array" if depth <= 0 else outline(lists[0], depth, keys))
    return "|".join(found[:4])


def _object(values: Sequence[dict[str, Any]], depth: int, keys: int) -> str:
    """What objects have in common; a `?` for keys that not all have."""
    members: dict[str, list[Any]] = {}
    for value in values:
        for key, member in value.items():
            if key in members or len(members) < 10 * _MOST_KEYS:
                members.setdefault(key, []).append(member)
    if not members:
        return "{}"
    if depth <= 0:
        return f"object of {len(members)}"
    fewer = max(keys // 2, 3)
    said = [
        f"{_key(key)}{'?' if len(held) < len(values) else ''}: {_member(held, depth - 1, fewer)}"
        for key, held in list(members.items())[:keys]
    ]
    return "{" + ", ".join(said) + (f", … {len(members) - keys} more" if len(members) > keys else "") + "}"


def _member(values: Sequence[Any], depth: int, keys: int) -> str:
    return outline(values[0], depth, keys) if len(values) == 1 else _elements(values, depth, keys)


def _key(key: str) -> str:
    return key if len(key) <= _LONGEST_KEY else key[: _LONGEST_KEY - 1] + "…"
