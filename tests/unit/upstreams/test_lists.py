import asyncio
from typing import Any

import pytest
from msgspec import Raw

from polyplex.errors import RpcError, UpstreamError
from polyplex.mux.entries import Naming
from polyplex.protocol.revisions import Era
from polyplex.upstreams import lists as module
from polyplex.upstreams.connection import Peer
from polyplex.upstreams.handshake import Identity
from polyplex.upstreams.lists import DEFAULT_TTL_MS, Listing, fetch_list, offers
from polyplex.upstreams.offers import Offers
from polyplex.upstreams.patterns import Patterns
from tests.unit.upstreams.wire import Json, Wire, within

IDENTITY = Identity(b"{}", b"{}")


async def listing(*pages: Json, era: Era = Era.LEGACY) -> tuple[Listing, list[Json]]:
    """The list that these pages make, and the params they were asked for with."""
    wire = Wire()
    wire.connection.peer = Peer(era, "2026-07-28", {}, b"{}", None)
    task = asyncio.get_running_loop().create_task(fetch_list(wire.connection, "tools/list", IDENTITY))
    for count, page in enumerate(pages, 1):
        message = await wire.sends("tools/list", count)
        wire.say(id=message["id"], **(page if "error" in page else {"result": page}))
    return await within(task), [message["params"] for message in wire.sent]


def page(*names: int, **members: Any) -> Json:
    return {"tools": list(names), **members}


async def test_pages_are_joined_in_order_and_an_empty_cursor_is_one() -> None:
    found, params = await listing(page(1, nextCursor=""), page(2, nextCursor="x"), page(3, nextCursor=None))
    assert found == Listing([b"1", b"2", b"3"])
    assert params == [{}, {"cursor": ""}, {"cursor": "x"}]


async def test_pages_before_one_that_fails_are_kept_and_the_failure_is_told() -> None:
    found, _ = await listing(page(1, nextCursor="a"), page(2, nextCursor="b"), {"error": {"code": 7, "message": "no"}})
    assert found.entries == [b"1", b"2"]
    assert found.failure is not None and "page 3 failed: no" in found.failure


async def test_the_rest_of_a_list_that_is_cut_short_is_set_aside() -> None:
    made = Offers(Naming("s", "s", True), Patterns(("*",), ()))
    tool = b'{"name":"t","inputSchema":{"type":"object"}}'
    made.store("tools", Listing([tool], failure="it broke"), modern_http=False)
    assert [entry.key for entry in made.lists["tools"]] == ["s__t"]
    assert [(item.name, item.reason) for item in made.set_aside] == [("the rest of tools", "it broke [tools]")]
    made.store("tools", Listing([tool]), modern_http=False)
    assert made.set_aside == []


async def test_entries_stay_as_they_came_and_equal_ones_count_once() -> None:
    found, _ = await listing({"tools": [{"a": 1.50}, {"a": 1.50}, "é"]})
    assert found.entries == [b'{"a": 1.5}', b'"\\u00e9"']


async def test_modern_servers_get_an_envelope_and_give_caching() -> None:
    found, params = await listing(
        page(1, nextCursor="c", ttlMs=500, cacheScope="public"), page(2, ttlMs=-3), era=Era.MODERN
    )
    assert (found.ttl_ms, found.private) == (0, False)
    assert all("io.modelcontextprotocol/protocolVersion" in each["_meta"] for each in params)


@pytest.mark.parametrize(
    ("members", "ttl", "private"),
    [
        ({}, None, False),
        ({"ttlMs": 7, "cacheScope": "private"}, 7, True),
        ({"ttlMs": "soon", "cacheScope": "everyone"}, DEFAULT_TTL_MS, True),
        ({"ttlMs": 1.5}, DEFAULT_TTL_MS, False),
    ],
)
async def test_caching_that_makes_no_sense_is_read_with_care(members: Json, ttl: int | None, private: bool) -> None:
    found, _ = await listing(page(1, **members))
    assert (found.ttl_ms, found.private) == (ttl, private)


async def test_a_cursor_that_comes_again_ends_the_list() -> None:
    found, params = await listing(page(1, nextCursor="c"), page(2, nextCursor="c"))
    assert found.entries == [b"1", b"2"]
    assert len(params) == 2


async def test_a_list_without_end_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_PAGES", 3)
    found, _ = await listing(*(page(number, nextCursor=str(number)) for number in range(3)))
    assert found.entries == [b"0", b"1", b"2"]
    monkeypatch.setattr(module, "MAX_ENTRIES", 1)
    found, _ = await listing(page(1, 2, nextCursor="c"))
    assert found.entries == [b"1", b"2"]


async def test_a_missing_method_is_an_empty_list_but_other_errors_are_errors() -> None:
    found, _ = await listing({"error": {"code": -32601, "message": "no"}})
    assert found == Listing([])
    with pytest.raises(RpcError):
        await listing({"error": {"code": -32603, "message": "no"}})


async def test_what_is_no_list_is_an_error() -> None:
    for wrong in ({"tools": 7}, {"tools": None}, {"tools": {}}):
        with pytest.raises(UpstreamError, match="gave no list"):
            await listing(wrong)
    assert (await listing({}))[0] == Listing([])


async def test_only_declared_lists_are_asked_for() -> None:
    connection = Wire().connection
    assert not offers(connection, "tools/list")
    connection.peer = Peer(Era.LEGACY, "2025-11-25", {"resources": Raw(b"{}")}, b"{}", None)
    methods = ("tools/list", "prompts/list", "resources/list", "resources/templates/list")
    assert [offers(connection, method) for method in methods] == [False, False, True, True]
