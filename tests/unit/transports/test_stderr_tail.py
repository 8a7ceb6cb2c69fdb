import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyplex.transports.stdio.stderr_tail import MAX_BYTES, StderrTail, clean_line


@pytest.mark.parametrize(
    ("line", "text"),
    [
        (b"plain", "plain"),
        (b"tab\there  ", "tab\there"),
        (b"\x1b[1;31mred\x1b[0m", "red"),
        (b"\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        (b"\x1b]0;title\x07text", "text"),
        (b"\x1b(Bcharset", "charset"),
        (b"a\x00b\x07c\x7fd", "abcd"),
        ("a\u202eb\x9bc".encode(), "abc"),
        (b"\xff\xfe", "\ufffd\ufffd"),
        ("gr\u00fc\u00dfe".encode(), "gr\u00fc\u00dfe"),
        (b"\x1b", ""),
        (b"\x1b[31", ""),
    ],
)
def test_clean_line(line: bytes, text: str) -> None:
    assert clean_line(line) == text


@given(st.binary(max_size=200))
def test_no_control_character_survives(line: bytes) -> None:
    assert not any(
        ord(character) < 32 and character != "\t" or 126 < ord(character) < 160 for character in clean_line(line)
    )


def test_the_last_two_hundred_lines_are_kept() -> None:
    tail = StderrTail()
    for number in range(1000):
        tail.feed(b"%d\n" % number)
    assert tail.lines() == [str(number) for number in range(800, 1000)]


def test_a_line_without_end_is_shown_and_goes_on() -> None:
    tail = StderrTail()
    tail.feed(b"one\ntw")
    assert tail.lines() == ["one", "tw"]
    tail.feed(b"o\r\n\r\n")
    assert tail.lines() == ["one", "two"]


def test_only_whole_lines_when_the_front_is_cut_off() -> None:
    tail = StderrTail()
    line = b"x" * 999 + b"\n"
    for _ in range(1000):
        tail.feed(line)
    assert set(tail.lines()) == {"x" * 999}
    assert 60 <= len(tail.lines()) <= 66


@pytest.mark.parametrize("chunk", [100, 70_000, 1 << 20])
def test_memory_is_bounded(chunk: int) -> None:
    tail = StderrTail()
    for _ in range(2_000_000 // chunk):
        tail.feed(b"y" * chunk)
        assert len(tail._bytes) <= 2 * MAX_BYTES
    assert sum(map(len, tail.lines())) <= MAX_BYTES


def test_every_line_is_handed_on_cleaned() -> None:
    lines: list[str] = []
    tail = StderrTail(lines.append)
    tail.feed(b"a\x1b[1m\nb")
    tail.feed(b"c\n\n" + b"z" * (MAX_BYTES + 1) + b"\nd\n")
    assert lines == ["a", "bc", "d"]
