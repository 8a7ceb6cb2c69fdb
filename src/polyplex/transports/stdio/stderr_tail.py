"""The end of what a child wrote to stderr, in bounded memory and fit to be shown in a terminal or a log."""

import re
from collections.abc import Callable
from typing import Final

from polyplex.protocol.framing import LineDecoder

MAX_LINES: Final = 200
MAX_BYTES: Final = 64 << 10

ESCAPE_SEQUENCE: Final = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]?"  # CSI: colours, cursor
    r"|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?"  # OSC, DCS and other strings: titles, links
    r"|[ -/]*[0-~]?)"  # two-byte sequences
)
# Controls of C0 and C1, and the marks that turn the direction of text, with which a line can pretend to be another.
CONTROL: Final = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
LINE_END: Final = re.compile(rb"[\r\n]+")


def clean_line(line: bytes) -> str:
    """Return `line` as text without escape sequences and control characters."""
    return CONTROL.sub("", ESCAPE_SEQUENCE.sub("", line.decode("utf-8", "replace"))).rstrip()


class StderrTail:
    """Keeps the last 200 lines or 64 KiB. Work per chunk is a copy; lines are made only when asked for.

    `on_line`, where given, gets every cleaned line of at most 64 KiB as it comes.
    """

    def __init__(self, on_line: Callable[[str], None] | None = None) -> None:
        self._bytes = bytearray()
        self._cut = False
        self._on_line = on_line
        self._decoder = LineDecoder(MAX_BYTES) if on_line is not None else None

    def feed(self, data: bytes) -> None:
        """Take the next bytes of the stream."""
        self._bytes += data[-MAX_BYTES:]
        if len(self._bytes) > 2 * MAX_BYTES or len(data) > MAX_BYTES:
            del self._bytes[:-MAX_BYTES]
            self._cut = True
        if self._decoder is not None and self._on_line is not None:
            for line in self._decoder.feed(data):
                self._on_line(clean_line(line))

    def lines(self) -> list[str]:
        """Return the last lines, oldest first, without empty ones."""
        tail = bytes(self._bytes[-MAX_BYTES:])
        parts = LINE_END.split(tail)
        if (self._cut or len(self._bytes) > MAX_BYTES) and len(parts) > 1:
            del parts[0]
        cleaned = (clean_line(part) for part in parts[-MAX_LINES - 1 :])
        return [line for line in cleaned if line][-MAX_LINES:]
