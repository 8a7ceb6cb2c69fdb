import ssl

import pytest

from polyplex.transports.proxy import Route, route_for


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No proxy of the machine's own."""
    for name in ("http_proxy", "https_proxy", "no_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.mark.parametrize(
    ("url", "scheme", "host", "port"),
    [
        ("http://h/x", "http", "h", 80),
        ("https://h/x", "https", "h", 443),
        ("https://h:8443/", "https", "h", 8443),
        ("http://[::1]:8/", "http", "::1", 8),
    ],
)
def test_straight_to_the_host(url: str, scheme: str, host: str, port: int) -> None:
    assert route_for(url) == Route(scheme, host, port, (host, port))


@pytest.mark.parametrize("url", ["", "h", "ftp://h/", "http:///x", "http://h:x/", "http://h:70000/", "http://[h/"])
def test_what_is_no_url(url: str) -> None:
    with pytest.raises(ValueError):
        route_for(url)


def test_a_plain_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "proxy.example:3128")
    route = route_for("http://[::1]/x")
    assert (route.dial, route.prefix, route.tunnel) == (("proxy.example", 3128), "http://[::1]:80", False)
    assert route_for("https://h/").dial == ("h", 443), "each scheme has its own proxy"


def test_a_tunnel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("https_proxy", "http://proxy.example")
    route = route_for("https://h/x")
    assert (route.dial, route.prefix, route.tunnel) == (("proxy.example", 80), "", True)


def test_a_proxy_of_another_kind_is_refused_without_its_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "socks5://user:hunter2@proxy.example")
    with pytest.raises(ValueError, match="socks5://proxy.example") as caught:
        route_for("http://h/")
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ConnectionRefusedError(111, "Connection refused"), "cannot connect to h:1: Connection refused"),
        (OSError("odd"), "cannot connect to h:1: odd"),
        (TimeoutError(), "no connection to h:1 in time"),
        (ssl.SSLError(1, "[SSL: X] text"), "TLS with h:1 failed: [SSL: X] text"),
    ],
)
def test_errors_in_words(error: Exception, text: str) -> None:
    assert Route("http", "h", 1, ("h", 1)).explain(error) == text
