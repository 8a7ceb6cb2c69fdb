"""A legacy server that asks in the middle of a call of a modern client (PROTOCOL: H1)."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.interaction.parked import (
    ABLE,
    ACCEPTED,
    ANSWERS,
    FORM,
    PARAMS,
    ROOTS,
    answers,
    asking,
    finished,
    first_round,
    refusal,
    retry,
)
from tests.interaction.scripted_http import scripted_http
from tests.interaction.stage import Json, Stage, eventually, stage, text, value

METHODS = tuple(PARAMS)
TRANSPORTS = pytest.mark.parametrize("transport", ["stdio", "http"])


@asynccontextmanager
async def legacy_server(folder: Path, transport: str = "stdio", **settings: Any) -> AsyncGenerator[Stage]:
    parked = settings.pop("parked", {})
    if transport == "stdio":
        async with stage(folder, {"a": {"era": "legacy"} | settings}, parked=parked) as on:
            yield on
    else:
        async with (
            scripted_http(era="legacy", **settings) as server,
            stage(folder, {"a": {"url": server.url, "type": "http"}}, parked=parked) as on,
        ):
            yield on


@TRANSPORTS
@pytest.mark.parametrize("method", METHODS)
async def test_a_question_becomes_a_round_and_its_answer_reaches_the_server(
    tmp_path: Path, transport: str, method: str
) -> None:
    async with legacy_server(tmp_path, transport) as on:
        client = on.modern(ABLE)
        params = asking(method)
        result = await first_round(client, params)
        (asked,) = result["inputRequests"].values()
        assert asked == {"method": method} | ({"params": PARAMS[method]} if PARAMS[method] else {})
        final = await client.request("tools/call", retry(params, result))
        assert final["resultType"] == "complete"
        assert value(final) == {"runs": 1, "told": [[ANSWERS[method]]]}


@TRANSPORTS
async def test_questions_that_come_together_are_one_round_and_later_ones_the_next(
    tmp_path: Path, transport: str
) -> None:
    async with legacy_server(tmp_path, transport) as on:
        client = on.modern(ABLE)
        params = asking(*METHODS, rounds=3)
        result, keys = await first_round(client, params), set[str]()
        for _ in range(3):
            assert [asked["method"] for asked in result["inputRequests"].values()] == list(METHODS)
            assert not keys & set(result["inputRequests"]), "a key is never used again"
            keys |= set(result["inputRequests"])
            result = await client.request("tools/call", retry(params, result))
        assert value(result) == {"runs": 1, "told": [[ANSWERS[method] for method in METHODS]] * 3}


@TRANSPORTS
@pytest.mark.parametrize("method", ["prompts/get", "resources/read"])
async def test_prompts_and_resources_ask_as_well(tmp_path: Path, transport: str, method: str) -> None:
    settings: Json = {
        "asking": {method: [{"method": "roots/list"}, {"method": "elicitation/create", "params": FORM}]},
        "prompts": [{"name": "p"}],
        "resources": [{"uri": "file:///x", "name": "x"}],
    }
    async with legacy_server(tmp_path, transport, **settings) as on:
        client = on.modern(ABLE)
        await client.names()
        params: Json = {"name": "a__p"} if method == "prompts/get" else {"uri": "a+file:///x"}
        final = await finished(client, params, method)
        assert final["resultType"] == "complete"
        assert "messages" in final or final["contents"][0]["uri"] == "a+file:///x"


async def test_answers_that_are_missing_are_asked_for_again(tmp_path: Path) -> None:
    async with legacy_server(tmp_path) as on:
        client = on.modern(ABLE)
        params = asking("elicitation/create", "roots/list")
        result = await first_round(client, params)
        form, roots = result["inputRequests"]
        again = await client.request("tools/call", retry(params, result, {form: ACCEPTED, "unknown": {}}))
        assert list(again["inputRequests"]) == [roots]
        again = await client.request("tools/call", retry(params, again, {}))
        assert list(again["inputRequests"]) == [roots]
        assert value(await client.request("tools/call", retry(params, again, {roots: ROOTS})))["told"] == [
            [ACCEPTED, ROOTS]
        ]


async def test_an_answer_counts_with_the_state_of_an_earlier_round_as_well(tmp_path: Path) -> None:
    async with legacy_server(tmp_path) as on:
        client = on.modern(ABLE)
        params = asking("elicitation/create", "roots/list")
        first = await first_round(client, params)
        form, roots = first["inputRequests"]
        await client.request("tools/call", retry(params, first, {form: ACCEPTED}))
        final = await client.request("tools/call", retry(params, first, {form: {"action": "cancel"}, roots: ROOTS}))
        assert value(final) == {"runs": 1, "told": [[ACCEPTED, ROOTS]]}, "what was answered stays so"


async def test_retries_that_repeat_or_race_get_the_same_and_nothing_runs_twice(tmp_path: Path) -> None:
    async with legacy_server(tmp_path) as on:
        client = on.modern(ABLE)
        params = asking("elicitation/create", rounds=2)
        one = await first_round(client, params)
        racing = [client.send("tools/call", retry(params, one)) for _ in range(3)]
        twos = [await client.response(identifier) for identifier in racing]
        assert len({str(two["inputRequests"]) for two in twos}) == 1
        late = await client.request("tools/call", retry(params, one))
        assert late["inputRequests"] == twos[0]["inputRequests"], "a round that was answered gives what is open now"
        final = await client.request("tools/call", retry(params, late))
        assert value(final) == {"runs": 1, "told": [[ACCEPTED], [ACCEPTED]]}
        assert await client.request("tools/call", retry(params, one)) == final, "the result is kept for a while"
        assert value(await finished(client, asking("roots/list")))["runs"] == 2


async def test_a_state_is_good_for_its_own_request_only(tmp_path: Path) -> None:
    async with legacy_server(tmp_path) as on:
        client = on.modern(ABLE)
        params = asking("elicitation/create")
        result = await first_round(client, params)
        other = params | {"arguments": params["arguments"] | {"more": 1}}
        for wrong in (other, params | {"name": "a__echo"}):
            assert (await refusal(client, retry(wrong, result))).code == -32602
        tampered = result["requestState"][:-4] + "AAAA"
        for state in (tampered, "", "x", "é", 7, None, {"a": 1}, "A" * 70_000):
            error = await refusal(client, retry(params, result) | {"requestState": state})
            assert error.code == -32602, state
        for broken in ({next(iter(result["inputRequests"])): 7}, [], "x"):
            error = await refusal(client, retry(params, result) | {"inputResponses": broken})
            assert error.code == -32602, broken
        reordered = {"arguments": dict(reversed(list(params["arguments"].items()))), "name": params["name"]}
        assert value(await client.request("tools/call", retry(reordered, result)))["runs"] == 1


async def test_a_client_that_stays_away_ends_the_call_and_the_server_is_told(tmp_path: Path) -> None:
    async with legacy_server(tmp_path, parked={"ttlSeconds": 0.2}) as on:
        client = on.modern(ABLE)
        params = asking(*METHODS, rounds=9)
        result = await first_round(client, params)
        await eventually(lambda: on.received("a", "notifications/cancelled"))
        told = [message for message in on.journal("a") if "method" not in message and "id" in message]
        assert {"action": "cancel"} in [message.get("result") for message in told]
        assert len([message for message in told if "error" in message]) >= 2
        error = await refusal(client, retry(params, result))
        assert error.code in (-32602, -32603)
        assert not on.gateway.core.parking.waiting


async def test_the_stream_may_close_after_the_questions_but_not_before_and_not_during_the_retry(tmp_path: Path) -> None:
    async with legacy_server(tmp_path) as on:
        client = on.modern(ABLE)
        before = client.begin("a__hold", key="k")
        await client.value("a__pid")
        client.cancel(before)
        await eventually(lambda: len(on.received("a", "notifications/cancelled")) == 1)
        params = asking("elicitation/create")
        identifier = client.send("tools/call", params)
        result = await client.response(identifier)
        client.cancel(identifier)
        assert value(await client.request("tools/call", retry(params, result)))["runs"] == 1
        assert len(on.received("a", "notifications/cancelled")) == 1


async def test_a_retry_whose_stream_closes_cancels_the_call(tmp_path: Path) -> None:
    async with legacy_server(tmp_path) as on:
        client = on.modern(ABLE)
        params = asking("elicitation/create", then="k")
        result = await first_round(client, params)
        waiting = client.send("tools/call", retry(params, result))
        await eventually(lambda: len([each for each in on.journal("a") if "method" not in each and "id" in each]) == 1)
        client.cancel(waiting)
        await eventually(lambda: on.received("a", "notifications/cancelled"))
        error = await refusal(client, retry(params, result))
        assert error.code == -32603 and "cancelled" in error.message


async def test_a_server_that_dies_ends_the_call_with_an_error_and_it_is_not_run_again(tmp_path: Path) -> None:
    async with legacy_server(tmp_path) as on:
        client, other = on.modern(ABLE), on.modern(ABLE)
        params = asking("elicitation/create")
        result = await first_round(client, params)
        with_handle = {"_meta": {"polyplex/session": "none"}}
        assert value(await other.request("tools/call", {"name": "a__pid", "arguments": {}} | with_handle))
        for upstream in on.upstreams("a"):
            if upstream.connection is not None:
                upstream.connection.closed("the test ends it")
        final = await client.request("tools/call", retry(params, result))
        assert final["isError"] and "Whether it took effect is unknown" in final["content"][0]["text"]
        calls = [message for message in on.received("a", "tools/call") if message["params"]["name"] == "asks"]
        assert len(calls) == 1


async def test_an_answer_that_comes_too_late_for_the_server_still_gives_the_result(tmp_path: Path) -> None:
    """The server has taken its question back and gone on."""
    async with legacy_server(tmp_path) as on:
        client = on.modern(ABLE)
        params = asking("elicitation/create")
        result = await first_round(client, params)
        (parked,) = on.gateway.core.parking._parked.values()
        assert parked.exchange is not None
        connection = parked.upstream.connection
        assert connection is not None
        connection.received(
            b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"asks-1"}}', None
        )
        connection.received(b'{"jsonrpc":"2.0","id":%b,"result":{"content":[]}}' % parked.exchange.id, None)
        final = await client.request("tools/call", retry(params, result))
        assert final["content"] == []


async def test_progress_goes_to_the_stream_of_the_retry_with_its_own_token(tmp_path: Path) -> None:
    async with legacy_server(tmp_path) as on:
        client = on.modern(ABLE)
        params = asking("elicitation/create", rounds=2)
        one = await first_round(client, params | {"_meta": {"progressToken": "first"}})
        two = await client.request("tools/call", retry(params, one) | {"_meta": {"progressToken": "second"}})
        assert [each["progressToken"] for each in client.notices("notifications/progress")] == ["second"]
        final = await client.request("tools/call", retry(params, two))
        assert value(final)["runs"] == 1
        assert len(client.notices("notifications/progress")) == 1, "without a token there is no progress"


async def test_a_retry_that_can_do_less_is_not_asked_what_it_cannot(tmp_path: Path) -> None:
    async with legacy_server(tmp_path) as on:
        client = on.modern(ABLE)
        params = asking("elicitation/create", "sampling/createMessage")
        result = await first_round(client, params)
        client.capabilities = {"elicitation": {}}
        final = await client.request("tools/call", retry(params, result, {}))
        assert [asked["method"] for asked in final["inputRequests"].values()] == ["elicitation/create"]
        told = value(await client.request("tools/call", retry(params, final)))["told"]
        assert told[0][0] == ACCEPTED and "support" in told[0][1]["message"]


async def test_two_calls_at_once_are_told_apart(tmp_path: Path) -> None:
    """On stdio nothing says which call asks: once a server has asked, each call that may be asked has a session."""
    async with legacy_server(tmp_path) as on:
        client = on.modern(ABLE)
        await finished(client, asking("roots/list"))
        calls = [asking("elicitation/create", mark=number) for number in range(3)]
        results = [await first_round(client, params) for params in calls]
        for params, result in reversed(list(zip(calls, results, strict=True))):
            responses = {
                key: {"action": "accept", "content": {"mark": params["arguments"]["mark"]}} for key in answers(result)
            }
            told = value(await client.request("tools/call", retry(params, result, responses)))["told"]
            assert told[0][0]["content"] == {"mark": params["arguments"]["mark"]}


async def test_calls_that_want_log_messages_are_told_apart(tmp_path: Path) -> None:
    """The server is told the level first; meanwhile the other call looks for a session that is free."""
    async with legacy_server(tmp_path) as on:
        await finished(on.modern(ABLE), asking("elicitation/create"))
        client = on.modern({"elicitation": {"form": {}}})  # a session that knows no level yet
        client.log_level = "warning"
        params = asking("elicitation/create")
        rounds = await asyncio.gather(*(first_round(client, params) for _ in range(2)))
        for result in rounds:
            told = value(await client.request("tools/call", retry(params, result)))["told"]
            assert told[0][0] == ACCEPTED


async def test_a_question_that_may_be_of_either_of_two_calls_is_refused(tmp_path: Path) -> None:
    async with legacy_server(tmp_path) as on:
        client = on.modern(ABLE)
        held = client.begin("a__hold", key="k")
        final = await client.request("tools/call", asking("elicitation/create"))
        assert "cannot be attributed" in value(final)["told"][0][0]["message"]
        client.cancel(held)


async def test_calls_that_are_parked_end_when_polyplex_stops(tmp_path: Path) -> None:
    async with legacy_server(tmp_path) as on:
        await first_round(on.modern(ABLE), asking("elicitation/create"))
        on.gateway.drain()
        await eventually(lambda: on.received("a", "notifications/cancelled"))
        assert not on.gateway.core.parking.waiting


async def test_a_state_of_before_a_restart_is_answered_with_what_became_of_the_call(tmp_path: Path) -> None:
    params = asking("elicitation/create")
    async with legacy_server(tmp_path) as on:
        result = await first_round(on.modern(ABLE), params)
    async with legacy_server(tmp_path) as on:
        error = await refusal(on.modern(ABLE), retry(params, result))
        assert error.code == -32603 and "a process of polyplex that has ended" in error.message
        assert len(on.received("a", "tools/call")) == 1


async def test_a_named_session_keeps_the_state_of_the_server_apart(tmp_path: Path) -> None:
    async with legacy_server(tmp_path) as on:
        client = on.modern()
        pids = [
            value(await client.request("tools/call", {"name": "a__pid", "arguments": {}} | meta))
            for meta in (
                {"_meta": {"polyplex/session": "one"}},
                {"_meta": {"polyplex/session": "two"}},
                {},
                {"_meta": {"polyplex/session": "one"}},
                {},
            )
        ]
        assert pids[0] == pids[3] and pids[2] == pids[4] and len(set(pids)) == 3
        error = await refusal(client, {"name": "a__pid", "arguments": {}, "_meta": {"polyplex/session": 7}})
        assert error.code == -32602


async def test_roots_that_a_server_asks_for_at_its_start_are_asked_for_with_the_first_call(tmp_path: Path) -> None:
    async with legacy_server(tmp_path, greets={"method": "roots/list"}) as on:
        client = on.modern({"roots": {}})
        params: Json = {"name": "a__hold", "arguments": {"key": "k"}}
        result = await first_round(client, params)
        (asked,) = result["inputRequests"].values()
        assert asked == {"method": "roots/list"}
        held = client.send("tools/call", retry(params, result))
        await eventually(lambda: ROOTS in [message.get("result") for message in on.journal("a")])
        await client.value("a__release", key="k")
        assert value(await client.response(held)) == "released"


async def test_time_in_which_the_server_waits_for_an_answer_does_not_count_and_other_time_does(tmp_path: Path) -> None:
    servers: Json = {"a": {"timeoutSeconds": 0.5, "maxTimeoutSeconds": 0.5}}
    async with stage(tmp_path, {"a": {"era": "legacy"}}, servers=servers) as on:
        client = on.modern(ABLE)
        params = asking("elicitation/create", then="k")
        result = await first_round(client, params)
        (parked,) = on.gateway.core.parking._parked.values()
        assert parked.exchange is not None and parked.exchange.deadline == 0.0
        slow = client.begin("a__hold", key="other")
        assert "did not answer in time" in text(await client.response(slow)), "longer than the call may take"
        assert not parked.exchange.done()
        final = await client.request("tools/call", retry(params, result))
        assert final["isError"] and "did not answer in time" in text(final)
        await eventually(lambda: len(on.received("a", "notifications/cancelled")) == 2)
        assert await client.request("tools/call", retry(params, result)) == final, "and it is not run again"
        assert len([each for each in on.received("a", "tools/call") if each["params"]["name"] == "asks"]) == 1
