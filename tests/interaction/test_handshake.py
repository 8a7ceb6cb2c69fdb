"""Era detection against real processes: whoever answers first, late, wrongly or not at all (PROTOCOL: 1.6)."""

import re
from pathlib import Path
from typing import Any

import pytest

from polyplex.gateway import modern as modern_clients
from polyplex.upstreams import handshake, pool
from tests.interaction.scripted_http import scripted_http
from tests.interaction.stage import Json, Stage, eventually, stage

UNSUPPORTED = {"code": -32022, "message": "try another", "data": {"supported": ["2026-07-28"], "requested": "x"}}


def eras(on: Stage) -> set[str]:
    return {str(upstream.peer.era) for upstream in on.upstreams("a") if upstream.peer is not None}


@pytest.mark.parametrize("era", ["legacy", "modern", "dual"])
async def test_a_call_and_its_answer_whatever_the_eras(tmp_path: Path, era: str) -> None:
    async with stage(tmp_path, {"a": {"era": era}}) as on:
        legacy = await on.legacy()
        assert (await legacy.value("a__echo", x=1))["arguments"] == {"x": 1}
        assert (await on.modern().value("a__echo", x=1))["arguments"] == {"x": 1}
        assert len(on.pids("a")) == 1, "a client that cannot be asked shares the process"


@pytest.mark.parametrize("capabilities", [{}, {"sampling": {}}, {"roots": {}}])
async def test_a_modern_server_needs_one_session_for_all_clients(
    tmp_path: Path, capabilities: Json, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "REAP_SECONDS", 0.1)
    async with stage(tmp_path, {"a": {"era": "modern"}}) as on:
        for _ in range(2):
            client = await on.legacy(capabilities)
            await client.call("a__echo")
        assert eras(on) == {"modern"}
        await eventually(lambda: len(on.upstreams("a")) == 1)  # one that was opened to find out the era is closed again


async def test_a_dual_server_is_spoken_to_in_the_era_of_its_client(tmp_path: Path) -> None:
    async with stage(tmp_path, {"a": {"era": "dual"}}) as on:
        legacy = await on.legacy({"sampling": {}})
        journal = await legacy.value("a__journal")
        assert journal[0]["method"] == "initialize"
        assert journal[0]["params"]["capabilities"] == {"sampling": {}}
        modern = on.modern({"elicitation": {}})
        journal = await modern.value("a__journal")
        assert journal[0]["method"] == "server/discover"
        meta = journal[-1]["params"]["_meta"]
        assert meta["io.modelcontextprotocol/clientCapabilities"] == {"elicitation": {}}


QUIRKS: dict[str, Json] = {
    "the probe stays without an answer": {"era": "legacy", "silent": ["server/discover"]},
    "discover is answered after initialize": {"era": "dual", "late": True},
    "the probe ends the process": {"era": "legacy", "deadly": ["server/discover"]},
    "discover answers nonsense": {"era": "legacy", "broken": {"server/discover": {}}},
    "discover answers the wrong types": {"era": "legacy", "broken": {"server/discover": {"supportedVersions": "2026"}}},
    "discover answers a list of numbers": {"era": "legacy", "broken": {"server/discover": {"supportedVersions": [1]}}},
    "discover answers a later revision": {
        "era": "legacy",
        "broken": {"server/discover": {"supportedVersions": ["2030-01-01"]}},
    },
    "discover answers null": {"era": "legacy", "broken": {"server/discover": None}},
    "a refusal names a revision we speak": {"era": "modern", "refuseOnce": {"server/discover": UNSUPPORTED}},
    "a refusal has unusable data": {
        "era": "legacy",
        "refuse": {"server/discover": {"code": -32022, "message": "no", "data": {"supported": "all"}}},
    },
    "stdout begins with a banner": {"era": "dual", "stderr": ["starting up", "ready"]},
    "an old revision": {"era": "legacy", "revision": "2024-11-05"},
}


@pytest.mark.parametrize("quirk", QUIRKS)
async def test_the_era_is_found_in_spite_of(tmp_path: Path, quirk: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handshake, "PROBE_SECONDS", 0.2)
    async with stage(tmp_path, {"a": QUIRKS[quirk]}) as on:
        await on.up("a")
        client = await on.legacy()
        assert (await client.value("a__echo", x=1))["arguments"] == {"x": 1}
        assert (await on.modern().value("a__echo", x=2))["arguments"] == {"x": 2}


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_the_era_over_http(tmp_path: Path, era: str) -> None:
    async with scripted_http(era=era) as server, stage(tmp_path, {"a": {"url": server.url}}) as on:
        client = await on.legacy()
        assert (await client.value("a__echo", x=1))["arguments"] == {"x": 1}
        assert (await on.modern().value("a__echo", x=2))["arguments"] == {"x": 2}
        assert eras(on) == {era}


FAILURES: list[tuple[str, Json, str]] = [
    ("both eras refuse", {"era": "legacy", "refuse": {"initialize": {"code": 5, "message": "no guests"}}}, "no guests"),
    ("a revision nobody knows", {"era": "legacy", "revision": "1999-01-01"}, "1999-01-01"),
    ("both stay silent", {"silent": ["initialize", "server/discover"]}, "no handshake within 1 s"),
    ("it ends at once", {"exit": 4, "stderr": ["no such database"]}, "no such database"),
    ("supported, but refused all the same", {"era": "modern", "refuse": {"server/discover": UNSUPPORTED}}, "refuses"),
    ("initialize answers nonsense", {"era": "legacy", "broken": {"initialize": {}}}, "initialize|revision|expected"),
    ("initialize answers a list", {"era": "legacy", "broken": {"initialize": [1]}}, "initialize|object"),
]


@pytest.mark.parametrize(("what", "settings", "said"), FAILURES, ids=[failure[0] for failure in FAILURES])
async def test_a_handshake_that_fails_says_why(tmp_path: Path, what: str, settings: Json, said: str) -> None:
    assert what
    options: Any = {"servers": {"a": {"connectTimeoutSeconds": 1}}}
    async with stage(tmp_path, {"a": settings, "b": {}}, **options) as on:
        client = await on.legacy()
        await on.up("b")
        upstream = on.upstreams("a")[0]
        await eventually(lambda: upstream.error)

        assert upstream.error is not None
        assert re.search(said, upstream.error), upstream.error
        assert (await client.value("b__echo", x=1))["arguments"] == {"x": 1}


async def test_a_url_that_refuses_connections_says_so(tmp_path: Path) -> None:
    async with scripted_http() as server:
        url = server.url
    async with stage(tmp_path, {"a": {"url": url}, "b": {}}) as on:
        await on.up("b")
        (upstream,) = on.upstreams("a")
        await eventually(lambda: upstream.error)
        assert upstream.error is not None
        assert "127.0.0.1" in upstream.error


async def test_what_an_earlier_run_has_learned_does_not_decide_which_session_serves_a_client(tmp_path: Path) -> None:
    servers: dict[str, Json] = {"a": {"era": "legacy"}, "b": {"era": "modern"}}
    async with stage(tmp_path, servers):
        await eventually(lambda: len(list((tmp_path / "manifests").glob("*.json"))) == 4)
    async with stage(tmp_path, servers) as on:
        modern = on.modern({"sampling": {}})
        asked = await modern.call("a__ask", method="sampling/createMessage", params={"messages": [], "maxTokens": 1})
        assert asked["resultType"] == "input_required", "not through the session that declares nothing"
    async with stage(tmp_path, servers) as on:
        await on.up("b")
        legacy = await on.legacy({"sampling": {}})
        await legacy.call("b__echo")
        (used,) = [each for each in on.upstreams("b") if legacy.session.id in each.users]
        assert legacy.session.context.upstreams["b"] is used, "messages that belong to no call find their client"


@pytest.mark.parametrize("server", ["legacy", "modern"])
async def test_experimental_capabilities_reach_the_other_side(tmp_path: Path, server: str) -> None:
    experimental: Json = {"example.com/x": {"n": [1, "x"]}}
    capabilities: Json = {"tools": {}, "experimental": experimental, "extensions": {"example.com/y": {}}}
    async with stage(tmp_path, {"a": {"era": server, "capabilities": capabilities}}) as on:
        await on.up("a")
        legacy = await on.legacy({"experimental": experimental})
        modern = on.modern({"experimental": experimental})
        discovered = (await modern.request("server/discover"))["capabilities"]
        assert discovered["experimental"] == experimental
        assert discovered["extensions"] == {"example.com/y": {}}
        for client in (legacy, modern):
            journal = await client.value("a__journal")
            if server == "legacy":
                assert journal[0]["params"]["capabilities"] == {"experimental": experimental}
            else:
                meta = journal[-1]["params"]["_meta"]
                assert meta["io.modelcontextprotocol/clientCapabilities"] == {"experimental": experimental}


async def test_experimental_capabilities_open_sessions_within_bounds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(modern_clients, "MAX_SETS", 3)
    async with stage(tmp_path, {"a": {"era": "legacy"}}) as on:
        for number in range(5):
            client = on.modern({"sampling": {}, "experimental": {f"x{number}": {}}})
            journal = await client.value("a__journal")
            expected = {"sampling": {}} | ({"experimental": {f"x{number}": {}}} if number < 2 else {})
            assert journal[0]["params"]["capabilities"] == expected
        assert len(on.upstreams("a")) == 4
