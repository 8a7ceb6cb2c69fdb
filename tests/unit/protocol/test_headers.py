import json
from typing import Any

import pytest
from mcp.shared import inbound

from polyplex.errors import RpcError
from polyplex.protocol import headers
from polyplex.protocol.headers import InvalidParamHeaders, param_headers
from polyplex.protocol.jsonrpc import decode_fields

HEADER_MISMATCH = -32020


def schema(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def annotated(name: Any = "Region", kind: Any = "string") -> dict[str, Any]:
    return {"type": kind, "x-mcp-header": name}


# The examples of the specification, "Value Encoding".
ENCODED = [
    ("us-west1", "us-west1"),
    ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
    (" padded ", "=?base64?IHBhZGRlZCA=?="),
    ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
    ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
]


@pytest.mark.parametrize(("text", "value"), ENCODED)
def test_values_are_encoded_as_the_specification_shows(text: str, value: str) -> None:
    assert headers.encode_value(text) == value
    assert headers.decode_value(value) == text


@pytest.mark.parametrize("text", ["\t", "a\tb", " ", "a ", "\x7f", "\x00", "é", "", "a\r\nX-Evil: 1"])
def test_what_a_field_cannot_carry_safely_is_encoded(text: str) -> None:
    value = headers.encode_value(text)
    assert value.startswith("=?base64?")
    assert headers.decode_value(value) == text


@pytest.mark.parametrize(
    "value", ["=?BASE64?SGVsbG8=?=", "=?Base64?SGVsbG8=?=", "=?base64?SGVsbG8=", "SGVsbG8=?=", "=?base64?="]
)
def test_the_markers_are_lower_case_and_both_there_or_the_value_is_plain(value: str) -> None:
    assert headers.decode_value(value) == value
    assert headers.encode_value(value) == value
    assert inbound.decode_header_value(value) == value


@pytest.mark.parametrize(
    "value",
    [
        "=?base64?SGVsbG8?=",
        "=?base64?SGVs!!!bG8=?=",
        "=?base64?SGVsbG8==?=",
        "=?base64?SGVsbG9=?=",
        "=?base64?/w==?=",
        "=?base64?SGVs bG8=?=",
        "=?base64?-_-_?=",
    ],
)
def test_a_malformed_sentinel_is_refused(value: str) -> None:
    with pytest.raises(ValueError, match="base64"):
        headers.decode_value(value)
    assert inbound.decode_header_value(value) is None


@pytest.mark.parametrize("value", ["é", "a\nb", "\x00", "\x7f", "=?base64?é?="])
def test_characters_that_no_field_may_hold_are_refused(value: str) -> None:
    with pytest.raises(ValueError, match="invalid characters"):
        headers.decode_value(value)


VALID_SCHEMAS: list[tuple[Any, tuple[headers.ParamHeader, ...]]] = [
    (schema(a=annotated()), (("mcp-param-region", ("a",)),)),
    (
        schema(a=annotated("N", "integer"), b=annotated("B", "boolean")),
        (("mcp-param-n", ("a",)), ("mcp-param-b", ("b",))),
    ),
    (schema(a=schema(b=schema(c=annotated("Deep")))), (("mcp-param-deep", ("a", "b", "c")),)),
    (schema(a=annotated("!#$%&'*+-.^_`|~0Az")), (("mcp-param-!#$%&'*+-.^_`|~0az", ("a",)),)),
    (schema(properties=annotated()), (("mcp-param-region", ("properties",)),)),
    (schema(properties=schema(properties=annotated())), (("mcp-param-region", ("properties", "properties")),)),
    (
        schema(default=annotated(), items=annotated("I")),
        (("mcp-param-region", ("default",)), ("mcp-param-i", ("items",))),
    ),
    ({"type": "object", "properties": {"x-mcp-header": {"type": "string"}}}, ()),
    ({"type": "object", "$defs": {"x-mcp-header": {"type": "string"}}}, ()),
    (schema(a={"type": "object", "default": annotated("no token"), "enum": [annotated()], "const": annotated()}), ()),
    (schema(a={"examples": [annotated()]}), ()),
    ({"type": "object", "properties": []}, ()),
    (True, ()),
    ({}, ()),
]


@pytest.mark.parametrize(("tree", "found"), VALID_SCHEMAS)
def test_annotations_are_found_with_their_paths(tree: Any, found: tuple[headers.ParamHeader, ...]) -> None:
    assert param_headers(tree) == found
    assert inbound.find_invalid_x_mcp_header(tree) is None
    theirs = {("mcp-param-" + name.lower(), path) for path, name in inbound.x_mcp_header_map(tree).items()}
    assert set(found) == theirs


INVALID_SCHEMAS: dict[str, tuple[Any, str]] = {
    "empty": (schema(a=annotated("")), "token"),
    "not a string": (schema(a=annotated(5)), "token"),
    "null": (schema(a=annotated(None)), "token"),
    "a space": (schema(a=annotated("My Region")), "token"),
    "a colon": (schema(a=annotated("Region:Primary")), "token"),
    "not ascii": (schema(a=annotated("Région")), "token"),
    "a line break": (schema(a=annotated("Region\r\nX: 1")), "token"),
    "a line break at the end": (schema(a=annotated("Region\n")), "token"),
    "a control character": (schema(a=annotated("Reg\x00ion")), "token"),
    "twice": (schema(a=annotated(), b=annotated()), "differ by case only"),
    "twice in another case": (schema(a=annotated(), b=annotated("REGION")), "differ by case only"),
    "twice on different levels": (schema(a=annotated(), b=schema(c=annotated())), "differ by case only"),
    "on a number": (schema(a=annotated(kind="number")), "needs type"),
    "on an object": (schema(a=annotated(kind="object")), "needs type"),
    "on an array": (schema(a=annotated(kind="array")), "needs type"),
    "on null": (schema(a=annotated(kind="null")), "needs type"),
    "on a union": (schema(a=annotated(kind=["string", "null"])), "needs type"),
    "on a type that is an object": (schema(a=annotated(kind={})), "needs type"),
    "without a type": (schema(a={"x-mcp-header": "Region"}), "needs type"),
    "at the root": ({"type": "string", "x-mcp-header": "Region"}, "not reachable"),
    "under items": (schema(a={"type": "array", "items": annotated()}), "not reachable"),
    "under properties of items": (schema(a={"type": "array", "items": schema(b=annotated())}), "not reachable"),
    "under prefixItems": (schema(a={"prefixItems": [annotated()]}), "not reachable"),
    "under contains": (schema(a={"contains": annotated()}), "not reachable"),
    "under oneOf": (schema(a={"oneOf": [annotated()]}), "not reachable"),
    "under anyOf": ({"anyOf": [schema(a=annotated())]}, "not reachable"),
    "under allOf": ({"allOf": [schema(a=annotated())]}, "not reachable"),
    "under not": ({"not": schema(a=annotated())}, "not reachable"),
    "under if": ({"if": schema(a=annotated())}, "not reachable"),
    "under then": ({"then": schema(a=annotated())}, "not reachable"),
    "under else": ({"else": schema(a=annotated())}, "not reachable"),
    "under $defs": ({"$ref": "#/$defs/a", "$defs": {"a": schema(b=annotated())}}, "not reachable"),
    "under $defs named as data": ({"$defs": {"default": annotated()}}, "not reachable"),
    "under $defs named properties": ({"$defs": {"properties": {"enum": [1], **annotated()}}}, "not reachable"),
    "under definitions": ({"definitions": {"const": annotated()}}, "not reachable"),
    "under additionalProperties": ({"additionalProperties": annotated()}, "not reachable"),
    "under patternProperties": ({"patternProperties": {"^a": annotated()}}, "not reachable"),
    "under dependentSchemas": ({"dependentSchemas": {"a": schema(b=annotated())}}, "not reachable"),
    "under propertyNames": ({"propertyNames": annotated()}, "not reachable"),
}


@pytest.mark.parametrize("rule", INVALID_SCHEMAS)
def test_an_annotation_that_breaks_a_rule_is_refused(rule: str) -> None:
    tree, reason = INVALID_SCHEMAS[rule]
    with pytest.raises(InvalidParamHeaders, match=reason):
        param_headers(tree)
    assert inbound.find_invalid_x_mcp_header(tree) is not None


def test_an_annotation_under_an_unknown_keyword_is_refused_too() -> None:
    with pytest.raises(InvalidParamHeaders, match="not reachable"):
        param_headers({"x-vendor": {"fields": [annotated()]}})


def test_a_schema_nested_without_end_is_refused() -> None:
    tree: Any = annotated()
    for _ in range(5000):
        tree = {"not": tree}
    with pytest.raises(InvalidParamHeaders, match="too deeply"):
        param_headers(tree)


EVERY_KIND = param_headers(
    schema(s=annotated("S"), i=annotated("I", "integer"), b=annotated("B", "boolean"), o=schema(s=annotated("Inner")))
)


@pytest.mark.parametrize(
    ("arguments", "mirrored"),
    [
        (b'{"s":"us-west1","i":42,"b":true}', {"s": "us-west1", "i": "42", "b": "true"}),
        (b'{"s":"","i":-7,"b":false}', {"s": "=?base64??=", "i": "-7", "b": "false"}),
        (rb'{"s":"\u4e16\u754c"}', {"s": "=?base64?5LiW55WM?="}),
        (b'{"i":42.0}', {"i": "42"}),
        (b'{"i":9007199254740993}', {"i": "9007199254740993"}),
        (b'{"i":1.5}', {"i": "1.5"}),
        (b'{"i":1e400}', {"i": "1e400"}),
        (b'{"i":%b}' % (b"9" * 5000), {"i": "9" * 5000}),
        (b'{"s":null,"i": null ,"b":null}', {}),
        (b'{"s":{"a":1},"i":[1]}', {}),
        (b'{ "o" : {"s" : "x"}}', {"inner": "x"}),
        (b'{"o":"text"}', {}),
        (b'{"o":null}', {}),
        (b"{}", {}),
        (b"[]", {}),
        (None, {}),
    ],
)
def test_arguments_are_mirrored(arguments: bytes | None, mirrored: dict[str, str]) -> None:
    made = headers.mirror(EVERY_KIND, arguments)
    assert dict(made) == {f"mcp-param-{name}": value for name, value in mirrored.items()}
    headers.check_params(dict(made), EVERY_KIND, arguments)


def refused(given: dict[str, str], arguments: bytes) -> bool:
    try:
        headers.check_params({f"mcp-param-{name}": value for name, value in given.items()}, EVERY_KIND, arguments)
    except RpcError as error:
        assert error.code == HEADER_MISMATCH
        assert any(name in error.message for name in ("mcp-param-s", "mcp-param-i", "mcp-param-b", "mcp-param-inner"))
        return True
    return False


CHECKS: list[tuple[bool, dict[str, str], bytes]] = [
    (True, {"i": "42"}, b'{"i":42}'),
    (True, {"i": "42.0"}, b'{"i":42}'),
    (True, {"i": "42"}, b'{"i":42.0}'),
    (True, {"i": "42.000"}, b'{"i":42}'),
    (True, {"s": "=?base64?eA==?="}, b'{"s":"x"}'),
    (True, {"s": " x\t"}, b'{"s":"x"}'),
    (False, {}, b'{"s":"x"}'),
    (False, {"s": "y"}, b'{"s":"x"}'),
    (False, {"s": "X"}, b'{"s":"x"}'),
    (False, {"s": "x"}, b"{}"),
    (False, {"s": "null"}, b'{"s":null}'),
    (False, {"s": "x"}, b'{"s":{}}'),
    (False, {"s": "=?base64?eA=?="}, b'{"s":"x"}'),
    (False, {"i": "42.5"}, b'{"i":42}'),
    (False, {"i": "4_2"}, b'{"i":42}'),
    (False, {"i": "4.2e1"}, b'{"i":42}'),
    (False, {"i": "+42"}, b'{"i":42}'),
    (False, {"i": "nan"}, b'{"i":42}'),
    (False, {"i": "٤٢"}, b'{"i":42}'),
    (False, {"i": "9007199254740992"}, b'{"i":9007199254740993}'),
    (False, {"s": "42.0"}, b'{"s":"42"}'),
    (False, {"s": "042"}, b'{"s":"42"}'),
    (False, {"b": "True"}, b'{"b":true}'),
    (False, {"b": "1"}, b'{"b":true}'),
    (False, {"inner": "y"}, b'{"o":{"s":"x"}}'),
]


@pytest.mark.parametrize(("fits", "given", "arguments"), CHECKS)
def test_param_headers_are_compared_with_the_arguments(fits: bool, given: dict[str, str], arguments: bytes) -> None:
    assert refused(given, arguments) is not fits


def test_a_raw_letter_outside_ascii_is_refused_even_where_it_matches() -> None:
    assert refused({"s": "é"}, '{"s":"é"}'.encode())


def modern(method: str, **over: str) -> dict[str, str]:
    return {headers.REVISION: "2026-07-28", headers.METHOD: method} | over


@pytest.mark.parametrize(
    ("method", "key", "value"),
    [
        ("tools/call", "name", "files__read"),
        ("prompts/get", "name", "grüße"),
        ("resources/read", "uri", "file:///a b "),
        ("tools/call", "name", "=?base64?x?="),
    ],
)
def test_a_request_whose_headers_match_passes(method: str, key: str, value: str) -> None:
    fields = decode_fields(json.dumps({key: value}).encode())
    given = modern(method) | {headers.NAME: headers.encode_value(value)}
    headers.check_request(given, method, fields, "2026-07-28")
    with pytest.raises(RpcError):
        headers.check_request(given | {headers.NAME: "other"}, method, fields, "2026-07-28")


def test_other_methods_need_no_name() -> None:
    headers.check_request(modern("tools/list"), "tools/list", {}, "2026-07-28")


@pytest.mark.parametrize(
    "broken",
    [
        {headers.REVISION: "2025-11-25"},
        {headers.REVISION: None},
        {headers.METHOD: "tools/list"},
        {headers.METHOD: "Tools/Call"},
        {headers.METHOD: "=?base64?dG9vbHMvY2FsbA==?="},
        {headers.METHOD: None},
        {headers.NAME: "42.0"},
        {headers.NAME: "=?base64?NDI?="},
        {headers.NAME: None},
    ],
)
def test_a_missing_or_different_header_is_named(broken: dict[str, str | None]) -> None:
    given = {k: v for k, v in (modern("tools/call", **{headers.NAME: "42"}) | broken).items() if v is not None}
    fields = decode_fields(b'{"name":"42"}')
    with pytest.raises(RpcError) as caught:
        headers.check_request(given, "tools/call", fields, "2026-07-28")
    assert caught.value.code == HEADER_MISMATCH
    assert next(iter(broken)) in caught.value.message


@pytest.mark.parametrize("value", [b"5", b"null", b"{}", b"[[[1]]]"])
def test_a_name_that_is_no_string_is_invalid_params(value: bytes) -> None:
    with pytest.raises(RpcError) as caught:
        headers.check_request(
            modern("tools/call", **{headers.NAME: "5"}),
            "tools/call",
            decode_fields(b'{"name":%b}' % value),
            "2026-07-28",
        )
    assert caught.value.code == -32602


def test_a_name_in_the_header_alone_is_a_mismatch() -> None:
    with pytest.raises(RpcError) as caught:
        headers.check_request(modern("tools/call", **{headers.NAME: "a"}), "tools/call", {}, "2026-07-28")
    assert caught.value.code == HEADER_MISMATCH


def test_a_name_that_is_nowhere_is_the_parameter_that_is_missing() -> None:
    with pytest.raises(RpcError) as caught:
        headers.check_request(modern("tasks/get"), "tasks/get", {}, "2026-07-28")
    assert (caught.value.code, caught.value.message) == (-32602, "params.taskId is missing")
