"""Cursors of merged lists: opaque to the client, sealed so that a made-up one is refused (-32602)."""

import base64
import binascii
import hashlib
import hmac
import os
from typing import Final

import msgspec

from polyplex.errors import RpcError
from polyplex.protocol.jsonrpc import INVALID_PARAMS

_KEY: Final = os.urandom(32)
_TAG: Final = 12


class _Position(msgspec.Struct, array_like=True, frozen=True):
    method: str
    after: str
    offset: int


_decode = msgspec.msgpack.Decoder(_Position).decode


def seal(method: str, after: str, offset: int) -> str:
    """The cursor for the page that follows the entry `after`, which stood at `offset - 1`."""
    body = msgspec.msgpack.encode(_Position(method, after, offset))
    return _text(_tag(body) + body)


def unseal(method: str, cursor: str) -> tuple[str, int]:
    """What `seal` was given. Raises `RpcError` -32602 for a cursor that this process did not make for this list."""
    try:
        data = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
        if _text(data) != cursor:  # the decoder passes over foreign characters and spare bits
            raise ValueError("not canonical")
        body = data[_TAG:]
        position = _decode(body) if hmac.compare_digest(data[:_TAG], _tag(body)) else None
    except (binascii.Error, ValueError, msgspec.DecodeError):
        position = None
    if position is None or position.method != method:
        raise RpcError(INVALID_PARAMS, "invalid cursor; start again without one")
    return position.after, position.offset


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _tag(body: bytes) -> bytes:
    return hmac.digest(_KEY, body, hashlib.sha256)[:_TAG]
