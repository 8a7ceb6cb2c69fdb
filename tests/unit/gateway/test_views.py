import json
from typing import Any, cast

import pytest
from msgspec import Raw

from polyplex.config.model import GatewayOptions, ServerConfig
from polyplex.errors import RpcError
from polyplex.gateway import views as module
from polyplex.gateway.builtins import Builtins
from polyplex.gateway.exposure import Exposure
from polyplex.gateway.profile import Profile
from polyplex.gateway.views import FULL, View
from polyplex.mux.entries import Naming
from polyplex.protocol.revisions import Era
from polyplex.upstreams.connection import Peer
from polyplex.upstreams.lists import DEFAULT_TTL_MS, Listing
from polyplex.upstreams.upstream import Events, Key, Upstream


def upstream(
    name: str, *tools: str, ttl: int | None = None, private: bool = False, says: str | None = None, **capabilities: Any
) -> Upstream:
    config = ServerConfig(name=name, kind="stdio")
    made = Upstream(config, Key(Era.MODERN, b"{}"), Naming(name, name, True), b"{}", cast("Events", None))
    raw = [json.dumps({"name": tool, "inputSchema": {"type": "object"}}).encode() for tool in tools]
    offered = {key: Raw(json.dumps(value).encode()) for key, value in capabilities.items()}
    made.serve_from({"tools": Listing(raw, ttl, private)}, Peer(Era.MODERN, "2026-07-28", offered, b"{}", says))
    return made


def unknown(name: str) -> Upstream:
    config = ServerConfig(name=name, kind="stdio")
    return Upstream(config, Key(Era.MODERN, b"{}"), Naming(name, name, True), b"{}", cast("Events", None))


def seen(upstreams: tuple[Upstream, ...]) -> View:
    return View(upstreams, Exposure(GatewayOptions(), Builtins().entries))


def page(view: View, cursor: str | None = None, era: Era = Era.MODERN) -> tuple[list[str], dict[str, Any]]:
    result = json.loads(view.page("tools/list", cursor, era))
    return [tool["name"] for tool in result.pop("tools")], result


@pytest.mark.parametrize("size", range(1, 6))
def test_all_pages_give_each_entry_once_in_order(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PAGE_ENTRIES", size)
    view = seen((upstream("b", "z", "a"), upstream("a", "y"), upstream("c"), upstream("d", "x")))
    names, rest = page(view)
    while "nextCursor" in rest:
        more, rest = page(view, rest["nextCursor"])
        assert 0 < len(more) <= size
        names += more
    assert names == ["b__z", "b__a", "a__y", "d__x"]


def test_pages_are_bounded_in_bytes_but_never_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PAGE_BYTES", 1)
    names, rest = page(seen((upstream("a", "x", "y"),)))
    assert names == ["a__x"]
    assert page(seen((upstream("a", "x", "y"),)), rest["nextCursor"])[0] == ["a__y"]


@pytest.mark.parametrize(
    ("later", "rest"),
    [
        (("p", "q", "r", "s"), ["r", "s"]),
        (("new", "p", "q", "r"), ["r"]),
        (("q", "r"), ["r"]),
        (("p", "r", "s", "t"), ["s", "t"]),
        ((), []),
    ],
)
def test_a_cursor_holds_while_the_list_changes(
    later: tuple[str, ...], rest: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PAGE_ENTRIES", 2)
    cursor = page(seen((upstream("a", "p", "q", "r"),)))[1]["nextCursor"]
    monkeypatch.setattr(module, "PAGE_ENTRIES", 100)
    assert page(seen((upstream("a", *later),)), cursor)[0] == [f"a__{name}" for name in rest]


def test_a_cursor_of_another_list_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PAGE_ENTRIES", 1)
    view = seen((upstream("a", "p", "q"),))
    cursor = page(view)[1]["nextCursor"]
    for method, given in (("prompts/list", cursor), ("tools/list", ""), ("tools/list", cursor[:-1])):
        with pytest.raises(RpcError) as caught:
            view.page(method, given, Era.MODERN)
        assert caught.value.code == -32602


@pytest.mark.parametrize(
    ("parts", "ttl", "scope"),
    [
        ([], 0, "public"),
        ([{"ttl": 5}], 5, "public"),
        ([{"ttl": 9000}, {"ttl": 5, "private": True}], 5, "private"),
        ([{"ttl": None}], DEFAULT_TTL_MS, "public"),
        ([{"ttl": 10**9}, {"ttl": None}], DEFAULT_TTL_MS, "public"),
    ],
)
def test_caching_is_that_of_the_most_careful_part(parts: list[Any], ttl: int, scope: str) -> None:
    view = seen(tuple(upstream(f"s{number}", "t", **part) for number, part in enumerate(parts)))
    _, rest = page(view)
    assert rest == {"resultType": "complete", "ttlMs": ttl, "cacheScope": scope}
    assert page(view, era=Era.LEGACY)[1] == {}


def test_a_server_that_is_not_known_yet_keeps_a_list_from_being_cached_and_counts_as_able() -> None:
    view = seen((upstream("a", "t", ttl=5, tools={}), unknown("b")))
    assert page(view)[1]["ttlMs"] == 0
    assert view.capabilities() == FULL


def test_capabilities_are_the_union_and_list_changes_are_always_ours() -> None:
    view = seen((upstream("a", tools={}, vendor={}), upstream("b", logging={}, prompts={"listChanged": False})))
    assert view.capabilities() == {name: FULL[name] for name in ("tools", "prompts", "logging")}
    assert seen(()).capabilities() == {"tools": {"listChanged": True}}


def test_extensions_are_merged() -> None:
    view = seen(
        (upstream("a", extensions={"x": {"a": 1}}), upstream("b", extensions={"y": {}}), upstream("c", extensions=7))
    )
    assert {name: bytes(raw) for name, raw in view.extensions("extensions").items()} == {"x": b'{"a": 1}', "y": b"{}"}


def test_instructions_are_under_the_name_of_their_server() -> None:
    assert seen((upstream("a", says="A"),)).instructions(Profile("all")) == "A"
    assert seen((upstream("a", says="A"), upstream("b"))).instructions(Profile("all")) == "# a\nA"
    assert seen((upstream("a", says="A"), upstream("b", says="B"))).instructions(Profile("all")) == "# a\nA\n\n# b\nB"
    assert seen((upstream("a"), unknown("b"))).instructions(Profile("all")) is None


def test_equal_lists_have_equal_digests() -> None:
    one, same = seen((upstream("a", "x"), upstream("b"))), seen((upstream("a", "x"),))
    other = seen((upstream("a", "y"),))
    assert one.digest("tools") == same.digest("tools") != other.digest("tools")
    assert one.digest("prompts") == other.digest("prompts")
