"""Making a JSON value smaller while it stays valid against its schema: structured content under a budget."""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import Struct

from polyplex.content.graphemes import safe_border
from polyplex.content.tokens import estimate
from polyplex.content.values import is_array, is_object

_DEEPEST: Final = 100
_MOST_POINTERS: Final = 1000
_MOST_SCHEMAS: Final = 64
_SHORTEST: Final = 16
_FIXED: Final = ("pattern", "format", "enum", "const", "contentEncoding", "contentMediaType")
_APPLIED: Final = ("allOf", "anyOf", "oneOf")
_CONDITIONAL: Final = ("then", "else")
Json = dict[str, Any]


class Shrunk(Struct, frozen=True):
    """`raw` is the smaller value as JSON; `cut` the JSON pointers of what is not whole in it (at most 1,000)."""

    raw: bytes
    cut: tuple[str, ...]


class _Ways(NamedTuple):
    """What may be made shorter."""

    arrays: bool
    strings: bool
    members: bool


def shrink(raw: bytes, schema: Json, max_tokens: int) -> Shrunk | None:
    """The value in at most `max_tokens`, and valid against `schema`; None where that cannot be done.

    Arrays and maps are cut from the end, long strings too unless the schema says what they must be like. None also for
    a value that is not valid as it is, and for a schema that cannot be used (it is never fetched from anywhere).
    """
    if max_tokens <= 0:
        return None
    validator = _validator(schema)
    if validator is None:
        return None
    try:
        value = msgspec.json.decode(raw)
        if not validator.is_valid(value):
            return None
        if estimate(raw) <= max_tokens:
            return Shrunk(raw, ())
        for ways in (
            _Ways(True, True, True),
            _Ways(True, True, False),
            _Ways(True, False, False),
            _Ways(False, True, False),
        ):
            found = _fitted(value, schema, max_tokens, ways, validator)
            if found is not None:
                return found
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError):
        return None
    return None


def _fitted(value: Any, schema: Json, max_tokens: int, ways: _Ways, validator: Any) -> Shrunk | None:
    """The largest share for each array and string at which all of it fits, if that is valid."""
    best, fits = _attempt(value, schema, max_tokens, 0, ways)
    if not fits:
        return None
    low, high = 0, max(2 * _SHORTEST, max_tokens * 6)
    while high - low > max(2, low // 32):
        share = (low + high) // 2
        made, fits = _attempt(value, schema, max_tokens, share, ways)
        if fits:
            best, low = made, share
        else:
            high = share
    return best if validator.is_valid(msgspec.json.decode(best.raw)) else None


def _attempt(value: Any, schema: Json, max_tokens: int, share: int, ways: _Ways) -> tuple[Shrunk, bool]:
    pruning = _Pruning(schema, share, ways)
    raw = msgspec.json.encode(pruning.prune(value, [schema], "", 0)[0])
    return Shrunk(raw, tuple(pruning.cut[:_MOST_POINTERS])), estimate(raw) <= max_tokens


class _Pruning:
    """One pass over a value, in which each array, map and string gets at most `share` characters."""

    def __init__(self, root: Json, share: int, ways: _Ways) -> None:
        self.root, self.share, self.ways = root, share, ways
        self.cut: list[str] = []

    def prune(self, value: Any, schemas: list[Json], pointer: str, depth: int) -> tuple[Any, int]:
        """The value made smaller, and about how many characters it has."""
        if depth > _DEEPEST:
            raise RecursionError
        if isinstance(value, str):
            return self._string(value, schemas, pointer)
        if is_array(value):
            return self._array(value, self._all(schemas), pointer, depth)
        if is_object(value):
            return self._object(value, self._all(schemas), pointer, depth)
        return value, len(str(value))

    def _string(self, text: str, schemas: list[Json], pointer: str) -> tuple[str, int]:
        most = max(self.share, _SHORTEST)
        if not self.ways.strings or len(text) <= most + 1:
            return text, len(text) + 2
        applied = self._all(schemas)
        if any(word in schema for schema in applied for word in _FIXED):
            return text, len(text) + 2
        least = max((_count(schema, "minLength") for schema in applied), default=0)
        end = max(safe_border(text, most), least - 1)
        if end + 1 >= len(text):
            return text, len(text) + 2
        self.cut.append(pointer)
        return text[:end] + "…", end + 3

    def _array(self, items: list[Any], schemas: list[Json], pointer: str, depth: int) -> tuple[list[Any], int]:
        least = max((_count(schema, "minItems") for schema in schemas), default=0)
        fixed = any("const" in schema or "enum" in schema for schema in schemas) or not self.ways.arrays
        kept: list[Any] = []
        size = 2
        for place, item in enumerate(items):
            made, length = self.prune(item, self._items(schemas, place), f"{pointer}/{place}", depth + 1)
            if size + length > self.share and place >= least and not fixed:
                self._forget(f"{pointer}/{place}")
                self.cut.append(pointer)
                break
            kept.append(made)
            size += length + 1
        return kept, size

    def _object(self, members: Json, schemas: list[Json], pointer: str, depth: int) -> tuple[Json, int]:
        """All members that the schema names, and of the others as many as fit."""
        named = {name for schema in schemas for name in (*_names(schema, "properties"), *_names(schema, "required"))}
        least = max((_count(schema, "minProperties") for schema in schemas), default=0)
        fixed = any("const" in schema or "enum" in schema for schema in schemas) or not self.ways.members
        kept: Json = {}
        size = 2
        dropped = False
        for key, member in members.items():
            place = f"{pointer}/{key.replace('~', '~0').replace('/', '~1')}"
            if dropped and key not in named and len(kept) >= least:
                continue
            made, length = self.prune(member, self._members(schemas, key), place, depth + 1)
            if size + length > self.share and key not in named and len(kept) >= least and not fixed:
                self._forget(place)
                dropped = True
                continue
            kept[key] = made
            size += length + len(key) + 4
        if dropped:
            self.cut.append(pointer)
        return kept, size

    def _forget(self, pointer: str) -> None:
        """Nothing was cut in what is left out altogether."""
        while self.cut and (self.cut[-1] == pointer or self.cut[-1].startswith(pointer + "/")):
            self.cut.pop()

    def _all(self, schemas: list[Json]) -> list[Json]:
        """The schemas with all that they refer to and are made of."""
        found: list[Json] = []
        waiting = list(reversed(schemas))
        while waiting and len(found) < _MOST_SCHEMAS:
            schema = waiting.pop()
            if any(schema is known for known in found):
                continue
            found.append(schema)
            reference = schema.get("$ref")
            if isinstance(reference, str):
                waiting.extend(_resolved(self.root, reference))
            for word in _APPLIED:
                parts = schema.get(word)
                waiting.extend(part for part in (parts if is_array(parts) else ()) if is_object(part))
            waiting.extend(part for word in _CONDITIONAL if is_object(part := schema.get(word)))
        return found

    def _items(self, schemas: list[Json], place: int) -> list[Json]:
        found: list[Json] = []
        for schema in schemas:
            first = schema.get("prefixItems", schema.get("items"))
            rest = schema.get("additionalItems" if is_array(schema.get("items")) else "items")
            single = first[place] if is_array(first) and place < len(first) else rest
            if is_object(single):
                found.append(single)
        return found

    def _members(self, schemas: list[Json], key: str) -> list[Json]:
        found: list[Json] = []
        for schema in schemas:
            properties = schema.get("properties")
            own = properties.get(key) if is_object(properties) else None
            patterns = schema.get("patternProperties")
            others = [*patterns.values()] if is_object(patterns) else []
            if own is None:
                others.append(schema.get("additionalProperties"))
            found.extend(part for part in (own, *others) if is_object(part))
        return found


def _resolved(root: Json, reference: str) -> Iterator[Json]:
    """What a reference within the schema points to; nothing for any other."""
    if not reference.startswith("#"):
        return
    place: Any = root
    for step in reference[1:].split("/")[1:]:
        step = step.replace("~1", "/").replace("~0", "~").replace("%24", "$")
        place = place.get(step) if is_object(place) else None
    if is_object(place):
        yield place


def _count(schema: Json, word: str) -> int:
    number = schema.get(word)
    return number if isinstance(number, int) else 0


def _names(schema: Json, word: str) -> list[str]:
    names = schema.get(word)
    return [name for name in names if isinstance(name, str)] if is_object(names) or is_array(names) else []


def _validator(schema: Json) -> Any:
    """A validator that fetches nothing; None for a schema that is none."""
    import jsonschema_rs

    def refuse(uri: str) -> Json:
        raise ValueError(f"{uri} is not fetched")

    try:
        return jsonschema_rs.validator_for(schema, retriever=refuse)
    except (ValueError, TypeError, jsonschema_rs.ReferencingError):
        return None
