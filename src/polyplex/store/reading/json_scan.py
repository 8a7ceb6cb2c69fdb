"""Moving over JSON in a payload of any size: where values begin and end, found block by block, holding nothing."""

import re
from typing import Any, Final

import msgspec

from polyplex.errors import PayloadQueryError
from polyplex.store.reading.window import Window

MAX_KEY_BYTES: Final = 64 * 1024
_SPACE: Final = re.compile(rb"[ \t\r\n]*+")
_IN_STRING: Final = re.compile(rb'(?:[^"\\]++|\\.)*', re.DOTALL)
_FLAT: Final = rb'[^"{}\[\]]++|"(?:[^"\\]++|\\.)*"'
_LEVEL: Final = rb"[\[{](?:" + _FLAT + rb")*[\]}]"
_LEVELS: Final = rb"[\[{](?:" + _FLAT + rb"|" + _LEVEL + rb")*[\]}]"
# Up to a bracket, over all values that the block has whole and that nest three levels at most.
_TO_BRACKET: Final = re.compile(rb"(?:" + _FLAT + rb"|[\[{](?:" + _FLAT + rb"|" + _LEVELS + rb")*[\]}])*", re.DOTALL)
_SCALAR: Final = re.compile(rb"[^ \t\r\n,\]}:]*+")
# Many items of an array at once, each with the comma after it.
_AT_ONCE: Final = 64
_ITEM: Final = (
    rb'[ \t\r\n]*+(?:[^ \t\r\n,:"\[\]{}]++|"(?:[^"\\]++|\\.)*"|[\[{](?:'
    + _FLAT
    + rb"|"
    + _LEVELS
    + rb")*[\]}])[ \t\r\n]*+,"
)
_ITEMS: Final = re.compile(rb"(?:%b){%d}[ \t\r\n]*+" % (_ITEM, _AT_ONCE), re.DOTALL)
QUOTE, COMMA, COLON, OPEN, CLOSE, BEGIN, END = b'",:{}[]'


class JsonScanner:
    """Moves over JSON in a window. It checks the structure that it passes, and no more. Raises `PayloadQueryError`."""

    def __init__(self, window: Window) -> None:
        self._window = window

    def start(self, at: int) -> int:
        """Where the next value or sign begins, after whitespace; the size at the end."""
        return self._run(_SPACE, at)

    def byte(self, at: int) -> int:
        """The byte here; -1 at the end."""
        return self._window.at(at)

    def skip(self, at: int) -> int:
        """The end of the value that begins here."""
        first = self.byte(at)
        if first == QUOTE:
            return self._string_end(at)
        if first in (OPEN, BEGIN):
            return self.leave(at + 1)
        end = self._run(_SCALAR, at)
        if end == at:
            raise self.wrong(at)
        return end

    def skip_items(self, at: int, count: int) -> tuple[int, int]:
        """Where an item of an array begins that comes `count` items later, or some before that; and how many before."""
        while count >= _AT_ONCE:
            index = at - self._window.base
            found = _ITEMS.match(self._window.block, index) if 0 <= index < len(self._window.block) else None
            if found is None or found.end() >= len(self._window.block):
                break
            at, count = self._window.base + found.end(), count - _AT_ONCE
        return at, count

    def key(self, at: int) -> tuple[str, int]:
        """The name of a member, and where its value begins."""
        if self.byte(at) != QUOTE:
            raise self.wrong(at)
        end = self._string_end(at)
        if end - at > MAX_KEY_BYTES:
            raise self.wrong(at)
        name = self.decoded(at, end)
        colon = self.start(end)
        if self.byte(colon) != COLON:
            raise self.wrong(colon)
        return name, self.start(colon + 1)

    def decoded(self, start: int, end: int) -> Any:
        """A value as Python has it."""
        try:
            return msgspec.json.decode(self._window.read(start, end))
        except (msgspec.DecodeError, RecursionError):
            raise self.wrong(start) from None

    def wrong(self, at: int) -> PayloadQueryError:
        """What is said of bytes that are no JSON."""
        where = "it ends too early" if at >= self._window.size else f"byte {at} is not as JSON has it"
        return PayloadQueryError(
            f"the payload cannot be read by a JSON path: {where}. Read it by offset, by lines or with grep"
        )

    def _run(self, pattern: re.Pattern[bytes], at: int) -> int:
        """The end of what a pattern matches, over the borders of blocks."""
        window = self._window
        while at < window.size:
            index = at - window.base
            if not 0 <= index < len(window.block):
                index = 0
                if not window.load(at):
                    raise self.wrong(window.size)
            found = pattern.match(window.block, index)
            assert found is not None  # noqa: S101 - the patterns match nothing, too
            at = window.base + found.end()
            if found.end() < len(window.block):
                break
        return at

    def _string_end(self, at: int) -> int:
        at += 1
        while True:
            at = self._run(_IN_STRING, at)
            byte = self.byte(at)
            if byte == QUOTE:
                return at + 1
            if byte < 0:
                raise self.wrong(self._window.size)
            at += 2  # a backslash at the end of the block, and what it escapes

    def leave(self, at: int) -> int:
        """The end of the object or array in which this is."""
        window, depth = self._window, 1
        while depth:
            at = self._run(_TO_BRACKET, at)
            byte = self.byte(at)
            if byte < 0:
                raise self.wrong(window.size)
            if byte == QUOTE:  # a string that goes on in the next block
                at = self._string_end(at)
                continue
            depth += 1 if byte in (OPEN, BEGIN) else -1
            at += 1
        return at
