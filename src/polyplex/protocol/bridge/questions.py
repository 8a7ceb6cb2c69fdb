"""What a server asks of a client: by a request (legacy), or by a member of `inputRequests` (2026-07-28, "MRTR")."""

import hashlib
import json
from typing import Final

import msgspec
from msgspec import Raw

from polyplex.errors import RemoteProtocolError
from polyplex.protocol.jsonrpc import INVALID_PARAMS, Fields, decode_fields, decode_text, encode_json

MAX_LINKS: Final = 32
CANCELLED: Final = b'{"action":"cancel"}'
RETRY_MEMBERS: Final = ("inputResponses", "requestState")
_NOT_ASKED_ABOUT: Final = ("_meta", *RETRY_MEMBERS)
# Members of the legacy request that a modern client has no use for: who tells that a link was followed, and tasks.
_LEGACY_MEMBERS: Final = ("elicitationId", "task", "_meta")


class Link(msgspec.Struct, frozen=True):
    """A page that the user must visit first: an entry of `elicitations` in an error -32042 (2025-11-25)."""

    url: str
    message: str = ""


class _Links(msgspec.Struct):
    elicitations: list[Link] = []


def input_request(method: str, params: bytes | None) -> bytes:
    """A legacy server's request as a modern client is asked it. Raises `RemoteProtocolError` for unusable params."""
    if params is None and method != "roots/list":
        raise RemoteProtocolError(f"{method} has no params", code=INVALID_PARAMS)
    fields = {} if params is None else decode_fields(params)
    kept = {key: value for key, value in fields.items() if key not in _LEGACY_MEMBERS}
    request: Fields = {"method": Raw(encode_json(method))}
    if kept or method != "roots/list":
        request["params"] = Raw(encode_json(kept))
    return encode_json(request)


def legacy_answer(result: Raw) -> bytes:
    """A member of `inputResponses` as the legacy server gets it. Raises `RemoteProtocolError` for what is no object."""
    fields = decode_fields(result)
    if "resultType" not in fields:
        return bytes(result)
    return encode_json({key: value for key, value in fields.items() if key != "resultType"})


def link_request(link: Link) -> bytes:
    """The question that sends a modern client's user to a page."""
    params = {"mode": "url", "message": link.message or "Please open this page and come back.", "url": link.url}
    return encode_json({"method": "elicitation/create", "params": params})


def links_of(data: bytes | None) -> list[Link]:
    """The pages that an error -32042 wants to be visited; none where its data has no usable form."""
    try:
        return msgspec.json.decode(data or b"{}", type=_Links).elicitations[:MAX_LINKS]
    except (msgspec.DecodeError, RecursionError):
        return []


def refused(result: Raw) -> bool:
    """True where the answer to a question about a page is no consent."""
    try:
        return decode_text(decode_fields(result).get("action", Raw(b"null"))) != "accept"
    except RemoteProtocolError:
        return True


def subject_digest(method: str, fields: Fields) -> bytes:
    """Equal for two requests that ask for the same: the method and all params but `_meta` and what a retry adds."""
    hasher = hashlib.blake2b(method.encode(), digest_size=16)
    for key in sorted(fields):
        if key not in _NOT_ASKED_ABOUT:
            hasher.update(encode_json(key) + b":" + _canonical(bytes(fields[key])) + b"\n")
    return hasher.digest()


def _canonical(raw: bytes) -> bytes:
    """One spelling for equal values: a client may write its arguments anew for the retry."""
    try:
        return json.dumps(json.loads(raw), sort_keys=True, separators=(",", ":")).encode()
    except (ValueError, RecursionError):
        return raw
