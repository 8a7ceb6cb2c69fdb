"""The address to listen at, and what is said when it cannot be had."""

import errno
import socket

import pytest

from polyplex.cli.arguments import UsageError
from polyplex.cli.serve import explain_address, is_loopback, read_address


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:7332", ("127.0.0.1", 7332)),
        ("localhost:0", ("localhost", 0)),
        ("[::1]:80", ("::1", 80)),
        (":8000", ("127.0.0.1", 8000)),
        ("8000", ("127.0.0.1", 8000)),
    ],
)
def test_addresses(text: str, address: tuple[str, int]) -> None:
    assert read_address(text) == address


@pytest.mark.parametrize("text", ["", "localhost", "x:y", "x:", "x:70000", "x:-1", "x:²"])
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(UsageError, match=r"--http takes HOST:PORT"):
        read_address(text)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError(errno.EADDRINUSE, "in use"), "--http 127.0.0.1:7333"),
        (OSError(errno.EACCES, "denied"), "above 1023"),
        (OSError(errno.EADDRNOTAVAIL, "not available"), "no address of this machine"),
        (socket.gaierror(-2, "unknown"), "no address of this machine"),
    ],
)
def test_an_address_that_cannot_be_had_is_explained_with_what_to_do(error: OSError, said: str) -> None:
    assert said in (explain_address(error, "127.0.0.1", 7332) or "")


def test_other_errors_are_not_about_the_address() -> None:
    assert explain_address(OSError(errno.EMFILE, "too many files"), "127.0.0.1", 7332) is None


@pytest.mark.parametrize(
    ("host", "alone"),
    [
        ("127.0.0.1", True),
        ("::1", True),
        ("127.8.0.1", True),
        ("0.0.0.0", False),
        ("::", False),
        ("fe80::1%eth0", False),
    ],
)
def test_only_loopback_keeps_others_out(host: str, alone: bool) -> None:
    assert is_loopback(host) is alone
