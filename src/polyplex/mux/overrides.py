"""Other words for a tool than its server's own (`polyplex.servers.NAME.tools.TOOL`); the originals stay in `_meta`."""

from typing import Final

from msgspec import Raw

from polyplex.config.model import ToolOptions
from polyplex.protocol.jsonrpc import Fields, decode_fields, decode_text, encode_json

META_ORIGINAL: Final = "polyplex/original"
TAKES_PAYLOADS: Final = "The polyplex://payload/... URI of a stored result stands for its content."
ANY: Final = "*"
_NONE: Final = b"null"


def override(fields: Fields, options: ToolOptions) -> bool:
    """Put the configured title, description and parameter texts into a tool, and tell where it takes payloads.

    The name is up to the caller. `fields` is changed: what was there before goes to `_meta`, by the same names as in
    the configuration. False where nothing is configured. Parameters that the tool lacks are left out;
    `unknown_parameters` names them.
    """
    original: dict[str, object] = {} if options.name is None else {"name": fields["name"]}
    for name, text in (("title", options.title), ("description", options.description)):
        if text is not None:
            original[name] = fields.get(name)
            fields[name] = Raw(encode_json(text))
    if options.title is not None:
        _drop_annotated_title(fields)
    before: dict[str, object] = {}
    for path, text in options.parameters.items():
        changed = described(bytes(fields["inputSchema"]), path.split("."), text)
        if changed is not None:
            fields["inputSchema"] = Raw(changed[0])
            before[path] = None if changed[1] is None else Raw(changed[1])
    for path in _resolved(options):
        was = _tell_of_payloads(fields, path.split("."))
        if was is not None:
            before.setdefault(path, None if was == _NONE else Raw(was))
    if before:
        original["parameters"] = before
    if original:
        raw = bytes(fields.get("_meta", b""))
        meta = decode_fields(raw) if raw[:1] == b"{" else {}
        fields["_meta"] = Raw(encode_json(meta | {META_ORIGINAL: Raw(encode_json(original))}))
    return bool(original)


def unknown_parameters(raw: bytes, options: ToolOptions) -> list[str]:
    """The configured parameters that a tool, as its server listed it, does not have."""
    named = dict.fromkeys((*options.parameters, *_resolved(options)))
    schema = bytes(decode_fields(raw).get("inputSchema", b"")) if named else b""
    return [path for path in named if described(schema, path.split("."), "") is None]


def _resolved(options: ToolOptions) -> list[str]:
    """The parameters by name in which payload URIs are resolved."""
    return [path for path in options.resolve if ANY not in path.split(".")]


def _tell_of_payloads(fields: Fields, path: list[str]) -> bytes | None:
    """Say in the description of a parameter that it takes payloads, as models cannot know; the raw one before.

    `null` where it had none, None where there is no such parameter.
    """
    schema = bytes(fields["inputSchema"])
    found = described(schema, path, "")
    if found is None:
        return None
    was = found[1] or _NONE
    text = decode_text(Raw(was)) if was[:1] == b'"' else ""
    changed = described(schema, path, f"{text} {TAKES_PAYLOADS}".strip())
    if changed is not None:
        fields["inputSchema"] = Raw(changed[0])
    return was


def described(schema: bytes, path: list[str], text: str) -> tuple[bytes, bytes | None] | None:
    """A schema with another description of the parameter at a path, and its description before.

    None where there is no such parameter. Items of a list are part of it: `a.b` is also the `b` of each item of `a`. A
    name that has dots itself is found as a whole first.
    """
    if schema.lstrip()[:1] != b"{":
        return None
    fields = decode_fields(schema)
    properties = bytes(fields.get("properties", b""))
    known = decode_fields(properties) if properties[:1] == b"{" else {}
    for length in range(len(path), 0, -1):
        name = ".".join(path[:length])
        raw = bytes(known.get(name, b""))
        if raw[:1] != b"{":
            continue
        inner = decode_fields(raw)
        if length == len(path):
            was = inner.get("description")
            done = encode_json(inner | {"description": Raw(encode_json(text))}), None if was is None else bytes(was)
        else:
            done = described(raw, path[length:], text)
        if done is not None:
            fields["properties"] = Raw(encode_json(known | {name: Raw(done[0])}))
            return encode_json(fields), done[1]
    items = fields.get("items")
    done = None if items is None else described(bytes(items), path, text)
    return None if done is None else (encode_json(fields | {"items": Raw(done[0])}), done[1])


def _drop_annotated_title(fields: Fields) -> None:
    """`annotations.title` is an older place for the title, which some clients read first."""
    raw = bytes(fields.get("annotations", b""))
    annotations = decode_fields(raw) if raw[:1] == b"{" else {}
    if annotations.pop("title", None) is not None:
        fields["annotations"] = Raw(encode_json(annotations))
