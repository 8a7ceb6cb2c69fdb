import pytest

from polyplex.transports.origins import authority, host_header, request_path, within_origin


@pytest.mark.parametrize(
    ("reference", "url"),
    [
        ("/b", "http://h/b"),
        ("b?c", "http://h/a/b?c"),
        ("", "http://h/a/x"),
        ("http://H:80/b", "http://H:80/b"),
        ("//h/b", "http://h/b"),
        ("https://h/b", None),
        ("http://h:81/b", None),
        ("http://other/b", None),
        ("http://h@other/b", None),
        ("http://[bad/b", None),
        ("http://h:port/b", None),
        ("file:///b", None),
        ("javascript:x", None),
    ],
)
def test_references_within_an_origin(reference: str, url: str | None) -> None:
    assert within_origin("http://h/a/x", reference) == url


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("http://h", "/"),
        ("http://h/a/b?c=d&e=%20#f", "/a/b?c=d&e=%20"),
        ("http://h/a b\u00e9", "/a%20b%C3%A9"),
        ("http://h/a\r\nX: 1", "/aX:%201"),
        ("http://h/?a b", "/?a%20b"),
    ],
)
def test_the_path_of_a_request_line(url: str, path: str) -> None:
    assert request_path(url) == path


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("http://h/", "h"),
        ("http://h:80/", "h"),
        ("https://h:443/", "h"),
        ("https://h:80/", "h:80"),
        ("http://u:p@h:8080/", "h:8080"),
        ("http://[::1]:8080/", "[::1]:8080"),
        ("http://[::1]/", "[::1]"),
    ],
)
def test_the_host_header(url: str, host: str) -> None:
    assert host_header(url) == host


def test_an_authority_of_version_six_has_brackets() -> None:
    assert authority("::1", 5) == "[::1]:5"
    assert authority("h", 5) == "h:5"
