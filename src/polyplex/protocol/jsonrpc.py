"""JSON-RPC 2.0 envelopes. `params`, `result` and `error` stay raw bytes: what polyplex does not own is not parsed.

Raw bytes are checked before they are trusted: msgspec verifies the JSON grammar of what it skips, this module adds
UTF-8, duplicate keys and the shape of ids. Errors name the code to answer with (JSON-RPC 2.0, section 5.1).
"""

import json
import re
from typing import Final

import msgspec
from msgspec import UNSET, Raw, UnsetType

from polyplex.errors import RemoteProtocolError

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603
RESOURCE_NOT_FOUND: Final = -32002
HEADER_MISMATCH: Final = -32020
MISSING_CAPABILITY: Final = -32021
UNSUPPORTED_REVISION: Final = -32022
URL_ELICITATION_REQUIRED: Final = -32042

NULL: Final = b"null"
_WHITESPACE: Final = b" \t\r\n"
_SMALLEST_REPEAT: Final = len('"id":1,')
_SPACED: Final = b'{"jsonrpc": '
_LONGEST_CACHED_METHOD: Final = 64
_ESCAPE: Final = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[dD][89a-fA-F][0-9a-fA-F]{2}|.)", re.DOTALL
)
_INTEGER: Final = re.compile(rb'"?(-?\d{1,18})(?:\.\d*)?"?')
_BRACKET: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\]]', re.DOTALL)
_LONGEST_MENDED: Final = 1000
_ID_HINT: Final = re.compile(rb'"id"\s*:\s*("(?:[^"\\]|\\.){0,256}"|-?\d{1,40})')


class Message(msgspec.Struct, gc=False):
    """One envelope: a request (method and id), a notification (method) or a response (result or error)."""

    id: Raw | UnsetType = UNSET
    method: str | UnsetType = UNSET
    params: Raw | UnsetType = UNSET
    result: Raw | UnsetType = UNSET
    error: Raw | UnsetType = UNSET
    jsonrpc: str = ""


class _Identified(msgspec.Struct):
    id: Raw | UnsetType = UNSET


class RpcErrorObject(msgspec.Struct):
    """The `error` member of a response."""

    code: int = INTERNAL_ERROR
    message: str = ""
    data: Raw | UnsetType = UNSET


class _StrictError(msgspec.Struct):
    code: int
    message: str


Fields = dict[str, Raw]
_decode_message = msgspec.json.Decoder(Message).decode
_decode_identified = msgspec.json.Decoder(_Identified).decode
_decode_batch = msgspec.json.Decoder(list[Raw]).decode
_decode_fields = msgspec.json.Decoder(Fields).decode
_decode_error = msgspec.json.Decoder(RpcErrorObject).decode
_decode_strict_error = msgspec.json.Decoder(_StrictError).decode
_decode_text = msgspec.json.Decoder(str).decode
encode_json = msgspec.json.Encoder().encode


def decode(frame: bytes) -> Message:
    """Decode one message.

    Half a surrogate pair, which JavaScript leaves where it cuts a text, becomes U+FFFD: few readers take it as it is.
    Raises `RemoteProtocolError` with code -32700 for what is not JSON in UTF-8, -32600 for what is no message.
    """
    if not frame.isascii():
        check_text(frame)
    try:
        message = _decode_message(frame)
    except msgspec.ValidationError as error:
        raise RemoteProtocolError(f"not a JSON-RPC message: {error}", id=_exact_id(frame)) from None
    except (msgspec.DecodeError, RecursionError) as error:
        mended = mend_surrogates(frame)
        if mended != frame:
            return decode(mended)
        reason = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise RemoteProtocolError(f"not JSON: {reason}", code=PARSE_ERROR) from None
    if not _is_plain(message, len(frame)):
        _check_shape(message, frame)
    return message


def _is_plain(message: Message, length: int) -> bool:
    """True for a request with params, or a response with a result, that has an integer id and nothing to spare.

    That is most of what passes; anything else is looked at closely.
    """
    identifier, method, body = message.id, message.method, message.params
    if identifier is UNSET or message.error is not UNSET or message.jsonrpc != "2.0":
        return False
    size = 33 if method is UNSET else 45 + len(method)
    if method is UNSET:
        body = message.result
    elif message.result is not UNSET:
        return False
    if body is UNSET:
        return False
    raw = bytes(identifier)
    return raw.isdigit() and length == size + len(raw) + memoryview(body).nbytes


def decode_frame(frame: bytes) -> Message | list[bytes]:
    """Decode a frame that may be a batch (2025-03-26): a message, or the raw messages of the batch."""
    if frame[:1] == b"{" or frame.lstrip(_WHITESPACE)[:1] != b"[":
        return decode(frame)
    check_text(frame)
    try:
        batch = [bytes(part) for part in _decode_batch(frame)]
    except (msgspec.DecodeError, RecursionError) as error:
        mended = mend_surrogates(frame)
        if mended != frame:
            return decode_frame(mended)
        raise RemoteProtocolError(f"not JSON: {error}", code=PARSE_ERROR) from None
    if not batch:
        raise RemoteProtocolError("an empty batch is not allowed")
    return batch


def check_text(frame: bytes) -> None:
    """Raise `RemoteProtocolError` (-32700) unless the bytes are UTF-8."""
    if frame.isascii():
        return
    try:
        str(frame, "utf-8")
    except UnicodeDecodeError as error:
        raise RemoteProtocolError(f"not UTF-8 at byte {error.start}", code=PARSE_ERROR) from None


def mend_surrogates(frame: bytes) -> bytes:
    """The same JSON, of the same length, with U+FFFD for each escaped surrogate that has no partner."""
    return _ESCAPE.sub(lambda found: b"\\ufffd" if len(found[0]) == 6 else found[0], frame)


def cut_deep(frame: bytes, depth: int) -> bytes:
    """The same JSON with null for each array or object that lies below `depth` levels."""
    level = start = 0
    kept: list[bytes] = []
    for found in _BRACKET.finditer(frame):
        mark = found[0]
        if mark in (b"{", b"["):
            level += 1
            if level == depth + 1:
                kept += (frame[start : found.start()], NULL)
        elif mark in (b"}", b"]"):
            if level == depth + 1:
                start = found.end()
            level -= 1
    return b"".join((*kept, frame[start:])) if kept else frame


def _check_shape(message: Message, frame: bytes) -> None:
    is_response = message.result is not UNSET or message.error is not UNSET
    if (message.method is not UNSET) is is_response:
        what = "both a method and a result or error" if is_response else "neither a method nor a result nor an error"
        raise RemoteProtocolError(what, id=_exact_id(frame))
    if is_response and message.result is not UNSET and message.error is not UNSET:
        _keep_one_outcome(message)
    size = 1
    if message.id is not UNSET:
        identifier = bytes(message.id)
        first = identifier[0]
        if first != 0x22 and first != 0x2D and not 0x30 <= first <= 0x39 and not (is_response and first == 0x6E):
            raise RemoteProtocolError("the id must be a string or an integer")
        size += 6 + len(identifier)
    if message.jsonrpc != "2.0":
        raise RemoteProtocolError('"jsonrpc" must be "2.0"', id=_exact_id(frame))
    spare = len(frame) - _least_size(message, size)
    if spare >= _SMALLEST_REPEAT and not (spare == _SMALLEST_REPEAT and frame.startswith(_SPACED)):
        refuse_duplicate_keys(frame)


def _keep_one_outcome(message: Message) -> None:
    """Drop the null one of `result` and `error`, as servers in the manner of JSON-RPC 1.0 send both."""
    if message.error == Raw(NULL):
        message.error = UNSET
    elif message.result == Raw(NULL):
        message.result = UNSET
    else:
        raise RemoteProtocolError("both a result and an error", id=bytes(message.id) if message.id else NULL)


def _least_size(message: Message, size: int) -> int:
    """The fewest bytes that can hold what was decoded; what is left over bounds the size of any repeated key."""
    size += 16  # "jsonrpc":"2.0" and a comma
    if message.method is not UNSET:
        size += 12 + len(message.method)
    if message.params is not UNSET:
        size += 10 + memoryview(message.params).nbytes
    if message.result is not UNSET:
        size += 10 + memoryview(message.result).nbytes
    if message.error is not UNSET:
        size += 9 + memoryview(message.error).nbytes
    return size


def refuse_duplicate_keys(frame: bytes) -> None:
    """Raise `RemoteProtocolError` where the outermost object names a key twice: readers would disagree on its value."""
    repeated = _repeated_keys(frame)
    if repeated:
        identifier = NULL if "id" in repeated else _exact_id(frame)
        raise RemoteProtocolError(f"the key {repeated[0]!r} appears twice", id=identifier)


def _repeated_keys(frame: bytes | Raw) -> list[str]:
    duplicate: list[str] = []

    def note(pairs: list[tuple[str, object]]) -> None:
        seen: set[str] = set()
        duplicate[:] = [key for key, _ in pairs if key in seen or seen.add(key)]

    try:
        json.loads(bytes(frame), object_pairs_hook=note, parse_int=str, parse_float=str)
    except (ValueError, RecursionError) as error:
        raise RemoteProtocolError(f"not JSON: {error}", code=PARSE_ERROR) from None
    return duplicate


def _exact_id(frame: bytes) -> bytes:
    """The raw id of well-formed JSON that is no message; null where it has none that an answer could carry."""
    try:
        identifier = _decode_identified(frame).id
    except (msgspec.DecodeError, RecursionError):
        return NULL
    raw = b"" if identifier is UNSET else bytes(identifier)
    return raw if raw[:1] in (b'"', b"-") or raw[:1].isdigit() else NULL


def find_id(frame: bytes) -> bytes | None:
    """The raw id of a message that cannot be decoded, where one can be made out at its start or end."""
    head = _ID_HINT.search(frame, 0, 512)
    if head:
        return head[1]
    tail = list(_ID_HINT.finditer(frame, max(0, len(frame) - 512)))
    return tail[-1][1] if tail else None


def decode_fields(raw: Raw | bytes) -> Fields:
    """The members of a JSON object, values left raw. Raises `RemoteProtocolError` (-32602) for anything else."""
    try:
        return _decode_fields(raw)
    except (msgspec.DecodeError, RecursionError) as error:
        raise RemoteProtocolError(f"expected a JSON object: {error}", code=INVALID_PARAMS) from None


def decode_params(raw: Raw | bytes) -> Fields:
    """The members of a request's params, values left raw.

    Raises `RemoteProtocolError` (-32602) for anything but an object, and for a key that appears twice: the server
    could read another one than the one that was routed and authorized.
    """
    fields = decode_fields(raw)
    if not fields:
        return fields
    used = 1
    for key, value in fields.items():
        used += len(key) + memoryview(value).nbytes + 4
    spare = memoryview(raw).nbytes - used
    least = len('"":0,')
    if spare >= least and spare >= least + min(map(len, fields)):
        repeated = _repeated_keys(raw)
        if repeated:
            raise RemoteProtocolError(f"the key {repeated[0]!r} appears twice in params", code=INVALID_PARAMS)
    return fields


def decode_text(raw: Raw | bytes) -> str:
    """A JSON string as text. Raises `RemoteProtocolError` (-32602) for anything else."""
    try:
        return _decode_text(raw)
    except msgspec.DecodeError as error:
        raise RemoteProtocolError(f"expected a string: {error}", code=INVALID_PARAMS) from None


def decode_error(raw: Raw | bytes) -> RpcErrorObject:
    """The `error` member; one that breaks the rules becomes an internal error that says so."""
    try:
        return _decode_error(raw)
    except (msgspec.DecodeError, RecursionError):
        return RpcErrorObject(INTERNAL_ERROR, "the server sent an error that is not one")


def mend_error(raw: Raw | bytes) -> bytes:
    """The `error` member with the integer code and the text that clients need; the bytes that came where it has both.

    Clients drop a response whose error breaks the rules, and wait for another one until they time out.
    """
    frame = bytes(raw)
    try:
        _decode_strict_error(frame)
        return frame
    except (msgspec.DecodeError, RecursionError):
        pass
    try:
        fields = _decode_fields(frame)
    except (msgspec.DecodeError, RecursionError):
        fields = {"message": Raw(frame)}
    code = _INTEGER.fullmatch(bytes(fields.get("code", Raw(b""))))
    message = bytes(fields.get("message", Raw(b"null")))
    if message[:1] != b'"':
        text = "" if message == NULL else f": {message[:_LONGEST_MENDED].decode('utf-8', 'replace')}"
        message = encode_json(f"the server sent an error without a message{text}")
    number = Raw(code[1] if code else b"%d" % INTERNAL_ERROR)
    return encode_json(fields | {"code": number, "message": Raw(message)})


_methods: dict[str, bytes] = {}


def _method(name: str) -> bytes:
    encoded = _methods.get(name)
    if encoded is None:
        encoded = encode_json(name)
        if len(_methods) < 256 and len(name) <= _LONGEST_CACHED_METHOD:
            _methods[name] = encoded
    return encoded


def request(identifier: bytes, method: str, params: bytes | Raw | None) -> bytes:
    """Encode a request; `identifier` and `params` are raw JSON."""
    if params is None:
        return b'{"jsonrpc":"2.0","id":%b,"method":%b}' % (identifier, _method(method))
    return b'{"jsonrpc":"2.0","id":%b,"method":%b,"params":%b}' % (identifier, _method(method), params)


def notification(method: str, params: bytes | Raw | None = None) -> bytes:
    """Encode a notification; `params` is raw JSON."""
    if params is None:
        return b'{"jsonrpc":"2.0","method":%b}' % _method(method)
    return b'{"jsonrpc":"2.0","method":%b,"params":%b}' % (_method(method), params)


def response(identifier: bytes, result: bytes | Raw) -> bytes:
    """Encode a successful response from raw JSON parts."""
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (identifier, result)


def error_response(identifier: bytes, error: bytes | Raw) -> bytes:
    """Encode an error response from a raw `error` member."""
    return b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (identifier, error)


def error_object(code: int, message: str, data: bytes | None = None) -> bytes:
    """Encode the `error` member; `data` is raw JSON."""
    text = encode_json(message)
    if data is None:
        return b'{"code":%d,"message":%b}' % (code, text)
    return b'{"code":%d,"message":%b,"data":%b}' % (code, text, data)


def one_line(frame: bytes) -> bytes:
    """The same message without raw line breaks, which JSON allows between tokens only."""
    if b"\n" in frame or b"\r" in frame:
        return frame.replace(b"\n", b" ").replace(b"\r", b" ")
    return frame
