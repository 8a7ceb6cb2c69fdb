import json

import pytest
from msgspec import Raw

from polyplex.errors import RpcError
from polyplex.protocol import envelope
from polyplex.protocol.envelope import CAPABILITIES_KEY, CLIENT_INFO_KEY, LOG_LEVEL_KEY, REVISION_KEY
from polyplex.protocol.jsonrpc import Fields, decode_fields

GOOD: Fields = {REVISION_KEY: Raw(b'"2026-07-28"'), CAPABILITIES_KEY: Raw(b'{ "x":1}')}


def refusal(meta: Fields) -> RpcError:
    with pytest.raises(RpcError) as caught:
        envelope.read_envelope(meta)
    return caught.value


def test_the_required_keys_are_enough() -> None:
    read = envelope.read_envelope(GOOD)
    assert (read.revision, read.capabilities, read.client_info, read.log_level) == (
        "2026-07-28",
        b'{ "x":1}',
        None,
        None,
    )


def test_the_optional_keys_are_read() -> None:
    read = envelope.read_envelope(GOOD | {CLIENT_INFO_KEY: Raw(b'{"name":"c"}'), LOG_LEVEL_KEY: Raw(b'"info"')})
    assert (read.client_info, read.log_level) == (b'{"name":"c"}', "info")


@pytest.mark.parametrize("key", [REVISION_KEY, CAPABILITIES_KEY])
def test_a_missing_required_key_is_named(key: str) -> None:
    error = refusal({name: value for name, value in GOOD.items() if name != key})
    assert error.code == -32602
    assert key in error.message


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (REVISION_KEY, b"20260728"),
        (REVISION_KEY, b"null"),
        (CAPABILITIES_KEY, b"[]"),
        (CAPABILITIES_KEY, b"null"),
        (CAPABILITIES_KEY, b'"all"'),
        (LOG_LEVEL_KEY, b"3"),
        (LOG_LEVEL_KEY, b'"loud"'),
    ],
)
def test_a_malformed_key_is_invalid_params(key: str, value: bytes) -> None:
    assert refusal(GOOD | {key: Raw(value)}).code == -32602


@pytest.mark.parametrize("revision", ["2025-11-25", "2027-01-01", ""])
def test_another_revision_is_answered_with_those_there_are(revision: str) -> None:
    error = refusal({REVISION_KEY: Raw(json.dumps(revision).encode())})
    assert error.code == -32022
    assert json.loads(error.data or b"") == {"supported": ["2026-07-28"], "requested": revision}


@pytest.mark.parametrize(
    "params",
    [
        b'{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}',
        rb'{"_meta":{"io.modelcontextprotocol\/protocolVersion":"2026-07-28"}}',
    ],
)
def test_modern_params_are_seen_with_and_without_escaped_slashes(params: bytes) -> None:
    assert envelope.is_modern(params)
    assert envelope.is_modern(Raw(params))
    assert envelope.read_envelope(decode_fields(decode_fields(params)["_meta"]) | {CAPABILITIES_KEY: Raw(b"{}")})


def test_legacy_params_are_not_modern() -> None:
    assert not envelope.is_modern(b'{"protocolVersion":"2025-11-25","capabilities":{}}')


def test_stamping_sets_the_reserved_keys_and_keeps_the_rest() -> None:
    meta = decode_fields(b'{"progressToken": 1.0,"io.modelcontextprotocol/protocolVersion":"old","v/x":[ 1 ]}')
    stamped = envelope.stamp(meta, "2026-07-28", b'{"roots": {}}', b'{"name":"p"}', "debug")
    assert {key: bytes(value) for key, value in stamped.items()} == {
        "progressToken": b"1.0",
        "v/x": b"[ 1 ]",
        REVISION_KEY: b'"2026-07-28"',
        CAPABILITIES_KEY: b'{"roots": {}}',
        CLIENT_INFO_KEY: b'{"name":"p"}',
        LOG_LEVEL_KEY: b'"debug"',
    }
    assert bytes(meta[REVISION_KEY]) == b'"old"'
    assert LOG_LEVEL_KEY not in envelope.stamp({}, "2026-07-28", b"{}", b"{}", None)


def test_stripping_undoes_stamping() -> None:
    meta = decode_fields(b'{"progressToken":"t","io.modelcontextprotocol/related-task":{"taskId":"1"}}')
    assert envelope.strip(envelope.stamp(meta, "2026-07-28", b"{}", b"{}", "info")) == meta
