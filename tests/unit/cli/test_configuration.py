"""The configuration as the commands see it."""

from pathlib import Path

import pytest

from polyplex.cli.configuration import count, load_despite_unset, shown_path, without_self
from polyplex.config import load_config_dict
from polyplex.errors import ConfigError


@pytest.mark.parametrize(
    ("entry", "kept"),
    [
        ({"command": "polyplex", "args": ["serve", "--stdio"]}, False),
        ({"command": "/usr/bin/polyplex", "args": ["serve", "--stdio"]}, False),
        ({"command": "uvx", "args": ["polyplex", "serve", "--stdio"]}, False),
        ({"command": "python", "args": ["-m", "polyplex", "serve", "--stdio"]}, False),
        ({"command": "polyplex", "args": ["serve", "--stdio", "--config", "other.json"]}, True),
        ({"command": "polyplex", "args": ["memory", "serve"]}, True),
        ({"command": "other", "args": ["serve"]}, True),
        ({"url": "http://localhost:7332/mcp"}, False),
        ({"url": "http://127.0.0.1:7332/sse"}, False),
        ({"url": "http://localhost:7333/mcp"}, True),
        ({"url": "http://example.com:7332/mcp"}, True),
    ],
)
def test_polyplex_never_connects_to_itself(entry: dict[str, object], kept: bool) -> None:
    config = load_config_dict({"mcpServers": {"one": entry}})
    assert ("one" in without_self(config, ("127.0.0.1", 7332)).servers) is kept


def test_another_polyplex_at_an_address_is_a_server_like_any() -> None:
    config = load_config_dict({"mcpServers": {"one": {"url": "http://localhost:7332/mcp"}}})
    assert "one" in without_self(config).servers


def test_every_unset_variable_is_named_with_its_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_SUCH_A", raising=False)
    file = tmp_path / "c.json"
    file.write_text(
        '{"mcpServers": {"a": {"url": "http://x/${NO_SUCH_A}"},\n'
        '"b c": {"command": "y", "env": {"K": "${NO_SUCH_B}"}}}}',
        encoding="utf-8",
    )
    config, unset = load_despite_unset(str(file))
    assert list(config.servers) == ["a", "b c"]
    assert {name: [error.line for error in errors] for name, errors in unset.items()} == {"a": [1], "b c": [2]}
    assert "NO_SUCH_A is not set" in str(unset["a"][0])


def test_any_other_mistake_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "c.json"
    file.write_text('{"mcpServers": {"a": {"url": 3}}}', encoding="utf-8")
    with pytest.raises(ConfigError):
        load_despite_unset(str(file))


def test_a_mistake_is_not_hidden_by_an_unset_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_SUCH_A", raising=False)
    file = tmp_path / "c.json"
    file.write_text(
        '{"mcpServers": {"a": {"url": "http://x/${NO_SUCH_A}"}, "b": {"url": "ftp://x"}}}', encoding="utf-8"
    )
    with pytest.raises(ConfigError, match=r"mcpServers\.b\.url: expected an address"):
        load_despite_unset(str(file))


def test_where_the_placeholder_cannot_stand_the_unset_variable_is_the_mistake(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_SUCH_A", raising=False)
    file = tmp_path / "c.json"
    file.write_text('{"mcpServers": {"a": {"command": "x", "disabled": "${NO_SUCH_A}"}}}', encoding="utf-8")
    with pytest.raises(ConfigError, match="NO_SUCH_A is not set"):
        load_despite_unset(str(file))


def test_paths_are_shown_as_people_write_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert shown_path(here / "a.json") == "a.json"
    assert shown_path(here / "a.json", "./") == "./a.json"
    assert shown_path(tmp_path / ".config" / "a.json") == "~/.config/a.json"
    assert shown_path(Path("/etc/a.json")) == "/etc/a.json"


def test_counting() -> None:
    assert [count(number, "tool") for number in (0, 1, 2)] == ["0 tools", "1 tool", "2 tools"]
