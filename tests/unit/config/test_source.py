"""Paths of keys become readable places."""

from pathlib import Path

from polyplex.config.jsonc import Document, parse
from polyplex.config.source import MAX_WARNINGS, Source, key_text, quoted, suggestion


def test_a_path_is_written_as_one_would_write_it() -> None:
    assert key_text(("mcpServers", "my-files", "args", 0)) == "mcpServers.my-files.args[0]"
    assert key_text(("mcpServers", "my.server é", "env")) == 'mcpServers["my.server é"].env'
    assert key_text(()) == ""


def test_names_stay_on_one_line_and_short() -> None:
    assert quoted('a"\n\x1b[31m') == '"a\\"\\\\n\\\\x1b[31m"'
    assert len(quoted("x" * 1000)) == 82
    assert quoted("\ud800") == '"\\\\ud800"'


def test_the_closest_name_is_suggested() -> None:
    assert suggestion("mcpservers", ["servers", "mcpServers"]) == '; did you mean "mcpServers"?'
    assert suggestion("ttl", ["ttlSeconds", "keys"]) == '; did you mean "ttlSeconds"?'
    assert suggestion("max", ["maxBytes", "maxAgeSeconds"]) == ""
    assert suggestion("zzz", ["servers", "mcpServers"]) == ""


def test_errors_and_warnings_name_file_line_and_key() -> None:
    source = Source(Path("f.json"), Path("/"), parse('{\n"a": 1}'))
    error = source.error(("a", "b"), "wrong")
    assert (error.file, error.line, error.key, error.message) == (Path("f.json"), 2, "a.b", "wrong")
    source.warn(("a",), "odd")
    assert source.warnings == ["f.json:2: a: odd"]


def test_warnings_are_bounded() -> None:
    source = Source(None, Path("/"), Document(None))
    for number in range(MAX_WARNINGS + 5):
        source.warn((), str(number))
    assert len(source.warnings) == MAX_WARNINGS
