"""How much work it is to check a value against a JSON Schema, before it is done.

A validator follows every branch and every `$ref` anew, so a schema of a few lines can double its work with each of
them, and none can be interrupted. Here the same ways are walked without checking anything, and given up at a limit.
"""

import re
from typing import Any, Final, cast

from polyplex.catalog.signatures import as_list, as_object

_REFERENCES: Final = ("$ref", "$dynamicRef", "$recursiveRef")
_SAME_VALUE: Final = ("not", "if", "then", "else")
_SAME_VALUE_EACH: Final = ("allOf", "anyOf", "oneOf")
_SAME_VALUE_BY_NAME: Final = ("dependentSchemas", "dependencies")
_MEMBERS: Final = ("additionalProperties", "unevaluatedProperties")
_ITEMS: Final = ("additionalItems", "unevaluatedItems", "contains")
_LOOKED_UP: Final = ("enum", "required", "properties")
# What makes more of a pattern than one pass over the text: counted repeats, groups that look around or back.
_COSTLY: Final = re.compile(r"\{|\(\?|\\[1-9k]")


class _TooMuch(Exception):
    pass


def effort(schema: object, value: object, limit: int) -> int | None:
    """About how many steps a check takes; None for more than `limit`, or where that cannot be known."""
    try:
        return _Walk(schema, limit).walk(value)
    except _TooMuch:
        return None


def is_plain(schema: object) -> bool:
    """Whether nothing in a schema multiplies its work: no references, no patterns."""
    return not any(key in node for node in _nodes(schema) for key in (*_REFERENCES, "pattern", "patternProperties"))


class _Walk:
    def __init__(self, schema: object, limit: int) -> None:
        self._root = schema
        self._limit = limit
        self._steps = 0
        self._pointers_hold: bool | None = None
        self._stack: list[tuple[dict[str, Any], object]] = []

    def walk(self, value: object) -> int:
        """The steps. Raises `_TooMuch`."""
        self._push(self._root, value)
        while self._stack:
            schema, value = self._stack.pop()
            looked_up = [schema[key] for key in _LOOKED_UP if key in schema]
            self._count(1 + sum(len(as_list(each) or as_object(each)) for each in looked_up) // 8)
            self._in_place(schema, value)
            if isinstance(value, str):
                self._text(schema.get("pattern"), value)
            elif isinstance(value, dict):
                self._object(schema, cast("dict[str, object]", value))
            elif isinstance(value, list):
                self._array(schema, cast("list[object]", value))
        return self._steps

    def _count(self, steps: int) -> None:
        self._steps += steps
        if self._steps > self._limit:
            raise _TooMuch

    def _push(self, schema: object, value: object) -> None:
        self._count(1)
        if isinstance(schema, dict):
            self._stack.append((cast("dict[str, Any]", schema), value))

    def _in_place(self, schema: dict[str, Any], value: object) -> None:
        for key in _REFERENCES:
            if key in schema:
                self._push(self._behind(key, schema[key]), value)
        for key in _SAME_VALUE:
            if key in schema:
                self._push(schema[key], value)
        for key in _SAME_VALUE_EACH:
            for branch in as_list(schema.get(key)):
                self._push(branch, value)
        for key in _SAME_VALUE_BY_NAME:
            for branch in as_object(schema.get(key)).values():
                self._push(branch, value)

    def _behind(self, key: str, reference: object) -> object:
        """The schema that a reference leads to, where that is a plain place in the same document."""
        if self._pointers_hold is None:
            self._pointers_hold = _pointers_hold(self._root)
        if key != "$ref" or not isinstance(reference, str) or reference[:1] != "#" or "%" in reference:
            raise _TooMuch
        if not self._pointers_hold or (len(reference) > 1 and reference[1] != "/"):
            raise _TooMuch
        found: Any = self._root
        for part in reference.split("/")[1:]:
            name = part.replace("~1", "/").replace("~0", "~")
            if isinstance(found, list):
                items = cast("list[object]", found)
                found = items[int(name)] if name.isdecimal() and int(name) < len(items) else None
            else:
                found = as_object(found).get(name)
        return found

    def _text(self, pattern: object, text: str) -> None:
        if isinstance(pattern, str):
            self._count(20 + 2 * len(text) if _COSTLY.search(pattern) else 2 + len(text) // 64)

    def _object(self, schema: dict[str, Any], value: dict[str, object]) -> None:
        properties = as_object(schema.get("properties"))
        patterns = as_object(schema.get("patternProperties"))
        others = [schema[key] for key in _MEMBERS if key in schema]
        for name, member in value.items():
            if name in properties:
                self._push(properties[name], member)
            for pattern, branch in patterns.items():
                self._text(pattern, name)
                self._push(branch, member)
            for branch in others:
                self._push(branch, member)
            if "propertyNames" in schema:
                self._push(schema["propertyNames"], name)

    def _array(self, schema: dict[str, Any], value: list[object]) -> None:
        items = schema.get("items")
        each = [schema[key] for key in _ITEMS if key in schema]
        first = [*as_list(schema.get("prefixItems")), *as_list(items)]
        if isinstance(items, dict):
            each.append(items)
        if "uniqueItems" in schema:
            self._count(len(value))
        for branch, item in zip(first, value, strict=False):
            self._push(branch, item)
        for branch in each:
            for item in value:
                self._push(branch, item)


def _nodes(schema: object) -> list[dict[str, Any]]:
    """All objects in a schema; what stands in a default or an example counts as well."""
    found: list[dict[str, Any]] = []
    left: list[object] = [schema]
    while left:
        node = left.pop()
        if isinstance(node, dict):
            known = cast("dict[str, Any]", node)
            found.append(known)
            left += known.values()
        elif isinstance(node, list):
            left += cast("list[object]", node)
    return found


def _pointers_hold(root: object) -> bool:
    """Whether `#/...` means the same everywhere: below an `$id` it would begin at that."""
    old = "draft-04" in str(as_object(root).get("$schema"))
    keys = ("$id", "$schema", "id") if old else ("$id", "$schema")
    return not any(isinstance(node.get(key), str) for node in _nodes(root) if node is not root for key in keys)
