"""Entries of the catalog as documents for search. What cannot be read is left out: a broken schema hides no tool."""

from collections.abc import Iterator
from typing import Any, Final, cast

import msgspec

from polyplex.catalog.search.types import Document, Kind, Parameter
from polyplex.mux.entries import Entry

KIND_OF: Final[dict[str, Kind]] = {
    "tools": "tool",
    "prompts": "prompt",
    "resources": "resource",
    "resourceTemplates": "template",
}
MAX_PARAMETERS: Final = 200
MAX_DEPTH: Final = 5
MAX_CHOICES: Final = 30
MAX_TEXT: Final = 8_000
_COMBINING: Final = ("anyOf", "oneOf", "allOf")


def document(member: str, entry: Entry, server_text: str = "") -> Document:
    """The document of an entry; `member` names the list it is from, such as `tools`. Never fails."""
    fields = _decoded(entry.raw)
    parameters = tuple(_parameters(fields)) if member in ("tools", "prompts") else ()
    uri = "" if member in ("tools", "prompts") else entry.local
    return Document(
        key=entry.key,
        kind=KIND_OF[member],
        server=entry.server,
        name=_text(fields.get("name")) if uri else entry.renamed or entry.local,
        title=_text(fields.get("title")) or _annotated_title(fields),
        description=" ".join(filter(None, (_text(fields.get("description")), uri))),
        parameters=parameters,
        server_text=server_text[:MAX_TEXT],
    )


def schema_parameters(schema: object) -> tuple[Parameter, ...]:
    """The parameters that a JSON Schema names, nested ones included, outer ones first; at most `MAX_PARAMETERS`."""
    return tuple(_walk(schema))


def _decoded(raw: bytes) -> dict[str, Any]:
    try:
        value = msgspec.json.decode(raw)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return {}
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _parameters(fields: dict[str, Any]) -> Iterator[Parameter]:
    arguments = fields.get("arguments")
    if isinstance(arguments, list):
        for argument in cast("list[object]", arguments)[:MAX_PARAMETERS]:
            if isinstance(argument, dict):
                known = cast("dict[str, object]", argument)
                yield Parameter(_text(known.get("name")), _text(known.get("description")))
        return
    yield from schema_parameters(fields.get("inputSchema"))


def _walk(schema: object) -> Iterator[Parameter]:
    """Breadth first, so that the limit cuts what is nested deepest."""
    level: list[object] = [schema]
    found = 0
    for _ in range(MAX_DEPTH):
        below: list[object] = []
        for node in level:
            for name, value in _properties(node):
                if found == MAX_PARAMETERS:
                    return
                found += 1
                yield Parameter(name, _text(value.get("description")) or _text(value.get("title")), _choices(value))
                below.append(value)
            below += _combined(node)
        level = below[: 4 * MAX_PARAMETERS]


def _properties(node: object) -> Iterator[tuple[str, dict[str, object]]]:
    properties = cast("dict[str, object]", node).get("properties") if isinstance(node, dict) else None
    if isinstance(properties, dict):
        for name, value in cast("dict[str, object]", properties).items():
            yield name, cast("dict[str, object]", value) if isinstance(value, dict) else {}


def _combined(node: object) -> list[object]:
    """Schemas that speak of the same value or of its items."""
    if not isinstance(node, dict):
        return []
    known = cast("dict[str, object]", node)
    found = [known["items"]] if "items" in known else []
    for key in _COMBINING:
        branches = known.get(key)
        if isinstance(branches, list):
            found += cast("list[object]", branches)
    return found


def _choices(schema: dict[str, object]) -> tuple[str, ...]:
    values = schema.get("enum")
    if not isinstance(values, list):
        return ()
    return tuple(_text(value) or str(value)[:80] for value in cast("list[object]", values)[:MAX_CHOICES])


def _annotated_title(fields: dict[str, Any]) -> str:
    annotations = fields.get("annotations")
    return _text(cast("dict[str, object]", annotations).get("title")) if isinstance(annotations, dict) else ""


def _text(value: object) -> str:
    return value[:MAX_TEXT] if isinstance(value, str) else ""
