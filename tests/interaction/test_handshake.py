"""Era detection against real processes: whoever answers first, late, wrongly or not at all (PROTOCOL: 1.6)."""

import re
from pathlib import Path
from typing import Any

import pytest

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
