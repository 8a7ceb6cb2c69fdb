"""Questions of servers reach exactly the client whose call caused them, with what it declared (PROTOCOL: H2, H3)."""

from pathlib import Path
from typing import Any

import pytest

from tests.interaction.script import QUESTIONS
from tests.interaction.scripted_http import scripted_http
from tests.interaction.stage import Client, Json, eventually, stage
from tests.process.children import gone


def sampled(said: str) -> Json:
    """What a model said."""
    return {"role": "assistant", "content": {"type": "text", "text": said}, "model": "m"}


ASKS: list[tuple[str, Json, Json]] = [
    (
        "sampling/createMessage",
        {"sampling": {}},
        sampled("x"),
    ),
    ("elicitation/create", {"elicitation": {"form": {}, "url": {}}}, {"action": "accept", "content": {"a": 1}}),
    ("roots/list", {"roots": {"listChanged": True}}, {"roots": [{"uri": "file:///r"}]}),
]
NAMES = {"sampling/createMessage": "createMessage", "elicitation/create": "create", "roots/list": "list"}
SAMPLING: Json = {"sampling": {}}


@pytest.mark.parametrize(("method", "capabilities", "answer"), ASKS, ids=[each[0] for each in ASKS])
async def test_a_question_during_a_call_and_its_answer(
    tmp_path: Path, method: str, capabilities: Json, answer: Json
) -> None:
    async with stage(tmp_path, {"a": {}}) as on:
        client = await on.legacy(capabilities, **{NAMES[method]: lambda params: answer})
        params: Json = QUESTIONS.get(method, {}) | {"vendor": [1, {"x": None}], "_meta": {"k": 2}}
        assert await client.value("a__ask", method=method, params=params) == {"result": answer}
        (asked,) = client.asked(method)
        assert asked["params"] == params, "nothing of the question is changed"


@pytest.mark.parametrize(("method", "capabilities", "answer"), ASKS, ids=[each[0] for each in ASKS])
async def test_a_client_without_the_ability_is_never_asked_and_it_is_never_claimed(
    tmp_path: Path, method: str, capabilities: Json, answer: Json
) -> None:
    async with stage(tmp_path, {"a": {"era": "legacy"}}) as on:
        able = await on.legacy(capabilities, **{NAMES[method]: lambda params: answer})
        unable, modern = await on.legacy(), on.modern()
        for client in (unable, modern):
            reply = await client.value("a__ask", method=method)
            assert reply["error"]["code"] in (-32600, -32601)
            assert client.asked(method) == []
        assert await able.value("a__ask", method=method) == {"result": answer}
        claimed = [message["params"]["capabilities"] for message in on.received("a", "initialize")]
        assert sorted(map(str, claimed)) == sorted(map(str, ({}, capabilities)))
        for client in (unable, modern):
            journal = await client.value("a__journal")
            (handshake,) = [message for message in journal if message.get("method") == "initialize"]
            assert handshake["params"]["capabilities"] == {}


async def held_by(client: Client, key: str) -> Any:
    """A call that has reached the server."""
    identifier = client.begin("a__hold", key=key)
    await client.value("a__pid")
    return identifier


async def test_a_question_that_may_be_of_either_of_two_clients_is_refused(tmp_path: Path) -> None:
    async with stage(tmp_path, {"a": {}}) as on:
        one = await on.legacy(SAMPLING, createMessage=lambda params: sampled("one"))
        two = await on.legacy(SAMPLING, createMessage=lambda params: sampled("two"))
        await held_by(one, "1")
        reply = await two.value("a__ask", method="sampling/createMessage")
        assert reply["error"]["code"] == -32600
        assert "exactly one client" in reply["error"]["message"]
        assert one.asked("sampling/createMessage") == two.asked("sampling/createMessage") == []


async def test_a_server_that_asks_gets_a_session_for_each_client(tmp_path: Path) -> None:
    async with stage(tmp_path, {"a": {}}) as on:
        one = await on.legacy(SAMPLING, createMessage=lambda params: sampled("one"))
        two = await on.legacy(SAMPLING, createMessage=lambda params: sampled("two"))
        shared = await one.value("a__pid")
        assert await two.value("a__pid") == shared, "nothing has been asked yet: they share a process"
        await held_by(one, "1")
        await two.value("a__ask", method="sampling/createMessage")
        await held_by(one, "2")
        assert await two.value("a__ask", method="sampling/createMessage") == {"result": sampled("two")}
        assert await one.value("a__ask", method="sampling/createMessage") == {"result": sampled("one")}
        assert len({await one.value("a__pid"), await two.value("a__pid")}) == 2


async def test_a_question_after_the_call_goes_to_the_client_of_the_session(tmp_path: Path) -> None:
    async with stage(tmp_path, {"a": {}}) as on:
        one = await on.legacy(SAMPLING, createMessage=lambda params: sampled("one"))
        await one.call("a__post", method="sampling/createMessage")
        await one.until(lambda: one.asked("sampling/createMessage"))
        two = await on.legacy(SAMPLING, createMessage=lambda params: sampled("two"))
        await two.call("a__post", method="sampling/createMessage")
        await two.until(lambda: two.asked("sampling/createMessage"))
        assert [len(each.asked("sampling/createMessage")) for each in (one, two)] == [1, 1]


async def test_over_http_a_question_belongs_to_the_stream_it_came_on(tmp_path: Path) -> None:
    async with (
        scripted_http(era="legacy") as server,
        stage(tmp_path, {"a": {"url": server.url, "type": "http"}}) as on,
    ):
        one = await on.legacy(SAMPLING, createMessage=lambda params: sampled("one"))
        two = await on.legacy(SAMPLING, createMessage=lambda params: sampled("two"))
        await held_by(one, "1")
        await held_by(two, "2")
        assert await two.value("a__ask", method="sampling/createMessage") == {"result": sampled("two")}
        assert await one.value("a__ask", method="sampling/createMessage") == {"result": sampled("one")}
        assert [len(each.asked("sampling/createMessage")) for each in (one, two)] == [1, 1]


async def test_roots_are_those_of_the_session_and_its_news_reach_its_servers_only(tmp_path: Path) -> None:
    async with stage(tmp_path, {"a": {"era": "legacy"}}) as on:
        clients = [
            await on.legacy({"roots": {"listChanged": True}}, list=lambda params, at=at: {"roots": [{"uri": at}]})
            for at in ("file:///1", "file:///2")
        ]
        for client, at in zip(clients, ("file:///1", "file:///2"), strict=True):
            break_free = await client.value("a__ask", method="roots/list")
            assert break_free == {"result": {"roots": [{"uri": at}]}}
        pids = [await client.value("a__pid") for client in clients]
        assert len(set(pids)) == 2, "roots are state: these clients do not share a process"
        clients[0].notify("notifications/roots/list_changed")
        heard = [
            [message["method"] for message in await client.value("a__journal") if "method" in message]
            for client in clients
        ]
        assert ["notifications/roots/list_changed" in methods for methods in heard] == [True, False]


async def test_a_question_ends_with_its_client(tmp_path: Path) -> None:
    async with stage(tmp_path, {"a": {}}, servers={"a": {"isolation": "shared"}}) as on:
        leaving = await on.legacy(SAMPLING)
        identifier = leaving.begin("a__ask", method="sampling/createMessage")
        await leaving.until(lambda: leaving.asked("sampling/createMessage"))
        leaving.close()
        await eventually(lambda: [message for message in on.journal("a") if "error" in message])
        (refused,) = [message for message in on.journal("a") if "error" in message]
        assert "gone" in refused["error"]["message"]
        assert str(identifier) not in leaving.responses


async def test_a_session_of_a_server_that_asks_ends_with_its_client(tmp_path: Path) -> None:
    async with stage(tmp_path, {"a": {}}) as on:
        leaving = await on.legacy(SAMPLING)
        process = await leaving.value("a__pid")
        leaving.begin("a__ask", method="sampling/createMessage")
        await leaving.until(lambda: leaving.asked("sampling/createMessage"))
        leaving.close()
        await gone(process)


async def test_where_all_must_share_a_session_an_ambiguous_question_stays_refused(tmp_path: Path) -> None:
    async with stage(tmp_path, {"a": {}}, servers={"a": {"isolation": "shared"}}) as on:
        one = await on.legacy(SAMPLING, createMessage=lambda params: sampled("one"))
        two = await on.legacy(SAMPLING, createMessage=lambda params: sampled("two"))
        await held_by(one, "1")
        for _ in range(2):
            reply = await two.value("a__ask", method="sampling/createMessage")
            assert reply["error"]["code"] == -32600
        await two.call("a__release", key="1")
        assert await two.value("a__ask", method="sampling/createMessage") == {"result": sampled("two")}
        assert await one.value("a__pid") == await two.value("a__pid")


async def test_a_question_taken_back_by_the_server_is_taken_back_from_the_client(tmp_path: Path) -> None:
    async with stage(tmp_path, {"a": {}}) as on:
        client = await on.legacy(SAMPLING)
        client.begin("a__ask", method="sampling/createMessage")
        await client.until(lambda: client.asked("sampling/createMessage"))
        (server_side,) = [task for upstream in on.upstreams("a") for task in asks(upstream)]
        await client.call("a__notify", method="notifications/cancelled", params={"requestId": server_side})
        (asked,) = client.asked("sampling/createMessage")
        await client.until(lambda: client.notices("notifications/cancelled"))
        assert client.notices("notifications/cancelled") == [{"requestId": asked["id"]}]
        client.respond(asked["id"], {"late": True})
        assert [message for message in await client.value("a__journal") if "result" in message] == []


def asks(upstream: Any) -> list[str]:
    return [] if upstream.connection is None else [key.decode().strip('"') for key in upstream.connection._asks]


async def test_what_servers_may_not_ask_is_refused_and_a_ping_is_answered(tmp_path: Path) -> None:
    async with stage(tmp_path, {"a": {}}) as on:
        client = await on.legacy(SAMPLING)
        assert await client.value("a__ask", method="ping") == {"result": {}}
        reply = await client.value("a__ask", method="tools/call", params={"name": "a__die"})
        assert reply["error"]["code"] == -32601
        assert client.asked("tools/call") == []


async def test_a_question_keeps_its_call_from_timing_out(tmp_path: Path) -> None:
    async with stage(tmp_path, {"a": {}}, servers={"a": {"timeoutSeconds": 0.5}}) as on:
        client = await on.legacy(SAMPLING)
        identifier = client.begin("a__ask", method="sampling/createMessage")
        await client.until(lambda: client.asked("sampling/createMessage"))
        for _ in range(4):
            await client.call("a__delay", seconds=0.2)
        client.respond(client.asked("sampling/createMessage")[0]["id"], sampled("last"))
        result = await client.response(identifier)
        assert "isError" not in result, result


async def test_the_notice_of_a_finished_elicitation_goes_to_who_was_sent_to_the_url(tmp_path: Path) -> None:
    params: Json = {"mode": "url", "elicitationId": "e1", "url": "https://example.com", "message": "m"}
    declared: Json = {"elicitation": {"url": {}}}
    async with stage(tmp_path, {"a": {}}) as on:
        one = await on.legacy(declared, create=lambda params: {"action": "accept"})
        two = await on.legacy(declared, create=lambda params: {"action": "accept"})
        await one.call("a__ask", method="elicitation/create", params=params)
        notice = {"elicitationId": "e1"}
        await two.call("a__notify", method="notifications/elicitation/complete", params=notice)
        await one.until(lambda: one.notices("notifications/elicitation/complete"))
        assert one.notices("notifications/elicitation/complete") == [notice]
        assert two.notices("notifications/elicitation/complete") == []
