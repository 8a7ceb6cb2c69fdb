"""H9: ids. Drawn from one sequence, never repeated, and what a client chose comes back as it chose it."""

import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from tests.interaction.parked import ABLE, ACCEPTED, FORM, asking, finished, first_round, retry
from tests.interaction.scripted_http import scripted_http
from tests.interaction.stage import META, Client, Json, Stage, eventually, stage, value

IDS: list[Any] = [1, "1", 0, -5, "", "a/b", "é\n", 2**53 + 1, 10**30, "null"]
ERAS = ["legacy", "modern"]


async def client_of(on: Stage, era: str, capabilities: Json | None = None) -> Client:
    if era == "modern":
        return on.modern(capabilities)
    return await on.legacy(capabilities, create=lambda params: ACCEPTED)


def ids_sent(on: Stage, server: str) -> list[str]:
    """The ids of all requests that a server received, as JSON."""
    return [json.dumps(each["id"]) for each in on.journal(server) if "method" in each and "id" in each]


@pytest.mark.parametrize("server", ERAS)
@pytest.mark.parametrize("era", ERAS)
async def test_clients_that_choose_the_same_ids_at_once_get_their_own_answers(
    tmp_path: Path, era: str, server: str
) -> None:
    async with stage(tmp_path, {"a": {"era": server}}) as on:
        clients = [await client_of(on, era) for _ in range(3)]
        for number, client in enumerate(clients):
            params = {"name": "a__hold", "arguments": {"key": f"k{number}"}}
            client.send("tools/call", params, identifier="same")
        await eventually(lambda: len(on.received("a", "tools/call")) == 3)
        held = on.received("a", "tools/call")
        assert len({json.dumps(each["id"]) for each in held}) == 3
        for number in (2, 0, 1):
            assert await clients[number].value("a__release", key=f"k{number}") == 1
            assert value(await clients[number].response("same")) == "released"
        assert len(set(ids_sent(on, "a"))) == len(ids_sent(on, "a"))


@pytest.mark.parametrize("server", ERAS)
@pytest.mark.parametrize("era", ERAS)
async def test_an_id_comes_back_with_its_type_and_spelling(tmp_path: Path, era: str, server: str) -> None:
    async with stage(tmp_path, {"a": {"era": server}}) as on:
        client = await client_of(on, era)
        client.frames.clear()
        client.responses.clear()
        client._ids = itertools.count(1000)
        for identifier in IDS:
            params = {"name": "a__hold", "arguments": {"key": json.dumps(identifier)}}
            client.send("tools/call", params, identifier=identifier)
        await eventually(lambda: len(on.received("a", "tools/call")) == len(IDS))
        for identifier in reversed(IDS):
            await client.call("a__release", key=json.dumps(identifier))
            assert value(await client.response(identifier)) == "released"
        answered = [frame["id"] for frame in client.frames if frame.get("id") in IDS]
        assert {(type(each), each) for each in answered} >= {(type(each), each) for each in IDS}


@pytest.mark.parametrize("identifier", [7, "7", "x y", 10**20])
async def test_the_subscription_id_is_the_clients_own_id_with_its_type(tmp_path: Path, identifier: Any) -> None:
    async with stage(tmp_path, {"a": {"era": "legacy"}, "b": {"era": "modern"}}) as on:
        await on.up("a", "b")
        client = on.modern()
        await client.names()
        wanted = {"notifications": {"toolsListChanged": True}}
        client.send("subscriptions/listen", wanted, identifier=identifier)
        await client.until(lambda: client.notices("notifications/subscriptions/acknowledged"))
        for server in ("a", "b"):
            known = len(client.notices("notifications/tools/list_changed"))
            entries = [{"name": name, "inputSchema": {"type": "object"}} for name in ("change", server)]
            await client.call(f"{server}__change", member="tools", entries=entries)
            await client.until(lambda known=known: len(client.notices("notifications/tools/list_changed")) > known)
        named = [
            frame["params"]["_meta"][META + "subscriptionId"]
            for frame in client.frames
            if "id" not in frame and META + "subscriptionId" in frame.get("params", {}).get("_meta", {})
        ]
        assert len(named) >= 3
        assert {(type(each), each) for each in named} == {(type(identifier), identifier)}


@pytest.mark.parametrize("server", ERAS)
@pytest.mark.parametrize("era", ERAS)
async def test_a_progress_token_comes_back_with_its_type_and_to_its_own_call(
    tmp_path: Path, era: str, server: str
) -> None:
    async with stage(tmp_path, {"a": {"era": server}}) as on:
        first, second = await client_of(on, era), await client_of(on, era)
        tokens: list[Any] = [1, "1", "é", 10**20]
        for client in (first, second):
            for token in tokens:
                params = {"name": "a__progress", "arguments": {"count": 2, "hold": "k"}}
                client.send("tools/call", params | {"_meta": {"progressToken": token}})
        await eventually(lambda: len(on.received("a", "tools/call")) == 2 * len(tokens))
        await first.call("a__release", key="k")
        sent = [each["params"]["_meta"]["progressToken"] for each in on.received("a", "tools/call")[:-1]]
        assert len({json.dumps(each) for each in sent}) == 2 * len(tokens), "no two calls share a token upstream"
        for client in (first, second):
            seen = [each["progressToken"] for each in client.notices("notifications/progress")]
            assert sorted(map(json.dumps, seen)) == sorted([json.dumps(token) for token in tokens] * 2)


@pytest.mark.parametrize("transport", ["stdio", "http"])
@pytest.mark.parametrize("era", ERAS)
async def test_no_round_of_a_modern_server_repeats_an_id(tmp_path: Path, era: str, transport: str) -> None:
    async with scripted_http(era="modern") as server:
        entry: Json = {"url": server.url, "type": "http"} if transport == "http" else {"era": "modern"}
        async with stage(tmp_path, {"a": entry}) as on:
            client = await client_of(on, era, ABLE)
            questions = {"f": {"method": "elicitation/create", "params": FORM}}
            params: Json = {"name": "a__rounds", "arguments": {"rounds": 4, "questions": questions}}
            if era == "legacy":
                result = await client.request("tools/call", params)
            else:  # the client repeats its own id, as it should not
                result = await client.request("tools/call", params, identifier="one")
                while result["resultType"] == "input_required":
                    client.responses.clear()
                    result = await client.request("tools/call", retry(params, result), identifier="one")
            assert value(result) == {"f": ACCEPTED}
            messages = server.script.journal if transport == "http" else on.journal("a")
            ids = [json.dumps(each["id"]) for each in messages if "id" in each and "method" in each]
            assert len([each for each in messages if each.get("method") == "tools/call"]) == 5
            assert len(set(ids)) == len(ids)


async def test_a_server_that_was_started_anew_is_sent_no_id_of_before(tmp_path: Path) -> None:
    async with stage(tmp_path, {"a": {"era": "legacy"}, "b": {"era": "modern"}}) as on:
        client = on.modern()
        await client.names()
        for server in ("a", "b"):
            assert (await client.call(f"{server}__die"))["isError"]
            assert await client.value(f"{server}__pid") == on.pids(server)[-1]
            assert len(on.pids(server)) == 2
        ids = ids_sent(on, "a") + ids_sent(on, "b")
        assert len(set(ids)) == len(ids), "nor does one server see an id of the other's"


async def test_all_gateways_of_a_process_draw_from_one_sequence(tmp_path: Path) -> None:
    async with scripted_http(era="modern") as server:
        for _ in range(3):
            async with stage(tmp_path, {"a": {"url": server.url, "type": "http"}}) as on:
                assert await on.modern().value("a__echo", x=1)
        ids = [json.dumps(each["id"]) for each in server.script.journal if "id" in each]
        assert len(set(ids)) == len(ids)


async def test_questions_of_two_servers_with_one_id_get_their_own_answers(tmp_path: Path) -> None:
    async with stage(tmp_path, {"a": {"era": "legacy"}, "b": {"era": "legacy"}}) as on:
        client = await on.legacy(ABLE)
        calls = {
            server: client.send("tools/call", asking("elicitation/create", tool=f"{server}__asks")) for server in "ab"
        }
        await client.until(lambda: len(client.asked("elicitation/create")) == 2)
        asked = client.asked("elicitation/create")
        assert len({json.dumps(each["id"]) for each in asked}) == 2
        for each in reversed(asked):
            client.respond(each["id"], {"action": "accept", "content": {"id": each["id"]}})
        told = [value(await client.response(calls[server]))["told"][0][0]["content"]["id"] for server in "ab"]
        assert sorted(told) == sorted(each["id"] for each in asked)
        modern = on.modern(ABLE)
        rounds = [await first_round(modern, asking("elicitation/create", tool=f"{server}__asks")) for server in "ab"]
        assert rounds[0]["requestState"] != rounds[1]["requestState"]
        for server in "ab":
            assert value(await finished(modern, asking("elicitation/create", tool=f"{server}__asks", again=1)))["told"]
