"""Why a server failed, and what to do."""

import pytest

from polyplex.cli.reasons import advice, command_line, plain_reason, split_advice, without_last_words
from polyplex.config import ServerConfig

CHILD = ServerConfig(name="s", kind="stdio", command="run", args=("--api-key", "s3cret-value", "a b"))
REMOTE = ServerConfig(name="s", kind="http", url="https://x/mcp")


@pytest.mark.parametrize(
    ("error", "plain"),
    [
        ("server/discover: gone; initialize: gone", "gone"),
        ("server/discover: server/discover took too long; no handshake within 4 s", "no handshake within 4 s"),
        ("initialize answered -32600: go away", "answered -32600: go away"),
        ("server/discover: HTTP 405; initialize: HTTP 405; as HTTP+SSE: HTTP 404", "HTTP 405; as HTTP+SSE: HTTP 404"),
        ('the command "x" was not found; install it', 'the command "x" was not found; install it'),
        ("exited with code 1; its last words: a; b", "exited with code 1; its last words: a; b"),
        ("closed before an answer: [Errno 104] Connection reset", "closed before an answer: Connection reset"),
        ("HTTP 401; it wants credentials: set headers.A for this server", "HTTP 401; set headers.A for this server"),
    ],
)
def test_a_reason_names_no_step_and_nothing_twice(error: str, plain: str) -> None:
    assert plain_reason(error) == plain


def test_advice_within_a_reason_is_taken_out() -> None:
    reason = 'the command "npx" was not found in PATH; npx comes with Node.js, https://nodejs.org'
    assert split_advice(reason) == (
        'the command "npx" was not found in PATH',
        "npx comes with Node.js, https://nodejs.org",
    )
    assert advice(CHILD, reason, []) == ["npx comes with Node.js, https://nodejs.org"]
    assert split_advice("exited with code 1") == ("exited with code 1", None)


def test_last_words_can_be_left_out() -> None:
    assert without_last_words("exited with code 1; its last words: a | b") == "exited with code 1"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("Error: GITHUB_TOKEN is not set", '"GITHUB_TOKEN": "${GITHUB_TOKEN}"'),
        ("npm error code E404", "the package does not exist"),
        ("ModuleNotFoundError: No module named 'x'", "not installed completely"),
        ("usage: server [-h] DIR", "correct args"),
        ("getaddrinfo EAI_AGAIN registry.npmjs.org", "could not reach the network"),
        ("error sending request: invalid peer certificate: UnknownIssuer", "set SSL_CERT_FILE"),
        ("", "run it by hand"),
    ],
)
def test_what_a_dying_server_said_decides_the_advice(line: str, said: str) -> None:
    assert said in advice(CHILD, "exited with code 1", [line])[0]


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        ("the server answered HTTP 401", '"headers": {"Authorization": "Bearer ${TOKEN}"}'),
        ("certificate verify failed: unable to get local issuer certificate", "polyplex.servers.s.caFile"),
        ("cannot connect to x:1: Connection refused", "nothing listens there"),
        ("cannot connect to x:1: Name or service not known", "host name is not known"),
        ("the server answered HTTP 404", "often /mcp or /sse"),
        ("the server answered HTTP 502", "the server itself fails"),
        ("the server answered HTTP 302; it moved to https://y/mcp: change url", "change url to https://y/mcp"),
        ("TLS with x:1 failed: WRONG_VERSION_NUMBER", "write http:// in url"),
        ("the server answered with text/html, not JSON", "a web page"),
        ("no connection within 30 s", "polyplex.servers.s.connectTimeoutSeconds (now 30)"),
    ],
)
def test_what_a_url_answered_decides_the_advice(reason: str, said: str) -> None:
    assert said in advice(REMOTE, reason, [])[0]


def test_a_server_that_hangs_up_may_speak_tls() -> None:
    server = ServerConfig(name="s", kind="http", url="http://x/mcp")
    assert "https://" in advice(server, "the connection closed before an answer: Connection reset by peer", [])[0]


@pytest.mark.parametrize(
    "hint", ["set caFile for it", "set headers.Authorization", "it moved to https://y: change url"]
)
def test_advice_that_is_given_better_is_not_part_of_the_reason(hint: str) -> None:
    assert split_advice(f"the server refused; {hint}") == ("the server refused", None)


def test_a_refused_token_is_not_answered_with_the_advice_to_send_one() -> None:
    server = ServerConfig(name="s", kind="http", url="https://x/mcp", headers={"authorization": "Bearer x"})
    assert "has not expired" in advice(server, "the server answered HTTP 401", [])[0]


def test_nothing_is_invented() -> None:
    assert advice(REMOTE, "something new", []) == []


def test_a_command_line_can_be_pasted_and_holds_no_secret() -> None:
    assert command_line(CHILD) == "run --api-key *** 'a b'"
