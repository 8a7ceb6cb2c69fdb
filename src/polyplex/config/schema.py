"""The configuration as editors and readers want it: a JSON Schema, and the table of docs/reference/config.md."""

from collections.abc import Iterator
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, cast, get_args, get_origin

import msgspec
from msgspec import Meta, Struct

from polyplex.config.bind import keys_of
from polyplex.config.model import ClientOptions, ConfigFile, GatewayOptions, ServerEntry, ServerOptions, ToolOptions
from polyplex.config.unbuilt import UNBUILT

SCALARS: dict[object, str] = {str: "string", bool: "boolean", int: "integer", float: "number", Any: "any"}

SECTIONS: tuple[tuple[str, str, type[Struct], str], ...] = (
    ("Root", "", ConfigFile, "The keys of the file. Those of other programs are named in a warning and left alone."),
    (
        "Server",
        "mcpServers.NAME.",
        ServerEntry,
        "An entry has either `command` (a stdio server) or one of the `url` keys. Every string may hold variables.",
    ),
    ("polyplex", "polyplex.", GatewayOptions, "Options of polyplex itself; other clients ignore them."),
    (
        "Client options",
        "polyplex.clients.NAME.",
        ClientOptions,
        "What is otherwise for clients of this name, which may be a pattern ([guide](../guides/tools.md)).",
    ),
    ("Server options", "polyplex.servers.NAME.", ServerOptions, "What polyplex adds to one server."),
    (
        "Tool options",
        "polyplex.servers.NAME.tools.TOOL.",
        ToolOptions,
        "What polyplex changes of one tool, by the server's own name of it ([words](../guides/tools.md), "
        "[results](../guides/results.md)).",
    ),
)


@dataclass(frozen=True, slots=True)
class Key:
    """One documented key: its full name, its type and default as text, and what it means."""

    name: str
    type: str
    default: str
    meaning: str


def config_json_schema() -> dict[str, Any]:
    """The JSON Schema (2020-12) of a configuration file, for completion and checks in editors."""
    schema = msgspec.json.schema(ConfigFile)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "polyplex configuration",
        "allowTrailingCommas": True,
    } | schema


def config_reference() -> str:
    """The tables of docs/reference/config.md, one for each section, in Markdown."""
    return "\n".join(line for section in SECTIONS for line in _table(*section))


def documented_keys(model: type[Struct], prefix: str = "") -> Iterator[Key]:
    """Every key of a model, those of its nested objects right after it."""
    kinds = keys_of(model)
    for field in msgspec.structs.fields(model):
        kind, meaning = kinds[field.encode_name], ""
        for note in get_args(kind)[1:]:
            meaning = note.description if isinstance(note, Meta) and note.description else meaning
        bare = get_args(kind)[0]
        name = prefix + field.encode_name
        nested = isinstance(bare, type) and issubclass(bare, Struct)
        default = "{}" if nested else _default_text(field)
        yield Key(name, _type_text(kind), default, meaning + _unbuilt_note(name))
        if nested and bare is not GatewayOptions:
            yield from documented_keys(cast(type[Struct], bare), f"{name}.")


def _table(title: str, prefix: str, model: type[Struct], introduction: str) -> Iterator[str]:
    yield f"## {title}\n"
    yield f"{introduction}\n"
    yield "| key | type | default | meaning |"
    yield "|---|---|---|---|"
    for key in documented_keys(model, prefix):
        default = f"`{key.default}`" if key.default else "-"
        yield f"| `{key.name}` | {key.type} | {default} | {key.meaning} |"
    yield ""


def _default_text(field: msgspec.structs.FieldInfo) -> str:
    default = field.default_factory() if field.default is msgspec.NODEFAULT else field.default  # pyright: ignore[reportCallIssue] -- every key has one of the two
    text = "" if default is None else msgspec.json.encode(default).decode()
    return text.removesuffix(".0")


def _type_text(kind: Any) -> str:
    if get_origin(kind) is Annotated:
        bare, *notes = get_args(kind)
        return _type_text(bare) + "".join(_limit_text(note) for note in notes if isinstance(note, Meta))
    if get_origin(kind) is Literal:
        return " or ".join(f"`{option}`" for option in get_args(kind))
    if get_origin(kind) in (Union, UnionType):
        return " or ".join("null" if option is NoneType else _type_text(option) for option in get_args(kind))
    if get_origin(kind) in (tuple, list):
        return f"list of {_type_text(get_args(kind)[0])}"
    if get_origin(kind) is dict:
        return f"object of {_type_text(get_args(kind)[1])}"
    return SCALARS.get(kind, "object")


def _limit_text(note: Meta) -> str:
    if note.gt is not None:
        return f" over {note.gt}"
    return f" from {note.ge}" if note.ge is not None else ""


def _unbuilt_note(name: str) -> str:
    for unbuilt in UNBUILT:
        path = ".".join(("polyplex", *unbuilt.path)).replace("*", "NAME")
        if path == name and unbuilt.protection:
            return " **Not enforced by this version: using it is an error.**"
        if path == name:
            return f" *Not in this version: {unbuilt.effect}.*"
    return ""
