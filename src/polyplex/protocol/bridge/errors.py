"""Errors on their way to a client, with codes that its revision has (2026-07-28, "Error Codes").

Up to 2025-11-25 a missing resource is -32002, and 2025-11-25 alone knows -32042 (URL elicitation required). Modern
senders must use neither, and of -32020 to -32099 nothing but what is defined.
"""

from typing import Any, Final

import msgspec
from msgspec import UNSET, Raw

from polyplex.protocol.jsonrpc import (
    HEADER_MISMATCH,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    MISSING_CAPABILITY,
    RESOURCE_NOT_FOUND,
    UNSUPPORTED_REVISION,
    URL_ELICITATION_REQUIRED,
    RpcErrorObject,
    decode_error,
    decode_fields,
    encode_json,
    error_object,
)
from polyplex.protocol.revisions import R2025_11_25, Era, era_of

_RESERVED: Final = range(-32099, -32019)
_MODERN_CODES: Final = (HEADER_MISMATCH, MISSING_CAPABILITY, UNSUPPORTED_REVISION)


def error_for(method: str, error: bytes, upstream: Era, revision: str, uri: str | None = None) -> bytes:
    """A server's error with a code of the client's `revision`; the bytes that came where it is one already.

    `uri` is how the client names the resource that it asked for, and so does the error then. What only the other side
    of polyplex could mend (headers, revisions) is an internal error to the client.
    """
    decoded = decode_error(error)
    code = code_for(method, decoded.code, upstream, revision)
    given = None if decoded.data is UNSET else bytes(decoded.data)
    data = given if uri is None else _named(given, uri, code)
    if code == decoded.code and data is given:
        return error
    message = url_text(decoded) if decoded.code == URL_ELICITATION_REQUIRED else decoded.message
    return error_object(code, message, data)


def _named(data: bytes | None, uri: str, code: int) -> bytes | None:
    """The data of an error with the URI in it that the client used; the same object where nothing changes."""
    if data is None:
        return encode_json({"uri": uri}) if code in (INVALID_PARAMS, RESOURCE_NOT_FOUND) else None
    if data[:1] != b"{" or b'"uri"' not in data:
        return data
    fields = decode_fields(data)
    if "uri" not in fields or fields["uri"] == Raw(encode_json(uri)):
        return data
    return encode_json(fields | {"uri": Raw(encode_json(uri))})


def code_for(method: str, code: int, upstream: Era, revision: str) -> int:
    """The code that a client's `revision` has for a server's."""
    if era_of(revision) is Era.MODERN:
        if code == RESOURCE_NOT_FOUND:
            return INVALID_PARAMS
        return INTERNAL_ERROR if code in _RESERVED and code != MISSING_CAPABILITY else code
    if code in _MODERN_CODES or (code == URL_ELICITATION_REQUIRED and revision < R2025_11_25):
        return INTERNAL_ERROR
    if upstream is Era.MODERN and code == INVALID_PARAMS and method == "resources/read":
        return RESOURCE_NOT_FOUND
    return code


def wants_url(error: bytes, revision: str) -> str | None:
    """The text for a tool's result, where its error asks a client that has no such error to visit a URL."""
    if revision >= R2025_11_25 or b"-32042" not in error:
        return None
    decoded = decode_error(error)
    return url_text(decoded) if decoded.code == URL_ELICITATION_REQUIRED else None


class _Visit(msgspec.Struct):
    url: str
    message: str = ""


class _Visits(msgspec.Struct):
    elicitations: list[_Visit] = []


def url_text(error: RpcErrorObject) -> str:
    """The message of a -32042 error with the URLs of its data."""
    try:
        visits: Any = [] if error.data is UNSET else msgspec.json.decode(error.data, type=_Visits).elicitations
    except msgspec.DecodeError:
        visits = []
    lines = [f"{visit.message}: {visit.url}" if visit.message else visit.url for visit in visits]
    return "\n".join([error.message, *lines])
