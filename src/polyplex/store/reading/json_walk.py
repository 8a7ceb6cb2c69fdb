"""Values in a JSON payload of any size that a path selects, found in one pass over its bytes.

What is not on the way is skipped, bracket by bracket, and nothing is held but the place. Of each value the steps of the
path that may come next are known: as in an automaton, several of them where the path has `..`.
"""

import re
from collections.abc import Generator
from typing import Any, Final

import msgspec

from polyplex.errors import PayloadQueryError
from polyplex.store.reading.json_path import Filter, Index, Name, Segment, Selector, Slice, Wildcard
from polyplex.store.reading.parts import JsonPart, Node
from polyplex.store.reading.window import Window, last_whole

MAX_DEPTH: Final = 200
MAX_KEY_BYTES: Final = 64 * 1024
MAX_FILTERED_BYTES: Final = 4 << 20
_SPACE: Final = re.compile(rb"[ \t\r\n]*+")
_IN_STRING: Final = re.compile(rb'(?:[^"\\]++|\\.)*+', re.DOTALL)
_TO_BRACKET: Final = re.compile(rb'(?:[^"{}\[\]]++|"(?:[^"\\]++|\\.)*+")*+', re.DOTALL)
_SCALAR: Final = re.compile(rb"[^ \t\r\n,\]}:]*+")
_QUOTE, _COMMA, _COLON, _OPEN, _CLOSE, _BEGIN, _END = b'",:{}[]'

States = tuple[int, ...]
Path = tuple[str | int, ...]


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
        if first == _QUOTE:
            return self._string_end(at)
        if first in (_OPEN, _BEGIN):
            return self.leave(at + 1)
        end = self._run(_SCALAR, at)
        if end == at:
            raise self.wrong(at)
        return end

    def key(self, at: int) -> tuple[str, int]:
        """The name of a member, and where its value begins."""
        if self.byte(at) != _QUOTE:
            raise self.wrong(at)
        end = self._string_end(at)
        if end - at > MAX_KEY_BYTES:
            raise self.wrong(at)
        name = self.decoded(at, end)
        colon = self.start(end)
        if self.byte(colon) != _COLON:
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
            if byte == _QUOTE:
                return at + 1
            # A backslash at the end of the block: look at it together with what follows.
            if byte < 0 or at + 1 >= self._window.size or at == self._window.base:
                raise self.wrong(self._window.size)
            self._window.load(at)

    def leave(self, at: int) -> int:
        """The end of the object or array in which this is."""
        window, depth = self._window, 1
        while depth:
            at = self._run(_TO_BRACKET, at)
            byte = self.byte(at)
            if byte < 0:
                raise self.wrong(window.size)
            if byte == _QUOTE:  # a string that goes on in the next block
                at = self._string_end(at)
                continue
            depth += 1 if byte in (_OPEN, _BEGIN) else -1
            at += 1
        return at


class _Found(msgspec.Struct, frozen=True):
    path: Path
    start: int
    end: int


_Walk = Generator[_Found, None, int]
"""Gives what is selected, and at last the end of what was walked through; -1 where nothing more can be selected."""


class Walker:
    """The values that a path selects, in the order of the document."""

    def __init__(self, window: Window, segments: tuple[Segment, ...]) -> None:
        self._scan, self._segments = JsonScanner(window), segments
        self._end = len(segments)
        self._single = all(segment.selects_one for segment in segments)

    def found(self, *, lines: bool) -> _Walk:
        """All of them. JSON lines count as an array of their values."""
        if lines and self._end:
            return self._items(0, (0,), (), -1)
        return self._value(self._scan.start(0), (0,), ())

    def _value(self, at: int, states: States, path: Path) -> _Walk:
        """What is selected in the value that begins here, itself included."""
        first = self._scan.byte(at)
        if self._end in states:
            end = self._scan.skip(at)
            yield _Found(path, at, end)
            states = tuple(state for state in states if state < self._end)
            if not states:
                return end
        if first not in (_OPEN, _BEGIN):
            return self._scan.skip(at)
        if len(path) >= MAX_DEPTH:
            raise PayloadQueryError(f"the payload nests deeper than {MAX_DEPTH} levels along this path")
        if first == _OPEN:
            return (yield from self._members(at + 1, states, path))
        return (yield from self._items(at + 1, states, path, _END))

    def _members(self, at: int, states: States, path: Path) -> _Walk:
        scan = self._scan
        at = scan.start(at)
        if scan.byte(at) == _CLOSE:
            return at + 1
        while True:
            name, at = scan.key(at)
            at = yield from self._child(at, states, path, name, 0)
            if at < 0:
                return at
            at = scan.start(at)
            if scan.byte(at) == _CLOSE:
                return at + 1
            if scan.byte(at) != _COMMA:
                raise scan.wrong(at)
            at = scan.start(at + 1)

    def _items(self, at: int, states: States, path: Path, close: int) -> _Walk:
        """The items of an array; with -1 for `close` values that follow each other up to the end."""
        scan = self._scan
        at = scan.start(at)
        length = self._length(at, close) if any(self._segments[state].needs_length for state in states) else 0
        index = 0
        while scan.byte(at) != close or index:
            at = yield from self._child(at, states, path, index, length)
            if at < 0:
                return at
            at = scan.start(at)
            if scan.byte(at) == close:
                break
            if self._passed(states, index):
                return -1 if close < 0 else scan.leave(at)
            at = self._next_item(at, close)
            index += 1
        return at + 1

    def _next_item(self, at: int, close: int) -> int:
        if close < 0:
            return at
        if self._scan.byte(at) != _COMMA:
            raise self._scan.wrong(at)
        return self._scan.start(at + 1)

    def _child(self, at: int, states: States, path: Path, key: str | int, length: int) -> _Walk:
        """What is selected in a member or item."""
        after = self._after(at, states, key, length)
        if not after:
            return self._scan.skip(at)
        end = yield from self._value(at, after, (*path, key))
        return -1 if self._single else end

    def _after(self, at: int, states: States, key: str | int, length: int) -> States:
        """Which steps may come next in a member or item."""
        after: dict[int, None] = {}
        for state in states:
            segment = self._segments[state]
            if segment.deep:
                after[state] = None
            if any(self._selects(selector, at, key, length) for selector in segment.selectors):
                after[state + 1] = None
        return tuple(after)

    def _selects(self, selector: Selector, at: int, key: str | int, length: int) -> bool:
        if isinstance(selector, Wildcard):
            return True
        if isinstance(selector, Filter):
            end = self._scan.skip(at)
            if end - at > MAX_FILTERED_BYTES:
                raise PayloadQueryError(f"a filter looks at values of at most {MAX_FILTERED_BYTES:,} bytes")
            return selector.test(self._scan.decoded(at, end))
        if isinstance(selector, Name):
            return key == selector.name
        if not isinstance(key, int):
            return False
        if isinstance(selector, Index):
            return key == (selector.index if selector.index >= 0 else length + selector.index)
        start, stop = _place(selector.start or 0, length), selector.stop
        return key >= start and (stop is None or key < _place(stop, length)) and (key - start) % selector.step == 0

    def _length(self, at: int, close: int) -> int:
        """How many items there are from here on."""
        scan, count = self._scan, 0
        while scan.byte(at) != close or count:
            at = scan.start(scan.skip(at))
            count += 1
            if scan.byte(at) == close:
                break
            at = self._next_item(at, close)
        return count

    def _passed(self, states: States, index: int) -> bool:
        """Whether no item after this one can be selected."""
        return all(
            not self._segments[state].deep
            and all(
                isinstance(one, Name)
                or (isinstance(one, Index) and 0 <= one.index <= index)
                or (isinstance(one, Slice) and one.stop is not None and 0 <= one.stop <= index + 1)
                for one in self._segments[state].selectors
            )
            for state in states
        )


def _place(index: int, length: int) -> int:
    return index if index >= 0 else max(0, length + index)


def read_json_path(
    window: Window, segments: tuple[Segment, ...], *, skip: int, limit: int, max_bytes: int, lines: bool
) -> JsonPart:
    """The values that a path selects, `limit` of them from the `skip`-th on, as far as they fit."""
    nodes: list[Node] = []
    room = max_bytes
    for number, found in enumerate(Walker(window, segments).found(lines=lines)):
        if number < skip:
            continue
        length = found.end - found.start
        if len(nodes) >= limit or (nodes and length > room):
            return JsonPart(nodes=nodes, skip=skip, next_skip=number, size=window.size)
        raw = window.read(found.start, found.start + min(length, max(room, 0)))
        cut = len(raw) < length
        raw = raw[: last_whole(raw)] if cut else raw
        nodes.append(Node(path=_normalized(found.path), raw=raw, offset=found.start, end=found.end, cut=cut))
        room -= length
    return JsonPart(nodes=nodes, skip=skip, next_skip=None, size=window.size)


def _normalized(path: Path) -> str:
    """A path as RFC 9535 normalizes it: `$['a'][0]`."""
    return "$" + "".join(f"[{step}]" if isinstance(step, int) else f"[{_quoted(step)}]" for step in path)


def _quoted(name: str) -> str:
    body = msgspec.json.encode(name).decode()[1:-1].replace('\\"', '"').replace("'", "\\'")
    return f"'{body}'"
