"""What servers and clients do to parked calls that nobody should (PROTOCOL: H1)."""

import json
from pathlib import Path
from typing import Any

import pytest

from polyplex.gateway import modern, outcomes, parking
from polyplex.upstreams.connection import Connection
from tests.interaction.parked import ABLE, FORM, answers, asking, first_round, refusal, retry
from tests.interaction.stage import Json, Stage, eventually, stage, value


def session(on: Stage) -> Connection:
    """The session of the server that has a call under way."""
    (connection,) = [
        upstream.connection
        for upstream in on.upstreams("a")
        if upstream.connection is not None and upstream.connection.in_flight
    ]
    return connection


def says(connection: Connection, **message: Any) -> None:
    connection.received(json.dumps({"jsonrpc": "2.0", **message}).encode(), None)


def told(on: Stage, identifier: str) -> list[Json]:
    """What the server was answered to a question."""
    return [message for message in on.journal("a") if "method" not in message and message.get("id") == identifier]


@pytest.mark.parametrize("method", ["elicitation/create", "sampling/createMessage", "roots/list"])
async def test_a_question_whose_params_are_no_object_is_refused_and_parks_nothing(tmp_path: Path, method: str) -> None:
    async with stage(tmp_path, {"a": {"era": "legacy"}}) as on:
        client = on.modern(ABLE)
        held = client.begin("a__hold", key="k")
        await eventually(lambda: on.received("a", "tools/call"))
        for number, params in enumerate(([], "x", 7, True, [{"progressToken": 1}])):
            says(session(on), id=f"broken-{number}", method=method, params=params)
        await eventually(lambda: told(on, "broken-4"))
        assert not on.gateway.core.parking.waiting
        assert all("error" in each for number in range(5) for each in told(on, f"broken-{number}"))
        client.cancel(held)


@pytest.mark.parametrize("params", [{}, {"params": None}], ids=["absent", "null"])
async def test_roots_need_no_params_and_other_questions_do(tmp_path: Path, params: Json) -> None:
    async with stage(tmp_path, {"a": {"era": "legacy"}}) as on:
        client = on.modern(ABLE)
        held = client.begin("a__hold", key="k")
        await eventually(lambda: on.received("a", "tools/call"))
        for method in ("elicitation/create", "sampling/createMessage", "roots/list"):
            says(session(on), id=method, method=method, **params)
        result = await client.response(held)
        assert list(result["inputRequests"].values()) == [{"method": "roots/list"}]
        for method in ("elicitation/create", "sampling/createMessage"):
            await eventually(lambda method=method: told(on, method))
            assert told(on, method)[0]["error"]["code"] == -32602


async def test_questions_that_are_taken_back_at_once_leave_nothing(tmp_path: Path) -> None:
    async with stage(tmp_path, {"a": {"era": "legacy"}}) as on:
        client = on.modern(ABLE)
        held = client.begin("a__hold", key="k")
        await eventually(lambda: on.received("a", "tools/call"))
        connection = session(on)
        for number in range(5):
            says(connection, id=f"back-{number}", method="elicitation/create", params=FORM)
            says(connection, method="notifications/cancelled", params={"requestId": f"back-{number}"})
        await eventually(lambda: not on.gateway.core.parking._by_call)
        assert not connection._asks and not on.gateway.core.parking._parked
        (exchange,) = connection.in_flight.values()
        says(connection, id=int(exchange.id), result={"content": []})
        assert (await client.response(held))["content"] == []


async def test_a_named_session_with_a_parked_call_does_not_make_room_for_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(modern, "MAX_HANDLES", 1)
    async with stage(tmp_path, {"a": {"era": "legacy"}}) as on:
        client = on.modern(ABLE)
        params = asking("elicitation/create") | {"_meta": {"polyplex/session": "one"}}
        result = await first_round(client, params)
        again = params | {"_meta": {"polyplex/session": "two"}}
        error = await refusal(client, again)
        assert error.code == -32603 and "too many sessions" in error.message
        assert value(await client.request("tools/call", retry(params, result)))["runs"] == 1
        assert await first_round(client, again)


async def test_more_questions_than_a_round_holds_are_refused_and_the_others_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parking, "MAX_QUESTIONS", 3)
    async with stage(tmp_path, {"a": {"era": "legacy"}}) as on:
        client = on.modern(ABLE)
        params = asking(*["elicitation/create"] * 5)
        result = await first_round(client, params)
        assert len(answers(result)) == 3
        given = value(await client.request("tools/call", retry(params, result)))["told"][0]
        assert ["action" in each for each in given] == [True, True, True, False, False]
        assert all("too many questions" in each["message"] for each in given[3:])


async def test_more_parked_calls_than_the_limit_are_refused_and_those_that_end_make_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parking, "MAX_PARKED", 1)
    async with stage(tmp_path, {"a": {"era": "legacy"}}) as on:
        client = on.modern(ABLE)
        params = asking("elicitation/create")
        result = await first_round(client, params)
        refused = value(await client.request("tools/call", asking("elicitation/create", other=1)))["told"][0][0]
        assert "at most 1" in refused["message"]
        assert value(await client.request("tools/call", retry(params, result)))["runs"] >= 1
        assert await first_round(client, params)


async def test_results_that_are_kept_are_bounded_in_number_and_in_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outcomes, "MAX_BYTES", 3 * (outcomes.OVERHEAD_BYTES + 200))
    async with stage(tmp_path, {"a": {"era": "legacy"}}) as on:
        client = on.modern(ABLE)
        states: list[Json] = []
        for number in range(6):
            params = asking("elicitation/create", mark=number, padding="x" * 5000)
            states.append(retry(params, await first_round(client, params)))
            assert value(await client.request("tools/call", states[-1]))["told"]
        assert not on.gateway.core.parking._parked
        assert 0 < len(on.gateway.core.parking.outcomes) < 4
        assert (await refusal(client, states[0])).code == -32603
        assert value(await client.request("tools/call", states[-1]))["told"]
    assert not on.gateway.core.parking.outcomes
