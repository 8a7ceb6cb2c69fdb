import json
from typing import Any

import pytest

from polyplex.mux.entries import KEY_OF, Entry, Naming, SetAside, read_entry
from polyplex.mux.names import LEGAL

PREFIX = Naming("docs", "docs", True)
BARE = Naming("docs", "docs", False)
SCHEMA = '"inputSchema":{"type":"object"}'


def offered(kind: str, raw: str | bytes, naming: Naming = PREFIX, *, modern_http: bool = False) -> Entry:
    entry = read_entry(kind, raw.encode() if isinstance(raw, str) else raw, naming, modern_http=modern_http)
    assert isinstance(entry, Entry), entry
    return entry


def set_aside(kind: str, raw: str | bytes, naming: Naming = PREFIX, *, modern_http: bool = False) -> SetAside:
    entry = read_entry(kind, raw.encode() if isinstance(raw, str) else raw, naming, modern_http=modern_http)
    assert isinstance(entry, SetAside), entry
    assert entry.reason
    return entry


def test_a_tool_is_renamed_and_remembers_its_origin() -> None:
    entry = offered("tools", '{"name":"a.b","title":"T","inputSchema":{"type":"object","x":1.0},"vendor":{ "k":[1 ]}}')
    assert (entry.server, entry.local) == ("docs", "a.b")
    assert LEGAL.fullmatch(entry.key)
    assert (
        entry.raw
        == (
            f'{{"name":"{entry.key}","title":"T","inputSchema":{{"type":"object","x":1.0}},"vendor":{{ "k":[1 ]}},'
            '"_meta":{"polyplex/server":"docs","polyplex/name":"a.b"}}'
        ).encode()
    )


@pytest.mark.parametrize(
    ("kind", "raw", "key"),
    [
        ("prompts", '{"name":"p","arguments":[{"name":"p"}]}', "docs__p"),
        ("resources", '{"uri":"file:///a","name":"a"}', "docs+file:///a"),
        ("resources", '{"uri":"ui://a/b","name":"a"}', "ui://docs/a/b"),
        ("resourceTemplates", '{"uriTemplate":"file:///{+p}","name":"t"}', "docs+file:///{+p}"),
    ],
)
def test_every_kind_gets_its_public_key(kind: str, raw: str, key: str) -> None:
    entry = offered(kind, raw)
    before, after = json.loads(raw), json.loads(entry.raw)
    meta = after.pop("_meta")
    assert entry.key == key == after.pop(KEY_OF[kind])
    assert meta == {
        "polyplex/server": "docs",
        "polyplex/name" if kind == "prompts" else "polyplex/uri": before.pop(KEY_OF[kind]),
    }
    assert before == after


@pytest.mark.parametrize("kind", KEY_OF)
def test_with_bare_names_an_entry_stays_as_it_came(kind: str) -> None:
    raw = f'{{ "{KEY_OF[kind]}": "x/y",  "n":1.0, "inputSchema": {{"type":"object"}} }}'
    entry = offered(kind, raw, BARE)
    assert (entry.key, entry.local, entry.raw) == ("x/y", "x/y", raw.encode())


def test_meta_of_the_server_is_kept() -> None:
    entry = offered("prompts", '{"name":"p","_meta":{"v/x":[ 1 ],"polyplex/server":"forged"}}')
    assert b'"v/x":[ 1 ]' in entry.raw
    assert json.loads(entry.raw)["_meta"]["polyplex/server"] == "docs"


@pytest.mark.parametrize("meta", ["[]", "1", '"x"'])
def test_meta_that_is_no_object_gives_way(meta: str) -> None:
    assert json.loads(offered("prompts", f'{{"name":"p","_meta":{meta}}}').raw)["_meta"]["polyplex/name"] == "p"


def test_links_to_apps_follow_their_resources() -> None:
    """MCP Apps: a tool names its view in `_meta.ui.resourceUri`, older ones in `_meta["ui/resourceUri"]`."""
    raw = f'{{"name":"t",{SCHEMA},"_meta":{{"ui/resourceUri":"ui://v","ui":{{"resourceUri":"ui://v","csp":[ 1 ]}}}}}}'
    meta = json.loads(offered("tools", raw).raw)["_meta"]
    assert meta["ui/resourceUri"] == "ui://docs/v"
    assert meta["ui"] == {"resourceUri": "ui://docs/v", "csp": [1]}
    resource = offered("resources", '{"uri":"ui://v","name":"v"}')
    assert resource.key == meta["ui"]["resourceUri"]


@pytest.mark.parametrize(
    "meta", ['{"ui":1,"ui/resourceUri":2}', '{"ui":{}}', '{"ui":{"resourceUri":null}}', '{"ui":[]}']
)
def test_odd_links_to_apps_are_left_alone(meta: str) -> None:
    after = json.loads(offered("tools", f'{{"name":"t",{SCHEMA},"_meta":{meta}}}').raw)["_meta"]
    assert {key: after[key] for key in json.loads(meta)} == json.loads(meta)


@pytest.mark.parametrize("naming", [PREFIX, BARE])
def test_null_members_are_dropped(naming: Naming) -> None:
    raw = f'{{"name":"t","title":null,"description":null,{SCHEMA},"annotations":null,"outputSchema":null,"_meta":null}}'
    assert b"null" not in offered("tools", raw, naming).raw
    nested = '{"name":"t","inputSchema":{"type":null,"properties":null,"required":null,"default":null}}'
    schema = json.loads(offered("tools", nested, naming).raw)["inputSchema"]
    assert schema == {"type": "object", "default": None}


def test_a_schema_without_a_type_is_completed() -> None:
    entry = offered("tools", '{"name":"t","inputSchema":{"properties":{"a":{ }},"$defs":{ "b":1.0}}}', BARE)
    assert entry.raw == b'{"name":"t","inputSchema":{"type":"object","properties":{"a":{ }},"$defs":{ "b":1.0}}}'


@pytest.mark.parametrize("output", ["1", '"x"', "[]", "true"])
def test_an_unusable_output_schema_is_dropped(output: str) -> None:
    entry = offered("tools", f'{{"name":"t",{SCHEMA},"outputSchema":{output}}}', BARE)
    assert json.loads(entry.raw) == {"name": "t", "inputSchema": {"type": "object"}}


@pytest.mark.parametrize(
    ("schema", "word"),
    [
        (None, "no inputSchema"),
        ("null", "no inputSchema"),
        ('"x"', "not an object"),
        ("[]", "not an object"),
        ("true", "not an object"),
        ('{"type":"string"}', "type"),
        ('{"type":5}', "type"),
        ('{"type":["object"]}', "type"),
        ('{"type":"object","properties":[]}', "properties"),
        ('{"type":"object","required":"a"}', "required"),
        ('{"type":"object","required":{}}', "required"),
    ],
)
def test_a_tool_without_a_usable_schema_is_set_aside(schema: str | None, word: str) -> None:
    raw = '{"name":"t"}' if schema is None else f'{{"name":"t","inputSchema":{schema}}}'
    aside = set_aside("tools", raw)
    assert (aside.server, aside.name) == ("docs", "t")
    assert word in aside.reason


@pytest.mark.parametrize(
    "raw", [b"null", b"[]", b"5", b"{}", b'{"name":5}', b'{"name":null}', b'{"name":""}', b'{"\xff":1}']
)
@pytest.mark.parametrize("kind", KEY_OF)
def test_an_entry_without_a_usable_key_is_set_aside(kind: str, raw: bytes) -> None:
    set_aside(kind, raw.replace(b"name", KEY_OF[kind].encode()))


@pytest.mark.parametrize(("levels", "fits"), [(97, True), (99, False), (900, False)])
def test_an_entry_nested_too_deeply_is_set_aside(levels: int, fits: bool) -> None:
    raw = f'{{"name":"t","inputSchema":{{"x":{"[" * levels}{"]" * levels}}},"y":"{"[" * 200}"}}'
    if fits:
        assert offered("tools", raw).local == "t"
    else:
        assert "nested" in set_aside("tools", raw).reason


@pytest.mark.parametrize("number", ["1e400", "9" * 5000, "18446744073709551616"])
def test_numbers_in_a_schema_are_carried_whatever_their_size(number: str) -> None:
    raw = f'{{"name":"t","inputSchema":{{"type":"object","properties":{{"n":{{"maximum":{number}}}}}}}}}'
    assert offered("tools", raw, BARE).raw == raw.encode()


def with_header(name: Any = "Region", kind: Any = "string") -> str:
    schema = {"type": "object", "properties": {"a": {"type": kind, "x-mcp-header": name}}}
    return json.dumps({"name": "t", "inputSchema": schema})


@pytest.mark.parametrize("modern_http", [True, False])
def test_param_headers_are_read(modern_http: bool) -> None:
    entry = offered("tools", with_header(), modern_http=modern_http)
    assert entry.headers == (("mcp-param-region", ("a",)),)
    assert offered("tools", f'{{"name":"t",{SCHEMA}}}').headers == ()


@pytest.mark.parametrize(
    ("name", "kind"), [("", "string"), ("a b", "string"), ("A", "number"), ("A", ["string", "null"])]
)
def test_broken_param_headers_cost_a_tool_its_place_over_modern_http_alone(name: str, kind: Any) -> None:
    assert "x-mcp-header" in set_aside("tools", with_header(name, kind), modern_http=True).reason
    assert offered("tools", with_header(name, kind)).headers == ()
