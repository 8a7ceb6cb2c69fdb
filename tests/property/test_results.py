"""Properties of entries and rewritten results: what polyplex does not own keeps its bytes."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from polyplex.errors import RemoteProtocolError
from polyplex.mux.entries import KEY_OF, Entry, Naming, SetAside, read_entry
from polyplex.mux.rewrite import rewrite_result
from polyplex.mux.uris import split_uri

PREFIX = Naming("docs", "docs", True)
BARE = Naming("docs", "docs", False)
TEXT = st.text(st.characters(exclude_categories=["Cs"]))
NUMBERS = st.sampled_from(["0", "-0", "1.0", "1E5", "1e400", "12345678901234567890123", "0.1000"])
SCALARS = st.one_of(NUMBERS, st.sampled_from(["true", "false"]), TEXT.map(json.dumps), st.just('"\\/ \\u00e9"'))


def raw_object(pairs: list[tuple[str, str]]) -> str:
    return "{" + " , ".join(f"{json.dumps(key)} :{value}" for key, value in pairs) + "}"


RAW = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda items: "[ " + ",".join(items) + "]")
        | st.dictionaries(TEXT, inner, max_size=3).map(lambda value: raw_object(list(value.items())))
    ),
    max_leaves=8,
)
OWNED = {"name", "uri", "uriTemplate", "_meta", "inputSchema", "outputSchema"}
OTHERS = st.dictionaries(TEXT.filter(lambda key: key not in OWNED), RAW, max_size=4)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)


def raw_members(frame: bytes) -> dict[str, str]:
    """The members of an object as text, found without the code under test."""
    decoder = json.JSONDecoder()
    text = frame.decode()
    found: dict[str, str] = {}
    place = text.index("{") + 1
    while text[place:].lstrip()[0] != "}":
        place += len(text[place:]) - len(text[place:].lstrip(" ,"))
        key, place = decoder.raw_decode(text, place)
        place = text.index(":", place) + 1
        _, end = decoder.raw_decode(text, place)
        found[key] = text[place:end]
        place = end
    return found


@given(st.sampled_from(list(KEY_OF)), TEXT.filter(bool), OTHERS, st.sampled_from([PREFIX, BARE]))
def test_members_that_polyplex_does_not_own_keep_their_bytes_and_order(
    kind: str, key: str, others: dict[str, str], naming: Naming
) -> None:
    schema = [("inputSchema", '{ "type" :"object","x":1.0 }')] if kind == "tools" else []
    pairs = [*others.items(), (KEY_OF[kind], json.dumps(key)), *schema]
    raw = raw_object(pairs).encode()
    entry = read_entry(kind, raw, naming)
    assert isinstance(entry, Entry)
    assert entry.local == key
    if naming is BARE:
        assert (entry.key, entry.raw) == (key, raw)
        return
    after = raw_members(entry.raw)
    assert list(after) == [name for name, _ in pairs] + ["_meta"]
    assert {name: after[name] for name in others} == others
    assert json.loads(after[KEY_OF[kind]]) == entry.key
    if kind in ("resources", "resourceTemplates"):
        assert split_uri(entry.key, {"docs": "docs"}) == ("docs", key)


@given(
    st.sampled_from(list(KEY_OF)),
    st.binary()
    | JSON.map(lambda value: json.dumps(value).encode())
    | st.dictionaries(st.sampled_from([*OWNED, "type"]), JSON).map(lambda value: json.dumps(value).encode()),
    st.booleans(),
)
def test_an_entry_of_any_kind_is_offered_or_set_aside(kind: str, raw: bytes, modern_http: bool) -> None:
    for naming in (PREFIX, BARE):
        entry = read_entry(kind, raw, naming, modern_http=modern_http)
        assert isinstance(entry, Entry | SetAside)
        if isinstance(entry, Entry):
            assert isinstance(json.loads(entry.raw), dict)


SCHEMA_WORDS = st.sampled_from(["type", "properties", "required", "x-mcp-header", "object", "items", "a"])
SCHEMAS = st.recursive(
    st.none() | st.booleans() | SCHEMA_WORDS | st.integers(),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(SCHEMA_WORDS, inner, max_size=4),
    max_leaves=12,
)


@given(SCHEMAS, st.booleans())
def test_a_tool_that_is_offered_has_an_object_for_its_schema(schema: Any, modern_http: bool) -> None:
    entry = read_entry(
        "tools", json.dumps({"name": "t", "inputSchema": schema}).encode(), BARE, modern_http=modern_http
    )
    if isinstance(entry, Entry):
        offered = json.loads(entry.raw)["inputSchema"]
        assert offered["type"] == "object"
        assert isinstance(offered.get("properties", {}), dict)
        assert isinstance(offered.get("required", []), list)


URIS = TEXT | st.builds("{}{}".format, st.sampled_from(["ui://", "UI://", "file:///"]), TEXT)


@st.composite
def blocks(draw: st.DrawFn) -> tuple[str, list[str]]:
    """The text of a content block, and its parts that must not change."""
    others = draw(st.dictionaries(TEXT.filter(lambda key: key not in {"type", "uri", "resource"}), RAW, max_size=3))
    pairs = list(others.items())
    uri = json.dumps(draw(URIS))
    kind = draw(st.sampled_from(["text", "resource_link", "resource"]))
    if kind == "resource_link":
        pairs.append(("uri", uri))
    elif kind == "resource":
        pairs.append(("resource", raw_object([("uri", uri), ("text", draw(RAW))])))
    pairs.append(("type", json.dumps(kind)))
    return raw_object(draw(st.permutations(pairs))), list(others.values())


def private(value: Any) -> Any:
    """Undo what rewriting did to one block, by the public functions alone."""
    labels = {"docs": "docs"}

    def local(uri: str) -> str:
        split = split_uri(uri, labels)
        assert split is not None, uri
        return split[1]

    if value.get("type") == "resource_link":
        return value | {"uri": local(value["uri"])}
    if value.get("type") == "resource":
        return value | {"resource": value["resource"] | {"uri": local(value["resource"]["uri"])}}
    return value


@given(st.lists(blocks(), max_size=4), st.dictionaries(TEXT.filter(lambda key: key != "content"), RAW, max_size=3))
def test_only_uris_of_a_tool_result_change(content: list[tuple[str, list[str]]], others: dict[str, str]) -> None:
    others = {key: value for key, value in others.items() if key != "_meta"}
    raw = raw_object([*others.items(), ("content", "[" + " , ".join(text for text, _ in content) + "]")]).encode()
    changed = rewrite_result("tools/call", raw, PREFIX)
    before, after = json.loads(raw), json.loads(changed)
    assert [private(block) for block in after["content"]] == before["content"]
    if after == before:
        assert changed == raw
        return
    members = raw_members(changed)
    assert {name: members[name] for name in others} == others
    for _, kept in content:
        assert all(value.encode() in changed for value in kept)


@given(st.lists(st.tuples(URIS, RAW), max_size=4))
def test_only_uris_of_what_was_read_change(contents: list[tuple[str, str]]) -> None:
    items = [raw_object([("uri", json.dumps(uri)), ("text", text)]) for uri, text in contents]
    raw = raw_object([("contents", "[" + ",".join(items) + "]"), ("v", "1.0")]).encode()
    changed = rewrite_result("resources/read", raw, PREFIX)
    after = json.loads(changed)["contents"]
    assert [split_uri(item["uri"], {"docs": "docs"}) for item in after] == [("docs", uri) for uri, _ in contents]
    assert all(text.encode() in changed for _, text in contents)
    if not contents:
        assert changed == raw


@given(
    st.sampled_from(["tools/call", "prompts/get", "resources/read", "completion/complete"]),
    st.binary()
    | JSON.map(lambda value: json.dumps(value).encode())
    | st.dictionaries(
        st.sampled_from(["content", "contents", "messages", "_meta"]),
        st.recursive(
            st.sampled_from(["resource", "resource_link", 5, None]),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(st.sampled_from(["type", "uri", "resource", "resourceUri", "ui", "content"]), inner)
            ),
        ),
    ).map(lambda value: json.dumps(value).encode()),
)
def test_a_result_of_any_kind_is_rewritten_or_refused(method: str, result: bytes) -> None:
    try:
        changed = rewrite_result(method, result, PREFIX)
    except RemoteProtocolError:
        return
    assert changed == result or isinstance(json.loads(changed), dict)
    assert rewrite_result(method, result, BARE) is result
