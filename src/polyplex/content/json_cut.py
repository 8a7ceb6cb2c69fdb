"""Where a JSON text can be cut so that, closed again, it is valid JSON of what came before."""

import re
from typing import Final

import msgspec
from msgspec import Struct

from polyplex.content.graphemes import safe_border

_TOKEN: Final = re.compile(r'[ \t\r\n]*+("(?:[^"\\]++|\\.)*"|[\[\]{},:]|[^\s\[\]{},:"]++)', re.DOTALL)
_BETWEEN: Final = re.compile(r"[ \t\r\n]*+,?[ \t\r\n]*+")
_WHOLE: Final = re.compile(
    r'(?:[^"\\]++|\\[^u]|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u(?![dD][89abAB])[0-9a-fA-F]{4})*',
    re.DOTALL,
)
_DEEPEST: Final = 512


class JsonBorder(Struct, frozen=True):
    """`text[:end] + closing` is valid JSON; reading on starts at `resume`.

    `records` elements of the array whose elements are paged are in it, if that is the content's own array or one under
    a first-level `key`. `inside` a string that is cut itself.
    """

    end: int
    resume: int
    closing: str
    records: int | None = None
    key: str | None = None
    inside: bool = False


class _Open(Struct):
    """A bracket that is open at the place where the scan is."""

    closer: str
    start: int
    end: int
    key: str | None
    count: int = 0


def json_border(text: str, limit: int) -> JsonBorder | None:
    """The best border at or before `limit`; None for a text that is not JSON, or of which nothing fits.

    Whole records come first; where not one fits, whole values of any depth; a long string is cut itself.
    """
    scan = _Scan(text, limit)
    if not scan.run():
        return None
    border = scan.border()
    if border is None:
        return None
    try:
        msgspec.json.decode((text[: border.end] + border.closing).encode())
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return None
    return border


class _Scan:
    """Reads tokens up to the limit and remembers what is open there."""

    def __init__(self, text: str, limit: int) -> None:
        self.text, self.limit = text, min(limit, len(text))
        self.open: list[_Open] = []
        self.key: str | None = None
        self.awaits_key = False
        self.string: int | None = None

    def run(self) -> bool:
        """Whether the text is JSON as far as was read, and something is open where it ends."""
        at = 0
        while (token := _TOKEN.match(self.text, at, self.limit)) is not None:
            at = token.end()
            first = token[1][0]
            if at == self.limit and first not in '[]{},:"':
                break  # a number may go on
            if not self._take(first, token, at):
                return False
        rest = self.text[at : self.limit].lstrip(" \t\r\n")
        if rest.startswith('"') and not self.awaits_key:
            self.string = self.limit - len(rest)
        return bool(self.open)

    def _take(self, first: str, token: re.Match[str], at: int) -> bool:
        """Read one token; False where it cannot stand there, or is nested too deeply."""
        if first in "[{":
            if len(self.open) >= _DEEPEST:
                return False
            self.open.append(_Open("]" if first == "[" else "}", token.start(1), at, self.key))
            self.key, self.awaits_key = None, first == "{"
        elif first in "]}":
            if len(self.open) < 2 or self.open[-1].closer != first:
                return False  # what is closed whole is not cut
            self.open.pop()
            self._value_ended(at)
        elif first == ",":
            self.key, self.awaits_key = None, bool(self.open) and self.open[-1].closer == "}"
        elif first == ":":
            self.awaits_key = False
        elif self.awaits_key:
            self.key = token[1]
        elif self.open:
            self._value_ended(at)
        return True

    def _value_ended(self, at: int) -> None:
        self.open[-1].end = at
        self.open[-1].count += 1
        self.key = None

    def border(self) -> JsonBorder | None:
        """The border to cut at."""
        for depth, place in enumerate(self.open[:3]):
            near = place.end >= self.limit / (4 if self._paged(depth) else 2)
            if place.closer == "]" and place.count and near:
                return self._at(depth)
        deepest = max(range(len(self.open)), key=lambda depth: (self.open[depth].end, depth))
        if self.string is not None and self.limit - self.open[deepest].end > self.limit / 4:
            return self._in_string(self.string)
        return self._at(deepest)

    def _at(self, depth: int) -> JsonBorder | None:
        place = self.open[depth]
        between = _BETWEEN.match(self.text, place.end) if place.count else None
        resume = between.end() if between is not None else place.end
        closing = "".join(opened.closer for opened in reversed(self.open[: depth + 1]))
        paged = place.count and self._paged(depth)
        return JsonBorder(
            place.end, resume, closing, place.count if paged else None, _text(place.key) if paged else None
        )

    def _paged(self, depth: int) -> bool:
        """Whether the bracket at a depth is the content's own array, or one under a key of its object."""
        return self.open[depth].closer == "]" and (depth == 0 or (depth == 1 and self.open[0].closer == "}"))

    def _in_string(self, start: int) -> JsonBorder | None:
        """In the middle of a string, after a whole character however it is spelled."""
        end = _end(self.text, start + 1, self.limit)
        end = _end(self.text, start + 1, safe_border(self.text, end))
        closing = '"' + "".join(opened.closer for opened in reversed(self.open))
        return JsonBorder(end, end, closing, inside=True) if end > start + 1 else None


def _end(text: str, start: int, limit: int) -> int:
    whole = _WHOLE.match(text, start, limit)
    return start if whole is None else whole.end()


def _text(key: str | None) -> str | None:
    if key is None:
        return None
    try:
        return msgspec.json.decode(key.encode("utf-8", "surrogatepass"), type=str)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
