"""Entries of all the clients' dialects become servers, and contradictions are errors."""

from pathlib import Path
from typing import Any

import pytest

from polyplex.config import ServerConfig, load_config_dict
from polyplex.errors import ConfigError


def server(entry: dict[str, Any], folder: Path | None = None, environ: dict[str, str] | None = None) -> ServerConfig:
    config = load_config_dict({"mcpServers": {"a": entry}}, environ=environ or {"HOME": "/home/me"}, folder=folder)
    assert config.warnings == ()
    return config.servers["a"]


def refusal(entry: dict[str, Any]) -> str:
    with pytest.raises(ConfigError) as caught:
        server(entry)
    return str(caught.value)


def test_a_stdio_server() -> None:
    found = server({"command": "npx", "args": ["-y", "x"], "env": {"A": "1"}, "cwd": "sub"}, Path("/work"))
    assert (found.name, found.kind, found.command, found.args) == ("a", "stdio", "npx", ("-y", "x"))
    assert (found.env, found.cwd, found.url, found.enabled) == ({"A": "1"}, "/work/sub", "", True)


@pytest.mark.parametrize(
    ("entry", "kind"),
    [
        ({"url": "https://x/mcp"}, "auto-http"),
        ({"serverUrl": "https://x/mcp"}, "auto-http"),
        ({"httpUrl": "https://x/mcp"}, "http"),
        ({"url": "https://x/mcp", "type": "http"}, "http"),
        ({"url": "https://x/mcp", "type": "streamable-http"}, "http"),
        ({"url": "https://x/mcp", "type": "streamableHttp"}, "http"),
        ({"url": "https://x/mcp", "transport": "streamable_http"}, "http"),
        ({"url": "https://x/mcp", "type": "http", "transport": "streamable-http"}, "http"),
        ({"url": "https://x/mcp", "type": "SSE"}, "sse"),
        ({"url": "https://x/mcp", "type": "remote"}, "auto-http"),
        ({"httpUrl": "https://x/mcp", "type": "sse"}, "sse"),
        ({"url": "https://x/mcp", "serverUrl": "https://x/mcp"}, "auto-http"),
        ({"url": "https://x/mcp", "command": None, "args": None}, "auto-http"),
        ({"command": "x"}, "stdio"),
        ({"command": "x", "type": "stdio"}, "stdio"),
        ({"command": "x", "type": "local"}, "stdio"),
        ({"command": "x", "url": ""}, "stdio"),
    ],
)
def test_the_kind_follows_from_the_entry(entry: dict[str, Any], kind: str) -> None:
    assert server(entry).kind == kind


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({}, "mcpServers.a: a server has either a command (stdio) or a url (HTTP), this one has neither"),
        ({"command": "x", "url": "http://x"}, 'this one has both "command" and "url"'),
        ({"command": " "}, "mcpServers.a.command: expected the name of a program"),
        ({"command": "x\0"}, "mcpServers.a.command: holds a NUL character"),
        ({"command": "x", "args": ["a", "b\0"]}, "mcpServers.a.args[1]: holds a NUL character"),
        ({"command": "x", "type": "http"}, 'mcpServers.a.type: a server of this type needs "url"'),
        ({"url": "http://x", "transport": "stdio"}, 'mcpServers.a.transport: a server of this type needs "command"'),
        ({"url": "http://x", "type": "ws"}, 'mcpServers.a.type: expected "stdio", "http" or "sse"'),
        ({"url": "http://x", "type": "http", "transport": "sse"}, 'mcpServers.a.transport: differs from "type"'),
        ({"url": "http://x", "httpUrl": "http://y"}, 'mcpServers.a.httpUrl: differs from "url"'),
        ({"url": "x.example/mcp"}, "mcpServers.a.url: expected an address that starts with http:// or https://"),
        ({"serverUrl": "ftp://x"}, "mcpServers.a.serverUrl: expected an address"),
        ({"url": "http://"}, "mcpServers.a.url: expected an address"),
        ({"url": "http://[::1"}, "mcpServers.a.url: expected an address"),
        ({"url": "http://x:99999"}, "mcpServers.a.url: expected an address"),
        ({"url": "http://x/a b"}, "mcpServers.a.url: expected an address"),
        ({"url": "http://x", "headers": {"A B": "c"}}, 'mcpServers.a.headers["A B"]: not a valid header name'),
        ({"url": "http://x", "headers": {"A": "c\n"}}, "mcpServers.a.headers.A: the value holds a line break"),
        ({"url": "http://x", "headers": {"A": "\u2026"}}, "mcpServers.a.headers.A: the value holds a line break"),
        ({"command": "x", "env": {"A=B": "c"}}, 'mcpServers.a.env["A=B"]: a variable needs a name'),
        ({"command": "x", "env": {"A": "c\0"}}, "mcpServers.a.env.A: a variable needs a name"),
        ({"command": "x", "envFile": "/nowhere/.env"}, "mcpServers.a.envFile: cannot read /nowhere/.env"),
    ],
)
def test_a_contradiction_is_named(entry: dict[str, Any], message: str) -> None:
    assert message in refusal(entry)


def test_no_value_of_a_header_or_variable_is_in_an_error() -> None:
    for entry in ({"url": "http://x", "headers": {"A": "hunter2\n"}}, {"command": "x", "env": {"A": "hunter2\0"}}):
        assert "hunter2" not in refusal(entry)
    assert "hunter2" not in refusal({"url": "x://hunter2"})


def test_the_home_folder_expands_where_a_path_is_expected() -> None:
    found = server({"command": "~/bin/serve", "args": ["~/x"], "cwd": "~"})
    assert (found.command, found.args, found.cwd) == ("/home/me/bin/serve", ("~/x",), "/home/me")


def test_env_wins_over_the_env_file(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("A=file\nB='file'\n", encoding="utf-8")
    found = server({"command": "x", "envFile": ".env", "env": {"A": "entry"}}, tmp_path)
    assert found.env == {"A": "entry", "B": "file"}


@pytest.mark.parametrize("name", ["x", "my.server é", "名", "a/b c", "n" * 128])
def test_a_name_may_be_any_text(name: str) -> None:
    assert load_config_dict({"mcpServers": {name: {"command": "x"}}}, environ={}).servers[name].name == name


@pytest.mark.parametrize("name", ["", "n" * 129])
def test_a_name_is_neither_empty_nor_endless(name: str) -> None:
    with pytest.raises(ConfigError, match="name"):
        load_config_dict({"mcpServers": {name: {"command": "x"}}}, environ={})


def test_an_option_in_the_wrong_place_is_shown_its_place() -> None:
    entry = {"command": "x", "timeoutSeconds": 5, "arg": []}
    assert load_config_dict({"mcpServers": {"a": entry}}, environ={}).warnings == (
        "mcpServers.a.timeoutSeconds: unknown key, ignored; it belongs in polyplex.servers.NAME.timeoutSeconds",
        'mcpServers.a.arg: unknown key, ignored; did you mean "args"?',
    )


def test_what_an_entry_says_to_its_client_is_passed_over_and_what_it_says_of_the_server_has_its_place() -> None:
    entry = {"command": "x", "alwaysAllow": ["y"], "dev": {}, "timeout": 5, "excludeTools": ["z"]}
    assert load_config_dict({"mcpServers": {"a": entry}}, environ={}).warnings == (
        "mcpServers.a.timeout: unknown key, ignored; say it in polyplex.servers.NAME.timeoutSeconds",
        "mcpServers.a.excludeTools: unknown key, ignored; say it in polyplex.servers.NAME.deny",
    )


@pytest.mark.parametrize(
    "entry",
    [
        {"command": "polyplex", "args": ["serve", "--stdio"]},
        {"command": "/usr/bin/polyplex"},
        {"command": "uvx", "args": ["polyplex@1.2"]},
        {"command": "python", "args": ["-m", "polyplex", "serve"]},
        {"url": "http://127.0.0.1:7332/mcp"},
        {"serverUrl": "http://localhost:7332/sse"},
    ],
)
def test_polyplex_itself_is_left_out_with_a_warning(entry: dict[str, Any]) -> None:
    config = load_config_dict({"mcpServers": {"polyplex": entry, "a": {"command": "x"}}}, environ={})
    assert list(config.servers) == ["a"]
    assert config.warnings == (
        "mcpServers.polyplex: left out: it is polyplex; to mount another polyplex, give it another name",
    )


@pytest.mark.parametrize(
    "entry", [{"command": "x"}, {"url": "https://example.com/mcp"}, {"command": "polyplexer"}, {}, 7]
)
def test_the_name_of_polyplex_is_no_servers(entry: Any) -> None:
    with pytest.raises(ConfigError, match="is the server of polyplex's own tools; choose another name"):
        load_config_dict({"mcpServers": {"polyplex": entry}}, environ={})


@pytest.mark.parametrize("name", ["", "a b", "\u00fc", "a\nb", "x" * 65])
def test_a_tool_gets_no_name_that_clients_do_not_take(name: str) -> None:
    options = {"servers": {"a": {"tools": {"t": {"name": name}}}}}
    with pytest.raises(ConfigError, match="polyplex.servers.a.tools.t.name: a tool's name has 1 to 64 letters"):
        load_config_dict({"mcpServers": {"a": {"command": "x"}}, "polyplex": options}, environ={})
