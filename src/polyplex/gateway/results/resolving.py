"""References as arguments: a payload URI becomes the content, or an address, before a tool gets it.

Only where the tool's configuration or the call asks for it; by default a URI is a text like any other.
"""

import base64
from typing import Any, Final, Literal

import msgspec
from msgspec import Raw

from polyplex.config.model import ToolOptions
from polyplex.content import kinds
from polyplex.downstream.session import Call
from polyplex.errors import PayloadQueryError, RemoteProtocolError, RpcError
from polyplex.gateway.results.keeper import Keeper
from polyplex.mux.router import Target
from polyplex.protocol.bridge.requests import read_meta
from polyplex.protocol.jsonrpc import INVALID_PARAMS, Fields, decode_fields, encode_json
from polyplex.store.payload import URI_PREFIX, Payload

META_RESOLVE: Final = "polyplex/resolve"
MAX_CONTENT_BYTES: Final = 32 * 1024 * 1024
MAX_DEPTH: Final = 32
URL_SECONDS: Final = 3600.0
Way = Literal["content", "url", "base64"]
_WAYS: Final = ("content", "url", "base64")
_decode_list = msgspec.json.Decoder(list[Raw]).decode


class Wishes:
    """What is to become of payload URIs in the arguments of one call, by dotted names; `*` is any."""

    def __init__(self, tool: ToolOptions, asked: Raw | None) -> None:
        self._by_path: dict[str, Way] = dict(tool.resolve)
        if asked is not None:
            self._by_path |= _asked(asked)

    def __bool__(self) -> bool:
        return bool(self._by_path)

    def of(self, path: str) -> Way | None:
        """The wish for the argument of this name."""
        return self._by_path.get(path) or self._by_path.get("*")


def _asked(raw: Raw) -> dict[str, Way]:
    """`true`, a list of names, or ways by names. Raises `RpcError`."""
    value: Any = msgspec.json.decode(raw)
    if value is True:
        return {"*": "content"}
    if isinstance(value, list) and all(isinstance(each, str) for each in value):  # pyright: ignore[reportUnknownVariableType]
        return dict.fromkeys(value, "content")  # pyright: ignore[reportUnknownArgumentType]
    if isinstance(value, dict) and all(each in _WAYS for each in value.values()):  # pyright: ignore[reportUnknownVariableType]
        return value  # pyright: ignore[reportUnknownVariableType]
    if value is False or value is None:
        return {}
    raise RpcError(
        INVALID_PARAMS,
        f"_meta.{META_RESOLVE} is true, a list of argument names, or names with one of {', '.join(_WAYS)}",
    )


class Resolver:
    """Resolves the arguments of one call."""

    def __init__(self, keeper: Keeper, owner: str, wishes: Wishes, schema: dict[str, Any]) -> None:
        self._keeper, self._owner, self._wishes, self._schema = keeper, owner, wishes, schema
        self._left = MAX_CONTENT_BYTES

    async def arguments(self, raw: bytes) -> bytes:
        """The arguments with what their URIs stand for. Raises `PayloadError`."""
        return await self._value(raw, "", self._schema, 0)

    async def _value(self, raw: bytes, path: str, schema: dict[str, Any], depth: int) -> bytes:
        first = raw[:1]
        if depth > MAX_DEPTH or b":" not in raw:
            return raw
        if first == b'"':
            return await self._text(raw, path, schema)
        if first == b"{":
            fields = decode_fields(raw)
            for name, member in fields.items():
                inner = bytes(member)
                below = _below(schema, name)
                changed = await self._value(inner, f"{path}.{name}" if path else name, below, depth + 1)
                if changed is not inner:
                    fields[name] = Raw(changed)
            return encode_json(fields)
        if first == b"[":
            items = [bytes(item) for item in _decode_list(raw)]
            below = _object(schema.get("items"))
            return b"[%b]" % b",".join([await self._value(item, path, below, depth + 1) for item in items])
        return raw

    async def _text(self, raw: bytes, path: str, schema: dict[str, Any]) -> bytes:
        way = self._wishes.of(path)
        uri = msgspec.json.decode(raw, type=str) if way is not None else ""
        if way is None or not (uri.startswith(URI_PREFIX) or self._keeper.reference(uri)):
            return raw
        payload = await self._keeper.stat(self._owner, uri)
        if way == "url":
            return encode_json(await self._address(payload, path))
        return await self._content(payload, path, schema, plain=way == "content")

    async def _address(self, payload: Payload, path: str) -> str:
        address = await self._keeper.store.presigned(payload, URL_SECONDS)
        if address is None:
            raise PayloadQueryError(
                f"The argument {path} was to become an address, but results are stored in files here, which have "
                "none. Have the content put in its place: resolve it as content."
            )
        return address

    async def _content(self, payload: Payload, path: str, schema: dict[str, Any], *, plain: bool) -> bytes:
        if payload.size > self._left:
            raise PayloadQueryError(
                f"The argument {path} stands for {payload.size:,} bytes; at most {MAX_CONTENT_BYTES:,} can be put into "
                "a call. Pass a part of it, or the URI to a tool that reads it by itself."
            )
        self._left -= payload.size
        data = await self._keeper.read(self._owner, payload, MAX_CONTENT_BYTES)
        if plain and _wants_json(schema):
            return _as_json(data, path)
        if plain and (kinds.is_text(payload.media_type) or not payload.media_type.startswith(("image/", "audio/"))):
            try:
                return encode_json(data.decode())
            except UnicodeDecodeError:
                pass
        return encode_json(base64.b64encode(data).decode())


def _as_json(data: bytes, path: str) -> bytes:
    try:
        data.decode()
        return bytes(msgspec.json.decode(data, type=Raw))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise PayloadQueryError(
            f"The argument {path} has to be an object or a list, and the payload it stands for is not JSON."
        ) from None


def _below(schema: dict[str, Any], name: str) -> dict[str, Any]:
    properties = _object(schema.get("properties"))
    return _object(properties.get(name))


def _object(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}  # pyright: ignore[reportUnknownVariableType]


def _wants_json(schema: dict[str, Any]) -> bool:
    kind = schema.get("type")
    kinds: list[object] = kind if isinstance(kind, list) else [kind]  # pyright: ignore[reportUnknownVariableType]
    return "string" not in kinds and any(each in ("object", "array") for each in kinds)


async def resolved(keeper: Keeper, owner: str, tool: ToolOptions, call: Call, target: Target, fields: Fields) -> Fields:
    """The params with resolved arguments, and the call prepared to be sent with them. Raises `PayloadError`."""
    arguments = fields.get("arguments")
    wishes = Wishes(tool, read_meta(fields).get(META_RESOLVE))
    if not wishes or arguments is None or bytes(memoryview(arguments)[:1]) != b"{":
        return fields
    schema: dict[str, Any] = {}
    if target.entry is not None:
        try:
            schema = msgspec.json.decode(decode_fields(target.entry.raw).get("inputSchema", b"{}"))
        except (msgspec.DecodeError, RemoteProtocolError, RecursionError):
            schema = {}
    changed = await Resolver(keeper, owner, wishes, schema).arguments(bytes(arguments))
    call.fields = fields  # what the call is known by, should it come again, are the URIs
    resolved_fields = fields | {"arguments": Raw(changed)}
    call.params = encode_json(resolved_fields)
    return resolved_fields
