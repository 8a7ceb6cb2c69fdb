"""Properties of the modern headers, with the official SDK as the oracle where it has the same function."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from mcp.shared import inbound

from polyplex.errors import RpcError
from polyplex.protocol import envelope, headers
from polyplex.protocol.headers import InvalidParamHeaders
from polyplex.protocol.jsonrpc import decode_fields

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
HEADER_TEXT = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E))
SENTINELS = st.builds("=?{}?{}?=".format, st.sampled_from(["base64", "BASE64", "base32"]), HEADER_TEXT)


@given(TEXT | SENTINELS)
def test_an_encoded_value_is_safe_and_decodes_to_the_text(text: str) -> None:
    value = headers.encode_value(text)
    assert all("\x20" <= letter <= "\x7e" for letter in value)
    assert value == value.strip() and value
    assert headers.decode_value(value) == text
    assert inbound.decode_header_value(value) == text
    if text:  # an empty header field is legal, but not every proxy keeps one
        assert value == inbound.encode_header_value(text)


@given(HEADER_TEXT | SENTINELS | st.binary().map(lambda data: "=?base64?" + data.hex() + "?="))
def test_a_value_decodes_as_the_sdk_decodes_it(value: str) -> None:
    try:
        decoded: str | None = headers.decode_value(value)
    except ValueError:
        decoded = None
    assert decoded == inbound.decode_header_value(value)


@given(st.text())
def test_a_value_of_any_kind_is_decoded_or_refused(value: str) -> None:
    try:
        headers.decode_value(value)
    except ValueError:
        return
    assert value.isascii()


TYPES = st.sampled_from(["string", "integer", "boolean", "number", "object", "array", ["string"], None])
NAMES = st.sampled_from(["A", "a", "B", "C", "d-1", "", "a b", "é", 5, None])
DATA_KEYS = st.sampled_from(["default", "const", "enum", "examples"])
SINGLE = st.sampled_from(["items", "not", "if", "then", "else", "additionalProperties", "contains"])
LISTS = st.sampled_from(["allOf", "anyOf", "oneOf", "prefixItems"])
MAPS = st.sampled_from(["properties", "properties", "properties", "$defs", "definitions", "patternProperties"])
PROPERTY_NAMES = st.sampled_from(["a", "b", "c", "properties", "default", "enum", "x-mcp-header", "items", "type"])


def grown(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    schemas = st.dictionaries(PROPERTY_NAMES, inner, max_size=3)
    return st.one_of(
        st.builds(lambda key, value: {key: value}, MAPS, schemas),
        st.builds(lambda value: {"type": "object", "properties": value}, schemas),
        st.builds(lambda key, value: {key: value}, SINGLE, inner),
        st.builds(lambda key, value: {key: value}, LISTS, st.lists(inner, max_size=2)),
        st.builds(lambda key, value: {"type": "string", key: value}, DATA_KEYS, inner),
    )


LEAVES = st.one_of(
    st.just({"type": "string"}),
    st.booleans(),
    st.builds(lambda kind, name: {"type": kind, "x-mcp-header": name}, TYPES, NAMES),
    st.builds(lambda kind, name: {"type": kind, "x-mcp-header": name}, st.just("integer"), st.sampled_from("ABCDEFG")),
)
SCHEMAS = st.recursive(LEAVES, grown, max_leaves=8)
ROOTS = st.dictionaries(PROPERTY_NAMES, SCHEMAS, max_size=4).map(lambda value: {"type": "object", "properties": value})


@given(SCHEMAS | ROOTS)
def test_annotations_are_judged_as_the_sdk_judges_them(schema: Any) -> None:
    reason = inbound.find_invalid_x_mcp_header(schema)
    try:
        found = headers.param_headers(schema)
    except InvalidParamHeaders:
        assert reason is not None
        return
    assert reason is None
    theirs = inbound.x_mcp_header_map(schema)
    assert {(path, name) for name, path in found} == {
        (path, "mcp-param-" + name.lower()) for path, name in theirs.items()
    }


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)


@given(JSON | st.dictionaries(st.sampled_from(["properties", "x-mcp-header", "type", "items"]), JSON))
def test_a_schema_of_any_kind_is_read_or_refused(schema: Any) -> None:
    try:
        headers.param_headers(schema)
    except InvalidParamHeaders as error:
        assert "schema" in str(error) or "x-mcp-header" in str(error)


CALL_SCHEMA = {
    "type": "object",
    "properties": {
        "s": {"type": "string", "x-mcp-header": "S"},
        "i": {"type": "integer", "x-mcp-header": "I"},
        "b": {"type": "boolean", "x-mcp-header": "B"},
        "o": {"type": "object", "properties": {"s": {"type": "string", "x-mcp-header": "Deep"}}},
    },
}
PARAMS = headers.param_headers(CALL_SCHEMA)
SAFE = st.integers(-(2**53) + 1, 2**53 - 1)
STRINGS = st.none() | (TEXT | SENTINELS).filter(bool)
ARGUMENTS = st.fixed_dictionaries(
    {},
    optional={
        "s": STRINGS,
        "i": st.none() | SAFE,
        "b": st.none() | st.booleans(),
        "o": st.none() | st.just(5) | st.fixed_dictionaries({}, optional={"s": STRINGS}),
    },
)
GIVEN = st.dictionaries(
    st.sampled_from(["mcp-param-s", "mcp-param-i", "mcp-param-b", "mcp-param-deep"]),
    st.sampled_from(["true", "false", "0", "0.0", "-0", "1", "1.0", "01", "x", "=?base64?eA==?=", "=?base64?eA=?="]),
)
SMALL = st.fixed_dictionaries(
    {},
    optional={
        "s": st.sampled_from(["x", "1", "true", None]),
        "i": st.sampled_from([0, 1, -1, None]),
        "b": st.booleans(),
        "o": st.just({"s": "x"}),
    },
)


@given(ARGUMENTS)
def test_a_call_is_mirrored_as_the_sdk_mirrors_it(arguments: dict[str, Any]) -> None:
    raw = json.dumps(arguments).encode()
    mine = dict(headers.mirror(PARAMS, raw))
    theirs = inbound.mcp_param_headers(inbound.x_mcp_header_map(CALL_SCHEMA), arguments)
    assert mine == {name.lower(): value for name, value in theirs.items()}
    headers.check_params(mine, PARAMS, raw)
    assert inbound.validate_mcp_param_headers(CALL_SCHEMA, arguments, mine) is None


@given(SMALL, GIVEN)
def test_a_call_is_checked_as_the_sdk_checks_it(arguments: dict[str, Any], given: dict[str, str]) -> None:
    theirs = inbound.validate_mcp_param_headers(CALL_SCHEMA, arguments, given)
    try:
        headers.check_params(given, PARAMS, json.dumps(arguments).encode())
    except RpcError as error:
        assert theirs is not None and theirs.code == error.code
    else:
        assert theirs is None


@given(st.dictionaries(st.sampled_from("sibo"), JSON))
def test_arguments_of_any_kind_are_mirrored_and_pass_their_own_check(arguments: dict[str, Any]) -> None:
    raw = json.dumps(arguments).encode()
    headers.check_params(dict(headers.mirror(PARAMS, raw)), PARAMS, raw)


ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": st.sampled_from(["2026-07-28", "2026-07-28", "2025-11-25", 5]),
    "io.modelcontextprotocol/clientCapabilities": st.just({}),
}
METHODS = st.sampled_from(["tools/list", "tools/call", "prompts/get", "resources/read"])
LABELS = st.sampled_from(["x", "é", " x", "=?base64?eA==?=", "X"])
REQUEST_HEADERS = st.fixed_dictionaries(
    {},
    optional={
        headers.REVISION: st.sampled_from(["2026-07-28", "2026-07-28", "2025-11-25"]),
        headers.METHOD: METHODS | st.just("=?base64?dG9vbHMvY2FsbA==?="),
        headers.NAME: LABELS.map(headers.encode_value) | LABELS.filter(str.isascii),
    },
)


@given(METHODS, LABELS, st.fixed_dictionaries({}, optional=ENVELOPE), REQUEST_HEADERS, st.booleans())
def test_a_request_is_accepted_as_the_sdk_accepts_it(
    method: str, label: str, meta: dict[str, Any], given_headers: dict[str, str], agree: bool
) -> None:
    if agree:
        named = headers.NAMED_METHODS.get(method)
        given_headers = {headers.REVISION: "2026-07-28", headers.METHOD: method}
        given_headers |= {headers.NAME: headers.encode_value(label)} if named else {}
    else:
        given_headers = {name: value.strip() for name, value in given_headers.items()}
    params = {"name": label, "uri": label, "_meta": meta}
    theirs = inbound.classify_inbound_request({"method": method, "params": params}, headers=given_headers)
    fields = decode_fields(json.dumps(params).encode())
    try:
        read = envelope.read_envelope(decode_fields(fields["_meta"]))
        headers.check_request(given_headers, method, fields, read.revision)
    except RpcError as error:
        assert isinstance(theirs, inbound.InboundLadderRejection)
        # Where the body names a revision that is not served and the headers differ too, either answer is right.
        assert error.code in (theirs.code, -32022) or theirs.code == -32020
    else:
        assert isinstance(theirs, inbound.InboundModernRoute)
