import pytest

from polyplex.downstream.checks import OriginChecks

HOSTS = [
    "localhost",
    "LOCALHOST:1",
    "127.0.0.1:7332",
    "[::1]",
    "[::1]:80",
    "own.example",
    "own.example:8443",
    "Port.example:1",
]
FOREIGN = [
    None,
    "",
    "evil.example",
    "localhost.evil",
    "0.0.0.0",
    "port.example:2",
    "[",
    "[::2]",
    ":80",
    "own.example.evil",
]


@pytest.fixture(name="checks")
def own_checks() -> OriginChecks:
    return OriginChecks(("0.0.0.0", "own.example"), ("port.example:1",), ("https://App.example/", "null"))


@pytest.mark.parametrize("host", HOSTS)
def test_hosts_of_ours(checks: OriginChecks, host: str) -> None:
    assert checks.host(host)
    assert checks.host(host), "also the second time"


@pytest.mark.parametrize("host", FOREIGN)
def test_hosts_of_others(checks: OriginChecks, host: str | None) -> None:
    assert not checks.host(host)


def test_any_host() -> None:
    assert OriginChecks((), ("*",), ()).host("evil.example")
    assert OriginChecks((), ("*",), ()).host(None)


@pytest.mark.parametrize(
    "origin",
    [
        None,
        "http://localhost",
        "https://127.0.0.1:1",
        "http://[::1]:3",
        "https://own.example",
        "https://app.example",
        "null",
    ],
)
def test_origins_of_ours(checks: OriginChecks, origin: str | None) -> None:
    assert checks.origin(origin)


@pytest.mark.parametrize(
    "origin",
    [
        "https://evil.example",
        "http://app.example",
        "https://app.example:1",
        "file://",
        "",
        "chrome-extension://x",
        "http://[",
    ],
)
def test_origins_of_others(checks: OriginChecks, origin: str) -> None:
    assert not checks.origin(origin)


def test_any_origin_and_none() -> None:
    assert OriginChecks((), (), ("*",)).origin("https://evil.example")
    assert not OriginChecks((), (), ()).origin("null")


def test_the_memory_for_hosts_is_bounded(checks: OriginChecks) -> None:
    for port in range(1000):
        assert checks.host(f"localhost:{port}")
    assert len(checks._seen_hosts) <= 64


def test_the_usual_case_needs_a_host_that_was_right_before(checks: OriginChecks) -> None:
    assert not checks.usual({"host": "localhost"})
    checks.host("localhost")
    assert checks.usual({"host": "localhost"})
    assert not checks.usual({"host": "localhost", "origin": "http://localhost"})
    assert not checks.usual({"host": "evil.example"})
    assert not checks.usual({})
