"""Logging of a command line program: short lines or JSON on stderr, secrets masked, and never an error of its own.

`POLYPLEX_LOG` sets the level, `POLYPLEX_LOG_FORMAT` is `text` or `json`. Fields come by `extra={...}`.
"""

import logging
import os
import select
import sys
import time
from collections.abc import Mapping
from typing import Any, TextIO

import msgspec

from polyplex.telemetry.redact import MASK, is_secret_name, redact

MAX_TEXT = 16 * 1024
LEVELS = ("debug", "info", "warning", "error", "critical")
DEFAULT_LEVEL = "info"

_OWN_FIELDS = frozenset(vars(logging.LogRecord("", 0, "", 0, "", (), None))) | {"message", "asctime", "taskName"}
_EXCEPTION = logging.Formatter()


def configure_logging(
    level: str | None = None,
    format: str | None = None,
    *,
    stream: TextIO | None = None,
    environ: Mapping[str, str] | None = None,
) -> None:
    """Send everything logged to `stream` (stderr). Arguments win over the environment; a wrong level or format is
    named in a warning and the default used. May be called again."""
    environ = os.environ if environ is None else environ
    wanted_level = (level or environ.get("POLYPLEX_LOG") or DEFAULT_LEVEL).strip().lower()
    wanted_format = (format or environ.get("POLYPLEX_LOG_FORMAT") or "text").strip().lower()
    handler = _Handler(stream or sys.stderr)
    handler.addFilter(RedactingFilter())
    handler.setFormatter(JsonFormatter() if wanted_format == "json" else TextFormatter())
    root = logging.getLogger()
    for old in [old for old in root.handlers if isinstance(old, _Handler)]:
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel((wanted_level if wanted_level in LEVELS else DEFAULT_LEVEL).upper())
    _name_mistakes(wanted_level, wanted_format)


def _name_mistakes(level: str, format: str) -> None:
    logger = logging.getLogger("polyplex")
    if level not in LEVELS:
        logger.warning("unknown log level, %s is used; known: %s", DEFAULT_LEVEL, ", ".join(LEVELS))
    if format not in ("text", "json"):
        logger.warning("unknown log format, text is used; known: text, json")


# What a pipe that can be written to takes without blocking, whatever the characters: UTF-8 has at most four bytes each.
_PIECE = select.PIPE_BUF // 4


class _Handler(logging.StreamHandler[TextIO]):
    """Marks the handler that belongs to polyplex, and stays silent when the stream is gone.

    It never waits for who reads the log: where nobody does and the pipe is full, lines are dropped and counted.
    """

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self._dropped = 0
        self._cut = False
        self._poll: select.poll | None = None
        try:
            descriptor = stream.fileno()
            if os.isatty(descriptor):
                return
        except (AttributeError, OSError, ValueError):  # a stream in memory, or closed
            return
        self._poll = select.poll()
        self._poll.register(descriptor, select.POLLOUT)

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record, or drop it."""
        try:
            if not self._writable():
                self._dropped += 1
                return
            if self._dropped:
                self._write(self.format(_dropped(self._dropped)))
                self._dropped = 0
            self._write(self.format(record))
        # Anything else would come back as an error of whoever logs.
        except Exception:  # noqa: BLE001
            self.handleError(record)

    def _writable(self) -> bool:
        return self._poll is None or bool(self._poll.poll(0))

    def _write(self, line: str) -> None:
        text = ("\n" if self._cut else "") + line + self.terminator
        for start in range(0, len(text), _PIECE):
            self._cut = not self._writable()
            if self._cut:
                self._dropped += 1
                return
            self.stream.write(text[start : start + _PIECE])
            self.stream.flush()

    def handleError(self, record: logging.LogRecord) -> None:
        """A log that cannot be written has nowhere to be complained about."""


def _dropped(count: int) -> logging.LogRecord:
    text = f"{count} lines of the log were dropped: nobody read them"
    return logging.LogRecord("polyplex", logging.WARNING, "", 0, text, (), None)


class RedactingFilter(logging.Filter):
    """Renders a record once, with secrets masked and its length bounded. Never raises, never drops a record."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.msg, record.args = _message(record), ()
        record.exc_text = _exception(record)
        record.exc_info = None
        for name, value in _fields(record).items():
            setattr(record, name, _safe(name, value))
        return True


class TextFormatter(logging.Formatter):
    """`12:30:01 warning polyplex.upstreams message key=value`; a traceback follows on lines of its own."""

    def format(self, record: logging.LogRecord) -> str:
        clock = time.strftime("%H:%M:%S", time.localtime(record.created))
        parts = [clock, record.levelname.lower(), record.name, _one_line(str(record.msg))]
        parts += [f"{name}={_field_text(value)}" for name, value in _fields(record).items()]
        line = " ".join(parts)
        return line + "\n" + _printable(record.exc_text, "\n\t") if record.exc_text else line


class JsonFormatter(logging.Formatter):
    """One JSON object a line: `time` (UTC, RFC 3339), `level`, `logger`, `message`, the fields, `exception`."""

    def format(self, record: logging.LogRecord) -> str:
        moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z"
        line: dict[str, Any] = {"time": moment, "level": record.levelname.lower(), "logger": record.name}
        line["message"] = record.msg
        line.update((name, value) for name, value in _fields(record).items() if name not in line)
        if record.exc_text:
            line["exception"] = record.exc_text
        return msgspec.json.encode(line, enc_hook=str).decode()


def _message(record: logging.LogRecord) -> str:
    try:
        return _safe_text(record.getMessage())
    # Rendering calls code that may raise anything, and the log must not be what breaks the program.
    except Exception:  # noqa: BLE001
        return f"(a log message that cannot be rendered, from line {record.lineno} of {record.module})"


def _exception(record: logging.LogRecord) -> str | None:
    if not record.exc_info or record.exc_info[0] is None:
        return record.exc_text
    try:
        return _safe_text(_EXCEPTION.formatException(record.exc_info))
    # As above: the text of an exception comes from its own code.
    except Exception:  # noqa: BLE001
        return f"(an exception that cannot be rendered: {record.exc_info[0].__name__})"


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    attributes: dict[Any, Any] = vars(record)
    return {name: value for name, value in attributes.items() if isinstance(name, str) and name not in _OWN_FIELDS}


def _safe(name: str, value: object) -> object:
    if is_secret_name(name):
        return MASK
    # Larger whole numbers are beyond what JSON writers and `str` take.
    if value is None or isinstance(value, bool | float) or (isinstance(value, int) and abs(value) < 1 << 63):
        return value
    try:
        return _safe_text(str(value))
    # As above: `str` runs code of the value.
    except Exception:  # noqa: BLE001
        return f"(a {type(value).__name__} that cannot be rendered)"


def _safe_text(text: str) -> str:
    """Masked, at most MAX_TEXT characters, and encodable."""
    # A secret that the cut goes through must not lose the words it is known by: mask first what could be cut.
    shown = redact(text[: 2 * MAX_TEXT])
    if len(shown) > MAX_TEXT:
        shown = f"{shown[:MAX_TEXT]}... ({len(text)} characters)"
    return shown.encode("utf-8", "backslashreplace").decode()


def _field_text(value: object) -> str:
    text = _one_line(str(value))
    return msgspec.json.encode(text).decode() if not text or " " in text or '"' in text else text


def _one_line(text: str) -> str:
    return _printable(text.rstrip("\r\n"), "")


def _printable(text: str, keep: str) -> str:
    """Control characters escaped, so that what a server said cannot forge lines or drive the terminal."""
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() or letter in keep else ascii(letter)[1:-1] for letter in text)
