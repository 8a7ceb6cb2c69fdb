import json

import pytest
from msgspec import UNSET, Raw

from polyplex.errors import RemoteProtocolError
from polyplex.protocol import jsonrpc
from polyplex.protocol.jsonrpc import INVALID_PARAMS, INVALID_REQUEST, PARSE_ERROR, Message, decode, decode_frame

IDS = [b"0", b"1", b"-1", b"9007199254740993", b"1" * 5000, b'""', b'"a"', b'"\\u0069"', '"é"'.encode(), b'"1"']


def refusal(frame: bytes) -> RemoteProtocolError:
    with pytest.raises(RemoteProtocolError) as caught:
        decode(frame)
    return caught.value


def raw(value: object) -> bytes:
    assert isinstance(value, Raw)
    return bytes(value)


def test_a_request_keeps_its_params_as_they_came() -> None:
    message = decode(b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{ "a" :1.0, "a b":"\\u00e9"}}')
    assert message.method == "tools/call"
    assert raw(message.params) == b'{ "a" :1.0, "a b":"\\u00e9"}'
    assert message.result is UNSET and message.error is UNSET


def test_a_notification_has_no_id() -> None:
    assert decode(b'{"jsonrpc":"2.0","method":"notifications/cancelled"}').id is UNSET


def test_a_response_keeps_its_result_as_it_came() -> None:
    message = decode(b'{"jsonrpc":"2.0","id":"x","result":{"n":1e400}}')
    assert (raw(message.id), raw(message.result)) == (b'"x"', b'{"n":1e400}')


def test_an_error_response_may_have_a_null_id() -> None:
    assert raw(decode(b'{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"m"}}').id) == b"null"


@pytest.mark.parametrize("identifier", IDS, ids=lambda value: repr(value[:20]))
def test_an_id_echoes_exactly(identifier: bytes) -> None:
    assert raw(decode(jsonrpc.request(identifier, "m", None)).id) == identifier
    assert raw(decode(jsonrpc.response(identifier, b"{}")).id) == identifier


@pytest.mark.parametrize("identifier", [b"null", b"true", b"false", b"{}", b"[1]"])
def test_a_request_with_another_kind_of_id_is_refused(identifier: bytes) -> None:
    error = refusal(b'{"jsonrpc":"2.0","id":%b,"method":"m"}' % identifier)
    assert (error.code, error.id) == (INVALID_REQUEST, b"null")


@pytest.mark.parametrize(
    ("frame", "identifier"),
    [
        (b"[]", b"null"),
        (b"null", b"null"),
        (b'"text"', b"null"),
        (b"{}", b"null"),
        (b'{"jsonrpc":"2.0","id":5}', b"5"),
        (b'{"jsonrpc":"2.0","id":5,"params":{}}', b"5"),
        (b'{"jsonrpc":"2.0","id":5,"method":null}', b"5"),
        (b'{"jsonrpc":"2.0","id":5,"method":"m","result":1}', b"5"),
        (b'{"jsonrpc":"2.0","id":5,"result":{},"error":{}}', b"5"),
        (b'{"jsonrpc":"1.0","id":5,"method":"m"}', b"5"),
        (b'{"jsonrpc":2.0,"id":5,"method":"m"}', b"5"),
        (b'{"id":5,"method":"m"}', b"5"),
        (b'{"jsonrpc":"2.0","id":{"id":7},"method":4}', b"null"),
    ],
)
def test_json_that_is_no_message_is_an_invalid_request(frame: bytes, identifier: bytes) -> None:
    error = refusal(frame)
    assert (error.code, error.id) == (INVALID_REQUEST, identifier)


def test_the_id_of_a_refusal_is_the_envelopes_own() -> None:
    """An answer that carries an id found in the params would end another request of the same client."""
    assert refusal(b'{"jsonrpc":"2.0","params":{"id":7},"id":8,"method":4}').id == b"8"
    assert refusal(b'{"jsonrpc":"2.0","params":{"id":7},"method":4}').id == b"null"


def test_a_log_line_in_json_is_no_response() -> None:
    assert refusal(b'{"level":"error","error":"cannot open the cache","id":3}').code == INVALID_REQUEST


@pytest.mark.parametrize(
    "frame",
    [
        b"",
        b"{",
        b"hello",
        b'{"jsonrpc":"2.0","id":1,"method":"m"}}',
        b'{"jsonrpc":"2.0","id":1,"method":"m"}{}',
        b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":NaN}}',
        b'{"jsonrpc":"2.0","id":1,"result":{"a":-Infinity}}',
        b'{"jsonrpc":"2.0","id":1,"result":{"a":01}}',
        b'{"jsonrpc":"2.0","id":1,"result":{"a":"\x01"}}',
        b'{"jsonrpc":"2.0","id":1,"result":{"a":"\\x"}}',
        b'\xef\xbb\xbf{"jsonrpc":"2.0","id":1,"method":"m"}',
    ],
)
def test_what_is_not_json_is_a_parse_error(frame: bytes) -> None:
    error = refusal(frame)
    assert (error.code, error.id) == (PARSE_ERROR, b"null")


@pytest.mark.parametrize("junk", [b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xc0\x80", b"\xf5\x80\x80\x80"])
@pytest.mark.parametrize("place", [b'{"jsonrpc":"2.0","id":1,"result":{"a":"%b"}}', b'{"jsonrpc":"2.0","method":"%b"}'])
def test_bytes_that_are_not_utf8_are_a_parse_error(junk: bytes, place: bytes) -> None:
    error = refusal(place % junk)
    assert error.code == PARSE_ERROR
    assert f"at byte {place.index(b'%b')}" in str(error)


REPEATS = [
    b'{"jsonrpc":"2.0","id":1,"id":2,"method":"m"}',
    b'{"jsonrpc":"2.0","id":1,"id":2,"method":"m","params":{}}',
    b'{"jsonrpc":"2.0","id":1,"\\u0069d":2,"method":"m"}',
    b'{"jsonrpc":"2.0","id":1,"\\u0069\\u0064":2,"method":"m","params":{}}',
    b'{"jsonrpc": "2.0","id":1,"id":2,"method":"m","params":{}}',
    b'{"jsonrpc": "2.0", "id": 1, "id": 2, "method": "m", "params": {}}',
    b'{"id":1,"id":2,"method":"m","params":{},"jsonrpc":"2.0"}',
    b'{"jsonrpc":"2.0","id":1,"method":"a","method":"m"}',
    b'{"jsonrpc":"2.0","method":"","method":"m"}',
    b'{"jsonrpc":"2.0","id":1,"method":"m","params":{},"params":{"a":1}}',
    b'{"jsonrpc":"2.0","id":1,"method":"m","params":0,"p\\u0061rams":{}}',
    b'{"jsonrpc":"2.0","id":1,"result":{"a":1},"result":{}}',
    b'{"jsonrpc":"2.0","id":1,"error":{},"error":{}}',
    b'{"jsonrpc":"1.0","jsonrpc":"2.0","id":1,"method":"m"}',
    b'{"jsonrpc":"2.0","id":1,"method":"m","":1,"":2}',
    b'{"jsonrpc":"2.0","id":1,"method":"m","x":1,"\\u0078":2}',
]


@pytest.mark.parametrize("frame", REPEATS)
def test_a_key_that_appears_twice_is_refused(frame: bytes) -> None:
    error = refusal(frame)
    assert error.code == INVALID_REQUEST
    assert "appears twice" in str(error)


def test_a_request_with_two_ids_is_answered_with_neither() -> None:
    assert refusal(b'{"jsonrpc":"2.0","id":1,"id":2,"method":"m"}').id == b"null"
    assert refusal(b'{"jsonrpc":"2.0","id":1,"method":"m","method":"m"}').id == b"1"


@pytest.mark.parametrize(
    "frame",
    [
        b'{"jsonrpc": "2.0", "id": 1, "method": "m", "params": {"id": 1, "id": 2}}',
        b'{\n  "jsonrpc": "2.0",\n  "id": 1,\n  "method": "m",\n  "params": {"id": [{"id": 1}]}\n}\n',
        b'{"jsonrpc":"2.0","id":1,"method":"m","params":{},"vendor":{"method":1},"x":2}',
        '{"jsonrpc":"2.0","id":1,"method":"ééééééé","params":{}}'.encode(),
        b'{"jsonrpc":"2.0","id":1,"method":"\\u006d\\u006d","params":{}}',
        b' {"jsonrpc":"2.0","id":1,"method":"m"}        ',
    ],
)
def test_white_space_and_members_of_others_are_no_repeats(frame: bytes) -> None:
    assert raw(decode(frame).id) == b"1"


def test_a_spaced_envelope_never_reaches_the_slow_check(monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(frame: bytes) -> None:
        raise AssertionError(frame)

    monkeypatch.setattr(jsonrpc, "refuse_duplicate_keys", slow)
    for body in (
        {"jsonrpc": "2.0", "id": 1, "method": "m", "params": {"a": 1}},
        {"jsonrpc": "2.0", "id": 1, "result": {}},
        {"jsonrpc": "2.0", "method": "m", "params": {}},
        {"method": "m", "params": {}, "jsonrpc": "2.0", "id": "x"},
    ):
        decode(json.dumps(body, separators=(",", ":")).encode())
    for body in (
        {"jsonrpc": "2.0", "id": 1, "method": "m", "params": {"a": 1}},
        {"jsonrpc": "2.0", "id": 1, "result": {}},
        {"jsonrpc": "2.0", "method": "m", "params": {}},
    ):
        decode(json.dumps(body).encode())
    decode(b'{"jsonrpc":"2.0","id":1,"method":"m"}\r\n')


@pytest.mark.parametrize("space", [b"", b"         "])
def test_integers_of_any_length_pass(space: bytes) -> None:
    number = b"9" * 10_000
    message = decode(b'{%b"jsonrpc":"2.0","id":1,"method":"m","params":{"n":%b}}' % (space, number))
    assert raw(message.params) == b'{"n":%b}' % number


@pytest.mark.parametrize("space", [b"", b"         "])
@pytest.mark.parametrize(("opening", "closing"), [(b"[", b"]"), (b'{"a":', b"}")])
def test_nesting_without_end_is_a_parse_error(space: bytes, opening: bytes, closing: bytes) -> None:
    deep = opening * 100_000 + b"1" + closing * 100_000
    assert refusal(b'{%b"jsonrpc":"2.0","id":1,"result":%b}' % (space, deep)).code == PARSE_ERROR


def test_nesting_of_two_hundred_levels_passes() -> None:
    deep = b"[" * 200 + b"]" * 200
    assert raw(decode(b'{"jsonrpc":"2.0","id":1,"result":%b}' % deep).result) == deep


def test_the_null_one_of_result_and_error_is_dropped() -> None:
    good = decode(b'{"jsonrpc":"2.0","id":1,"result":{},"error":null}')
    bad = decode(b'{"jsonrpc":"2.0","id":1,"result":null,"error":{"code":1,"message":"m"}}')
    assert good.error is UNSET and raw(good.result) == b"{}"
    assert bad.result is UNSET and raw(bad.error) == b'{"code":1,"message":"m"}'


@pytest.mark.parametrize(
    ("text", "mended"),
    [
        (rb"cut \ud83d here", rb"cut \ufffd here"),
        (rb"\ud83d", rb"\ufffd"),
        (rb"\uDE00\uD83D", rb"\ufffd\ufffd"),
        (rb"\ud83d\ud83d\ude00", rb"\ufffd\ud83d\ude00"),
        (rb"\\\ud83d\\ud83d", rb"\\\ufffd\\ud83d"),
        (rb"\ud83d\u0041\"", rb"\ufffd\u0041\""),
    ],
)
def test_half_a_surrogate_pair_is_mended(text: bytes, mended: bytes) -> None:
    message = decode(b'{"jsonrpc":"2.0","id":1,"result":{"text":"%b"}}' % text)
    assert raw(message.result) == b'{"text":"%b"}' % mended
    batch = decode_frame(b'[{"jsonrpc":"2.0","id":1,"result":"%b"}]' % text)
    assert batch == [b'{"jsonrpc":"2.0","id":1,"result":"%b"}' % mended]


def test_whole_surrogate_pairs_stay_as_they_are() -> None:
    text = rb'"\ud83d\ude00 \\ud83d"'
    assert jsonrpc.mend_surrogates(text) == text
    assert raw(decode(b'{"jsonrpc":"2.0","id":1,"result":%b}' % text).result) == text


def test_a_frame_is_one_message_or_a_batch() -> None:
    single = decode_frame(b' \r\n\t{"jsonrpc":"2.0","method":"m"}')
    assert isinstance(single, Message) and single.method == "m"
    assert decode_frame(b' [{"a": 1}, 2,"x"]') == [b'{"a": 1}', b"2", b'"x"']


@pytest.mark.parametrize(
    ("frame", "code"),
    [(b"[]", INVALID_REQUEST), (b"[", PARSE_ERROR), (b"[1,]", PARSE_ERROR), (b'["\xff"]', PARSE_ERROR)],
)
def test_a_bad_batch_is_refused(frame: bytes, code: int) -> None:
    with pytest.raises(RemoteProtocolError) as caught:
        decode_frame(frame)
    assert caught.value.code == code


def test_a_batch_nested_without_end_is_a_parse_error() -> None:
    with pytest.raises(RemoteProtocolError) as caught:
        decode_frame(b"[" * 100_000)
    assert caught.value.code == PARSE_ERROR


@pytest.mark.parametrize("value", [b"[]", b"1", b"null", b'"a"', b"{", b'{"\xff":1}', b"[" * 100_000])
def test_fields_are_those_of_an_object(value: bytes) -> None:
    with pytest.raises(RemoteProtocolError) as caught:
        jsonrpc.decode_fields(value)
    assert caught.value.code == INVALID_PARAMS


def test_fields_keep_their_values_raw_and_in_order() -> None:
    fields = jsonrpc.decode_fields(b'{"b": 1.0, "a" :[ 1 ], "\\u0063":null}')
    assert [(key, bytes(value)) for key, value in fields.items()] == [("b", b"1.0"), ("a", b"[ 1 ]"), ("c", b"null")]


@pytest.mark.parametrize("value", [b"1", b"null", b"{}", b'"', b'"\xff"', b'"\\ud800"'])
def test_text_is_a_string(value: bytes) -> None:
    assert jsonrpc.decode_text(b'"\\u00e9"') == "é"
    with pytest.raises(RemoteProtocolError) as caught:
        jsonrpc.decode_text(value)
    assert caught.value.code == INVALID_PARAMS


def test_an_error_member_is_read() -> None:
    error = jsonrpc.decode_error(jsonrpc.error_object(-32002, 'no "x"', b'{"uri": "a"}'))
    assert (error.code, error.message, raw(error.data)) == (-32002, 'no "x"', b'{"uri": "a"}')
    assert jsonrpc.decode_error(jsonrpc.error_object(1, "m")).data is UNSET


@pytest.mark.parametrize("member", [b"null", b'"boom"', b'{"code":"x"}', b'{"code":1.5}'])
def test_an_error_member_that_is_none_becomes_an_internal_error(member: bytes) -> None:
    assert jsonrpc.decode_error(member).code == jsonrpc.INTERNAL_ERROR


def test_encoded_messages_are_compact_and_keep_raw_parts() -> None:
    assert jsonrpc.request(b'"a"', "m", b"{ }") == b'{"jsonrpc":"2.0","id":"a","method":"m","params":{ }}'
    assert jsonrpc.request(b"1", "m", None) == b'{"jsonrpc":"2.0","id":1,"method":"m"}'
    assert jsonrpc.notification("n", Raw(b"{}")) == b'{"jsonrpc":"2.0","method":"n","params":{}}'
    assert jsonrpc.notification('"') == b'{"jsonrpc":"2.0","method":"\\""}'
    assert jsonrpc.response(b"1", Raw(b"{ }")) == b'{"jsonrpc":"2.0","id":1,"result":{ }}'
    assert jsonrpc.error_response(b"1", b"{}") == b'{"jsonrpc":"2.0","id":1,"error":{}}'


def test_the_cache_of_method_names_is_bounded() -> None:
    for number in range(1000):
        jsonrpc.notification(f"made/up/{number}")
        jsonrpc.notification("m" * 10_000 + str(number))
    cached = jsonrpc._methods
    assert len(cached) <= 256
    assert max(map(len, cached)) <= 64


@pytest.mark.parametrize(
    ("frame", "identifier"),
    [
        (b'{"jsonrpc":"2.0","id":7,"result":{"x":NaN', b"7"),
        (b'{"result":{"x":NaN' + b" " * 2000 + b'}},"id" : "a\\"b"}', b'"a\\"b"'),
        (b'{"result":[]', None),
        (b'{"id":null,', None),
        (b"", None),
        (b'{"id":"' + b"x" * 5000, None),
    ],
)
def test_the_id_of_a_broken_message_is_made_out(frame: bytes, identifier: bytes | None) -> None:
    assert jsonrpc.find_id(frame) == identifier


def test_one_line_has_no_raw_breaks() -> None:
    pretty = b'{\r\n "a":\n "x\\ny"\r}'
    flat = jsonrpc.one_line(pretty)
    assert b"\n" not in flat and b"\r" not in flat
    assert json.loads(flat) == json.loads(pretty)
    untouched = b'{"a":1}'
    assert jsonrpc.one_line(untouched) is untouched


@pytest.mark.parametrize(
    "params",
    [
        b'{"name":"a","name":"b"}',
        b'{"name":"a","n\\u0061me":"b"}',
        b'{"name":"a","arguments":{},"name":"b"}',
        b'{"name": "a", "arguments": {}, "name": "b"}',
        b'{"a":1,"a":2}',
        b'{"":1,"":2}',
        b'{"name":"a","x":1,"x":1}',
        '{"é":1,"é":2}'.encode(),
        b'{"id":1,"id":2}',
    ],
)
def test_params_that_name_a_member_twice_are_refused(params: bytes) -> None:
    for form in (params, Raw(params)):
        with pytest.raises(RemoteProtocolError, match="twice") as caught:
            jsonrpc.decode_params(form)
        assert (caught.value.code, caught.value.id) == (INVALID_PARAMS, b"null")


@pytest.mark.parametrize(
    "params",
    [
        b"{}",
        b"{       }",
        b'{"name":"a","arguments":{"name":1,"name":2}}',
        b'{\n    "name": "a",\n    "arguments": {}\n}',
        b'{"a" : 1, "b" : 2, "c" : 3, "d" : 4}',
    ],
)
def test_params_without_repeats_are_read_as_fields(params: bytes) -> None:
    assert jsonrpc.decode_params(params) == jsonrpc.decode_fields(params)


@pytest.mark.parametrize("params", [b"[]", b"1", b"{", b"null"])
def test_params_that_are_no_object_are_invalid(params: bytes) -> None:
    with pytest.raises(RemoteProtocolError) as caught:
        jsonrpc.decode_params(params)
    assert caught.value.code == INVALID_PARAMS


def test_spaced_params_of_a_call_never_reach_the_slow_check(monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(frame: bytes) -> list[str]:
        raise AssertionError(frame)

    monkeypatch.setattr(jsonrpc, "_repeated_keys", slow)
    jsonrpc.decode_params(json.dumps({"name": "a", "arguments": {"x": 1}, "_meta": {"progressToken": 1}}).encode())


def test_repeats_are_looked_for_in_json_alone() -> None:
    with pytest.raises(RemoteProtocolError) as caught:
        jsonrpc.refuse_duplicate_keys(b"{")
    assert caught.value.code == PARSE_ERROR


@pytest.mark.parametrize(
    ("sent", "code", "message"),
    [
        (b'"boom"', -32603, "boom"),
        (b'{"message":"boom"}', -32603, "boom"),
        (b'{"code":"-32000","message":"boom"}', -32000, "boom"),
        (b'{"code":-32000.5,"message":"boom"}', -32000, "boom"),
        (b'{"code":null,"message":"boom"}', -32603, "boom"),
        (b'{"code":7,"message":null}', 7, "the server sent an error without a message"),
        (b'{"code":7}', 7, "the server sent an error without a message"),
        (b'{"code":7,"message":{"a":1}}', 7, 'the server sent an error without a message: {"a":1}'),
        (b"null", -32603, "the server sent an error without a message"),
        (b"[]", -32603, "the server sent an error without a message: []"),
        (b"{}", -32603, "the server sent an error without a message"),
    ],
)
def test_an_error_gets_the_code_and_text_that_clients_need(sent: bytes, code: int, message: str) -> None:
    mended = json.loads(jsonrpc.mend_error(sent))
    assert (mended["code"], mended["message"]) == (code, message)


def test_an_error_by_the_rules_keeps_its_bytes_and_a_mended_one_its_data() -> None:
    good = b'{ "code" : 1 , "message":"m","data":[1.0],"more":2}'
    assert jsonrpc.mend_error(good) == good
    assert json.loads(jsonrpc.mend_error(b'{"code":"1","message":"m","data":[1],"more":2}')) == {
        "code": 1,
        "message": "m",
        "data": [1],
        "more": 2,
    }


@pytest.mark.parametrize(
    ("sent", "cut"),
    [
        (b'{"a":[1,[2,[3]],{"b":{}}],"c":1}', b'{"a":[1,null,null],"c":1}'),
        (b'{"a":"[[[[","b":["]","\\"[[["]}', b'{"a":"[[[[","b":["]","\\"[[["]}'),
        (b"[[[[", b"[[null"),
        (b"1", b"1"),
    ],
)
def test_what_is_nested_too_deeply_is_cut(sent: bytes, cut: bytes) -> None:
    assert jsonrpc.cut_deep(sent, 2).startswith(cut)
