import pytest

from polyplex.errors import RpcError
from polyplex.mux.entries import KEY_OF, Entry, Naming, read_entry
from polyplex.mux.router import Listed, Routes

NOT_FOUND = -32002


def entry(server: str, key: str, local: str | None = None) -> Entry:
    return Entry(server, key if local is None else local, key, b"{}")


def routes(*, prefix: bool, servers: dict[str, dict[str, list[str]]], readers: list[str] | None = None) -> Routes:
    """Routes over servers given as the local keys of each kind."""
    namings = [Naming(server, server, prefix) for server in servers]
    lists: dict[str, list[Entry]] = {kind: [] for kind in KEY_OF}
    for naming in namings:
        for kind, keys in servers[naming.server].items():
            for key in keys:
                raw = f'{{"{KEY_OF[kind]}":"{key}","inputSchema":{{"type":"object"}}}}'
                made = read_entry(kind, raw.encode(), naming)
                assert isinstance(made, Entry)
                lists[kind].append(made)
    return Routes(lists, namings, list(servers) if readers is None else readers)


def code_of(error: pytest.ExceptionInfo[RpcError]) -> int:
    return error.value.code


def test_entries_stay_in_order_and_the_first_of_equals_of_one_server_counts() -> None:
    first, second = entry("a", "x", "1"), entry("a", "x", "2")
    listed = Listed([entry("b", "z"), first, second, entry("a", "y")])
    assert [found.key for found in listed.entries] == ["z", "x", "y"]
    assert listed.find("tool", "x") is first


def test_a_key_of_several_servers_belongs_to_none_and_each_is_named_once() -> None:
    listed = Listed(
        [entry("a", "x"), entry("a", "y"), entry("b", "x"), entry("b", "x"), entry("c", "x"), entry("a", "x")]
    )
    assert [found.key for found in listed.entries] == ["y"]
    assert listed.collisions == {"x": ["a", "b", "c"]}
    with pytest.raises(RpcError, match="'a' and 'b' and 'c'") as caught:
        listed.find("tool", "x")
    assert code_of(caught) == -32602


def test_an_unknown_key_is_invalid_params() -> None:
    with pytest.raises(RpcError, match="unknown tool: nope") as caught:
        Listed([]).find("tool", "nope")
    assert code_of(caught) == -32602


TWO = {
    "a": {
        "tools": ["t", "only"],
        "prompts": ["p"],
        "resources": ["file:///x", "ui://v"],
        "resourceTemplates": ["db://{id}"],
    },
    "b": {
        "tools": ["t"],
        "prompts": ["p"],
        "resources": ["file:///x", "mem:b"],
        "resourceTemplates": ["db://{id}", "q://{+z}"],
    },
}


def test_with_prefixes_everything_of_both_servers_is_reachable() -> None:
    found = routes(prefix=True, servers=TWO)
    assert [len(found.listed(kind).entries) for kind in KEY_OF] == [3, 2, 4, 3]
    for server in TWO:
        assert found.tool(f"{server}__t")[:2] == (server, "t")
        assert found.prompt(f"{server}__p")[:2] == (server, "p")
        target = found.resource(f"{server}+file:///x", NOT_FOUND)
        assert target[:2] == (server, "file:///x")
        assert target.entry is found.resources.by_key[f"{server}+file:///x"]
        assert found.template(f"{server}+db://{{id}}")[:2] == (server, "db://{id}")
    assert found.resource("ui://a/v", NOT_FOUND)[:2] == ("a", "ui://v")


def test_a_public_uri_that_is_not_listed_goes_to_its_server_all_the_same() -> None:
    target = routes(prefix=True, servers=TWO).resource("b+anything at all", NOT_FOUND)
    assert target == ("b", "anything at all", None)


@pytest.mark.parametrize("name", ["t", "c__t", "A__t", "a__T", ""])
def test_with_prefixes_other_names_are_unknown(name: str) -> None:
    found = routes(prefix=True, servers=TWO)
    for find in (found.tool, found.prompt):
        with pytest.raises(RpcError) as caught:
            find(name)
        assert code_of(caught) == -32602


@pytest.mark.parametrize("prefix", [True, False])
def test_a_raw_uri_goes_to_the_one_server_that_lists_it(prefix: bool) -> None:
    target = routes(prefix=prefix, servers=TWO).resource("mem:b", NOT_FOUND)
    assert target[:2] == ("b", "mem:b")
    assert target.entry is not None and target.entry.local == "mem:b"


@pytest.mark.parametrize("prefix", [True, False])
def test_a_raw_uri_of_two_servers_is_an_error_that_names_both(prefix: bool) -> None:
    with pytest.raises(RpcError, match="'a' and 'b'") as caught:
        routes(prefix=prefix, servers=TWO).resource("file:///x", NOT_FOUND)
    assert code_of(caught) == -32602


def test_a_raw_uri_goes_by_template_else_to_the_only_reader() -> None:
    found = routes(prefix=False, servers=TWO)
    assert found.resource("q://1", NOT_FOUND) == ("b", "q://1", None)
    only = routes(prefix=False, servers=TWO, readers=["a"])
    assert only.resource("other:1", NOT_FOUND) == ("a", "other:1", None)


@pytest.mark.parametrize("uri", ["other:1", "db://1", ""])
@pytest.mark.parametrize("code", [-32002, -32602])
def test_a_raw_uri_that_nobody_alone_can_have_is_not_found(uri: str, code: int) -> None:
    with pytest.raises(RpcError, match="not found") as caught:
        routes(prefix=False, servers=TWO).resource(uri, code)
    assert code_of(caught) == code


def test_nothing_is_found_where_nobody_has_resources() -> None:
    with pytest.raises(RpcError) as caught:
        routes(prefix=True, servers=TWO, readers=[]).resource("other:1", NOT_FOUND)
    assert code_of(caught) == NOT_FOUND


def test_a_completion_reference_is_a_template_or_a_uri_in_either_form() -> None:
    found = routes(prefix=True, servers=TWO)
    assert found.template("b+q://{+z}")[:2] == ("b", "q://{+z}")
    assert found.template("q://{+z}")[:2] == ("b", "q://{+z}")
    assert found.template("a+not/listed/{x}") == ("a", "not/listed/{x}", None)
    assert found.template("mem:b")[:2] == ("b", "mem:b")
    for text in ("db://{id}", "file:///x"):
        with pytest.raises(RpcError) as caught:
            found.template(text)
        assert code_of(caught) == -32602


def test_bare_names_that_collide_are_errors_and_the_rest_works() -> None:
    found = routes(prefix=False, servers=TWO)
    assert found.tool("only")[:2] == ("a", "only")
    with pytest.raises(RpcError, match='set "naming": "prefix"'):
        found.tool("t")
    assert set(found.tools.collisions) == {"t"}
