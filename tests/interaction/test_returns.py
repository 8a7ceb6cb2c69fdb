"""States that go to a modern client and come back: a modern server's own, and those of pages to visit first."""

from pathlib import Path

import pytest

from tests.interaction.parked import ABLE, ACCEPTED, FORM, first_round, refusal, retry
from tests.interaction.scripted_http import scripted_http
from tests.interaction.stage import Json, stage, value

QUESTION: Json = {"method": "elicitation/create", "params": FORM}
ROUNDS: Json = {"name": "a__rounds", "arguments": {"rounds": 2, "questions": {"f": QUESTION}}}
LINKS: Json = {
    "elicitations": [
        {"mode": "url", "elicitationId": "e1", "url": "https://one.example/", "message": "sign in"},
        {"mode": "url", "elicitationId": "e2", "url": "https://two.example/", "message": "pay"},
    ]
}
AGREED: Json = {"action": "accept"}


@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_a_modern_servers_state_is_sealed_on_its_way_and_comes_back_as_it_was(
    tmp_path: Path, transport: str
) -> None:
    async with scripted_http(era="modern") as server:
        entry: Json = {"url": server.url, "type": "http"} if transport == "http" else {"era": "modern"}
        async with stage(tmp_path, {"a": entry}) as on:
            client = on.modern(ABLE)
            one = await first_round(client, ROUNDS)
            assert one["requestState"] != "1" and one["inputRequests"] == {"f": QUESTION}
            two = await client.request("tools/call", retry(ROUNDS, one))
            final = await client.request("tools/call", retry(ROUNDS, two))
            assert value(final) == {"f": ACCEPTED}
            again = await client.request("tools/call", retry(ROUNDS, two))
            assert value(again) == {"f": ACCEPTED}, "that a state is used once is the server's to see to"
            other = {**ROUNDS, "arguments": ROUNDS["arguments"] | {"x": 1}}
            assert (await refusal(client, retry(other, one))).code == -32602
            assert (await refusal(client, ROUNDS | {"requestState": "1", "inputResponses": {}})).code == -32602
            journal = value(await client.request("tools/call", {"name": "a__journal", "arguments": {}}))
            sent = [message["params"] for message in journal if message.get("params", {}).get("name") == "rounds"]
            assert [params.get("requestState") for params in sent] == [None, "1", "2", "2"]
            assert {str(params["arguments"]) for params in sent} == {str(ROUNDS["arguments"])}


@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_a_page_to_visit_first_is_a_round_and_then_the_call_is_made_again(tmp_path: Path, transport: str) -> None:
    settings: Json = {"refuseOnce": {"tools/call": {"code": -32042, "message": "sign in first", "data": LINKS}}}
    async with scripted_http(era="legacy", **settings) as server:
        entry: Json = {"url": server.url, "type": "http"} if transport == "http" else {"era": "legacy"} | settings
        async with stage(tmp_path, {"a": entry}) as on:
            client = on.modern(ABLE)
            params: Json = {"name": "a__echo", "arguments": {"x": 1}}
            result = await first_round(client, params)
            first, second = result["inputRequests"].values()
            assert first["params"] == {"mode": "url", "url": "https://one.example/", "message": "sign in"}
            keys = list(result["inputRequests"])
            partial = await client.request("tools/call", retry(params, result, {keys[0]: AGREED}))
            assert partial["resultType"] == "input_required" and second in partial["inputRequests"].values()
            final = await client.request("tools/call", retry(params, partial, dict.fromkeys(keys, AGREED)))
            assert value(final) == params | {"name": "echo"}, "the server sees neither answers nor state"


async def test_a_page_that_the_user_does_not_visit_ends_the_call_and_nothing_is_done(tmp_path: Path) -> None:
    refuse: Json = {"tools/call": {"code": -32042, "message": "sign in", "data": LINKS}}
    async with stage(tmp_path, {"a": {"era": "legacy", "refuse": refuse}}) as on:
        client = on.modern(ABLE)
        params: Json = {"name": "a__echo", "arguments": {}}
        result = await first_round(client, params)
        no = dict.fromkeys(result["inputRequests"], {"action": "decline"})
        final = await client.request("tools/call", retry(params, result, no))
        assert final["isError"] and final["resultType"] == "complete"
        assert len(on.received("a", "tools/call")) == 1


async def test_pages_without_end_and_pages_for_who_cannot_visit_them_are_refused(tmp_path: Path) -> None:
    refuse: Json = {"tools/call": {"code": -32042, "message": "sign in", "data": LINKS}}
    async with stage(tmp_path, {"a": {"era": "legacy", "refuse": refuse}}) as on:
        client, params = on.modern(ABLE), {"name": "a__echo", "arguments": {}}
        result = await first_round(client, params)
        for _ in range(9):
            yes = dict.fromkeys(result["inputRequests"], AGREED)
            result = await client.request("tools/call", retry(params, result, yes))
        yes = dict.fromkeys(result["inputRequests"], AGREED)
        assert "after 10 times" in (await refusal(client, retry(params, result, yes))).message
        error = await refusal(on.modern({"elicitation": {}}), params)
        assert error.code == -32021
        assert error.data == {"requiredCapabilities": {"elicitation": {"url": {}}}}


@pytest.mark.parametrize(
    "data", [None, {}, {"elicitations": []}, {"elicitations": 7}, {"elicitations": [{"x": 1}]}, []]
)
async def test_a_refusal_that_names_no_page_is_an_error_of_the_modern_era(tmp_path: Path, data: object) -> None:
    refuse = {"tools/call": {"code": -32042, "message": "sign in"} | ({} if data is None else {"data": data})}
    async with stage(tmp_path, {"a": {"era": "legacy", "refuse": refuse}}) as on:
        error = await refusal(on.modern(ABLE), {"name": "a__echo", "arguments": {}})
        assert error.code == -32603 and "page" in error.message


@pytest.mark.parametrize(("size", "fits"), [(64 * 1024, True), (1024 * 1024 - 16, True), (1024 * 1024, False)])
async def test_a_state_as_large_as_a_server_may_make_it_comes_back_whole(tmp_path: Path, size: int, fits: bool) -> None:
    state = "é" + "x" * (size - 2)
    wanted = {"resultType": "input_required", "inputRequests": {"f": QUESTION}, "requestState": state}
    async with scripted_http(era="modern") as server, stage(tmp_path, {"a": {"url": server.url, "type": "http"}}) as on:
        client, params = on.modern(ABLE), {"name": "a__result", "arguments": wanted}
        if not fits:
            assert "larger than" in (await refusal(client, params)).message
            return
        one = await first_round(client, params)
        await client.request("tools/call", retry(params, one))
        sent = [message["params"] for message in server.script.journal if message.get("method") == "tools/call"]
        assert sent[-1]["requestState"] == state
