"""Searching a payload line by line, for a text or for a regular expression that takes linear time.

Regular expressions are those of the Rust `regex` crate, which jsonschema-rs brings: no backtracking, so no look-around
and no back-references, and no pattern that a model may write can hold up a thread.
"""

import re
from collections.abc import Callable
from typing import Any, Final

from polyplex.errors import PayloadQueryError
from polyplex.store.reading.parts import GrepPart, Match
from polyplex.store.reading.window import Window, first_whole, last_whole, whole_text

MAX_PATTERN: Final = 1000
MAX_CONTEXT: Final = 20
SNIPPET_BYTES: Final = 2048
_OVERLAP: Final = 4096
_CONTEXT_BYTES: Final = 16 * 1024
_COMPILED_BYTES: Final = 1 << 20
_PIECE: Final = 4096
_CURSOR: Final = re.compile(r"(\d{1,15})\.(\d{1,15})")

Finder = Callable[[bytes, int], int]
"""Where the first match in a block is, at or after a place; -1 for none."""


def finder(pattern: str, *, regex: bool, ignore_case: bool) -> Finder:
    """What finds the pattern. Raises `PayloadQueryError` for one that cannot be used."""
    if not pattern or len(pattern) > MAX_PATTERN or "\n" in pattern:
        raise PayloadQueryError(f"a pattern has 1 to {MAX_PATTERN} characters, all in one line")
    if regex:
        return _expression(("(?i)" if ignore_case else "") + pattern)
    if not ignore_case:
        wanted = pattern.encode("utf-8", "replace")
        return lambda block, start: block.find(wanted, start)
    if pattern.isascii():
        folded = re.compile(re.escape(pattern.encode()), re.IGNORECASE)
        return lambda block, start: found.start() if (found := folded.search(block, start)) else -1
    return _expression("(?i)" + re.sub(r"([\\.+*?()|\[\]{}^$])", r"\\\1", pattern))


def grep(
    window: Window, find: Finder, *, context: int, max_matches: int, max_bytes: int, cursor: str | None
) -> GrepPart:
    """Matching lines from the cursor on, until there are enough of them or the time is up."""
    start, line = _place(cursor, window.size)
    search = _Search(window, find, context, max_matches, max_bytes)
    return search.run(start, line)


class _Search:
    def __init__(self, window: Window, find: Finder, context: int, max_matches: int, max_bytes: int) -> None:
        self._window, self._find = window, find
        self._context, self._max_matches, self._room = context, max_matches, max_bytes
        self._matches: list[Match] = []
        self._shown = 0  # up to where the last match was shown

    def run(self, offset: int, line: int) -> GrepPart:
        """Search block by block; a block ends with a line, or, in a very long line, overlaps with the next."""
        size, began = self._window.size, offset
        while offset < size:
            if offset > began and self._window.watch.over:
                return self._part(offset, line)
            block = self._window.load(offset)
            last = offset + len(block) >= size
            end = len(block) if last else block.rfind(b"\n") + 1
            searched = end or len(block)
            stopped, line = self._block(block[:searched] if searched < len(block) else block, offset, line)
            if stopped is not None:
                return self._part(stopped, line)
            offset += end or max(1, len(block) - _OVERLAP)
        return self._part(size, line)

    def _part(self, offset: int, line: int) -> GrepPart:
        size = self._window.size
        cursor = f"{offset}.{line}" if offset < size else None
        return GrepPart(matches=self._matches, scanned=offset, size=size, next_cursor=cursor)

    def _block(self, block: bytes, base: int, line: int) -> tuple[int | None, int]:
        """All matches in a block: where to stop (None for not), and the number of the line there."""
        at = counted = 0
        while (found := self._find(block, at)) >= 0:
            line += block.count(b"\n", counted, found)
            counted = found
            if base + found < self._shown:  # blocks overlap in a very long line
                at = self._shown - base
                continue
            start, end, cut = _extent(block, found)
            text = whole_text(block[start:end])
            before, after = self._around(base + start, base + end) if self._context and not cut else ((), ())
            cost = end - start + sum(map(len, before)) + sum(map(len, after))
            if len(self._matches) >= self._max_matches or (self._matches and cost > self._room):
                return base + start, line
            self._room -= cost
            text = text.rstrip("\r\n") if not cut else text
            self._matches.append(Match(line=line, text=text, offset=base + start, before=before, after=after, cut=cut))
            at = max(end, found + 1)
            self._shown = base + at
        return None, line + block.count(b"\n", counted)

    def _around(self, start: int, end: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The lines before and after a line, as far as they are near."""
        before = self._window.read(start - _CONTEXT_BYTES, start).split(b"\n")[:-1]
        after = self._window.read(end, end + _CONTEXT_BYTES).removeprefix(b"\n").split(b"\n")
        if after and not after[-1]:
            after.pop()
        return _texts(before[-self._context :]), _texts(after[: self._context])


def _texts(lines: list[bytes]) -> tuple[str, ...]:
    return tuple(whole_text(line[:SNIPPET_BYTES]).rstrip("\r\n") for line in lines)


def _extent(block: bytes, found: int) -> tuple[int, int, bool]:
    """From where to where a match is shown: its line, or a part of a very long one."""
    start = block.rfind(b"\n", 0, found) + 1
    end = block.find(b"\n", found)
    end = len(block) if end < 0 else end
    if end - start <= SNIPPET_BYTES:
        return start, end, False
    left, right = max(start, found - SNIPPET_BYTES // 4), min(end, found + SNIPPET_BYTES)
    left += first_whole(block[left : left + 4])
    return left, left + last_whole(block[left:right]), True


def _expression(pattern: str) -> Finder:
    import jsonschema_rs

    options = jsonschema_rs.RegexOptions(size_limit=_COMPILED_BYTES, dfa_size_limit=_COMPILED_BYTES)
    try:
        validator: Any = jsonschema_rs.validator_for({"pattern": pattern}, pattern_options=options)
        matches: Callable[[str], bool] = validator.is_valid
        matches("")
    except (ValueError, jsonschema_rs.ValidationError):
        raise PayloadQueryError(
            f"{pattern!r} is no regular expression that can be used here: look-around and back-references are not "
            "known, and it must not grow too large; or search for it as a plain text"
        ) from None

    def find(block: bytes, start: int) -> int:
        """Line by line; of a very long line piece by piece."""
        while start < len(block):
            end = block.find(b"\n", start)
            end = len(block) if end < 0 else end
            if end - start <= 2 * _PIECE:
                if matches(whole_text(block[start:end]).rstrip("\r")):
                    return start
                start = end + 1
                continue
            piece = whole_text(block[start : min(end, start + 2 * _PIECE)])
            if matches(piece):
                return min(start + _match_end(matches, piece), end - 1)
            start = min(start + _PIECE, end) if start + 2 * _PIECE < end else end + 1
        return -1

    return find


def _match_end(matches: Callable[[str], bool], text: str) -> int:
    """About where a match ends, in bytes: the shortest beginning of the text that has one."""
    low, high = 0, len(text)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if matches(text[:middle]) else (middle + 1, high)
    return max(0, len(text[:high].encode()) - 1)


def _place(cursor: str | None, size: int) -> tuple[int, int]:
    if cursor is None:
        return 0, 1
    found = _CURSOR.fullmatch(cursor)
    if found is None or int(found[1]) > size:
        raise PayloadQueryError("that cursor is none that this payload gave; search from the start, without it")
    return int(found[1]), int(found[2])
