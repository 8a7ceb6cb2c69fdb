"""Loaded configurations cannot be changed, and do not show secrets."""

import pytest

from polyplex.config import Config, GatewayOptions, ServerConfig, ServerOptions, load_config_dict

SECRETS = {
    "mcpServers": {
        "a": {"command": "x", "args": ["--key", "hunter2"], "env": {"KEY": "hunter2"}},
        "b": {"url": "https://user:hunter2@host:8080/mcp?key=hunter2#hunter2", "headers": {"Authorization": "hunter2"}},
        "c": {"url": "https://host/p@th"},
    },
    "polyplex": {"state": "redis://:hunter2@host"},
}


def test_repr_shows_what_helps_and_no_secret() -> None:
    config = load_config_dict(SECRETS, environ={})
    shown = repr(config) + str(config)
    assert "hunter2" not in shown
    assert "KEY" in shown
    assert "url='https://host:8080/mcp'" in shown
    assert "url='https://host/p@th'" in shown
    assert "Authorization" in shown


def test_the_defaults_are_those_of_the_design() -> None:
    options, gateway = ServerOptions(), GatewayOptions()
    assert (options.trust, options.isolation, options.enabled) == ("untrusted", "auto", True)
    assert (options.timeout_seconds, options.max_timeout_seconds, options.connect_timeout_seconds) == (60, 3600, 30)
    assert (options.idle_seconds, options.lazy, options.allow, options.deny) == (None, False, ("*",), ())
    assert (gateway.naming, gateway.expose, gateway.tool_budget_tokens) == ("prefix", "auto", 8000)
    assert (gateway.first_list_wait_seconds, gateway.session_idle_seconds) == (2, 1800)
    assert gateway.max_body_bytes == 16 * 1024 * 1024


def test_structs_are_frozen() -> None:
    for struct, name in (
        (Config(), "files"),
        (ServerConfig(name="a", kind="stdio"), "name"),
        (ServerOptions(), "trust"),
    ):
        with pytest.raises(AttributeError):
            setattr(struct, name, None)
