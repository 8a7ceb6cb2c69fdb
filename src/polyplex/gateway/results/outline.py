"""Checking JSON that passes by without parsing it: what has come is rewritten to a short outline, at the speed of `re`.

A string becomes `s`, a number or word `v`, a closed array or object `v`; what is open stays, with at most one member
before the one that is to come. Sans-IO; time is linear in the bytes fed, memory is the depth.
"""

import re
from typing import Final

from polyplex.errors import RemoteProtocolError
from polyplex.protocol.jsonrpc import PARSE_ERROR

MAX_DEPTH: Final = 1000
MAX_WORD_BYTES: Final = 4096
_QUICK_ROUNDS: Final = 24
_LONGEST_ESCAPE: Final = 6
_CHARACTERS: Final = rb'(?:[^"\\\x00-\x1f]++|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*'
_BODY: Final = re.compile(_CHARACTERS)
_STRING: Final = re.compile(b'"' + _CHARACTERS + b'"')
_COMPLETE: Final = re.compile(b'(?:[^"]++|"' + _CHARACTERS + b'")*')
_WORD: Final = re.compile(rb"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?|true|false|null")
_LAST_WORD: Final = re.compile(rb"[-+.0-9a-zA-Z]++\Z")
_CLOSED: Final = re.compile(rb"\[(?:[sv](?:,[sv])*)?\]|\{(?:s:[sv](?:,s:[sv])*)?\}")
_LEFT: Final = re.compile(rb"\[(?:[sv],){2,}|\{(?:s:[sv],){2,}")
_OPEN: Final = re.compile(
    rb"(?:\[(?:[sv],)?(?=[\[{])|\{(?:s:[sv],)?s:(?=[\[{]))*"
    rb"(?:\[(?:[sv]|[sv],[sv]?)?|\{(?:s:[sv],)?(?:s(?::[sv]?)?)?)?"
)
_BRACKET: Final = re.compile(rb'"(?:[^"\\]++|\\.)*"|[{}\[\]]', re.DOTALL)
_SPACE: Final = b" \t\r\n"


def broken(what: str) -> RemoteProtocolError:
    """The error for what is not JSON."""
    return RemoteProtocolError(f"not JSON: {what}", code=PARSE_ERROR)


class Outline:
    """Follows one array or object from its first byte to its last."""

    __slots__ = ("_held", "_in_string", "_open")

    def __init__(self) -> None:
        self._open = b""
        self._held = b""
        self._in_string = False

    def feed(self, data: bytes) -> int:
        """How many bytes of `data` belong to the value where it ends in them, else -1. Raises `RemoteProtocolError`.

        After the end it must not be fed any more.
        """
        carried, text = len(self._held), self._held + data
        start, before = 0, self._open
        if self._in_string:
            start = self._leave_string(text)
            if start < 0:
                return -1
            before += b"s"
        end = self._complete(text, start)
        tokens = _WORD.sub(b"v", _STRING.sub(b"s", text[start:end])).translate(None, _SPACE)
        self._open = _reduced(before + tokens)
        if self._open[:1] == b"v":
            return _end_of_value(text, start, before.count(b"[") + before.count(b"{")) - carried
        if _OPEN.fullmatch(self._open) is None:
            raise broken("an array or object is malformed")
        if self._open.count(b"[") + self._open.count(b"{") > MAX_DEPTH:
            raise broken("nested too deeply")
        return -1

    def _leave_string(self, text: bytes) -> int:
        """Where a string that began earlier ends; -1 where it goes on."""
        end = _end(_BODY, text, 0)
        if text[end : end + 1] == b'"':
            self._in_string, self._held = False, b""
            return end + 1
        self._held = _unfinished(text, end)
        return -1

    def _complete(self, text: bytes, start: int) -> int:
        """Where the last complete token ends; what comes after it is held, or known to be inside a string."""
        self._held = b""
        end = _end(_COMPLETE, text, start)
        if end < len(text):
            self._held = _unfinished(text, _end(_BODY, text, end + 1))
            self._in_string = True
            return end
        word = _LAST_WORD.search(text, max(start, end - MAX_WORD_BYTES))
        if word is None:
            return end
        if len(word[0]) >= MAX_WORD_BYTES:
            raise broken("a number is too long")
        self._held = word[0]
        return word.start()


def _end(pattern: re.Pattern[bytes], text: bytes, start: int) -> int:
    found = pattern.match(text, start)
    return start if found is None else found.end()


def _unfinished(text: bytes, end: int) -> bytes:
    """The beginning of an escape at the end of the text. Raises `RemoteProtocolError` for what no string may hold."""
    rest = text[end:]
    if rest and (rest[:1] != b"\\" or rest[1:2] not in (b"", b"u") or len(rest) >= _LONGEST_ESCAPE):
        raise broken("a string is malformed")
    return rest


def _reduced(text: bytes) -> bytes:
    for _ in range(_QUICK_ROUNDS):
        shorter = _CLOSED.sub(b"v", text)
        if len(shorter) == len(text):
            break
        text = shorter
    else:
        text = _closed_one_by_one(text)
    return _LEFT.sub(lambda found: b"[v," if found[0][:1] == b"[" else b"{s:v,", text)


def _closed_one_by_one(text: bytes) -> bytes:
    """As `_CLOSED`, for deep nesting, where each round would take off one level only."""
    kept = bytearray()
    opened: list[int] = []
    for byte in text:
        kept.append(byte)
        if byte in b"[{":
            opened.append(len(kept) - 1)
        elif byte in b"]}" and opened:
            begin = opened.pop()
            if _CLOSED.fullmatch(kept, begin) is None:
                raise broken("an array or object is malformed")
            kept[begin:] = b"v"
    return bytes(kept)


def _end_of_value(text: bytes, start: int, depth: int) -> int:
    for found in _BRACKET.finditer(text, start):
        mark = found[0]
        if mark in (b"{", b"["):
            depth += 1
        elif mark in (b"}", b"]"):
            depth -= 1
            if depth == 0:
                return found.end()
    raise broken("an array or object is malformed")
