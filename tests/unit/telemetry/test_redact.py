"""Secrets are masked by the words around them and by their shape; the rest of a line stays."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyplex.telemetry.redact import is_secret_name, redact

S = "aB3dE5gH7jK9mN1p"


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        (f"Authorization: Bearer {S} and on", "Authorization: Bearer *** and on"),
        (f"authorization={S} status=401", "authorization=*** status=401"),
        (f'{{"Authorization": "Bearer {S}", "a": 1}}', '{"Authorization": "Bearer ***", "a": 1}'),
        (f"{{'proxy-authorization': 'Basic {S}=='}}", "{'proxy-authorization': 'Basic ***'}"),
        (f'Authorization: Digest username="u", response="{S}"', "Authorization: Digest ***"),
        (f"Authorization: Custom {S} x=1", "Authorization: *** x=1"),
        (f"Authorization: {S}", "Authorization: ***"),
        (f"got bearer {S}", "got bearer ***"),
        (f"Cookie: a={S}; b={S}\nnext", "Cookie: ***\nnext"),
        (f"GET /mcp?a=1&api_key={S}&b=2", "GET /mcp?a=1&api_key=***&b=2"),
        (f"https://x/y?key={S}#z", "https://x/y?key=***#z"),
        (f"https://x/y?access_token={S}", "https://x/y?access_token=***"),
        (f"https://user:{S}@host/x", "https://***@host/x"),
        (f"https://{S}@host/x", "https://***@host/x"),
        (f"redis://:{S}@host:6379/0", "redis://***@host:6379/0"),
        (f"X-Api-Key: {S}", "X-Api-Key: ***"),
        (f"GITHUB_TOKEN={S} next=1", "GITHUB_TOKEN=*** next=1"),
        (f'"githubToken": "{S} with spaces", "a"', '"githubToken": ***, "a"'),
        (f'{{\\"client_secret\\": \\"{S}\\"}}', '{\\"client_secret\\": ***}'),
        (f"password={S}", "password=***"),
        (f"Mcp-Session-Id: {S}", "Mcp-Session-Id: ***"),
        (f"run --api-key {S} --port 1", "run --api-key *** --port 1"),
        (f"key sk-{S}x leaked", "key *** leaked"),
        (f"ghp_{S}{S}", "***"),
        (f"jwt eyJhbGciOi.{S}.{S}!", "jwt ***!"),
        (f"-----BEGIN RSA PRIVATE KEY-----\n{S}\n-----END RSA PRIVATE KEY-----", "***"),
    ],
)
def test_secrets_are_masked(text: str, masked: str) -> None:
    assert redact(text) == masked
    assert redact(redact(text)) == masked


@pytest.mark.parametrize(
    "text",
    [
        "connected to https://example.com:8443/mcp?page=2 in 0.3 s",
        "maxTokens=20000 tokens: 5 progressToken=7 progress_token: 8",
        "the token has expired",
        "see mailto a@b.example, or http://host/~me@home",
        "tool tokenizer__count failed: keyboard key=3 monkey: 4",
        "file:///home/me/secret/notes.txt",
        "",
    ],
)
def test_harmless_text_stays(text: str) -> None:
    assert redact(text) == text


@given(st.text())
def test_any_text_is_redacted_to_text(text: str) -> None:
    assert isinstance(redact(text), str)


@given(st.text(alphabet="abcdefABCDEF0123456789", min_size=24, max_size=40), st.text(max_size=20), st.text(max_size=20))
def test_a_bearer_token_never_survives(token: str, before: str, after: str) -> None:
    assert token not in redact(f"{before} Bearer {token} {after}")


@pytest.mark.parametrize(
    "piece",
    ["a", "a-", "token", "token=", "eyJ", "eyJ-", "eyJa.", "://", "://a", "bearer ", "authorization:", "cookie: ",
     "?key=", "--api", "- --api", "session-", "progress", "-----BEGIN PRIVATE KEY-----", "\\\"", "sk-", "://token\""],
)  # fmt: skip
def test_hostile_repetition_takes_linear_time(piece: str) -> None:
    """A quadratic rule would need minutes for these and run into the time-out of the test."""
    assert redact("token " + piece * (400_000 // len(piece)))


@pytest.mark.parametrize(
    "name", ["authorization", "Cookie", "api_key", "x-api-key", "githubToken", "PASSWORD", "secret"]
)
def test_names_of_secrets(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize("name", ["server", "progress_token", "max_tokens", "tokens", "key", "tool"])
def test_other_names(name: str) -> None:
    assert not is_secret_name(name)
