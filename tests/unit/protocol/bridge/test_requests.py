import pytest
from msgspec import Raw

from polyplex.protocol.bridge.requests import ClientFacts, meta_for, mirrored_headers, read_meta, with_meta
from polyplex.protocol.headers import param_headers
from polyplex.protocol.jsonrpc import Fields, decode_fields
from polyplex.protocol.revisions import Era

PREFIX = "io.modelcontextprotocol/"
FACTS = ClientFacts(b'{"roots":{}}', b'{"name":"c"}', "info")
MODERN_META = {
    PREFIX + "protocolVersion": Raw(b'"2026-07-28"'),
    PREFIX + "clientCapabilities": Raw(b"{}"),
    PREFIX + "clientInfo": Raw(b"{}"),
    PREFIX + "logLevel": Raw(b'"debug"'),
    "traceparent": Raw(b'"00"'),
    "vendor": Raw(b"1"),
}


def plain(fields: Fields) -> dict[str, bytes]:
    return {name: bytes(raw) for name, raw in fields.items()}


@pytest.mark.parametrize("params", [b"{}", b'{"_meta":null}', b'{"_meta":7}', b'{"_meta":[{}]}'])
def test_anything_but_an_object_is_no_meta(params: bytes) -> None:
    assert read_meta(decode_fields(params)) == {}


def test_between_equal_eras_nothing_changes() -> None:
    assert meta_for(MODERN_META, Era.MODERN, Era.MODERN, "2026-07-28", FACTS) is MODERN_META
    legacy = {"progressToken": Raw(b"1")}
    assert meta_for(legacy, Era.LEGACY, Era.LEGACY, "", FACTS) is legacy


def test_a_legacy_server_sees_no_reserved_key() -> None:
    assert plain(meta_for(MODERN_META, Era.MODERN, Era.LEGACY, "2025-11-25", FACTS)) == {
        "traceparent": b'"00"',
        "vendor": b"1",
    }


def test_a_modern_server_is_told_of_the_client_and_of_nobody_else() -> None:
    stamped = plain(meta_for({"vendor": Raw(b"1")}, Era.LEGACY, Era.MODERN, "2026-07-28", FACTS))
    assert stamped == {
        "vendor": b"1",
        PREFIX + "protocolVersion": b'"2026-07-28"',
        PREFIX + "clientCapabilities": b'{"roots":{}}',
        PREFIX + "clientInfo": b'{"name":"c"}',
        PREFIX + "logLevel": b'"info"',
    }
    forged = {PREFIX + "clientCapabilities": Raw(b'{"sampling":{}}')}
    quiet = ClientFacts(b"{}", b"{}", None)
    stamped = plain(meta_for(forged, Era.LEGACY, Era.MODERN, "2026-07-28", quiet))
    assert stamped[PREFIX + "clientCapabilities"] == b"{}"
    assert PREFIX + "logLevel" not in stamped


def test_meta_is_put_in_replaced_and_left_out() -> None:
    fields = decode_fields(b'{"name":"x","_meta":{"a":1}}')
    assert plain(with_meta(fields, {"b": Raw(b"2")})) == {"name": b'"x"', "_meta": b'{"b":2}'}
    assert plain(with_meta(fields, {})) == {"name": b'"x"'}
    assert plain(with_meta({}, {"b": Raw(b"2")})) == {"_meta": b'{"b":2}'}


def test_headers_are_those_of_the_method_the_name_and_the_arguments() -> None:
    schema = {"type": "object", "properties": {"r": {"type": "string", "x-mcp-header": "Region"}}}
    spec = param_headers(schema)
    assert mirrored_headers("tools/list", None, (), None) == [("Mcp-Method", "tools/list")]
    headers = mirrored_headers("tools/call", "é", spec, Raw(b'{"r":"eu"}'))
    assert headers[0] == ("Mcp-Method", "tools/call")
    assert headers[1][0] == "Mcp-Name" and headers[1][1].startswith("=?base64?")
    assert headers[2] == ("mcp-param-region", "eu")
    assert len(mirrored_headers("tools/call", "x", spec, None)) == 2
