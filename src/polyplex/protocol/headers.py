"""HTTP headers that mirror the body in the modern era (2026-07-28, "Streamable HTTP", "Request Metadata").

`Mcp-Method`, `Mcp-Name` and one `Mcp-Param-{name}` for each `x-mcp-header` in a tool's `inputSchema`. polyplex rewrites
names, so it derives these anew for every request it sends and compares them on every request it serves.
"""

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, cast

import msgspec

from polyplex.errors import RpcError
from polyplex.protocol.jsonrpc import HEADER_MISMATCH, Fields, decode_fields

METHOD: Final = "mcp-method"
NAME: Final = "mcp-name"
REVISION: Final = "mcp-protocol-version"
PARAM_PREFIX: Final = "mcp-param-"
NAMED_METHODS: Final = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
_TOKEN: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_PLAIN: Final = re.compile(r"[\x21-\x7e]([\x20-\x7e\t]*[\x21-\x7e])?")
_SENTINEL: Final = re.compile(r"=\?base64\?(.*)\?=", re.DOTALL | re.IGNORECASE)
_SAFE_INTEGER: Final = 2**53 - 1
_PRIMITIVES: Final = frozenset({"string", "integer", "boolean"})

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
    """The text behind a header value. Raises `ValueError` where the sentinel form is malformed."""
    match = _SENTINEL.fullmatch(value)
    if match is None:
        return value
    try:
        return base64.b64decode(match[1], validate=True).decode()
    except (binascii.Error, UnicodeDecodeError) as error:
        raise ValueError(f"malformed base64 header value: {error}") from None


def param_headers(schema: Any) -> tuple[ParamHeader, ...]:
    """The `x-mcp-header` annotations of an input schema. Raises `InvalidParamHeaders` naming the rule that is broken."""
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
        if key == "properties" and isinstance(value, dict):
            for name, child in cast("dict[str, Any]", value).items():
                yield from _walk(child, (*path, name), reachable)
        elif key not in ("enum", "const", "default", "examples"):
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
    values = [(name, _value_at(arguments, path)) for name, path in headers]
    return [(name, encode_value(text)) for name, text in values if text is not None]


def _value_at(raw: bytes | None, path: tuple[str, ...]) -> str | None:
    for key in path:
        if raw is None or raw.lstrip()[:1] != b"{":
            return None
        value = decode_fields(raw).get(key)
        raw = None if value is None else bytes(value)
    return _primitive_text(raw)


def _primitive_text(raw: bytes | None) -> str | None:
    value: Any = None if raw is None else msgspec.json.decode(raw)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value) if isinstance(value, int | str) else None


def _same(expected: str, actual: str) -> bool:
    """Integers compare numerically, all else as text."""
    if expected == actual:
        return True
    try:
        return abs(int(expected)) <= _SAFE_INTEGER and float(actual) == int(expected)
    except ValueError:
        return False


def check_request(headers: Mapping[str, str], method: str, fields: Fields, revision: str) -> None:
    """Compare the mirrored headers of a modern request with its body ("Server Validation").

    Raises `RpcError` -32020 naming the header that is missing, malformed or different.
    """
    _compare(headers, REVISION, revision)
    _compare(headers, METHOD, method)
    key = NAMED_METHODS.get(method)
    if key is not None:
        raw = fields.get(key)
        _compare(headers, NAME, "" if raw is None else str(msgspec.json.decode(raw)))


def check_params(headers: Mapping[str, str], expected: tuple[ParamHeader, ...], arguments: bytes | None) -> None:
    """Compare `Mcp-Param-*` with the call's arguments. Raises `RpcError` -32020 for the first that differs."""
    for name, path in expected:
        text = _value_at(arguments, path)
        if text is not None:
            _compare(headers, name, text)
        elif name in headers:
            raise RpcError(HEADER_MISMATCH, f"header {name} has no value in the body")


def _compare(headers: Mapping[str, str], name: str, expected: str) -> None:
    value = headers.get(name)
    if value is None:
        raise RpcError(HEADER_MISMATCH, f"header {name} is missing; the body has {expected!r}")
    try:
        actual = decode_value(value.strip())
    except ValueError as error:
        raise RpcError(HEADER_MISMATCH, f"header {name}: {error}") from None
    if not _same(expected, actual):
        raise RpcError(HEADER_MISMATCH, f"header {name} is {actual!r} but the body has {expected!r}")
