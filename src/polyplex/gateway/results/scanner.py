"""Taking a result apart while it comes in: large contents go out as pieces, the rest of the result stays.

Large are texts and base64 data in the known places (`content[].text`, `contents[].blob`, ...), and any other member of
the result, which goes out as the JSON that it is. In what stays a mark stands for each, to be found again. Sans-IO.
"""

import binascii
import codecs
import re
from collections.abc import Callable
from enum import StrEnum
from typing import Final, NamedTuple

import msgspec

from polyplex.errors import RemoteProtocolError
from polyplex.gateway.results.outline import MAX_DEPTH, MAX_WORD_BYTES, Outline, broken
from polyplex.protocol.jsonrpc import PARSE_ERROR, encode_json, mend_surrogates

LISTS: Final = frozenset({b"content", b"contents", b"messages"})
MAX_KEPT_BYTES: Final = 4 * 1024 * 1024
FIRST_WINDOW: Final = 1024
_LONGEST_HELD: Final = 12
_SPACE: Final = b" \t\r\n"
_AROUND: Final = frozenset({b"", b"content", b"resource"})
_TOKEN: Final = re.compile(
    rb'[ \t\r\n]*+(?:([{}\[\],:])|("(?:[^"\\]++|\\.)*")|[-+.0-9a-zA-Z]++(?=[ \t\r\n,:\[\]{}"]))', re.DOTALL
)
_WORD_START: Final = re.compile(rb"[-+.0-9a-zA-Z]")
# Stops before what may not be cut: an unfinished escape, and half a surrogate pair whose other half may follow.
_SAFE: Final = re.compile(
    rb'(?:[^"\\]++|\\[^u]|\\u[dD][89aAbB][0-9a-fA-F]{2}(?!\Z|\\\Z|\\u[0-9a-fA-F]{0,3}\Z)'
    rb"|\\u(?![dD][89aAbB])[0-9a-fA-F]{4})*",
    re.DOTALL,
)
_URL_SAFE: Final = bytes.maketrans(b"-_", b"+/")
_decode_text = msgspec.json.Decoder(str).decode


class Kind(StrEnum):
    """What the pieces of a part are: the bytes of a text, decoded data, or JSON as it came."""

    TEXT = "text"
    DATA = "data"
    JSON = "json"


_KINDS: Final = {b"text": Kind.TEXT, b"data": Kind.DATA, b"blob": Kind.DATA}


class Begin(NamedTuple):
    """A part begins; `mark` stands for it in what stays. `media_type` is there where it was declared before."""

    mark: str
    kind: Kind
    media_type: str | None


class Piece(NamedTuple):
    """The next bytes of the part that has begun."""

    data: bytes


class End(NamedTuple):
    """The part is complete."""


Event = Begin | Piece | End


class Scanner:
    """Takes one result, from its first byte on, up to and with the `}` that closes its envelope.

    What is larger than `limit` bytes goes out; `mark` makes a text for each part. `kept` is the rest, complete once
    `close` has returned. `members` says which members of the result went out whole, by mark.
    """

    def __init__(self, limit: int, mark: Callable[[], str]) -> None:
        self.kept = bytearray()
        self.members: dict[str, str] = {}
        self._limit = limit
        self._new_mark = mark
        self._mark = ""
        self._buffer: bytes = b""
        self._events: list[Event] = []
        self._utf8 = codecs.getincrementaldecoder("utf-8")()
        self._step: Callable[[], bool] = self._structure
        self._keys: list[bytes] = []
        self._lists: list[bool] = []
        self._last = b""
        self._string = b""
        self._media_type: str | None = None
        self._member_start = 0
        self._outline = Outline()
        self._window = 0
        self._held: list[bytes] | None = None
        self._held_size = 0
        self._emit: Callable[[bytes], None] = self._emit_raw
        self._base64 = b""

    def feed(self, data: bytes) -> list[Event]:
        """What comes out. Raises `RemoteProtocolError` for what is not JSON in UTF-8."""
        self._check_text(data, final=False)
        self._buffer = self._buffer + data if self._buffer else data
        while self._step():
            pass
        events, self._events = self._events, []
        return events

    def close(self) -> None:
        """The end has come. Raises `RemoteProtocolError` where the result or its envelope is not complete."""
        self._check_text(b"", final=True)
        if self._step != self._envelope or self._buffer != b"}":
            raise broken("it ends too early")

    def _check_text(self, data: bytes, *, final: bool) -> None:
        if final or not data.isascii() or self._utf8.getstate()[0]:
            try:
                self._utf8.decode(data, final)
            except UnicodeDecodeError as error:
                raise RemoteProtocolError(f"not UTF-8: {error.reason}", code=PARSE_ERROR) from None

    # -- the steps: each takes from the buffer, and is False where it needs more
    def _structure(self) -> bool:
        """Tokens of what stays. They are only followed here; the whole is parsed in the end."""
        buffer, position, step = self._buffer, 0, self._step
        while self._step == step:
            found = _TOKEN.match(buffer, position)
            if found is None:
                return self._unfinished(position)
            string = found[2]
            if string is not None and len(string) > self._limit and self._part_kind() is not None:
                return self._begin_string(found.start(2))
            position = found.end()
            self._take(found[1], string)
        self._keep(position)
        return True

    def _keep(self, position: int) -> None:
        self.kept += self._buffer[:position]
        self._buffer = self._buffer[position:]
        if len(self.kept) > MAX_KEPT_BYTES:
            raise broken("there is too much in it that is no content")

    def _take(self, mark: bytes | None, string: bytes | None) -> None:
        if string is not None:
            if self._last == b":" and self._keys[-1] == b'"mimeType"':
                self._media_type = string[1:-1].decode("utf-8", "replace")
            self._string, self._last = string, b'"'
            return
        if mark in (b"{", b"["):
            if not self._keys and mark == b"[":
                raise broken("the result is no object")
            if len(self._keys) >= MAX_DEPTH:
                raise broken("nested too deeply")
            self._keys.append(b"")
            self._lists.append(mark == b"[")
            self._media_type = None
        elif not self._keys:
            raise broken("the result is no object")
        elif mark in (b"}", b"]"):
            self._keys.pop()
            if self._lists.pop() is not (mark == b"]"):
                raise broken("an array or object is malformed")
            if not self._keys:
                self._step = self._envelope
        elif mark == b":":
            self._keys[-1] = self._string
            if len(self._keys) == 1:
                self._step = self._value
        self._last = mark or b"v"

    def _part_kind(self) -> Kind | None:
        """What the text that comes next may go out as, by its place."""
        keys = self._keys
        if self._last != b":" or len(keys) < 3 or keys[0][1:-1] not in LISTS:
            return None
        if any(key[1:-1] not in _AROUND for key in keys[1:-1]):
            return None
        return _KINDS.get(keys[-1][1:-1])

    def _unfinished(self, position: int) -> bool:
        """No token is complete: wait, or let what is too large go out."""
        self._keep(position)
        rest = self._buffer = self._buffer.lstrip(_SPACE)
        if not rest:
            return self._too_much(0)
        if rest[:1] == b'"':
            may_go_out = self._part_kind() is not None or (self._last == b":" and len(self._keys) == 1)
            if may_go_out:  # by itself, once it is large enough
                return self._begin_string(0) if len(rest) > self._limit else self._too_much(0)
            if len(rest) > MAX_KEPT_BYTES:
                raise broken("there is too much in it that is no content")
            return self._too_much(len(rest))
        if _WORD_START.match(rest) is None or len(rest) > MAX_WORD_BYTES:
            raise broken("a value is malformed")
        return False

    def _too_much(self, waiting: int) -> bool:
        """A list of many small contents goes out whole."""
        size = len(self.kept) - self._member_start + waiting
        if len(self._keys) < 2 or size <= self._limit:
            return False
        self._buffer = bytes(self.kept[self._member_start :]) + self._buffer
        del self.kept[self._member_start :]
        self._begin_raw(len(self._buffer))
        return True

    def _value(self) -> bool:
        """A member of the result begins."""
        first = self._buffer.lstrip(_SPACE)[:1]
        if not first:
            return False
        self._member_start = len(self.kept)
        self._step = self._structure
        if first == b"{" or (first == b"[" and self._keys[0][1:-1] not in LISTS):
            self._buffer = self._buffer.lstrip(_SPACE)
            self._begin_raw(FIRST_WINDOW)
        return True

    def _begin_raw(self, window: int) -> None:
        self._outline, self._window = Outline(), window
        self._keys[1:], self._lists[1:] = [], []
        self._held, self._held_size = [], 0
        self._step = self._raw

    def _raw(self) -> bool:
        """An array or object that stays, or goes out, as it is."""
        if not self._buffer:
            return False
        chunk = self._buffer[: self._window]
        end = self._outline.feed(chunk)
        taken = chunk if end < 0 else chunk[:end]
        self._buffer = self._buffer[len(taken) :]
        self._window *= 8
        self._emit_raw(taken)
        if end < 0:
            return True
        if self._held is None:
            self._events.append(End())
            self.kept += encode_json(self._mark)
        else:
            self.kept += b"".join(self._held)
        self._last = b"v"
        self._step = self._structure
        return True

    def _emit_raw(self, data: bytes) -> None:
        """Hold a member back until it is larger than the limit."""
        if self._held is None:
            self._events.append(Piece(data))
            return
        self._held.append(data)
        self._held_size += len(data)
        if self._held_size > self._limit:
            data, self._held = b"".join(self._held), None
            self._begin_part(Kind.JSON)
            self._events.append(Piece(data))

    def _begin_part(self, kind: Kind) -> None:
        self._mark = self._new_mark()
        if kind is Kind.JSON:
            self.members[self._mark] = self._keys[0][1:-1].decode("utf-8", "replace")
        self._events.append(Begin(self._mark, kind, None if kind is Kind.JSON else self._media_type))

    def _begin_string(self, position: int) -> bool:
        """A text goes out, from its quote at `position` on."""
        self._keep(position)
        self._buffer = self._buffer[1:]
        kind = self._part_kind() or Kind.JSON
        self._begin_part(kind)
        self._base64 = b""
        self._emit = {Kind.TEXT: self._emit_text, Kind.DATA: self._emit_data, Kind.JSON: self._emit_quoted}[kind]
        if kind is Kind.JSON:
            self._events.append(Piece(b'"'))
        self._step = self._characters
        return True

    def _characters(self) -> bool:
        """The inside of a text that goes out."""
        buffer = self._buffer
        found = _SAFE.match(buffer)
        end = 0 if found is None else found.end()
        ended = buffer[end : end + 1] == b'"'
        if not ended:
            left = len(buffer) - end
            if left > _LONGEST_HELD or (left and buffer[end : end + 1] != b"\\"):
                raise broken("a text is malformed")
            if not left:
                end = _whole_characters(buffer)
        if end:
            self._emit(buffer[:end])
        if not ended:
            self._buffer = buffer[end:]
            return False
        self._buffer = buffer[end + 1 :]
        self._end_string()
        return True

    def _end_string(self) -> None:
        if self._emit == self._emit_data and self._base64:
            self._decode_data(self._base64 + b"=" * (-len(self._base64) % 4))
        elif self._emit == self._emit_quoted:
            self._events.append(Piece(b'"'))
        self._events.append(End())
        self.kept += encode_json(self._mark)
        self._string, self._last = b"", b'"'
        self._step = self._structure

    def _emit_quoted(self, data: bytes) -> None:
        unescaped(data)  # only to see that it is well-formed
        self._events.append(Piece(data))

    def _emit_text(self, data: bytes) -> None:
        self._events.append(Piece(unescaped(data)))

    def _emit_data(self, data: bytes) -> None:
        text = self._base64 + unescaped(data).translate(_URL_SAFE, _SPACE)
        whole = len(text) - (len(text) % 4 or 4)  # the last four may be padded, and wait for the end
        self._base64 = text[whole:]
        if whole > 0:
            if b"=" in text[:whole]:
                raise RemoteProtocolError("its data is not base64: it goes on after its end")
            self._decode_data(text[:whole])

    def _decode_data(self, text: bytes) -> None:
        try:
            data = binascii.a2b_base64(text, strict_mode=True)
        except binascii.Error as error:
            raise RemoteProtocolError(f"its data is not base64: {error}") from None
        self._events.append(Piece(data))

    def _envelope(self) -> bool:
        self._buffer = self._buffer.strip(_SPACE)
        if self._buffer not in (b"", b"}"):
            raise broken("something follows the result")
        return False


def unescaped(data: bytes) -> bytes:
    """The UTF-8 of the inside of a JSON string. Raises `RemoteProtocolError`."""
    quoted = b'"%b"' % data
    try:
        return _decode_text(quoted).encode()
    except msgspec.DecodeError as error:
        mended = mend_surrogates(quoted)
        if mended == quoted:
            raise broken(f"a text is malformed: {error}") from None
        try:
            return _decode_text(mended).encode()
        except msgspec.DecodeError as still:
            raise broken(f"a text is malformed: {still}") from None


def _whole_characters(data: bytes) -> int:
    """Where the last whole character of UTF-8 ends."""
    for back in range(1, min(4, len(data)) + 1):
        byte = data[-back]
        if byte >= 0xC0:
            length = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return len(data) - back if back < length else len(data)
        if byte < 0x80:
            break
    return len(data)
