"""Colours where they are wanted, a live line that nothing runs into, and no control characters from servers."""

import fcntl
import io
import os
import struct
import termios
from pathlib import Path

import pytest

from polyplex.cli.terminal import Terminal, harmless, one_line, shorten


class Screen(io.StringIO):
    """A stream that is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def terminal_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.delenv("NO_COLOR", raising=False)


def test_a_terminal_gets_colours() -> None:
    assert Terminal(Screen()).paint("x", "red") == "\x1b[31mx\x1b[0m"


@pytest.mark.parametrize(("variable", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_the_environment_can_forbid_colours(monkeypatch: pytest.MonkeyPatch, variable: str, value: str) -> None:
    monkeypatch.setenv(variable, value)
    assert Terminal(Screen()).paint("x", "red") == "x"


def test_a_labelled_text_stays_in_its_column_and_is_not_broken_within_words() -> None:
    screen = Screen()
    Terminal(screen).tell("error", "the first words here and https://an.address.example/longer-than-a-line", "red")
    assert screen.getvalue() == (
        "\x1b[31merror\x1b[0m    the first words here and\n         https://an.address.example/longer-than-a-line\n"
    )


def test_a_text_without_room_beside_goes_below() -> None:
    assert Terminal(Screen()).wrapped("word " * 8, 30) == f"\n         {'word ' * 6}".rstrip() + "\n         word word"


def test_a_labelled_text_is_one_line_in_a_file() -> None:
    stream = io.StringIO()
    Terminal(stream).tell("error", "word " * 40, "red")
    assert stream.getvalue() == f"error    {'word ' * 40}\n"


def test_a_file_gets_plain_lines_and_no_live_line() -> None:
    stream = io.StringIO()
    terminal = Terminal(stream)
    terminal.live("waiting")
    terminal.say(terminal.paint("done", "green"))
    assert stream.getvalue() == "done\n"


def test_lines_go_above_the_live_line_which_is_cut_to_the_width() -> None:
    screen = Screen()
    terminal = Terminal(screen)
    terminal.live("x" * 60)
    terminal.say("line")
    terminal.live("")
    shown = screen.getvalue()
    assert shown.count("x" * 36 + "...") == 2
    assert "\r\x1b[Kline\n" in shown
    assert shown.endswith("\r\x1b[K")


def test_a_log_sees_where_its_lines_go(tmp_path: Path) -> None:
    with (tmp_path / "log").open("w", encoding="utf-8") as stream:
        assert Terminal(stream).fileno() == stream.fileno()


def test_a_closed_stream_is_no_error() -> None:
    screen = Screen()
    terminal = Terminal(screen)
    screen.close()
    terminal.say("x")


@pytest.mark.parametrize("text", ["\x1b[31mred\x1b[0m", "a\x07b", "a\u202eb", "a\x9b31mb"])
def test_no_control_character_reaches_the_terminal(text: str) -> None:
    assert one_line(text).isprintable()
    assert harmless(text).isprintable()


def test_lines_and_tabs_of_results_stay() -> None:
    assert harmless("a\n\tb é 日本") == "a\n\tb é 日本"
    assert one_line("a\n\tb  c") == "a b c"


def test_shorten() -> None:
    assert shorten("abcdefgh", 8) == "abcdefgh"
    assert shorten("abcdefghi", 8) == "abcde..."


def test_the_width_is_that_of_the_stream_whatever_stdout_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS")
    ours, theirs = os.openpty()
    try:
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 67, 0, 0))
        with os.fdopen(theirs, "w", closefd=False) as stream:
            assert Terminal(stream).width == 67
    finally:
        os.close(ours)
        os.close(theirs)
