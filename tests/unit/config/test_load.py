"""Files are found, read and checked; everything wrong has its file, line and key."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from polyplex.config import Config, load_config, load_config_dict
from polyplex.errors import ConfigError

DESIGN = """{ "mcpServers": {
    "files": {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "."], "env": {}, "cwd": "."},
    "docs":  {"url": "https://example.com/mcp", "headers": {"Authorization": "Bearer ${DOCS_TOKEN}"}},   // remote
  },
  "polyplex": {
    "naming": "bare",
    "servers": {"files": {"trust": "trusted", "timeoutSeconds": 90, "allow": ["read_*"], "caFile": "ca.pem"}},
    "state": "sqlite:~/state.db", /* and more */
  } }
"""


def write(folder: Path, text: str, name: str = "polyplex.json") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def failure(path: Path, environ: dict[str, str] | None = None) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        load_config(path, environ=environ or {})
    return caught.value


def test_a_whole_file(tmp_path: Path) -> None:
    path = write(tmp_path, DESIGN)
    config = load_config(path, environ={"DOCS_TOKEN": "t0ken", "HOME": "/home/me"})
    assert list(config.servers) == ["files", "docs"]
    assert config.servers["docs"].headers == {"Authorization": "Bearer t0ken"}
    assert config.servers["files"].cwd == str(tmp_path)
    assert config.servers["files"].options.timeout_seconds == 90
    assert config.servers["files"].options.ca_file == str(tmp_path / "ca.pem")
    assert config.servers["docs"].options.timeout_seconds == 60
    assert (config.options.naming, config.options.state) == ("bare", "sqlite:/home/me/state.db")
    assert (config.files, config.searched, config.warnings) == ((path,), (), ())


def test_the_places_are_searched_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here, user = tmp_path / "here", tmp_path / "user"
    here.mkdir()
    monkeypatch.chdir(here)
    environ = {"XDG_CONFIG_HOME": str(user)}
    places = (
        here / "polyplex.json",
        here / ".mcp.json",
        here / ".vscode" / "mcp.json",
        user / "polyplex" / "config.json",
    )
    assert load_config(None, environ=environ) == Config(searched=places)
    for place in reversed(places):
        write(place.parent, '{"servers": {"a": {"command": "x"}}}', place.name)
        config = load_config(None, environ=environ)
        assert (config.files, config.searched, list(config.servers)) == ((place,), places, ["a"])


def test_the_user_configuration_is_in_the_home_folder_by_default(tmp_path: Path) -> None:
    path = write(tmp_path / ".config" / "polyplex", "{}", "config.json")
    assert path in load_config(None, environ={"HOME": str(tmp_path)}).searched


def test_a_named_file_must_be_there(tmp_path: Path) -> None:
    error = failure(tmp_path / "none.json")
    assert "No such file" in error.message
    assert error.file == tmp_path / "none.json"
    assert "Is a directory" in failure(tmp_path).message


def test_a_path_may_start_in_the_home_folder(tmp_path: Path) -> None:
    write(tmp_path, "{}")
    assert load_config("~/polyplex.json", environ={"HOME": str(tmp_path)}).files == (tmp_path / "polyplex.json",)


def test_an_editor_folder_belongs_to_the_workspace_around_it(tmp_path: Path) -> None:
    text = '{"servers": {"a": {"command": "${workspaceFolder}/x", "cwd": "sub"}}}'
    config = load_config(write(tmp_path, text, ".vscode/mcp.json"), environ={})
    assert config.servers["a"].command == f"{tmp_path}/x"
    assert config.servers["a"].cwd == f"{tmp_path}/sub"


@pytest.mark.parametrize(
    ("text", "line", "key", "words"),
    [
        ('{"mcpServers": {\n"a": {"command": 5}}}', 2, "mcpServers.a.command", "expected a string, found the number 5"),
        ('{"mcpServers": {\n\n"a": []}}', 3, "mcpServers.a", "expected an object, found a list"),
        ('{\n"mcpServers": []}', 2, "mcpServers", "expected an object, found a list"),
        ('{"servers": {"a": {\n"url": "${U}"}}}', 2, "servers.a.url", "the environment variable U is not set"),
        (
            '{"mcpServers": {"a": {"command": "x",\n"args": ["1",\n"${input:k}"]}}}',
            3,
            "mcpServers.a.args[1]",
            "VS Code",
        ),
        ('{"polyplex": {\n"naming": "x"}}', 2, "polyplex.naming", 'expected one of "prefix", "bare", found "x"'),
        ('{"polyplex": {\n"state": "${S}"}}', 2, "polyplex.state", "the environment variable S is not set"),
        ('{"polyplex": {\n"state": "mysql:x"}}', 2, "polyplex.state", "expected sqlite:PATH or redis://HOST"),
        ('{"polyplex": {\n"policy": "p.yaml"}}', 2, "polyplex.policy", "policy is not enforced by this version"),
        ('{"polyplex": {"servers": {"a": {\n"lazy": 1}}}}', 2, "polyplex.servers.a.lazy", "expected true or false"),
        ("[]", 1, "", "expected an object, found a list"),
        ('{"a": 1,\n"a": 2}', 2, "", "the key 'a' appears twice, first in line 1"),
    ],
)
def test_what_is_wrong_has_file_line_and_key(tmp_path: Path, text: str, line: int, key: str, words: str) -> None:
    path = write(tmp_path, text)
    error = failure(path)
    assert (error.file, error.line, error.key) == (path, line, key)
    assert words in error.message


def test_unknown_root_keys_share_a_warning_unless_they_look_like_a_known_one(tmp_path: Path) -> None:
    path = write(tmp_path, '{"theme": 1,\n"mcpServer": {},\n"editor": {}, "$schema": "x", "inputs": []}')
    assert load_config(path, environ={}).warnings == (
        f'{path}:2: mcpServer: unknown key, ignored; did you mean "mcpServers"?',
        f'{path}:1: theme: unknown keys, ignored: "theme", "editor"',
    )
    assert load_config_dict({"theme": 1}, environ={}).warnings == ("theme: unknown key, ignored",)


def test_an_option_of_polyplex_at_the_root_is_told_where_it_belongs() -> None:
    assert load_config_dict({"theme": 1, "parked": {"ttlSeconds": 5}}, environ={}).warnings == (
        "parked: unknown key, ignored; if it is for polyplex, it belongs in polyplex.parked",
        "theme: unknown key, ignored",
    )


def test_a_short_secret_is_refused_and_not_shown() -> None:
    with pytest.raises(ConfigError) as caught:
        load_config_dict({"polyplex": {"parked": {"keys": ["${KEY}"]}}}, environ={"KEY": "hunter2"})
    assert str(caught.value) == "polyplex.parked.keys[0]: expected at least 16 characters, found 7"


def test_both_root_keys_are_used_and_the_first_wins(tmp_path: Path) -> None:
    servers = '{"mcpServers": {"a": {"command": "1"}},\n"servers": {"a": {"command": "2"}, "b": {"command": "3"}}}'
    path = write(tmp_path, servers)
    config = load_config(path, environ={})
    assert {name: server.command for name, server in config.servers.items()} == {"a": "1", "b": "3"}
    (warning,) = config.warnings
    assert warning.startswith(f"{path}:2: servers: both")


def test_options_of_an_unknown_server_are_warned_of() -> None:
    content = {"mcpServers": {"files": {"command": "x"}}, "polyplex": {"servers": {"file": {"lazy": True}}}}
    assert load_config_dict(content, environ={}).warnings == (
        'polyplex.servers.file: there is no server of this name; did you mean "files"?',
    )


@pytest.mark.parametrize(
    "content",
    [
        {"mcpServers": {"a": {"command": "${UNSET}", "disabled": True}}},
        {"mcpServers": {"a": {"command": "${UNSET}"}}, "polyplex": {"servers": {"a": {"enabled": False}}}},
    ],
)
def test_a_disabled_server_is_kept_and_needs_no_variables(content: dict[str, object]) -> None:
    server = load_config_dict(content, environ={}).servers["a"]
    assert not server.enabled
    assert not server.options.enabled


def test_disabled_may_come_from_a_variable() -> None:
    content = {"mcpServers": {"a": {"command": "x", "disabled": "${OFF}"}}}
    assert not load_config_dict(content, environ={"OFF": "true"}).servers["a"].enabled
    assert load_config_dict(content, environ={"OFF": "false"}).servers["a"].enabled


def test_the_hard_limit_is_never_below_the_time_out() -> None:
    def limits(**options: float) -> tuple[float, tuple[str, ...]]:
        content = {"mcpServers": {"a": {"command": "x"}}, "polyplex": {"servers": {"a": options}}}
        config = load_config_dict(content, environ={})
        return config.servers["a"].options.max_timeout_seconds, config.warnings

    assert limits(timeoutSeconds=7200) == (7200, ())
    assert limits(timeoutSeconds=10, maxTimeoutSeconds=20) == (20, ())
    limit, (warning,) = limits(timeoutSeconds=30, maxTimeoutSeconds=20)
    assert limit == 30
    assert warning.startswith("polyplex.servers.a.maxTimeoutSeconds: ")


def test_paths_of_options_are_absolute(tmp_path: Path) -> None:
    options = {"state": "sqlite:s.db", "payloads": {"store": "file:p"}, "servers": {"a": {"caFile": "~/ca.pem"}}}
    config = load_config_dict({"polyplex": options}, environ={"HOME": "/h"}, folder=tmp_path)
    assert config.options.state == f"sqlite:{tmp_path}/s.db"
    assert config.options.payloads.store == f"file:{tmp_path}/p"
    assert config.options.servers["a"].ca_file == "/h/ca.pem"
    remote = {"state": "rediss://host", "payloads": {"store": "s3://bucket"}}
    config = load_config_dict({"polyplex": remote}, environ={}, folder=tmp_path)
    assert (config.options.state, config.options.payloads.store) == ("rediss://host", "s3://bucket")


def test_a_dict_is_not_changed_and_the_process_environment_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POLYPLEX_TEST_VALUE", "seen")
    content = {"mcpServers": {"a": {"command": "${POLYPLEX_TEST_VALUE}"}}}
    assert load_config_dict(content).servers["a"].command == "seen"
    assert content == {"mcpServers": {"a": {"command": "${POLYPLEX_TEST_VALUE}"}}}


def test_an_empty_dict_and_null_sections_are_an_empty_configuration() -> None:
    assert load_config_dict({}, environ={}) == Config()
    assert load_config_dict({"mcpServers": None, "servers": None, "polyplex": None}, environ={}) == Config()


KEYS = st.sampled_from(
    ["mcpServers", "servers", "polyplex", "command", "url", "args", "env", "a", "guard", "pins", "auth"]
)
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4) | st.sampled_from(["${HOME}", "http://x", "off"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS | st.text(max_size=2), inner, max_size=4),
    max_leaves=15,
)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # a busy machine is no failure
@given(st.dictionaries(KEYS, ANYTHING, max_size=4))
def test_any_content_is_loaded_or_refused(content: dict[str, object]) -> None:
    try:
        config = load_config_dict(content, environ={"HOME": "/h"}, folder=Path("/f"))
    except ConfigError as error:
        assert str(error)
    else:
        assert all(server.name == name for name, server in config.servers.items())
