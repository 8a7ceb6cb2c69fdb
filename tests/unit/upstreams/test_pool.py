"""Which clients share a session with a server (PROTOCOL: H2, H3)."""

from typing import Any, cast

import pytest

from polyplex.config.model import ServerConfig, ServerOptions
from polyplex.mux.entries import Naming
from polyplex.protocol.revisions import Era
from polyplex.upstreams.connection import Peer
from polyplex.upstreams.pool import Binding, ServerPool
from polyplex.upstreams.upstream import Events, Key

SAMPLING = b'{"sampling":{}}'
ROOTS = b'{"roots":{}}'


def server(kind: Any = "stdio", isolation: Any = "auto", **speaks: bool) -> ServerPool:
    config = ServerConfig(name="s", kind=kind, options=ServerOptions(isolation=isolation))
    made = ServerPool(config, Naming("s", "s", True), b"{}", cast("Events", None))
    made.speaks |= {Era(era): known for era, known in speaks.items()}
    return made


def legacy(capabilities: bytes = b"{}", session: str = "1") -> Binding:
    return Binding(Era.LEGACY, capabilities, session)


MODERN = Binding(Era.MODERN)
SHARED = Key(Era.MODERN, b"{}")


@pytest.mark.parametrize("kind", ["stdio", "http", "sse"])
def test_only_what_a_legacy_client_declared_is_ever_declared(kind: str) -> None:
    assert server(kind).key(legacy(SAMPLING)).capabilities == SAMPLING
    assert server(kind).key(MODERN).capabilities == b"{}"
    assert server(kind, modern=False).key(MODERN) == Key(Era.LEGACY, b"{}")


def test_modern_servers_are_told_with_each_request_so_all_share() -> None:
    spoken = server(modern=True, legacy=False)
    assert {spoken.key(binding) for binding in (MODERN, legacy(), legacy(SAMPLING), legacy(ROOTS))} == {SHARED}


def test_a_dual_server_has_a_session_for_each_set_of_capabilities() -> None:
    spoken = server("http", modern=True, legacy=True)
    keys = [spoken.key(binding) for binding in (MODERN, legacy(), legacy(SAMPLING), legacy(SAMPLING, "2"))]
    assert len(set(keys)) == 3
    assert keys[2] == keys[3]
    assert server("stdio", modern=True, legacy=True).key(legacy()) == SHARED, "no second process for nothing"


def test_roots_are_state_of_a_process_but_not_of_an_http_session() -> None:
    assert server().key(legacy(ROOTS, "1")) != server().key(legacy(ROOTS, "2"))
    assert server("http").key(legacy(ROOTS, "1")) == server("http").key(legacy(ROOTS, "2"))
    assert server(isolation="shared").key(legacy(ROOTS, "1")) == server(isolation="shared").key(legacy(ROOTS, "2"))


def test_isolation_by_session_and_by_caller() -> None:
    apart = server("http", "session")
    assert apart.key(legacy(session="1")) != apart.key(legacy(session="2"))
    callers = server("http", "caller")
    mine, yours = [Binding(Era.LEGACY, b"{}", "1", caller) for caller in ("me", "you")]
    assert callers.key(mine) != callers.key(yours)
    assert callers.key(mine) == callers.key(Binding(Era.LEGACY, b"{}", "2", "me"))


async def test_what_a_session_learns_of_the_eras() -> None:
    spoken = server()
    upstream = spoken.create(MODERN)
    upstream.peer = Peer(Era.LEGACY, "2025-11-25", {}, b"{}", None)
    assert spoken.learned(upstream) is None
    assert spoken.speaks == {Era.LEGACY: True, Era.MODERN: False}
    assert spoken.find(MODERN) is spoken.find(legacy()) is upstream
    assert spoken.find(legacy(SAMPLING)) is None


async def test_a_session_opened_for_one_client_serves_all_once_the_server_proves_modern() -> None:
    spoken = server()
    upstream = spoken.create(legacy(ROOTS))
    upstream.peer = Peer(Era.MODERN, "2026-07-28", {}, b"{}", None)
    assert spoken.learned(upstream) is None
    assert spoken.find(MODERN) is spoken.find(legacy(ROOTS, "2")) is upstream
    assert upstream.key == SHARED
    assert upstream.identity.capabilities == b"{}", "should it turn legacy, it claims nothing for others"


async def test_a_session_that_proves_superfluous_gives_way() -> None:
    spoken = server()
    first, second = spoken.create(MODERN), spoken.create(legacy(SAMPLING))
    for upstream in (first, second):
        upstream.peer = Peer(Era.MODERN, "2026-07-28", {}, b"{}", None)
    assert spoken.learned(first) is None
    assert spoken.learned(second) is first
    assert spoken.find(legacy(SAMPLING)) is first
