"""Lines of NAME=value."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyplex.config.envfile import MAX_BYTES, EnvFileError, parse, read


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("A=1", "1"),
        ("  export A = 1  ", "1"),
        ("A=", ""),
        ("A=a b # comment", "a b"),
        ("A=a#b", "a#b"),
        ("A='a # $b \\n'", "a # $b \\n"),
        ('A="a\\n\\"b\\" \\\\n \\x"  # comment', 'a\n"b" \\n \\x'),
        ("A=x=y", "x=y"),
    ],
)
def test_a_line_gives_a_variable(line: str, value: str) -> None:
    assert parse(f"# comment\n\n{line}\n") == {"A": value}


@pytest.mark.parametrize("line", ["hunter2", "=hunter2", "A B=hunter2", 'A="hunter2', "A='hunter2", 'A="hunter2" x'])
def test_another_line_is_an_error_without_its_text(line: str) -> None:
    with pytest.raises(EnvFileError, match="line 2") as caught:
        parse(f"OK=1\n{line}")
    assert "hunter2" not in str(caught.value)


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        assert all(isinstance(value, str) for value in parse(text).values())
    except EnvFileError as error:
        assert "line" in str(error)


def test_a_file_is_read_and_its_faults_name_it(tmp_path: Path) -> None:
    path = tmp_path / ".env"
    path.write_bytes(b"\xef\xbb\xbfA=1\r\nA=2\r\n")
    assert read(path) == {"A": "2"}
    path.write_bytes(b"A=\xff")
    with pytest.raises(EnvFileError, match="not UTF-8"):
        read(path)
    path.write_bytes(b"x" * (MAX_BYTES + 1))
    with pytest.raises(EnvFileError, match="larger than"):
        read(path)
    path.write_bytes(b"nothing")
    with pytest.raises(EnvFileError, match=r"\.env: line 1"):
        read(path)
    with pytest.raises(EnvFileError, match="cannot read"):
        read(tmp_path / "missing")
