"""JSONPath (RFC 9535), parsed: names, indices, slices, wildcards, unions, descendants and filters without functions.

Paths may leave out the `$` at the start. Filters compare values below `@` with each other and with literals.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, cast

import msgspec
from msgspec import Struct

from polyplex.errors import PayloadQueryError

MAX_PATH: Final = 1000
MAX_NESTING: Final = 16
_INTEGER: Final = re.compile(r"-?(?:0|[1-9]\d{0,15})(?!\d)")
_NAME: Final = re.compile(r"[A-Za-z_\u0080-\U0010FFFF][\w\u0080-\U0010FFFF]*")
_NUMBER: Final = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
_COMPARISON: Final = re.compile(r"==|!=|<=|>=|<|>")
_ESCAPE: Final = re.compile(r"\\(u[0-9A-Fa-f]{4}|.)", re.DOTALL)
_NOTHING: Final = object()

Test = Callable[[Any], bool]


class Name(Struct, frozen=True):
    """`.name`, `['name']`"""

    name: str


class Index(Struct, frozen=True):
    """`[3]`, `[-1]`"""

    index: int


class Slice(Struct, frozen=True):
    """`[1:9:2]`; the step is positive, as values come in the order of the document."""

    start: int | None
    stop: int | None
    step: int


class Wildcard(Struct, frozen=True):
    """`*`"""


class Filter(Struct, frozen=True):
    """`?@.price < 10`"""

    test: Test


Selector = Name | Index | Slice | Wildcard | Filter


class Segment(Struct, frozen=True):
    """One step; `deep` where it is taken at any depth (`..`)."""

    selectors: tuple[Selector, ...]
    deep: bool = False

    @property
    def needs_length(self) -> bool:
        """Whether it counts from the end of an array."""
        return any(
            (isinstance(one, Index) and one.index < 0)
            or (isinstance(one, Slice) and ((one.start or 0) < 0 or (one.stop or 0) < 0))
            for one in self.selectors
        )

    @property
    def needs_value(self) -> bool:
        """Whether it looks at values."""
        return any(isinstance(one, Filter) for one in self.selectors)

    @property
    def selects_one(self) -> bool:
        """Whether it selects one value at most."""
        return not self.deep and len(self.selectors) == 1 and isinstance(self.selectors[0], Name | Index)


def parse_path(text: str) -> tuple[Segment, ...]:
    """The steps of a path. Raises `PayloadQueryError` with the place where it goes wrong."""
    if len(text) > MAX_PATH:
        raise PayloadQueryError(f"a JSON path has {MAX_PATH} characters at most")
    return _Parser(text.strip()).path()


class _Parser:
    def __init__(self, text: str) -> None:
        self._text, self._at, self._depth = text, 0, 0

    def path(self) -> tuple[Segment, ...]:
        """The whole text."""
        if not self._took("$") and self._text and self._text[0] not in ".[":
            return (Segment((self._member(),)), *self._segments())
        return self._segments()

    def _segments(self) -> tuple[Segment, ...]:
        segments: list[Segment] = []
        while self._at < len(self._text):
            segments.append(self._segment())
        return tuple(segments)

    def _segment(self) -> Segment:
        if self._took(".."):
            return Segment(self._bracket() if self._took("[") else (self._member(),), deep=True)
        if self._took("."):
            return Segment((self._member(),))
        if self._took("["):
            return Segment(self._bracket())
        raise self._wrong("expected `.name`, `[...]` or `..`")

    def _member(self) -> Selector:
        if self._took("*"):
            return Wildcard()
        return Name(self._matched(_NAME, "expected a name or `*`; other names go in brackets and quotes: ['a-b']"))

    def _bracket(self) -> tuple[Selector, ...]:
        selectors = [self._selector()]
        while self._took(",", space=True):
            selectors.append(self._selector())
        if not self._took("]", space=True):
            raise self._wrong("expected `,` or `]`")
        return tuple(selectors)

    def _selector(self) -> Selector:
        self._space()
        if self._took("*"):
            return Wildcard()
        if self._took("?"):
            return Filter(self._either())
        if self._next() in "'\"" and self._next():
            return Name(self._quoted())
        start = self._integer()
        if not self._took(":", space=True):
            if start is None:
                raise self._wrong("expected an index, a slice, `*`, `?` or a name in quotes")
            return Index(start)
        self._space()
        stop = self._integer()
        self._space()
        step = self._integer() if self._took(":", space=True) else None
        if step is not None and step < 1:
            raise self._wrong("a step must be 1 or more, as values come in the order of the document")
        return Slice(start, stop, step or 1)

    # -- filters
    def _either(self) -> Test:
        tests = [self._both()]
        while self._took("||", space=True):
            tests.append(self._both())
        return tests[0] if len(tests) == 1 else lambda value: any(test(value) for test in tests)

    def _both(self) -> Test:
        tests = [self._single()]
        while self._took("&&", space=True):
            tests.append(self._single())
        return tests[0] if len(tests) == 1 else lambda value: all(test(value) for test in tests)

    def _single(self) -> Test:
        self._depth += 1
        if self._depth > MAX_NESTING:
            raise self._wrong(f"a filter nests {MAX_NESTING} levels at most")
        try:
            self._space()
            if self._took("!"):
                test = self._single()
                return lambda value: not test(value)
            if self._took("("):
                test = self._either()
                if not self._took(")", space=True):
                    raise self._wrong("expected `)`")
                return test
            return self._comparison()
        finally:
            self._depth -= 1

    def _comparison(self) -> Test:
        left, is_path = self._operand()
        self._space()
        found = _COMPARISON.match(self._text, self._at)
        if found is None:
            if not is_path:
                raise self._wrong("expected a comparison such as `==` or `<`")
            return lambda value: left(value) is not _NOTHING
        self._at = found.end()
        right, _ = self._operand()
        compare = _COMPARE[found[0]]
        return lambda value: compare(left(value), right(value))

    def _operand(self) -> tuple[Callable[[Any], Any], bool]:
        self._space()
        if self._took("@"):
            steps: list[str | int] = []
            while self._next() in (".", "["):
                steps.append(self._step())
            return lambda value: _below(value, steps), True
        literal = self._literal()
        return lambda value: literal, False

    def _step(self) -> str | int:
        segment = self._segment()
        selector = segment.selectors[0]
        if not segment.selects_one or not isinstance(selector, Name | Index):
            raise self._wrong("in a filter a path below `@` has names and indices only")
        return selector.name if isinstance(selector, Name) else selector.index

    def _literal(self) -> Any:
        if self._next() in "'\"" and self._next():
            return self._quoted()
        for word, value in (("true", True), ("false", False), ("null", None)):
            if self._took(word):
                return value
        found = _NUMBER.match(self._text, self._at)
        if found is None:
            raise self._wrong("expected `@`, a number, a text in quotes, true, false or null; functions are not known")
        self._at = found.end()
        return float(found[0]) if set(found[0]) & set(".eE") else int(found[0])

    # -- letters
    def _quoted(self) -> str:
        quote, start = self._text[self._at], self._at + 1
        end = start
        while end < len(self._text) and self._text[end] != quote:
            end += 2 if self._text[end] == "\\" else 1
        if end >= len(self._text):
            raise self._wrong("the quote does not end")
        self._at = end + 1
        return _ESCAPE.sub(lambda found: self._unescaped(found[1]), self._text[start:end])

    def _unescaped(self, letter: str) -> str:
        if letter[0] == "u" and len(letter) == 5:
            return chr(int(letter[1:], 16))
        if letter not in _ESCAPED:
            raise self._wrong(f"`\\{letter}` stands for nothing")
        return _ESCAPED[letter]

    def _integer(self) -> int | None:
        found = _INTEGER.match(self._text, self._at)
        if found is None:
            return None
        self._at = found.end()
        return int(found[0])

    def _matched(self, pattern: re.Pattern[str], otherwise: str) -> str:
        found = pattern.match(self._text, self._at)
        if found is None:
            raise self._wrong(otherwise)
        self._at = found.end()
        return found[0]

    def _next(self) -> str:
        return self._text[self._at : self._at + 1]

    def _space(self) -> None:
        while self._next() in (" ", "\t", "\n", "\r"):
            self._at += 1

    def _took(self, text: str, *, space: bool = False) -> bool:
        if space:
            self._space()
        if not self._text.startswith(text, self._at):
            return False
        self._at += len(text)
        return True

    def _wrong(self, what: str) -> PayloadQueryError:
        return PayloadQueryError(f"the JSON path {self._text!r} is wrong at character {self._at + 1}: {what}")


_ESCAPED: Final[Mapping[str, str]] = {
    "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "/": "/", "\\": "\\", "'": "'", '"': '"',
}  # fmt: skip


def _below(value: Any, steps: Sequence[str | int]) -> Any:
    for step in steps:
        if isinstance(step, str):
            if not isinstance(value, dict):
                return _NOTHING
            value = cast(dict[str, Any], value).get(step, _NOTHING)
        else:
            items = cast(list[Any], value) if isinstance(value, list) else []
            if not -len(items) <= step < len(items):
                return _NOTHING
            value = items[step]
    return value


def _equal(left: Any, right: Any) -> bool:
    """Equal as JSON: true is not 1."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, dict | list) and isinstance(right, dict | list):
        return msgspec.json.encode(left, order="deterministic") == msgspec.json.encode(right, order="deterministic")
    return left == right


def _less(left: Any, right: Any) -> bool:
    """Numbers and texts have an order, each among themselves."""
    if isinstance(left, bool) or isinstance(right, bool):
        return False
    if isinstance(left, int | float) and isinstance(right, int | float):
        return left < right
    return isinstance(left, str) and isinstance(right, str) and left < right


_COMPARE: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "==": _equal,
    "!=": lambda left, right: not _equal(left, right),
    "<": _less,
    ">": lambda left, right: _less(right, left),
    "<=": lambda left, right: _less(left, right) or _equal(left, right),
    ">=": lambda left, right: _less(right, left) or _equal(left, right),
}
