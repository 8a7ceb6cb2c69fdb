"""Arguments of a call, and the servers that are started for it."""

import pytest

from polyplex.cli.arguments import UsageError
from polyplex.cli.call import only_for, read_arguments
from polyplex.config import load_config_dict

SERVERS = {"git": {"command": "a"}, "git__x": {"command": "b"}, "time": {"command": "c"}}


def test_arguments_are_an_object() -> None:
    assert read_arguments(None) == {}
    assert read_arguments('{"a": [1]}') == {"a": [1]}


@pytest.mark.parametrize("text", ["{a: 1}", "", "[1]", "3"])
def test_anything_else_is_wrong_usage(text: str) -> None:
    with pytest.raises(UsageError, match="JSON"):
        read_arguments(text)


@pytest.mark.parametrize(
    ("name", "servers"),
    [
        ("time__now", ["time"]),
        ("git__x__log__0123abcd", ["git", "git__x"]),
        ("git_x__log__0123abcd", ["git__x"]),
        ("other__tool", ["git", "git__x", "time"]),
        ("tool", ["git", "git__x", "time"]),
    ],
)
def test_only_servers_that_may_have_the_tool_are_started(name: str, servers: list[str]) -> None:
    assert list(only_for(load_config_dict({"mcpServers": SERVERS}), name).servers) == servers


def test_bare_names_tell_nothing_about_the_server() -> None:
    config = load_config_dict({"mcpServers": SERVERS, "polyplex": {"naming": "bare"}})
    assert only_for(config, "time__now") is config
