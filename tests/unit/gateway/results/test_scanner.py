"""A result taken apart in pieces of any size is the same result, and nothing else than a result is taken."""

import base64
import itertools
import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from polyplex.errors import RemoteProtocolError
from polyplex.gateway.results.scanner import MAX_KEPT_BYTES, Begin, Kind, Piece, Scanner

LIMIT = 160
SHORT = st.text(max_size=20) | st.text(alphabet='a"\\\n\té😀𝄞 ', max_size=20)
TEXT = SHORT | st.text(alphabet='a"\\\n\té😀𝄞 ', min_size=60, max_size=300)
BYTES = st.binary(max_size=60) | st.binary(min_size=150, max_size=300)
DATA = BYTES.map(lambda data: base64.b64encode(data).decode())
BLOCKS: st.SearchStrategy[Any] = (
    st.fixed_dictionaries({"type": st.just("text"), "text": TEXT})
    | st.fixed_dictionaries({"type": st.just("image"), "mimeType": st.just("image/png"), "data": DATA})
    | st.fixed_dictionaries(
        {"type": st.just("resource"), "resource": st.fixed_dictionaries({"uri": SHORT, "blob": DATA})}
    )
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda children: st.lists(children, max_size=4) | st.dictionaries(TEXT, children, max_size=4),
    max_leaves=12,
)
RESULTS: st.SearchStrategy[Any] = st.fixed_dictionaries(
    {},
    optional={
        "content": st.lists(BLOCKS | VALUES, max_size=4),
        "structuredContent": VALUES,
        "isError": st.booleans(),
        "_meta": st.dictionaries(SHORT, VALUES, max_size=3),
        "messages": st.lists(st.fixed_dictionaries({"role": st.just("user"), "content": BLOCKS}), max_size=2),
        "contents": st.lists(st.fixed_dictionaries({"uri": SHORT, "blob": DATA}), max_size=3),
        "other": VALUES,
    },
)
SIZES = st.lists(st.integers(1, 40), min_size=1, max_size=30)


class Taken:
    """A result taken apart."""

    def __init__(self, raw: bytes, sizes: list[int], limit: int = LIMIT) -> None:
        names = itertools.count()
        scanner = Scanner(limit, lambda: f"MARK{next(names)}")
        self.parts: dict[str, bytes] = {}
        self.begun: dict[str, Begin] = {}
        current, position = "", 0
        for size in itertools.cycle(sizes):
            for event in scanner.feed(raw[position : position + size]):
                if isinstance(event, Begin):
                    current = event.mark
                    self.begun[current], self.parts[current] = event, b""
                elif isinstance(event, Piece):
                    self.parts[current] += event.data
            position += size
            if position >= len(raw):
                break
        scanner.close()
        self.kept = bytes(scanner.kept)
        self.members = scanner.members

    def whole(self, value: Any) -> Any:
        """The value with each mark replaced by what it stands for."""
        if isinstance(value, str) and value in self.parts:
            kind, data = self.begun[value].kind, self.parts[value]
            if kind is Kind.DATA:
                return base64.b64encode(data).decode()
            return data.decode() if kind is Kind.TEXT else self.whole(json.loads(data))
        if isinstance(value, list):
            return [self.whole(each) for each in value]
        if isinstance(value, dict):
            return {key: self.whole(each) for key, each in value.items()}
        return value


@given(
    RESULTS,
    st.booleans(),
    st.sampled_from([None, 1]),
    SIZES,
    st.sampled_from([b"}", b" }\n"]),
    st.sampled_from([20, LIMIT]),
)
def test_the_parts_and_the_rest_are_the_result(
    result: Any, ascii_only: bool, indent: int | None, sizes: list[int], end: bytes, limit: int
) -> None:
    raw = json.dumps(result, ensure_ascii=ascii_only, indent=indent).encode()
    taken = Taken(raw + end, sizes, limit)
    assert taken.whole(json.loads(taken.kept)) == json.loads(raw)
    assert set(taken.members) == {mark for mark, begun in taken.begun.items() if begun.kind is Kind.JSON}


@given(RESULTS, st.integers(0, 400), st.binary(max_size=4), SIZES)
def test_what_msgspec_refuses_is_refused(result: Any, at: int, junk: bytes, sizes: list[int]) -> None:
    raw = json.dumps(result, ensure_ascii=False).encode() + b"}"
    at %= len(raw)
    raw = raw[:at] + junk + raw[at + 1 :]
    try:
        taken = Taken(raw, sizes)
        msgspec.json.decode(taken.kept)
        for mark, begun in taken.begun.items():
            if begun.kind is Kind.JSON:
                msgspec.json.decode(taken.parts[mark])
    except (RemoteProtocolError, msgspec.DecodeError) as error:
        assert not is_result(raw) or "base64" in str(error)
    else:
        assert is_result(raw)


def is_result(raw: bytes) -> bool:
    body = raw.rstrip(b" \t\r\n")
    try:
        body.decode()
        return body[-1:] == b"}" and isinstance(msgspec.json.decode(body[:-1]), dict)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False


def text_result(text: str) -> bytes:
    return json.dumps({"content": [{"type": "text", "text": text}]}).encode() + b"}"


@pytest.mark.parametrize("size", range(1, 9))
def test_surrogate_pairs_are_never_cut(size: int) -> None:
    taken = Taken(text_result("😀" * 80), [size])
    assert taken.parts["MARK0"].decode() == "😀" * 80


def test_half_a_pair_becomes_a_replacement() -> None:
    raw = text_result("x" * 300).replace(b"xx", b"\\ud83d", 1).replace(b"xxxx", b"\\ude00 ", 1)
    taken = Taken(raw, [3])
    assert taken.parts["MARK0"].decode().startswith("😀 x")
    assert Taken(raw.replace(b"\\ude00", b""), [3]).parts["MARK0"].decode().startswith("\ufffd x")


def test_what_was_declared_before_is_told() -> None:
    block = {"type": "image", "mimeType": "image/png", "data": base64.b64encode(b"x" * 300).decode()}
    taken = Taken(json.dumps({"content": [block, {"type": "text", "text": "y" * 300}]}).encode() + b"}", [7])
    assert [begun.media_type for begun in taken.begun.values()] == ["image/png", None]
    assert taken.parts["MARK0"] == b"x" * 300


def test_data_in_the_alphabet_of_urls_and_without_its_end() -> None:
    data = bytes(range(256))
    text = base64.urlsafe_b64encode(data).decode().rstrip("=")
    for size in (1, 5, 1000):
        taken = Taken(json.dumps({"contents": [{"uri": "a:b", "blob": text}]}).encode() + b"}", [size])
        assert taken.parts["MARK0"] == data


@pytest.mark.parametrize("text", ["=" + "A" * 400, "A" * 401, "A!" * 200, "AA==" * 100])
def test_data_that_is_no_base64(text: str) -> None:
    with pytest.raises(RemoteProtocolError, match="base64"):
        Taken(json.dumps({"contents": [{"uri": "a:b", "blob": text}]}).encode() + b"}", [5])


def test_many_small_contents_go_out_as_one() -> None:
    content = [{"type": "text", "text": str(number)} for number in range(50)]
    taken = Taken(json.dumps({"content": content, "isError": True}).encode() + b"}", [11])
    assert json.loads(taken.kept) == {"content": "MARK0", "isError": True}
    assert taken.members == {"MARK0": "content"}


def test_what_is_no_content_has_a_bound() -> None:
    members = b",".join(b'"k%d":1' % number for number in range(MAX_KEPT_BYTES // 8))
    with pytest.raises(RemoteProtocolError, match="too much"):
        Taken(b"{" + members + b"}}", [1 << 16], limit=1 << 16)


@pytest.mark.parametrize("raw", [b"", b"{", b"{}", b"[]}", b"{}}}", b'{"content":[}}', b'{"a":"\xff"}}', b"1}"])
def test_no_result(raw: bytes) -> None:
    with pytest.raises((RemoteProtocolError, msgspec.DecodeError)):
        msgspec.json.decode(Taken(raw, [100]).kept)
