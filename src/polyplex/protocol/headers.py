"""HTTP headers that mirror the body in the modern era (2026-07-28, "Streamable HTTP", "Request Metadata").

`Mcp-Method`, `Mcp-Name` and one `Mcp-Param-{name}` for each `x-mcp-header` in a tool's `inputSchema`. polyplex rewrites
names, so it derives these anew for every request it sends and compares them on every request it serves.
"""

import base64
import binascii
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

from polyplex.errors import RpcError
from polyplex.protocol.jsonrpc import HEADER_MISMATCH, INVALID_PARAMS, Fields, decode_fields, decode_text

METHOD: Final = "mcp-method"
NAME: Final = "mcp-name"
REVISION: Final = "mcp-protocol-version"
PARAM_PREFIX: Final = "mcp-param-"
NAMED_METHODS: Final = {
    "tools/call": "name",
    "prompts/get": "name",
    "resources/read": "uri",
    "tasks/get": "taskId",
    "tasks/update": "taskId",
    "tasks/cancel": "taskId",
}
_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_PLAIN: Final = re.compile(r"[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?")
_FIELD_VALUE: Final = re.compile(r"[\x20-\x7e\t]*")
_SENTINEL: Final = re.compile(r"=\?base64\?(.*)\?=", re.DOTALL)
_INTEGER: Final = re.compile(rb"-?[0-9]+")
_WHOLE: Final = re.compile(r"(-?[0-9]{1,300})(?:\.0+)?")
_SAFE_INTEGER: Final = 2**53 - 1
_PRIMITIVES: Final = ("string", "integer", "boolean")
_SCHEMA_MAPS: Final = frozenset(
    {"properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"}
)
_DATA: Final = frozenset({"enum", "const", "default", "examples"})

ParamHeader = tuple[str, tuple[str, ...]]
"""The lower-case header name and the path of `properties` keys that leads to its value."""


class InvalidParamHeaders(ValueError):
    """A tool's `x-mcp-header` annotations break the rules; clients over HTTP must drop the tool."""


def encode_value(text: str) -> str:
    """A header value: plain visible ASCII as it is, all else in the base64 sentinel form ("Value Encoding")."""
    if _PLAIN.fullmatch(text) and not _SENTINEL.fullmatch(text):
        return text
    return f"=?base64?{base64.b64encode(text.encode()).decode()}?="


def decode_value(value: str) -> str:
    """The text behind a header value. Raises `ValueError` for invalid characters and a malformed sentinel form."""
    if not _FIELD_VALUE.fullmatch(value):
        raise ValueError("invalid characters in the header value")
    match = _SENTINEL.fullmatch(value)
    if match is None:
        return value
    try:
        data = base64.b64decode(match[1], validate=True)
        if base64.b64encode(data).decode() != match[1]:
            raise ValueError("malformed base64 header value: not canonical")
        return data.decode()
    except (binascii.Error, UnicodeDecodeError) as error:
        raise ValueError(f"malformed base64 header value: {error}") from None


def param_headers(schema: Any) -> tuple[ParamHeader, ...]:
    """The `x-mcp-header` annotations of an input schema.

    Raises `InvalidParamHeaders` naming the rule that is broken.
    """
    found = list(_walk(schema, (), True))
    names = [name for name, _ in found]
    if len(set(names)) != len(names):
        raise InvalidParamHeaders("two x-mcp-header values differ by case only or are equal")
    return tuple(found)


def _walk(node: Any, path: tuple[str, ...], reachable: bool) -> Iterator[ParamHeader]:
    if len(path) > 64:
        raise InvalidParamHeaders("the schema is nested too deeply")
    if isinstance(node, list):
        for item in cast("list[Any]", node):
            yield from _walk(item, (*path, "[]"), False)
        return
    if not isinstance(node, dict):
        return
    members = cast("dict[str, Any]", node)
    if "x-mcp-header" in members:
        yield _annotation(members, path, reachable and bool(path))
    for key, value in members.items():
        if key in _SCHEMA_MAPS and isinstance(value, dict):
            for name, child in cast("dict[str, Any]", value).items():
                yield from _walk(child, (*path, name), reachable and key == "properties")
        elif key not in _DATA:
            yield from _walk(value, (*path, key), False)


def _annotation(members: Mapping[str, Any], path: tuple[str, ...], reachable: bool) -> ParamHeader:
    name = members["x-mcp-header"]
    where = ".".join(path) or "the schema root"
    if not isinstance(name, str) or not _TOKEN.fullmatch(name):
        raise InvalidParamHeaders(f"x-mcp-header of {where} is not an HTTP token")
    if not reachable:
        raise InvalidParamHeaders(f"x-mcp-header at {where} is not reachable through properties alone")
    if members.get("type") not in _PRIMITIVES:
        raise InvalidParamHeaders(f"x-mcp-header of {where} needs type string, integer or boolean")
    return PARAM_PREFIX + name.lower(), path


def mirror(headers: tuple[ParamHeader, ...], arguments: bytes | None) -> list[tuple[str, str]]:
    """The `Mcp-Param-*` headers for a call's raw `arguments`; absent and null values give none."""
    values = [(name, _primitive_text(_value_at(arguments, path))) for name, path in headers]
    return [(name, encode_value(text)) for name, text in values if text is not None]


def _value_at(raw: bytes | None, path: tuple[str, ...]) -> bytes | None:
    for key in path:
        if raw is None or raw.lstrip()[:1] != b"{":
            return None
        value = decode_fields(raw).get(key)
        raw = None if value is None else bytes(value)
    return raw


def _primitive_text(raw: bytes | None) -> str | None:
    """A raw string, number or boolean as header text; None for all else, which has no header."""
    if raw is None or raw[:1] in (b"{", b"[", b"n"):
        return None
    if raw[:1] == b'"':
        return decode_text(raw)
    if raw in (b"true", b"false") or _INTEGER.fullmatch(raw):
        return raw.decode()
    value = float(raw)
    if value.is_integer() and abs(value) <= _SAFE_INTEGER:
        return str(int(value))
    return repr(value) if math.isfinite(value) else raw.decode()


def _same_whole(expected: str, actual: str) -> bool:
    """True for equal whole numbers, however many zeros follow the point ("Server Validation")."""
    wanted, given = _WHOLE.fullmatch(expected), _WHOLE.fullmatch(actual)
    return wanted is not None and given is not None and int(wanted[1]) == int(given[1])


def check_request(headers: Mapping[str, str], method: str, fields: Fields, revision: str | None) -> None:
    """Compare the mirrored headers of a modern request with its body ("Server Validation").

    `revision` is that of the body; None, where it has none, leaves that header to whoever misses the revision.

    Raises `RpcError` -32020 naming the header that is missing, malformed or different, -32602 for a name that is none.
    """
    if revision is not None:
        _compare(headers, REVISION, revision, encoded=False)
    _compare(headers, METHOD, method, encoded=False)
    key = NAMED_METHODS.get(method)
    if key is not None:
        raw = fields.get(key)
        if raw is not None and bytes(raw)[:1] != b'"':
            raise RpcError(INVALID_PARAMS, f"the {key} must be a string")
        if raw is None and NAME not in headers:
            raise RpcError(INVALID_PARAMS, f"params.{key} is missing")
        _compare(headers, NAME, "" if raw is None else decode_text(raw))


def check_params(headers: Mapping[str, str], expected: tuple[ParamHeader, ...], arguments: bytes | None) -> None:
    """Compare `Mcp-Param-*` with the call's arguments. Raises `RpcError` -32020 for the first that differs."""
    for name, path in expected:
        raw = _value_at(arguments, path)
        text = _primitive_text(raw)
        if raw is not None and text is not None:
            _compare(headers, name, text, number=raw[:1] not in (b'"', b"t", b"f"))
        elif name in headers:
            raise RpcError(HEADER_MISMATCH, f"header {name} has no value in the body")


def _compare(
    headers: Mapping[str, str], name: str, expected: str, *, encoded: bool = True, number: bool = False
) -> None:
    value = headers.get(name)
    if value is not None and value == expected and value.isascii() and not value.startswith("=?"):
        return
    if value is None:
        raise RpcError(HEADER_MISMATCH, f"header {name} is missing; the body has {expected!r}")
    try:
        actual = decode_value(value.strip(" \t")) if encoded else value.strip(" \t")
    except ValueError as error:
        raise RpcError(HEADER_MISMATCH, f"header {name}: {error}") from None
    if actual != expected and not (number and _same_whole(expected, actual)):
        raise RpcError(HEADER_MISMATCH, f"header {name} is {actual!r} but the body has {expected!r}")
