import pytest

from polyplex.transports.stdio import safe_environment

PARENT = {
    "PATH": "/bin",
    "HOME": "/home/me",
    "LC_ALL": "C",
    "XDG_CACHE_HOME": "/cache",
    "https_proxy": "http://proxy",
    "NODE_EXTRA_CA_CERTS": "/ca.pem",
    "UV_CACHE_DIR": "/uv",
    "SECRET_TOKEN": "1",
    "AWS_SECRET_ACCESS_KEY": "2",
    "PYTHONPATH": "/elsewhere",
    "LD_PRELOAD": "/evil.so",
    "NODE_OPTIONS": "--require /evil.js",
}


def test_only_the_safe_part_of_the_parent() -> None:
    kept = safe_environment(PARENT, {}, [])
    assert list(kept) == [
        "PATH",
        "HOME",
        "LC_ALL",
        "XDG_CACHE_HOME",
        "https_proxy",
        "NODE_EXTRA_CA_CERTS",
        "UV_CACHE_DIR",
    ]
    assert all(PARENT[name] == value for name, value in kept.items())


def test_names_asked_for_are_inherited_where_they_are_set() -> None:
    assert safe_environment(PARENT, {}, ["SECRET_TOKEN", "NOT_SET"])["SECRET_TOKEN"] == "1"
    assert "NOT_SET" not in safe_environment(PARENT, {}, ["NOT_SET"])


def test_a_star_inherits_all() -> None:
    assert safe_environment(PARENT, {"X": "y"}, ["*"]) == {**PARENT, "X": "y"}


@pytest.mark.parametrize("inherit", [[], ["*"]])
def test_what_is_configured_wins(inherit: list[str]) -> None:
    assert safe_environment(PARENT, {"PATH": "/opt/bin"}, inherit)["PATH"] == "/opt/bin"


def test_exported_shell_functions_are_not_inherited() -> None:
    assert safe_environment({"TERM": "() { :; }; echo"}, {}, []) == {}


def test_the_parent_is_left_as_it_was() -> None:
    parent = dict(PARENT)
    safe_environment(parent, {"HOME": "x"}, ["*"])["PATH"] = "changed"
    assert parent == PARENT
