import io

import pytest

from polyplex.cli.table import Row, table
from polyplex.cli.terminal import Terminal

HEAD = ("tool", "tokens", "calls")
ROWS = [Row(("a_tool_with_a_long_name", "1,200", "")), Row(("b", "3", ""), dim=True)]


def test_numbers_are_aligned_and_columns_without_any_left_out() -> None:
    assert table(HEAD, ROWS, Terminal(io.StringIO())) == (
        "tool                     tokens\na_tool_with_a_long_name   1,200\nb                             3"
    )


def test_on_a_narrow_terminal_the_first_column_gives_way(monkeypatch: pytest.MonkeyPatch) -> None:
    class Screen(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "26")
    lines = table(HEAD, ROWS, Terminal(Screen())).split("\n")
    assert lines[1] == "a_tool_with_a_l...   1,200"
    assert max(map(len, lines)) <= 26


def test_a_table_without_rows_is_its_head() -> None:
    assert table(HEAD, [], Terminal(io.StringIO())) == "tool"
