"""Single keywords of JSON Schema, read leniently: old drafts, OpenAPI, names of types with one clear meaning."""

import math
import re
import warnings
from typing import Any, Final, cast

from polyplex.catalog.export.nodes import LIMITS_OF, TYPES, BadSchema, type_of

# What generators of other languages write; "" stands for "any type".
_ALIASES: Final = {
    "": "", "any": "", "unknown": "", "mixed": "", "enum": "",
    "dict": "object", "dictionary": "object", "map": "object", "hashmap": "object", "struct": "object",
    "list": "array", "arraylist": "array", "tuple": "array", "set": "array", "vector": "array",
    "str": "string", "text": "string", "char": "string", "varchar": "string",
    "date": "string", "datetime": "string", "time": "string",
    "int": "integer", "int32": "integer", "int64": "integer",
    "long": "integer", "short": "integer", "bigint": "integer",
    "float": "number", "double": "number", "decimal": "number", "float32": "number", "float64": "number",
    "bool": "boolean", "none": "null", "nil": "null",
}  # fmt: skip
_COUNTS: Final = frozenset(("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"))
_NUMBERS: Final = frozenset(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"))
_MAX_PATTERN: Final = 1000


def read_types(schema: dict[str, Any], path: str) -> tuple[str, ...] | None:
    """The types of a schema, None for any. Raises `BadSchema` for what is no type in any language we know."""
    given: Any = schema.get("type")
    if given is None:
        return None
    names = cast("list[Any]", given) if isinstance(given, list) else [given]
    kinds: set[str] = set()
    for name in names:
        kind = _type(name, path)
        if not kind:
            return None
        kinds.add(kind)
    if schema.get("nullable") is True:
        kinds.add("null")
    return tuple(name for name in TYPES if name in kinds) or None


def _type(name: Any, path: str) -> str:
    if isinstance(name, str):
        plain = name.partition("(")[0].strip().lower()
        if plain in TYPES or plain in _ALIASES:
            return _ALIASES.get(plain, plain)
        element, _, rest = plain.partition("<")
        if (rest or plain.endswith("[]")) and (_ALIASES.get(element) in ("array", "object") or plain.endswith("[]")):
            return "array" if plain.endswith("[]") else _ALIASES[element]
    raise BadSchema(f"{path} has the type {str(name)[:60]!r}, which JSON Schema does not know")


def read_enum(schema: dict[str, Any], types: tuple[str, ...] | None) -> list[Any] | None:
    """The allowed values of `enum` or `const` that the types leave; None where all are allowed."""
    if "const" in schema:
        values: list[Any] = [schema["const"]]
    elif isinstance(schema.get("enum"), list) and schema["enum"]:
        values = list(schema["enum"])
    else:
        return None
    if schema.get("nullable") is True and None not in values:
        values.append(None)
    if types is None:
        return values
    fitting = [value for value in values if fits_type(type_of(value), types)]
    return fitting or None


def fits_type(kind: str, types: tuple[str, ...]) -> bool:
    """True where a value of a type is one of the types: an integer is a number as well."""
    return kind in types or (kind == "integer" and "number" in types)


def read_limits(schema: dict[str, Any], types: tuple[str, ...] | None) -> dict[str, Any]:
    """The assertions on single values that can be read, of the types at hand; the bounds of draft-04 as of today."""
    relevant = {name for kind in (types or TYPES) for name in LIMITS_OF[kind]}
    limits: dict[str, Any] = {}
    for name in relevant & schema.keys():
        value = schema[name]
        if name in _NUMBERS and _is_number(value) and (name != "multipleOf" or value > 0):
            limits[name] = value
        elif name in _COUNTS and _is_number(value) and value >= 0 and float(value).is_integer():
            limits[name] = int(value)
        elif (name == "format" and isinstance(value, str)) or (name == "pattern" and is_pattern(value)):
            limits[name] = value
        elif name == "uniqueItems" and value is True:
            limits[name] = True
    for bound in ("minimum", "maximum"):
        exclusive = "exclusive" + bound.capitalize()
        if schema.get(exclusive) is True and bound in limits:
            limits[exclusive] = limits.pop(bound)
    return dict(sorted(limits.items()))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def is_pattern(value: Any) -> bool:
    """True for a regular expression of a reasonable length that other engines most likely read as well."""
    if not isinstance(value, str) or len(value) > _MAX_PATTERN:
        return False
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            re.compile(value)
    except (re.error, OverflowError, RecursionError):
        return False
    return True
