"""Values in a JSON payload of any size that a path selects, found in one pass over its bytes.

What is not on the way is skipped, bracket by bracket, and nothing is held but the place. Of each value the steps of the
path that may come next are known: as in an automaton, several of them where the path has `..`.
"""

from collections.abc import Generator
from typing import Final

import msgspec

from polyplex.errors import PayloadQueryError
from polyplex.store.reading.json_path import Filter, Index, Name, Segment, Selector, Slice, Wildcard
from polyplex.store.reading.json_scan import BEGIN, CLOSE, COMMA, END, OPEN, JsonScanner
from polyplex.store.reading.parts import JsonPart, Node
from polyplex.store.reading.window import Window, last_whole

MAX_DEPTH: Final = 200
MAX_FILTERED_BYTES: Final = 4 << 20
_UNKNOWN: Final = 1 << 60

States = tuple[int, ...]
Path = tuple[str | int, ...]


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
        if first not in (OPEN, BEGIN):
            return self._scan.skip(at)
        if len(path) >= MAX_DEPTH:
            raise PayloadQueryError(f"the payload nests deeper than {MAX_DEPTH} levels along this path")
        if first == OPEN:
            return (yield from self._members(at + 1, states, path))
        return (yield from self._items(at + 1, states, path, END))

    def _members(self, at: int, states: States, path: Path) -> _Walk:
        scan = self._scan
        at = scan.start(at)
        if scan.byte(at) == CLOSE:
            return at + 1
        while True:
            name, at = scan.key(at)
            at = yield from self._child(at, states, path, name, 0)
            if at < 0:
                return at
            at = scan.start(at)
            if scan.byte(at) == CLOSE:
                return at + 1
            if scan.byte(at) != COMMA:
                raise scan.wrong(at)
            at = scan.start(at + 1)

    def _items(self, at: int, states: States, path: Path, close: int) -> _Walk:
        """The items of an array; with -1 for `close` values that follow each other up to the end."""
        scan = self._scan
        at = scan.start(at)
        length = self._length(at, close) if any(self._segments[state].needs_length for state in states) else 0
        index, lowest = 0, self._lowest(states, length)
        while scan.byte(at) != close or index:
            if close >= 0 and lowest > index:
                at, left = scan.skip_items(at, lowest - index)
                index = lowest - left
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
        if self._scan.byte(at) != COMMA:
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
            if close >= 0:
                at, left = scan.skip_items(at, _UNKNOWN)
                count += _UNKNOWN - left
            at = scan.start(scan.skip(at))
            count += 1
            if scan.byte(at) == close:
                break
            at = self._next_item(at, close)
        return count

    def _lowest(self, states: States, length: int) -> int:
        """No item before this one can be selected."""
        lowest = _UNKNOWN
        for state in states:
            if self._segments[state].deep:
                return 0
            for one in self._segments[state].selectors:
                if isinstance(one, Index):
                    lowest = min(lowest, _place(one.index, length))
                elif isinstance(one, Slice):
                    lowest = min(lowest, _place(one.start or 0, length))
                elif not isinstance(one, Name):
                    return 0
        return lowest

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
