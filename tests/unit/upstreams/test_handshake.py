import asyncio
from typing import Any

import pytest

from polyplex.errors import UpstreamUnavailable
from polyplex.protocol.revisions import Era
from polyplex.upstreams import handshake
from polyplex.upstreams.connection import Peer
from polyplex.upstreams.handshake import Identity, open_session
from tests.unit.upstreams.wire import Json, Wire, within

IDENTITY = Identity(b'{"name":"polyplex"}', b'{"roots":{}}')
LEGACY: Json = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "l"}}
MODERN: Json = {
    "supportedVersions": ["2026-07-28"],
    "capabilities": {"prompts": {}},
    "instructions": "Read me.",
    "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "m"}},
}
REFUSED: Json = {"code": -32601, "message": "Method not found"}
OTHER_REVISION: Json = {"code": -32022, "message": "no", "data": {"supported": ["2031-01-01", "2026-07-28"]}}


def begin(wire: Wire, first: Era, seconds: float = 5) -> asyncio.Task[Peer]:
    return asyncio.get_running_loop().create_task(open_session(wire.connection, IDENTITY, first, seconds))


async def answer(wire: Wire, method: str, count: int = 1, **members: Any) -> Json:
    message = await wire.sends(method, count)
    wire.say(id=message["id"], **members)
    return message


async def test_a_legacy_handshake() -> None:
    wire = Wire()
    task = begin(wire, Era.LEGACY)
    message = await answer(wire, "initialize", result=LEGACY)
    peer = await within(task)
    assert (peer.era, peer.revision, peer.info, peer.instructions) == (Era.LEGACY, "2025-06-18", b'{"name": "l"}', None)
    assert message["params"]["capabilities"] == {"roots": {}}
    assert message["params"]["clientInfo"] == {"name": "polyplex"}
    assert [each["method"] for each in wire.sent] == ["initialize", "notifications/initialized"]
    assert wire.revision == "2025-06-18"


async def test_a_modern_handshake_sends_nothing_else() -> None:
    wire = Wire()
    task = begin(wire, Era.MODERN)
    message = await answer(wire, "server/discover", result=MODERN)
    peer = await within(task)
    assert (peer.era, peer.revision, peer.info) == (Era.MODERN, "2026-07-28", b'{"name": "m"}')
    assert peer.instructions == "Read me."
    assert message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] == "2026-07-28"
    assert [each["method"] for each in wire.sent] == ["server/discover"]
    assert wire.headers == [[("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", "server/discover")]]


@pytest.mark.parametrize(
    "refusal",
    [
        {"error": REFUSED},
        {"error": {"code": -32600, "message": "initialize first"}},
        {"error": {"code": 0, "message": ""}},
        {"error": {"code": -32022, "message": "no"}},
        {"error": {"code": -32022, "message": "no", "data": {"supported": ["2031-01-01"]}}},
        {"error": {"code": -32022, "message": "no", "data": []}},
        {"result": {}},
        {"result": []},
        {"result": None},
        {"result": {"supportedVersions": []}},
        {"result": {"supportedVersions": {"2026-07-28": 1}}},
        {"result": {"supportedVersions": ["2026-07-28"], "_meta": 7}},
    ],
)
async def test_whatever_is_no_usable_answer_means_the_other_era(refusal: Json) -> None:
    wire = Wire()
    task = begin(wire, Era.MODERN)
    await answer(wire, "server/discover", **refusal)
    await answer(wire, "initialize", result=LEGACY)
    assert (await within(task)).era is Era.LEGACY


async def test_a_refused_initialize_leads_to_discover() -> None:
    wire = Wire()
    task = begin(wire, Era.LEGACY)
    await answer(wire, "initialize", error=OTHER_REVISION)
    await answer(wire, "server/discover", result=MODERN)
    assert (await within(task)).era is Era.MODERN


async def test_a_refusal_that_names_our_revision_is_tried_again_once() -> None:
    wire = Wire()
    task = begin(wire, Era.MODERN)
    first = await answer(wire, "server/discover", error=OTHER_REVISION)
    second = await answer(wire, "server/discover", 2, result=MODERN)
    assert (await within(task)).era is Era.MODERN
    assert first["id"] != second["id"]
    assert [each["method"] for each in wire.sent] == ["server/discover"] * 2


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handshake, "PROBE_SECONDS", 0.01)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("winner", ["server/discover", "initialize"])
async def test_after_a_silent_probe_whoever_answers_first_wins(winner: str) -> None:
    wire = Wire()
    task = begin(wire, Era.MODERN)
    await wire.sends("initialize")
    await answer(wire, winner, result=MODERN if winner == "server/discover" else LEGACY)
    peer = await within(task)
    assert peer.era is (Era.MODERN if winner == "server/discover" else Era.LEGACY)
    cancelled = [each for each in wire.sent if each["method"] == "notifications/cancelled"]
    assert len(cancelled) == (0 if peer.era is Era.MODERN else 1), "initialize may not be cancelled"
    assert wire.connection.in_flight == {}


@pytest.mark.usefixtures("impatient")
async def test_the_loser_may_fail_unseen(caplog: pytest.LogCaptureFixture) -> None:
    problems: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: problems.append(context))
    wire = Wire()
    task = begin(wire, Era.MODERN)
    loser, winner = await wire.sends("initialize"), await wire.sends("server/discover")
    wire.say(id=loser["id"], error=REFUSED)
    wire.say(id=winner["id"], result=MODERN)
    assert (await within(task)).era is Era.MODERN
    del task
    await asyncio.sleep(0)
    assert (problems, caplog.records) == ([], [])


async def test_both_refusals_are_told() -> None:
    wire = Wire()
    task = begin(wire, Era.MODERN)
    await answer(wire, "server/discover", error=REFUSED)
    await answer(wire, "initialize", error={"code": 5, "message": "no guests"})
    with pytest.raises(UpstreamUnavailable, match=r"-32601: Method not found.*; 5: no guests"):
        await within(task)


async def test_a_revision_nobody_speaks_is_told() -> None:
    wire = Wire()
    task = begin(wire, Era.LEGACY)
    await answer(wire, "initialize", result=LEGACY | {"protocolVersion": "1999-01-01"})
    await answer(wire, "server/discover", error=REFUSED)
    with pytest.raises(UpstreamUnavailable, match="1999-01-01"):
        await within(task)


@pytest.mark.parametrize("first", [Era.LEGACY, Era.MODERN])
async def test_silence_ends_at_the_deadline(first: Era) -> None:
    wire = Wire()
    with pytest.raises(UpstreamUnavailable, match=r"no handshake within 0\.05 s"):
        await within(begin(wire, first, seconds=0.05))
    assert wire.connection.in_flight == {}


async def test_a_server_that_ends_is_not_asked_anything_more() -> None:
    wire = Wire()
    task = begin(wire, Era.MODERN)
    await wire.sends("server/discover")
    wire.connection.closed("exited with code 2")
    with pytest.raises(UpstreamUnavailable, match="exited with code 2"):
        await within(task)
    assert len(wire.sent) == 1


async def test_a_cancelled_handshake_leaves_nothing_under_way() -> None:
    wire = Wire()
    task = begin(wire, Era.MODERN)
    await wire.sends("server/discover")
    task.cancel()
    await asyncio.wait([task])
    async with asyncio.timeout(5):
        while wire.connection.in_flight:  # noqa: ASYNC110
            await asyncio.sleep(0)
