"""Write nodes as the JSON of a provider; what its form has no keyword for goes into the descriptions as words."""

import math
import re
from typing import Any, Final

from polyplex.catalog.export.dialects import Dialect
from polyplex.catalog.export.nodes import UNSET, Node, with_words
from polyplex.catalog.export.words import brief, default_words, describe, limit_words

_MAX_DESCRIPTION: Final = 8192
_LOOKAROUND: Final = re.compile(r"\(\?<?[=!]")
# The bound that says the most of it, and in which direction the next whole number lies.
_INCLUSIVE: Final = {"exclusiveMinimum": ("minimum", 1), "exclusiveMaximum": ("maximum", -1)}
_NUMERIC_FORMATS: Final = frozenset(("int32", "int64", "float", "double"))


def emit_root(root: Node, definitions: dict[str, Node], dialect: Dialect) -> dict[str, Any]:
    """The schema of a tool's arguments: an object with its properties, and definitions where it refers to some."""
    written = emit(root, dialect)
    written.setdefault("properties", {})
    used = _used(root, definitions)
    if used:
        written["$defs"] = {name: emit(definitions[name], dialect) for name in definitions if name in used}
    return written


def emit(node: Node, dialect: Dialect) -> dict[str, Any]:
    """One node and all below it."""
    if node.ref:
        return {"$ref": f"#/$defs/{node.ref}"}
    lost: list[str] = []
    written = _types(node, dialect)
    if dialect.annotations:
        written |= _annotations(node)
    else:
        lost += [default_words(node)] if node.default is not UNSET else []
        lost += [f"for example {brief(example, 100)}" for example in node.examples[:1]]
    if node.enum is not None:
        written["enum"] = list(node.enum)
        if dialect.form == "openapi":
            written["format"] = "enum"
    _limits(node, dialect, written, lost)
    _object(node, dialect, written, lost)
    _array(node, dialect, written)
    branches = [emit(branch, dialect) for branch in node.branches if not _drops(branch, dialect)]
    if len(branches) == 1 and len(node.branches) > 1:
        written = branches[0] | written
        node = with_words(node, Node(description=written.pop("description", "")))
    elif branches:
        written["anyOf"] = branches
    elif node.branches:  # null in several ways
        written = {"type": "NULL"}
    text = describe(node, lost, _MAX_DESCRIPTION)
    return ({"description": text} if text else {}) | written


def _types(node: Node, dialect: Dialect) -> dict[str, Any]:
    types = node.types
    if dialect.form != "openapi":
        if types is None:
            return {}
        return {"type": types[0] if len(types) == 1 else list(types)}
    nullable = "null" in (types or ()) or any(branch.types == ("null",) for branch in node.branches)
    rest = [name for name in types or () if name != "null"]
    written: dict[str, Any] = {"type": rest[0].upper()} if rest else {}
    if types and not rest:
        written["type"] = "NULL"
    return written | ({"nullable": True} if nullable and rest + node.branches else {})


def _drops(branch: Node, dialect: Dialect) -> bool:
    return dialect.form == "openapi" and branch.types == ("null",)


def _annotations(node: Node) -> dict[str, Any]:
    said: dict[str, Any] = {"title": node.title} if node.title else {}
    if node.default is not UNSET:
        said["default"] = node.default
    if node.examples:
        said["examples"] = node.examples
    return said


def _limits(node: Node, dialect: Dialect, written: dict[str, Any], lost: list[str]) -> None:
    for name, value in node.limits.items():
        if name in dialect.limits and _takes(name, value, node, dialect):
            written[name] = value
            continue
        bound, step = _INCLUSIVE.get(name, ("", 0))
        if bound in dialect.limits and bound not in node.limits:
            whole = node.types == ("integer",)
            written[bound] = math.floor(value * step + 1) * step if whole else value
            if whole:
                continue
        lost.append(limit_words(name, value))


def _takes(name: str, value: Any, node: Node, dialect: Dialect) -> bool:
    if name == "pattern":
        return dialect.lookaround or not _LOOKAROUND.search(value)
    if name != "format" or dialect.formats is None:
        return True
    numeric = node.types is not None and "string" not in node.types
    return value in dialect.formats and numeric == (value in _NUMERIC_FORMATS)


def _object(node: Node, dialect: Dialect, written: dict[str, Any], lost: list[str]) -> None:
    if node.properties or (dialect.explicit and node.types == ("object",)):
        written["properties"] = {name: emit(below, dialect) for name, below in node.properties.items()}
    if node.required:
        written["required"] = list(node.required)
    if node.additional is None:
        return
    if not dialect.additional:
        if not node.additional.impossible and not node.additional.plain:
            lost.append("further properties are " + "/".join(node.additional.types or ("possible",)))
    elif node.additional.impossible:
        written["additionalProperties"] = False
    elif not node.additional.plain:
        written["additionalProperties"] = emit(node.additional, dialect)


def _array(node: Node, dialect: Dialect, written: dict[str, Any]) -> None:
    if node.prefix:
        written["prefixItems"] = [emit(below, dialect) for below in node.prefix]
    if node.items is not None:
        written["items"] = emit(node.items, dialect)
    elif dialect.explicit and node.types is not None and "array" in node.types:
        written["items"] = {}


def _used(root: Node, definitions: dict[str, Node]) -> set[str]:
    used: set[str] = set()
    waiting = [root]
    while waiting:
        node = waiting.pop()
        waiting.extend(node.children())
        if node.ref and node.ref not in used:
            used.add(node.ref)
            waiting.append(definitions[node.ref])
    return used
