"""Lines are readable or JSON, hold no secret, stay lines, and logging never raises."""

import io
import json
import logging
import os
import re
from collections.abc import Iterator
from typing import Any

import pytest

from polyplex.telemetry.log import MAX_TEXT, configure_logging

SECRET = "aB3dE5gH7jK9mN1p"


class Log:
    """Configured logging into memory; `lines` are what was written."""

    def __init__(self, *arguments: str | None, environ: dict[str, str] | None = None) -> None:
        self.stream = io.StringIO()
        # The handlers of pytest raise where ours must not; pytest adds them to each test.
        logging.getLogger().handlers[:] = []
        configure_logging(*arguments, stream=self.stream, environ=environ or {})
        self.logger = logging.getLogger("polyplex.test")

    @property
    def lines(self) -> list[str]:
        return self.stream.getvalue().splitlines()

    @property
    def objects(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.lines]


@pytest.fixture(autouse=True)
def restored_logging() -> Iterator[None]:
    root = logging.getLogger()
    level = root.level
    yield
    for handler in [handler for handler in root.handlers if type(handler).__module__ == "polyplex.telemetry.log"]:
        root.removeHandler(handler)
    root.setLevel(level)


class Hostile:
    def __str__(self) -> str:
        raise RuntimeError(SECRET)

    __repr__ = __str__


def test_a_line_of_text() -> None:
    log = Log()
    log.logger.warning("started %s", "files", extra={"server": "my files", "count": 3, "empty": ""})
    assert re.fullmatch(
        r'\d\d:\d\d:\d\d warning polyplex\.test started files server="my files" count=3 empty=""', log.lines[0]
    )


def test_a_line_of_json() -> None:
    log = Log("debug", "json")
    log.logger.debug("started %s", "files", extra={"server": "a", "count": 3, "level": "no", "other": ["x"]})
    (line,) = log.objects
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line.pop("time"))
    assert line == {
        "level": "debug",
        "logger": "polyplex.test",
        "message": "started files",
        "server": "a",
        "count": 3,
        "other": "['x']",
    }


def test_the_environment_sets_level_and_format_and_arguments_win() -> None:
    environ = {"POLYPLEX_LOG": "ERROR", "POLYPLEX_LOG_FORMAT": "json"}
    log = Log(environ=environ)
    log.logger.warning("hidden")
    log.logger.error("shown")
    assert [line["message"] for line in log.objects] == ["shown"]
    log = Log("debug", "text", environ=environ)
    log.logger.debug("shown")
    assert log.lines[0].endswith("shown")


def test_a_wrong_level_or_format_is_named_and_the_default_used() -> None:
    log = Log("loud", "xml")
    log.logger.info("shown")
    log.logger.debug("hidden")
    assert [line.split(" ", 3)[3][:18] for line in log.lines] == ["unknown log level,", "unknown log format", "shown"]


def test_setting_up_again_replaces_the_handler() -> None:
    first, second = Log(), Log()
    second.logger.info("once")
    assert (len(first.lines), len(second.lines)) == (0, 1)


@pytest.mark.parametrize("format", ["text", "json"])
def test_secrets_are_masked_everywhere(format: str) -> None:
    log = Log("info", format)
    log.logger.info("Authorization: Bearer %s", SECRET, extra={"url": f"http://u:{SECRET}@h", "api_key": SECRET})
    log.logger.info("dict %s", {"password": SECRET}, extra={"headers": {"authorization": f"Bearer {SECRET}"}})
    try:
        raise ValueError(f"token={SECRET}")
    except ValueError:
        log.logger.exception("failed")
    assert SECRET not in log.stream.getvalue()
    assert "ValueError" in log.stream.getvalue()


def test_a_traceback_follows_its_line() -> None:
    log = Log()
    try:
        raise ValueError("broken")
    except ValueError:
        log.logger.exception("failed")
    assert log.lines[0].endswith("failed")
    assert log.lines[1] == "Traceback (most recent call last):"
    assert log.lines[-1] == "ValueError: broken"


def test_what_others_say_cannot_forge_lines_or_drive_the_terminal() -> None:
    log = Log()
    log.logger.info("said %s", "a\n12:00:00 error polyplex forged\x1b[2J\u202e", extra={"b": "c\rd\x00"})
    assert len(log.lines) == 1
    assert log.lines[0].isprintable()
    assert "a\\n12:00:00 error polyplex forged\\x1b[2J\\u202e b=c\\rd\\x00" in log.lines[0]


@pytest.mark.parametrize("format", ["text", "json"])
def test_logging_never_raises(format: str) -> None:
    log = Log("info", format)
    log.logger.info("%d", "not a number")
    log.logger.info("%s %s", "too few")
    log.logger.info("%s", Hostile(), extra={"field": Hostile()})
    log.logger.info("\ud800", extra={"field": "\udfff", "nan": float("nan"), "big": 10**5000})
    log.logger.info(Hostile(), extra={1: 2})  # pyright: ignore[reportArgumentType]
    try:
        raise ValueError(Hostile())
    except ValueError:
        log.logger.exception("failed")
    assert len([line for line in log.lines if "polyplex.test" in line]) == 6
    assert SECRET not in log.stream.getvalue()


def test_a_closed_stream_is_no_error(capsys: pytest.CaptureFixture[str]) -> None:
    log = Log()
    log.stream.close()
    log.logger.info("into the void")
    assert capsys.readouterr() == ("", "")


def test_length_is_bounded() -> None:
    log = Log()
    log.logger.info("x" * 1_000_000, extra={"field": "y" * 1_000_000})
    assert len(log.lines[0]) < 2 * MAX_TEXT + 200
    assert "(1000000 characters)" in log.lines[0]


@pytest.mark.parametrize("format", ["text", "json"])
def test_a_pipe_that_nobody_reads_never_blocks_and_what_was_dropped_is_counted(format: str) -> None:
    read, write = os.pipe()
    with os.fdopen(read, "rb", buffering=0) as reader, os.fdopen(write, "w", encoding="utf-8") as stream:
        logging.getLogger().handlers[:] = []
        configure_logging(None, format, stream=stream, environ={})
        logger = logging.getLogger("polyplex.test")
        for _ in range(200):
            logger.warning("x" * 5000)
        os.set_blocking(read, False)
        first = reader.read() or b""
        logger.warning("at last")
        lines = (reader.read() or b"").decode().splitlines()
    assert 0 < len(first.splitlines()) < 200
    assert re.search(r"\b1\d\d lines of the log were dropped", lines[-2])
    assert "at last" in lines[-1]
    if format == "json":
        assert [json.loads(line)["level"] for line in lines[-2:]] == ["warning", "warning"]
