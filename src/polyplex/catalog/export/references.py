"""Where a `$ref` of a schema leads: JSON pointers, anchors and ids within the document. Nothing is ever fetched."""

from collections.abc import Iterator
from typing import Any, Final, cast
from urllib.parse import unquote, urldefrag, urljoin

from polyplex.catalog.export.nodes import BadSchema

_ONE: Final = (
    "additionalItems", "additionalProperties", "contains", "contentSchema", "else", "if", "items", "not",
    "propertyNames", "then", "unevaluatedItems", "unevaluatedProperties",
)  # fmt: skip
_LISTS: Final = ("allOf", "anyOf", "items", "oneOf", "prefixItems")
_MAPS: Final = ("$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties")
_MAX_PLACES: Final = 50_000
_NO_REFERENCE_SIBLINGS: Final = ("draft-03", "draft-04", "draft-06", "draft-07")


class Document:
    """An index of one schema's places that references can name."""

    def __init__(self, root: dict[str, Any]) -> None:
        self.root = root
        self._bases: dict[int, str] = {}
        self._places: dict[str, dict[str, Any]] = {}
        dialect = str(root.get("$schema"))
        self._old = "draft-03" in dialect or "draft-04" in dialect
        self.siblings_count = not any(draft in dialect for draft in _NO_REFERENCE_SIBLINGS)
        self._index()

    def base(self, schema: dict[str, Any], outer: str) -> str:
        """The base URI of a schema within one whose base is `outer`."""
        return self._bases.get(id(schema), outer)

    def find(self, reference: str, base: str, path: str) -> tuple[Any, str] | None:
        """The schema that a reference names and its base; None where it lies in another document.

        Raises `BadSchema` where it should be in this one and is not.
        """
        url, fragment = _split(base, reference)
        start = self._places.get(url)
        if start is None:
            return None
        if not fragment:
            return start, self.base(start, url)
        if not fragment.startswith("/"):
            anchored = self._places.get(f"{url}#{fragment}")
            if anchored is None:
                raise BadSchema(f"{path} refers to {reference[:80]}, an anchor that the schema does not have")
            return anchored, self.base(anchored, url)
        return self._walk(start, fragment, url, f"{path} refers to {reference[:80]}, which the schema does not have")

    def _walk(self, start: dict[str, Any], pointer: str, base: str, complaint: str) -> tuple[Any, str]:
        place: Any = start
        for token in unquote(pointer).split("/")[1:]:
            key = token.replace("~1", "/").replace("~0", "~")
            if isinstance(place, dict) and key in place:
                place = cast("dict[str, Any]", place)[key]
            elif isinstance(place, list) and key.isascii() and key.isdecimal():
                rest = cast("list[Any]", place)[int(key[:9]) :]
                if not rest:
                    raise BadSchema(complaint)
                place = rest[0]
            else:
                raise BadSchema(complaint)
            if isinstance(place, dict):
                base = self.base(cast("dict[str, Any]", place), base)
        return cast("Any", place), base

    def _index(self) -> None:
        self._places[""] = self.root
        waiting: list[tuple[dict[str, Any], str]] = [(self.root, "")]
        for _ in range(_MAX_PLACES):
            if not waiting:
                return
            schema, base = waiting.pop()
            base = self._name(schema, base)
            waiting.extend((below, base) for below in _below(schema))

    def _name(self, schema: dict[str, Any], base: str) -> str:
        identifier = schema.get("id" if self._old else "$id")
        if isinstance(identifier, str) and identifier and not isinstance(schema.get("$ref"), str):
            url, fragment = _split(base, identifier)
            if fragment:  # how anchors were written up to draft-07
                self._places.setdefault(f"{url}#{fragment}", schema)
            elif url not in self._places:
                self._places[url] = schema
                base = url
        self._bases[id(schema)] = base
        for keyword in ("$anchor", "$dynamicAnchor"):
            anchor = schema.get(keyword)
            if isinstance(anchor, str):
                self._places.setdefault(f"{base}#{anchor}", schema)
        return base


def _split(base: str, reference: str) -> tuple[str, str]:
    if reference.startswith("#"):  # urljoin knows no base that is a URN
        return base, reference[1:]
    try:
        url, fragment = urldefrag(urljoin(base, reference))
    except ValueError:  # such as an unclosed bracket of an IPv6 address
        return f"unreadable:{reference}", ""
    return url, fragment


def _below(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for keyword in _ONE:
        if isinstance(schema.get(keyword), dict):
            yield schema[keyword]
    for keyword in _LISTS:
        if isinstance(schema.get(keyword), list):
            yield from (item for item in schema[keyword] if isinstance(item, dict))
    for keyword in _MAPS:
        if isinstance(schema.get(keyword), dict):
            yield from (item for item in schema[keyword].values() if isinstance(item, dict))
