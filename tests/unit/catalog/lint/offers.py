"""Servers and tools for the tests of lint, read the way they are read from a real server."""

import json
from collections.abc import Sequence
from typing import Any

from polyplex.catalog.lint.facts import Server, Tool, read_server
from polyplex.mux.entries import Entry, Naming, read_entry

Json = dict[str, Any]


def entry(member: str, fields: Json, server: str = "s") -> Entry:
    """An entry as a server lists it."""
    found = read_entry(member, json.dumps(fields).encode(), Naming(server, server, prefix=True))
    assert isinstance(found, Entry), found
    return found


def raw_tool(name: str, description: str | None = None, properties: Json | None = None, **more: Any) -> Json:
    """A tool; further members of its input schema by `schema`."""
    schema = {"type": "object", "properties": properties or {}, **more.pop("schema", {})}
    fields = {"name": name, "inputSchema": schema, **more}
    return fields if description is None else fields | {"description": description}


def server(
    *tools: Json, name: str = "s", instructions: str = "", resources: Sequence[Json] = (), prompts: Sequence[Json] = ()
) -> Server:
    """A server of these entries."""
    lists = {
        "tools": [entry("tools", fields, name) for fields in tools],
        "resources": [entry("resources", fields, name) for fields in resources],
        "prompts": [entry("prompts", fields, name) for fields in prompts],
    }
    return read_server(name, lists, instructions=instructions)


def tool(name: str, description: str | None = None, properties: Json | None = None, **more: Any) -> Tool:
    """One tool of a server of its own."""
    own = more.pop("server", "s")
    return server(raw_tool(name, description, properties, **more), name=own).tools[0]
