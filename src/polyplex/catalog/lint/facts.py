"""What the rules look at: entries decoded once, their parameters listed with references followed."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, cast

import msgspec
from msgspec import Struct

from polyplex.catalog.documents import document
from polyplex.catalog.search import Document
from polyplex.mux.entries import Entry, SetAside

MAX_PARAMETERS: Final = 500
MAX_DEPTH: Final = 12
MAX_TEXT: Final = 50_000
Json = dict[str, Any]
_EMPTY: Final[Json] = {}


class Parameter(Struct, frozen=True):
    """One parameter. `path` is `a.b` for a nested one; `items` marks one inside a list, which no path reaches."""

    path: str
    name: str
    schema: Json
    required: bool
    depth: int
    items: bool = False

    @property
    def description(self) -> str:
        """What its schema says of it."""
        return text(self.schema.get("description"))


class Tool(Struct, frozen=True):
    """One tool: `name` is the server's own, `key` the public one."""

    server: str
    name: str
    key: str
    title: str
    description: str
    schema: Json
    output: Json
    annotations: Json
    parameters: tuple[Parameter, ...]
    document: Document

    @property
    def outer(self) -> list[Parameter]:
        """The parameters themselves, without nested ones."""
        return [parameter for parameter in self.parameters if parameter.depth == 1]

    def shown(self) -> Json:
        """What a model gets of the tool: name, description and input schema."""
        return {"name": self.key, "description": self.description, "input_schema": self.schema}


class Resource(Struct, frozen=True):
    """One resource or resource template."""

    server: str
    uri: str
    key: str
    name: str
    description: str
    template: bool


class Prompt(Struct, frozen=True):
    """One prompt."""

    server: str
    name: str
    key: str
    description: str
    arguments: tuple[Json, ...]


class Server(Struct, frozen=True):
    """All that one server offers, and what of it is set aside."""

    name: str
    instructions: str = ""
    tools: tuple[Tool, ...] = ()
    resources: tuple[Resource, ...] = ()
    prompts: tuple[Prompt, ...] = ()
    set_aside: tuple[SetAside, ...] = ()


def read_server(
    name: str,
    lists: Mapping[str, Iterable[Entry]],
    *,
    instructions: str = "",
    set_aside: Sequence[SetAside] = (),
) -> Server:
    """A server's lists, by member name such as `tools`."""
    return Server(
        name,
        instructions,
        tuple(read_tool(entry, instructions) for entry in lists.get("tools", ())),
        tuple(
            read_resource(entry, template=member == "resourceTemplates")
            for member in ("resources", "resourceTemplates")
            for entry in lists.get(member, ())
        ),
        tuple(map(read_prompt, lists.get("prompts", ()))),
        tuple(set_aside),
    )


def read_tool(entry: Entry, server_text: str = "") -> Tool:
    """A tool; members of a wrong type count as missing."""
    fields = decoded(entry.raw)
    schema = as_object(fields.get("inputSchema"))
    annotations = as_object(fields.get("annotations"))
    return Tool(
        server=entry.server,
        name=entry.local,
        key=entry.key,
        title=text(fields.get("title")) or text(annotations.get("title")),
        description=text(fields.get("description")),
        schema=schema,
        output=as_object(fields.get("outputSchema")),
        annotations=annotations,
        parameters=tuple(parameters_of(schema)),
        document=document("tools", entry, server_text),
    )


def read_resource(entry: Entry, *, template: bool) -> Resource:
    """A resource or template."""
    fields = decoded(entry.raw)
    name = text(fields.get("title")) or text(fields.get("name"))
    return Resource(entry.server, entry.local, entry.key, name, text(fields.get("description")), template)


def read_prompt(entry: Entry) -> Prompt:
    """A prompt."""
    fields = decoded(entry.raw)
    arguments = tuple(map(as_object, as_list(fields.get("arguments"))))
    return Prompt(entry.server, entry.local, entry.key, text(fields.get("description")), arguments)


def parameters_of(schema: Json) -> Iterator[Parameter]:
    """All parameters, outer ones first; bounded in number and depth, whatever references lead in circles."""
    level = [(schema, "", False)]
    seen: set[int] = set()
    found = 0
    for depth in range(1, MAX_DEPTH + 1):
        below: list[tuple[Json, str, bool]] = []
        for node, path, items in level:
            required = {each for each in as_list(node.get("required")) if isinstance(each, str)}
            for name, value in as_object(node.get("properties")).items():
                if found == MAX_PARAMETERS:
                    return
                found += 1
                own = described(value, resolved(value, schema))
                place = f"{path}.{name}" if path else name
                yield Parameter(place, name, own, name in required, depth, items)
                below += [(inner, place, items or listed) for inner, listed in objects_in(value, schema, seen)]
        level = below[: 4 * MAX_PARAMETERS]


def objects_in(value: object, root: Json, seen: set[int], depth: int = 0) -> Iterator[tuple[Json, bool]]:
    """The objects that a value may be, and the objects in the lists that it may be (marked True).

    Each part of the schema is visited once: a definition that several parameters refer to belongs to the first.
    """
    schema = resolved(value, root)
    if depth > MAX_DEPTH or id(schema) in seen:
        return
    seen.add(id(schema))
    if as_object(schema.get("properties")):
        yield schema, False
    for inner in branches(schema):
        yield from objects_in(inner, root, seen, depth + 1)
    if isinstance(schema.get("items"), dict):
        for inner, _ in objects_in(schema["items"], root, seen, depth + 1):
            yield inner, True


def described(value: object, goal: Json) -> Json:
    """A schema behind a reference, with what was said beside the reference."""
    beside = {key: own for key, own in as_object(value).items() if key in ("description", "default", "title")}
    return goal | beside if beside and goal is not value else goal


def branches(schema: Json) -> list[Any]:
    """The alternatives and parts of a schema that speak of the same value."""
    return [each for key in ("anyOf", "oneOf", "allOf") for each in as_list(schema.get(key))]


def resolved(schema: object, root: Json) -> Json:
    """A schema with its local reference followed. A reference that leads nowhere is left."""
    own = as_object(schema)
    here = own
    for _ in range(MAX_DEPTH):
        reference = here.get("$ref")
        if not isinstance(reference, str):
            return here
        goal = pointed(reference, root)
        if goal is None:
            return own
        here = goal
    return own


def pointed(reference: str, root: Json) -> Json | None:
    """What a reference within the schema leads to; None where it leads nowhere."""
    if not reference.startswith("#"):
        return None
    here: object = root
    for part in reference[1:].split("/")[1:]:
        part = part.replace("~1", "/").replace("~0", "~")
        if isinstance(here, dict) and part in here:
            here = as_object(cast("object", here))[part]
        elif isinstance(here, list) and part.isascii() and part.isdigit() and int(part) < len(cast("list[Any]", here)):
            here = cast("list[Any]", here)[int(part)]
        else:
            return None
    if isinstance(here, bool):
        return _EMPTY
    return as_object(cast("object", here)) if isinstance(here, dict) else None


def types_of(schema: Json) -> set[str]:
    """The JSON types that a schema names, alternatives included; empty where it names none."""
    kind = schema.get("type")
    found = {kind} if isinstance(kind, str) else {each for each in as_list(kind) if isinstance(each, str)}
    for inner in branches(schema):
        found |= types_of(as_object(inner))
    return found


def choices_of(schema: Json) -> list[Any]:
    """The values of an enum, that of an alternative included."""
    values = as_list(schema.get("enum")) or ([schema["const"]] if "const" in schema else [])
    for inner in branches(schema):
        values = values or as_list(as_object(inner).get("enum"))
    return values


def decoded(raw: bytes) -> Json:
    """A JSON object; empty for anything else."""
    try:
        return as_object(cast("object", msgspec.json.decode(raw)))
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return {}


def as_object(value: object) -> Json:
    """The value where it is an object, else an empty one."""
    return cast("Json", value) if isinstance(value, dict) else {}


def as_list(value: object) -> list[Any]:
    """The value where it is a list, else an empty one."""
    return cast("list[Any]", value) if isinstance(value, list) else []


def text(value: object) -> str:
    """The value where it is a text, cut where it is longer than any reader bears; else an empty one."""
    return value[:MAX_TEXT] if isinstance(value, str) else ""
