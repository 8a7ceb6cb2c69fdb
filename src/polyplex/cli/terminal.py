"""What people see: lines on stderr with colour where it is wanted, one live line below them, results on stdout."""

import contextlib
import os
import shutil
import sys
from typing import Final, Literal, TextIO

Colour = Literal["red", "green", "yellow", "cyan", "bold", "dim"]
_CODES: Final[dict[Colour, str]] = {"red": "31", "green": "32", "yellow": "33", "cyan": "36", "bold": "1", "dim": "2"}
_ERASE: Final = "\r\x1b[K"
LABEL_WIDTH: Final = 9
LEAST_ROOM: Final = 30


class Terminal:
    """One output stream. Without a terminal, or with NO_COLOR, the text is the same but plain.

    Also a stream for log lines (`write` and `flush`), so that these do not run into the live line. A stream that is
    closed or gone is not an error: nobody is reading.
    """

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = sys.stderr if stream is None else stream
        term = os.environ.get("TERM", "")
        self.interactive = _is_terminal(self._stream) and term != "dumb"
        self.coloured = self.interactive and not os.environ.get("NO_COLOR")
        self._live = ""

    @property
    def width(self) -> int:
        """Columns of the terminal: that of this stream, as stdout may be a pipe while stderr is read by a person."""
        columns = 0
        if not os.environ.get("COLUMNS"):
            with contextlib.suppress(OSError, ValueError, AttributeError):
                columns = os.get_terminal_size(self._stream.fileno()).columns
        return columns or shutil.get_terminal_size((100, 24)).columns

    def paint(self, text: str, colour: Colour) -> str:
        """The text in a colour, where colours are wanted."""
        return f"\x1b[{_CODES[colour]}m{text}\x1b[0m" if self.coloured and text else text

    def say(self, text: str = "") -> None:
        """Print lines; a live line stays below them."""
        self.write(f"{text}\n")

    def tell(self, label: str, text: str, colour: Colour | None = None) -> None:
        """Print a text after its label, in the column where all texts begin."""
        head = self.paint(label, colour) if colour else label
        self.say(f"{head}{' ' * (LABEL_WIDTH - len(label))}{self.wrapped(text, LABEL_WIDTH)}")

    def wrapped(self, text: str, column: int) -> str:
        """Text that begins in `column`; on a terminal broken between words, so that it stays in its column.

        Where that leaves little room it goes below, to where all texts begin.
        """
        if not self.interactive or len(text) <= self.width - column:
            return text
        import textwrap

        below = self.width - column < LEAST_ROOM
        margin = f"\n{' ' * (LABEL_WIDTH if below else column)}"
        room = max(self.width - len(margin) + 1, LEAST_ROOM)
        lines = textwrap.wrap(text, room, break_long_words=False, break_on_hyphens=False)
        return (margin if below else "") + margin.join(lines)

    def live(self, text: str) -> None:
        """Show `text` as the last line until it is replaced; "" removes it. Nothing without a terminal."""
        if self.interactive:
            self._put(_ERASE + self._fitted(text) if text or self._live else "")
            self._live = text

    def write(self, text: str) -> int:
        """Write text that ends with a newline."""
        if self._live:
            self._put(f"{_ERASE}{text}{self._fitted(self._live)}")
        else:
            self._put(text)
        return len(text)

    def flush(self) -> None:
        """Nothing is held back."""

    def fileno(self) -> int:
        """The descriptor, for a log that must not wait for who reads it. Raises `OSError` or `ValueError` for none."""
        return self._stream.fileno()

    def _fitted(self, text: str) -> str:
        return self.paint(shorten(text, self.width - 1), "dim")

    def _put(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):
            return


def write_result(text: str) -> None:
    """Print a result to stdout. Raises `BrokenPipeError` when nobody reads it any more."""
    stream = sys.stdout
    stream.write(text if text.endswith("\n") or not text else f"{text}\n")
    stream.flush()


def prepare_streams() -> None:
    """Make stdout and stderr take any text, whatever the locale's encoding."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def one_line(text: str) -> str:
    """Text of a server on one line, without anything that could drive a terminal."""
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())


def harmless(text: str) -> str:
    """Text of a server with its lines and tabs, without anything that could drive a terminal."""
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() or letter in "\n\t" else _escaped(letter) for letter in text)


def _escaped(letter: str) -> str:
    # Of the letters that do not print, spaces and joiners belong to ordinary text.
    return letter if letter in "\u00a0\u200c\u200d\u3000\u202f" else ascii(letter)[1:-1]


def shorten(text: str, width: int) -> str:
    """At most `width` characters."""
    return text if len(text) <= width else text[: max(0, width - 3)].rstrip() + "..."


def _is_terminal(stream: TextIO) -> bool:
    try:
        return stream.isatty()
    except (AttributeError, ValueError):
        return False


def stdin_is_terminal() -> bool:
    """Whether somebody can be asked."""
    return sys.stdin is not None and _is_terminal(sys.stdin)  # pyright: ignore[reportUnnecessaryComparison]


def stdout_is_terminal() -> bool:
    """Whether results are read by a person."""
    return sys.stdout is not None and _is_terminal(sys.stdout)  # pyright: ignore[reportUnnecessaryComparison]
