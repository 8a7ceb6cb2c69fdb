"""The elements of a JSON array as it comes in: the content itself, or the first array in it that has any elements."""

import re
from typing import Final, Literal

import msgspec

from polyplex.content.spans import Span

# No text fits an expression in two ways, so each is linear whatever the content.
_SPACE: Final = re.compile(rb"[ \t\r\n]*+")
_NESTED: Final = re.compile(rb'(?:[^"\[\]{}]++|"(?:[^"\\]++|\\.)*")*', re.DOTALL)
_SCALAR: Final = re.compile(rb'[^ \t\r\n,:"\[\]{}]++')
_STRING: Final = re.compile(rb'(?:[^"\\]++|\\.)*', re.DOTALL)
# An element with the comma after it, where the chunk has it all and it nests at most two levels deeper.
_TEXT: Final = rb'[^"\[\]{}]++|"(?:[^"\\]++|\\.)*"'
_LEVEL: Final = rb"[\[{](?:" + _TEXT + rb")*[\]}]"
_ELEMENT: Final = re.compile(
    rb"[ \t\r\n]*+([\[{](?:"
    + _TEXT
    + rb"|"
    + _LEVEL
    + rb')*[\]}]|"(?:[^"\\]++|\\.)*"|[^ \t\r\n,:"\[\]{}]++)[ \t\r\n]*+,',
    re.DOTALL,
)
_MARK: Final = b"\xef\xbb\xbf"
_LONGEST_KEY: Final = 1024
_OPENING: Final = b"[{"
_CLOSING: Final = b"]}"


class JsonSplitter:
    """Gives the places of an array's elements, without the commas and whitespace around them.

    The array is the content, or the first one under a key of the object that is the content which is not empty. The
    grammar of elements is not checked; who reads an element checks that.
    """

    kind: Literal["json"] = "json"
    header = None
    delimiter = ""

    def __init__(self) -> None:
        self.count = 0
        self.key: str | None = None
        self.problem = ""
        self._where: Literal["before", "object", "array", "after"] = "before"
        self._base = 0
        self._start: int | None = None
        self._end = 0
        self._depth = 0
        self._string = self._escaped = False
        self._key_bytes: bytes | None = None
        self._in_key = False
        self._mark = _MARK

    def feed(self, chunk: bytes) -> list[Span]:
        """The elements whose end is known with this chunk."""
        spans: list[Span] = []
        at, size = 0, len(chunk)
        while at < size and self._where != "after":
            if self._string:
                at = self._in_string(chunk, at)
            elif self._depth:
                at = self._in_nested(chunk, at)
            elif self._where == "before":
                at = self._begin(chunk, at)
            elif self._where == "array" and self._start is None and (element := _ELEMENT.match(chunk, at)):
                spans.append(Span(self._base + element.start(1), self._base + element.end(1)))
                at = element.end()
            elif (at := _end(_SPACE, chunk, at)) < size:
                at = self._in_array(chunk, at, spans) if self._where == "array" else self._in_object(chunk, at)
        self._base += size
        self.count += len(spans)
        return spans

    def close(self) -> list[Span]:
        """Nothing more; `problem` tells where the content ended too early."""
        if self._where != "after" and not self.problem:
            self.problem = "the JSON ends in the middle"
        return []

    def _begin(self, chunk: bytes, at: int) -> int:
        if self._mark and chunk[at] == self._mark[0]:
            self._mark = self._mark[1:]
            return at + 1
        at = _end(_SPACE, chunk, at)
        if at == len(chunk):
            return at
        if chunk[at] not in _OPENING:
            self._where, self.problem = "after", "the JSON is neither an array nor an object"
            return at
        self._where = "array" if chunk[at] == 0x5B else "object"
        return at + 1

    def _in_string(self, chunk: bytes, at: int) -> int:
        """To the end of a string that is open, or of the chunk."""
        begin = at
        if self._escaped:
            self._escaped = False
            at += 1
        at = _end(_STRING, chunk, at)
        ended = chunk[at : at + 1] == b'"'
        if self._in_key and self._key_bytes is not None and len(self._key_bytes) < _LONGEST_KEY:
            self._key_bytes += chunk[begin:at] if ended else chunk[begin:]
        if ended:
            self._string = self._in_key = False
            self._end = self._base + at + 1
            return at + 1
        self._escaped = at < len(chunk)  # a backslash, whose other half comes with the next chunk
        return len(chunk)

    def _in_nested(self, chunk: bytes, at: int) -> int:
        at = _end(_NESTED, chunk, at)
        if at == len(chunk):
            return at
        mark = chunk[at]
        if mark == 0x22:
            self._string = True
        elif mark in _OPENING:
            self._depth += 1
        else:
            self._depth -= 1
            self._end = self._base + at + 1
        return at + 1

    def _in_array(self, chunk: bytes, at: int, spans: list[Span]) -> int:
        mark = chunk[at]
        if mark == 0x2C or mark in _CLOSING:
            if self._start is not None:
                spans.append(Span(self._start, self._end))
                self._start = None
            if mark != 0x2C:
                empty = not self.count and not spans and self.key is not None
                self._where = "object" if empty else "after"
                self.key = None if empty else self.key
            return at + 1
        if self._start is None:
            self._start = self._base + at
        return self._value(chunk, at)

    def _in_object(self, chunk: bytes, at: int) -> int:
        mark = chunk[at]
        if mark == 0x2C:
            self._key_bytes = None
        elif mark in _CLOSING:
            self._where, self.problem = "after", "the JSON has no array on its first level"
        elif mark == 0x22 and self._key_bytes is None:
            self._key_bytes, self._in_key, self._string = b"", True, True
        elif mark == 0x5B and self._key_bytes is not None:
            self._where, self.key = "array", _text(self._key_bytes)
        elif mark != 0x3A:
            return self._value(chunk, at)
        return at + 1

    def _value(self, chunk: bytes, at: int) -> int:
        """Over the beginning of a value, or as much of a scalar as is there."""
        mark = chunk[at]
        if mark == 0x22:
            self._string = True
        elif mark in _OPENING:
            self._depth = 1
        else:
            at = max(_end(_SCALAR, chunk, at), at + 1)
            self._end = self._base + at
            return at
        return at + 1


def _end(pattern: re.Pattern[bytes], chunk: bytes, at: int) -> int:
    found = pattern.match(chunk, at)
    return at if found is None else found.end()


def _text(key: bytes) -> str:
    try:
        return msgspec.json.decode(b'"' + key + b'"', type=str)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return key.decode("utf-8", "replace")
