"""Short ways to export one tool and to look at its schema."""

from typing import Any

from polyplex.catalog.export import Export, export


def tool(schema: Any, name: str = "tool", **members: Any) -> dict[str, Any]:
    """A tool as in `tools/list`."""
    return {"name": name, "inputSchema": schema, **members}


def with_property(schema: Any, **members: Any) -> dict[str, Any]:
    """An input schema whose only property `p` has the given schema."""
    return {"type": "object", "properties": {"p": schema}, **members}


def exported(schema: Any, provider: str = "anthropic", **options: Any) -> tuple[Export, dict[str, Any]]:
    """The export of one tool, and the schema of its arguments in it."""
    made = export(provider, [tool(schema)], **options)
    assert made.aside == ()
    declaration = made.declarations[0]
    inner = declaration.get("function", declaration)
    keys = ("input_schema", "parametersJsonSchema", "parameters")
    return made, next(inner[key] for key in keys if key in inner)


def written(schema: Any, provider: str = "anthropic", **options: Any) -> Any:
    """What becomes of the schema of one property."""
    return exported(with_property(schema), provider, **options)[1]["properties"]["p"]


def reason(schema: Any, provider: str = "anthropic") -> str:
    """Why a tool with this input schema is set aside."""
    made = export(provider, [tool(schema)])
    assert made.exported == ()
    return made.aside[0].reason
