"""JSON with comments, as people write it in client configurations, with the line of every key and item.

Accepts `//` and `/* */` comments, trailing commas, a byte order mark and any line ending; nothing else beyond JSON.
Linear in time, bounded in size and depth. Knows nothing of what the values mean.
"""

import re
from bisect import bisect_right
from dataclasses import dataclass, field
from math import isinf
from pathlib import Path
from typing import NoReturn, cast

import msgspec

from polyplex.errors import ConfigError

KeyPath = tuple[str | int, ...]

MAX_BYTES = 4 * 1024 * 1024
MAX_DEPTH = 64

# Possessive quantifiers keep every alternative linear, also on text that never ends as it should. Until Python 3.11.5
# none may repeat a group that holds a lookaround: it matches wrongly there (python/cpython#106052).
TOKEN = re.compile(
    r"""(?P<skip>[\ \t\r\n]++|//[^\r\n]*+|/\*[^*]*+\*++(?:[^*/][^*]*+\*++)*+/)
      | (?P<punctuation>[{}\[\]:,])
      | (?P<string>"(?:[^"\\\x00-\x1f]++|\\.)*+")
      | (?P<number>-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?(?![0-9A-Za-z_.]))
      | (?P<word>[A-Za-z_$][A-Za-z0-9_$]*+)
    """,
    re.VERBOSE,
)
LINE_END = re.compile(r"\r\n|\r|\n")
WORDS: dict[str, object] = {"true": True, "false": False, "null": None}
END = ""


@dataclass(frozen=True, slots=True)
class Document:
    """A parsed text: its `value`, and the 1-based line of each key and list item by path (`()` is the root)."""

    value: object
    lines: dict[KeyPath, int] = field(default_factory=dict[KeyPath, int])

    def line(self, path: KeyPath) -> int:
        """The line of `path`, or of its nearest ancestor that is in the text; 0 when there is none."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 0)


def parse(text: bytes | str, file: Path | None = None) -> Document:
    """Parse a whole text. Raises ConfigError with the line of what is wrong."""
    if len(text) > MAX_BYTES:
        raise ConfigError(f"larger than {MAX_BYTES // (1024 * 1024)} MiB", file=file)
    return _Parser(_decode(text, file), file).document()


def _decode(text: bytes | str, file: Path | None) -> str:
    if isinstance(text, str):
        return text.removeprefix("\ufeff")
    try:
        return text.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = len(LINE_END.findall(text[: error.start].decode("utf-8", "replace"))) + 1
        raise ConfigError("not UTF-8 text; save the file as UTF-8", file=file, line=line) from None


class _Parser:
    """One pass over the tokens; `kind` and `lexeme` are the current one, `start` its offset."""

    def __init__(self, text: str, file: Path | None) -> None:
        self.text, self.file = text, file
        self.line_starts = [0, *(match.end() for match in LINE_END.finditer(text))]
        self.lines: dict[KeyPath, int] = {}
        self.kind, self.lexeme = END, END
        self.start: int = 0
        self.next: int = 0

    def document(self) -> Document:
        self.advance()
        if self.kind == END:
            self.fail("the file is empty; write {} for no configuration")
        self.lines[()] = self.line()
        value = self.value((), 0)
        if self.kind != END:
            self.fail(f"expected the end of the file, found {self.found()}")
        return Document(value, self.lines)

    def value(self, path: KeyPath, depth: int) -> object:
        if depth >= MAX_DEPTH:
            self.fail(f"nested deeper than {MAX_DEPTH} levels")
        if self.lexeme == "{":
            return self.mapping(path, depth)
        if self.lexeme == "[":
            return self.sequence(path, depth)
        return self.scalar()

    def mapping(self, path: KeyPath, depth: int) -> dict[str, object]:
        members: dict[str, object] = {}
        self.advance()
        while self.lexeme != "}":
            key, line = self.key(), self.line()
            member = (*path, key)
            if key in members:
                self.fail(f"the key {_quoted(key)} appears twice, first in line {self.lines[member]}")
            self.lines[member] = line
            self.advance()
            self.expect(":", "after the key")
            members[key] = self.value(member, depth + 1)
            self.separator("}")
        self.advance()
        return members

    def sequence(self, path: KeyPath, depth: int) -> list[object]:
        items: list[object] = []
        self.advance()
        while self.lexeme != "]":
            item = (*path, len(items))
            self.lines[item] = self.line()
            items.append(self.value(item, depth + 1))
            self.separator("]")
        self.advance()
        return items

    def key(self) -> str:
        if self.kind != "string":
            self.fail(f'expected a key in double quotes or "}}", found {self.found()}')
        return self.string()

    def separator(self, closing: str) -> None:
        """Step over a comma; a trailing one may be followed by `closing`."""
        if self.lexeme != closing:
            self.expect(",", f'or "{closing}"')

    def expect(self, token: str, where: str) -> None:
        if self.lexeme != token:
            self.fail(f'expected "{token}" {where}, found {self.found()}')
        self.advance()

    def scalar(self) -> object:
        if self.kind == "string":
            value: object = self.string()
        elif self.kind == "number":
            value = self.number()
        elif self.kind == "word" and self.lexeme in WORDS:
            value = WORDS[self.lexeme]
        else:
            self.fail(f"expected a value, found {self.found()}")
        self.advance()
        return value

    def string(self) -> str:
        try:
            return msgspec.json.decode(self.lexeme.encode(), type=str)
        except (msgspec.DecodeError, UnicodeError):
            self.fail("a string has an escape that is not valid JSON")

    def number(self) -> int | float:
        try:
            number = int(self.lexeme)
        except ValueError:
            number = float(self.lexeme)
        if isinstance(number, float) and isinf(number):
            self.fail("a number is out of range")
        return number

    def advance(self) -> None:
        """Move to the next token that is not space or comment."""
        while match := TOKEN.match(self.text, self.next):
            self.start, self.next = match.start(), match.end()
            self.kind, self.lexeme = cast(str, match.lastgroup), match.group()
            if self.kind != "skip":
                return
        self.start, self.kind, self.lexeme = self.next, END, END
        if self.start < len(self.text):
            self.fail(self.junk())

    def junk(self) -> str:
        rest = self.text[self.start : self.start + 2]
        if rest == "/*":
            return "a comment is never closed"
        if rest[0] == '"':
            return "a string is never closed, or holds a line break or control character"
        return f"unexpected {_quoted(rest[0])}"

    def found(self) -> str:
        if self.kind == "string":
            return "a string"
        return _quoted(self.lexeme) if self.kind in ("punctuation", "word") else (self.kind or "the end of the file")

    def line(self) -> int:
        return bisect_right(self.line_starts, self.start)

    def fail(self, message: str) -> NoReturn:
        raise ConfigError(message, file=self.file, line=self.line())


def _quoted(text: str) -> str:
    shown = text if len(text) <= 60 else text[:57] + "..."
    return ascii(shown)
