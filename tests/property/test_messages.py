"""Properties of the envelope decoder: total, exact, and of one mind with the standard library on what it accepts."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET, Raw

from polyplex.errors import RemoteProtocolError
from polyplex.protocol import jsonrpc
from polyplex.protocol.jsonrpc import Message

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)
WHITESPACE = st.text(" \t\r\n", max_size=3)
KEYS = ["jsonrpc", "id", "method", "params", "result", "error"]


@st.composite
def spellings(draw: st.DrawFn, value: Any) -> str:
    """One of the many JSON texts of a value."""
    space = [draw(WHITESPACE) for _ in range(3)]
    ascii_only = draw(st.booleans())
    return json.dumps(value, ensure_ascii=ascii_only, separators=(space[0] + "," + space[1], space[1] + ":" + space[2]))


@st.composite
def key_spellings(draw: st.DrawFn, key: str) -> str:
    """A key with some of its characters escaped."""
    escaped = [f"\\u{ord(letter):04x}" if draw(st.booleans()) else letter for letter in key]
    return '"' + ("".join(escaped) if draw(st.booleans()) else key) + '"'


IDS = (st.integers() | TEXT).flatmap(spellings)
RAW_VALUES = VALUES.flatmap(spellings)


@st.composite
def members(draw: st.DrawFn) -> list[tuple[str, str]]:
    """Members of an envelope in any order, most of them in their place."""
    names = draw(st.lists(st.sampled_from(KEYS), max_size=7))
    made: list[tuple[str, str]] = []
    for name in names:
        value = draw(IDS | st.just("null")) if name == "id" else draw(RAW_VALUES)
        if name == "jsonrpc":
            value = '"2.0"'
        elif name == "method":
            value = draw(TEXT.flatmap(spellings))
        made.append((name, value))
    made += [(draw(TEXT), draw(RAW_VALUES)) for _ in range(draw(st.integers(0, 1)))]
    return draw(st.permutations(made))


@st.composite
def envelopes(draw: st.DrawFn, pairs: list[tuple[str, str]]) -> bytes:
    """The text of an object with the given members."""
    space = [draw(WHITESPACE) for _ in range(4)]
    spelled = [
        (draw(key_spellings(key)) if key in KEYS else json.dumps(key)) + space[0] + ":" + space[1] + value
        for key, value in pairs
    ]
    return (space[2] + "{" + (space[3] + "," + space[0]).join(spelled) + "}" + space[1]).encode()


def raw(value: Any) -> bytes | None:
    return bytes(value) if isinstance(value, Raw) else None


def standard(text: str | bytes) -> Any:
    """What the standard library reads, numbers as they are written."""

    def refuse(name: str) -> None:
        raise ValueError(name)

    return json.loads(text, parse_int=str, parse_float=str, parse_constant=refuse)


def decode(frame: bytes) -> Message | None:
    try:
        return jsonrpc.decode(frame)
    except RemoteProtocolError as error:
        assert error.code in (jsonrpc.PARSE_ERROR, jsonrpc.INVALID_REQUEST)
        assert error.id == b"null" or isinstance(json.loads(error.id), int | float | str)
        return None


@given(st.binary() | st.binary().map(lambda data: b'{"jsonrpc":"2.0","id":1,"method":"m","params":%b}' % data))
def test_bytes_of_any_kind_are_decoded_or_refused(data: bytes) -> None:
    message = decode(data)
    if message is not None:
        assert isinstance(standard(data), dict)


@given(
    st.binary() | st.text().map(lambda text: text.encode("utf-8", "surrogatepass")), st.sampled_from([b"", b"[", b" ["])
)
def test_frames_and_parts_of_any_kind_are_decoded_or_refused(data: bytes, start: bytes) -> None:
    for read in (jsonrpc.decode_frame, jsonrpc.decode_fields, jsonrpc.decode_text, jsonrpc.refuse_duplicate_keys):
        try:
            read(start + data)
        except RemoteProtocolError as error:
            assert error.code in (jsonrpc.PARSE_ERROR, jsonrpc.INVALID_REQUEST, jsonrpc.INVALID_PARAMS)
    assert isinstance(jsonrpc.decode_error(data).code, int)
    found = jsonrpc.find_id(data)
    assert found is None or found in data


@given(members().flatmap(lambda pairs: st.tuples(st.just(pairs), envelopes(pairs))))
def test_an_envelope_is_accepted_exactly_when_it_is_one(case: tuple[list[tuple[str, str]], bytes]) -> None:
    pairs, frame = case
    names = [name for name, _ in pairs]
    values = dict(pairs)
    outcomes = [name for name in ("result", "error") if values.get(name, "null") != "null"]
    answers = "result" in values or "error" in values
    legal = (
        len(set(names)) == len(names)
        and "jsonrpc" in values
        and ("method" in values) is not answers
        and (values.get("id") != "null" or answers)
        and len(outcomes) < 2
    )
    message = decode(frame)
    assert (message is not None) is legal
    if message is None:
        return
    assert raw(message.id) == (values["id"].encode() if "id" in values else None)
    assert message.method == (json.loads(values["method"]) if "method" in values else UNSET)
    assert raw(message.params) == (values["params"].encode() if "params" in values else None)
    for name in outcomes:
        assert raw(getattr(message, name)) == values[name].encode()


REPEATABLE = st.just("id") | st.sampled_from([*KEYS, "", "x", "vendor"])


@given(st.data(), REPEATABLE, st.booleans())
def test_a_repeated_key_is_refused_wherever_it_stands(data: st.DataObject, key: str, request: bool) -> None:
    pairs = [("jsonrpc", '"2.0"'), ("id", "1")] + ([("method", '"m"')] if request else [("result", "{}")])
    if request and data.draw(st.booleans()):
        pairs.append(("params", data.draw(RAW_VALUES)))
    small = {"jsonrpc": '"2.0"', "id": "2", "method": '"m"'}.get(key, "0")
    present = [name for name, _ in pairs]
    pairs += [(key, data.draw(st.sampled_from([small, '"a"']) if key == "id" else st.just(small)))]
    if key not in present:
        pairs += [(key, small)]
    spelled = data.draw(envelopes(data.draw(st.permutations(pairs))))
    assert decode(spelled) is None
    compact = "{" + ",".join(f'"{name}":{value}' for name, value in pairs) + "}"
    spaced = "{" + ", ".join(f'"{name}": {value}' for name, value in pairs) + "}"
    half = "{" + ",".join(f'"{name}": {value}' for name, value in pairs) + "}"
    for text in (compact, spaced, half):
        assert decode(text.encode()) is None


@given(IDS, TEXT, st.none() | RAW_VALUES, RAW_VALUES)
def test_what_is_encoded_decodes_to_the_same_bytes(
    identifier: str, method: str, params: str | None, value: str
) -> None:
    name, body = identifier.encode(), None if params is None else params.encode()
    request = jsonrpc.decode(jsonrpc.request(name, method, body))
    assert (raw(request.id), request.method, raw(request.params)) == (name, method, body)
    notification = jsonrpc.decode(jsonrpc.notification(method, body))
    assert (raw(notification.id), notification.method, raw(notification.params)) == (None, method, body)
    response = jsonrpc.decode(jsonrpc.response(name, value.encode()))
    assert (raw(response.id), raw(response.result)) == (name, value.encode())
    failure = jsonrpc.decode(jsonrpc.error_response(name, value.encode()))
    assert (raw(failure.id), raw(failure.error)) == (name, value.encode())


@given(st.integers(-(2**63), 2**63 - 1), TEXT, st.none() | RAW_VALUES)
def test_an_error_object_survives_the_wire(code: int, message: str, data: str | None) -> None:
    encoded = jsonrpc.error_object(code, message, None if data is None else data.encode())
    error = jsonrpc.decode_error(encoded)
    assert (error.code, error.message, raw(error.data)) == (code, message, None if data is None else data.encode())


@given(st.lists(RAW_VALUES, min_size=1, max_size=5), WHITESPACE)
def test_a_batch_comes_apart_into_the_bytes_it_was_made_of(parts: list[str], space: str) -> None:
    frame = f"{space}[{space}" + f"{space},".join(parts) + "]"
    assert jsonrpc.decode_frame(frame.encode()) == [part.encode() for part in parts]


@given(st.dictionaries(TEXT, RAW_VALUES, max_size=6), st.data())
def test_fields_keep_the_bytes_of_every_value(fields: dict[str, str], data: st.DataObject) -> None:
    frame = data.draw(envelopes(list(fields.items())))
    assert {key: bytes(value) for key, value in jsonrpc.decode_fields(frame).items()} == {
        key: value.encode() for key, value in fields.items()
    }


@given(st.dictionaries(TEXT, RAW_VALUES, max_size=4), TEXT, RAW_VALUES, st.data())
def test_params_are_refused_exactly_when_a_key_is_repeated(
    fields: dict[str, str], extra: str, value: str, data: st.DataObject
) -> None:
    key = data.draw(st.sampled_from([*fields, extra]))
    pairs = data.draw(st.permutations([*fields.items(), (key, value)]))
    spelled = data.draw(envelopes(pairs))
    compact = ("{" + ",".join(f"{json.dumps(name)}:{text}" for name, text in pairs) + "}").encode()
    for frame in (spelled, compact):
        try:
            read = jsonrpc.decode_params(frame)
        except RemoteProtocolError as error:
            assert key in fields and error.code == jsonrpc.INVALID_PARAMS
        else:
            assert key not in fields and len(read) == len(pairs)


@given(st.text(), RAW_VALUES)
def test_texts_with_half_surrogates_are_mended_and_nothing_else_is(text: str, value: str) -> None:
    spelled = json.dumps(text)
    frame = f'{{"jsonrpc":"2.0","id":1,"result":[{spelled},{value}]}}'.encode()
    message = jsonrpc.decode(frame)
    found = raw(message.result)
    assert found is not None and len(found) == len(spelled) + len(value.encode()) + 3
    # The standard library joins pairs, so what is left of the surrogates has no partner.
    mended = "".join("\ufffd" if "\ud800" <= letter <= "\udfff" else letter for letter in json.loads(spelled))
    assert json.loads(found)[0] == mended
    if mended == text:
        assert found == f"[{spelled},{value}]".encode()


@given(RAW_VALUES)
def test_one_line_keeps_the_meaning(value: str) -> None:
    line = jsonrpc.one_line(value.encode())
    assert not {b"\n"[0], b"\r"[0]} & set(line)
    assert standard(line) == standard(value)
