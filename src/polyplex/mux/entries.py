"""Entries: one tool, prompt, resource or template as a server listed it and as clients see it.

Members that polyplex does not own stay raw. What would break strict clients is mended (null members) or set aside with
a reason (a tool without a usable input schema), so that siblings stay.
"""

from collections.abc import Collection, Mapping
from typing import Final, NamedTuple

import msgspec
from msgspec import Raw

from polyplex.config.model import ToolOptions
from polyplex.errors import RemoteProtocolError
from polyplex.mux.names import public_name, server_slug
from polyplex.mux.overrides import override
from polyplex.mux.uris import public_uri
from polyplex.protocol.headers import InvalidParamHeaders, ParamHeader, param_headers
from polyplex.protocol.jsonrpc import Fields, cut_deep, decode_fields, decode_text, encode_json

META_SERVER: Final = "polyplex/server"
META_NAME: Final = "polyplex/name"
META_URI: Final = "polyplex/uri"
KEY_OF: Final = {"tools": "name", "prompts": "name", "resources": "uri", "resourceTemplates": "uriTemplate"}


NO_OPTIONS: Final[Mapping[str, ToolOptions]] = {}
# Many readers of JSON stop at some depth, and lose the whole list with it: Rust's at 128 levels.
MAX_NESTING: Final = 100
_OBJECT: Final = Raw(b'"object"')


class Entry(msgspec.Struct, frozen=True, gc=False):
    """`key` is the name, URI or template clients use, `local` the server's own; `raw` the JSON clients get.

    `tasks` is the `execution.taskSupport` of a tool (2025-11-25), `renamed` the name that the configuration gives it.
    """

    server: str
    local: str
    key: str
    raw: bytes
    headers: tuple[ParamHeader, ...] = ()
    tasks: str = ""
    renamed: str = ""


class SetAside(NamedTuple):
    """An entry that is not offered, and why."""

    server: str
    name: str
    reason: str


class Naming(msgspec.Struct, frozen=True):
    """How one server's names are made public; `label` is its part of URIs."""

    server: str
    label: str
    prefix: bool

    def name(self, local: str) -> str:
        """The public name of a tool or prompt."""
        return public_name(self.server, local) if self.prefix else local

    def may_own(self, name: str) -> bool:
        """False where a public name or URI cannot be this server's."""
        if not self.prefix:
            return True
        return name.startswith(
            (self.name("x")[:-1], f"{server_slug(self.server)}__", f"{self.label}+", f"ui://{self.label}/")
        )

    def uri(self, local: str) -> str:
        """The public form of a URI or URI template."""
        return public_uri(self.label, local) if self.prefix else local


def read_entry(
    kind: str,
    raw: bytes,
    naming: Naming,
    *,
    modern_http: bool = False,
    options: Mapping[str, ToolOptions] = NO_OPTIONS,
) -> Entry | SetAside:
    """One member of a list result as an entry. `kind` is a member name of list results, such as `tools`.

    `options` are those of single tools, by the server's own names.
    """
    try:
        fields = decode_fields(raw)
        key_name = KEY_OF[kind]
        local = decode_text(fields.get(key_name, Raw(b"null")))
    except RemoteProtocolError as error:
        return SetAside(naming.server, _hint(raw), f"not a valid entry of {kind}: {error}")
    if not local:
        return SetAside(naming.server, "", f"its {key_name} is empty")
    if raw.count(b"{") + raw.count(b"[") > MAX_NESTING and cut_deep(raw, MAX_NESTING) != raw:
        return SetAside(naming.server, local, f"it is nested more than {MAX_NESTING} levels deep")
    changed = _drop_nulls(fields)
    headers: tuple[ParamHeader, ...] = ()
    tasks = _task_support(fields) if "execution" in fields else ""
    if kind == "tools":
        try:
            changed |= _check_schemas(fields)
            headers = param_headers(msgspec.json.decode(fields["inputSchema"])) if _has_headers(fields) else ()
        except InvalidParamHeaders as error:
            if modern_http:
                return SetAside(naming.server, local, str(error))
        except (_BrokenSchema, msgspec.DecodeError, RecursionError) as error:
            return SetAside(naming.server, local, str(error) or "its input schema is nested too deeply")
    renamed = ""
    told = options.get(local) if kind == "tools" else None
    if told is not None and override(fields, told):
        changed, renamed = True, told.name or ""
    if naming.prefix or renamed:
        key = _rename(kind, fields, local, renamed or local, naming)
        changed = True
    else:
        key = local
    return Entry(naming.server, local, key, encode_json(fields) if changed else bytes(raw), headers, tasks, renamed)


def _task_support(fields: Fields) -> str:
    raw = bytes(fields["execution"])
    support = decode_fields(raw).get("taskSupport") if raw[:1] == b"{" else None
    return "" if support is None or bytes(support)[:1] != b'"' else decode_text(support)


class _BrokenSchema(Exception):
    pass


def _hint(raw: bytes) -> str:
    return bytes(raw[:60]).decode("utf-8", "replace")


def _drop_nulls(fields: Fields, keys: Collection[str] | None = None) -> bool:
    """Remove the members that are null, of the given keys only; True where there was one."""
    nulls = [key for key, value in fields.items() if bytes(value) == b"null" and (keys is None or key in keys)]
    for key in nulls:
        del fields[key]
    return bool(nulls)


def _has_headers(fields: Fields) -> bool:
    return b"x-mcp-header" in bytes(fields["inputSchema"])


def _check_schemas(fields: Fields) -> bool:
    """Refuse an unusable input schema, drop an unusable output schema. True where something was mended."""
    raw = fields.get("inputSchema")
    if raw is None:
        raise _BrokenSchema("it has no inputSchema")
    try:
        schema = decode_fields(raw)
    except RemoteProtocolError:
        raise _BrokenSchema("its inputSchema is not an object") from None
    mended = _drop_nulls(schema, ("type", "properties", "required"))
    kind = bytes(schema.get("type", _OBJECT))
    if kind != b'"object"':
        raise _BrokenSchema(f'its inputSchema has type {_hint(kind)}; "object" is required')
    if bytes(schema.get("properties", Raw(b"{}")))[:1] != b"{":
        raise _BrokenSchema("the properties of its inputSchema are not an object")
    if bytes(schema.get("required", Raw(b"[]")))[:1] != b"[":
        raise _BrokenSchema("the required list of its inputSchema is not a list")
    mended |= "type" not in schema
    if mended:
        fields["inputSchema"] = Raw(encode_json({"type": _OBJECT} | schema))
    if "outputSchema" in fields and bytes(fields["outputSchema"])[:1] != b"{":
        del fields["outputSchema"]
        mended = True
    return mended


def _rename(kind: str, fields: Fields, local: str, name: str, naming: Naming) -> str:
    """Give an entry its public name, made from `name`, or its public URI; the server's own stays in `_meta`."""
    meta = decode_fields(fields["_meta"]) if bytes(fields.get("_meta", Raw(b"")))[:1] == b"{" else {}
    meta[META_SERVER] = Raw(encode_json(naming.server))
    if kind in ("tools", "prompts"):
        key = naming.name(name)
        fields["name"] = Raw(encode_json(key))
        meta[META_NAME] = Raw(encode_json(local))
    else:
        key = naming.uri(local)
        fields[KEY_OF[kind]] = Raw(encode_json(key))
        meta[META_URI] = Raw(encode_json(local))
    rename_ui(meta, naming)
    fields["_meta"] = Raw(encode_json(meta))
    return key


def rename_ui(meta: Fields, naming: Naming) -> bool:
    """Rewrite the `ui://` links of MCP Apps in a `_meta` object; True where there was one."""
    changed = False
    flat = meta.get("ui/resourceUri")
    if flat is not None and bytes(flat)[:1] == b'"':
        meta["ui/resourceUri"] = Raw(encode_json(naming.uri(decode_text(flat))))
        changed = True
    ui = meta.get("ui")
    if ui is not None and bytes(ui)[:1] == b"{":
        inner = decode_fields(ui)
        uri = inner.get("resourceUri")
        if uri is not None and bytes(uri)[:1] == b'"':
            inner["resourceUri"] = Raw(encode_json(naming.uri(decode_text(uri))))
            meta["ui"] = Raw(encode_json(inner))
            changed = True
    return changed
