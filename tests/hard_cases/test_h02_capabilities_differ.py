"""H2: legacy sessions declare capabilities once, modern requests each time: none claims what a client cannot do."""

import itertools
import json
from pathlib import Path

from tests.interaction.parked import ABLE, ANSWERS, PARAMS, finished
from tests.interaction.stage import Client, Json, stage, value

MEMBERS = {"elicitation": "elicitation/create", "sampling": "sampling/createMessage", "roots": "roots/list"}
SETS: list[Json] = [
    {name: ABLE[name] for name in chosen} for size in range(4) for chosen in itertools.combinations(MEMBERS, size)
]


async def asked_one_by_one(client: Client) -> list[bool]:
    """Which of the three questions the client is asked."""
    told: list[bool] = []
    for method in MEMBERS.values():
        params = {"name": "a__ask", "arguments": {"method": method, "params": PARAMS[method]}}
        answer = value(await finished(client, params))
        told.append(answer == {"result": ANSWERS[method]})
        assert told[-1] or "error" in answer
    return told


async def test_each_set_of_capabilities_has_a_session_that_declares_it(tmp_path: Path) -> None:
    async with stage(tmp_path, {"a": {"era": "legacy"}}) as on:
        for capabilities in SETS:
            client = on.modern(capabilities)
            assert await asked_one_by_one(client) == [name in capabilities for name in MEMBERS]
        handshakes = [message["params"]["capabilities"] for message in on.received("a", "initialize")]
        assert {json.dumps(each, sort_keys=True) for each in handshakes} == {
            json.dumps(each, sort_keys=True) for each in SETS
        }


async def test_clients_of_one_capability_set_share_and_what_is_no_bridge_is_not_declared(tmp_path: Path) -> None:
    async with stage(tmp_path, {"a": {"era": "legacy"}}) as on:
        for extra in ({}, {"extensions": {"x/y": {}}}, {"vendor": {}}):
            await on.modern({"sampling": {}} | extra).value("a__pid")
        declared = [message["params"]["capabilities"] for message in on.received("a", "initialize")]
        assert sorted(map(str, declared)) == ["{'sampling': {}}", "{}"]


async def test_a_modern_server_is_told_of_each_request_what_its_own_client_can_do(tmp_path: Path) -> None:
    async with stage(tmp_path, {"a": {"era": "modern"}}) as on:
        legacy, modern = await on.legacy({"sampling": {}}), on.modern({"elicitation": {"form": {}}})
        key = "io.modelcontextprotocol/clientCapabilities"
        for client in (legacy, modern, legacy):
            assert (await client.value("a__echo"))["_meta"][key] == client.capabilities
