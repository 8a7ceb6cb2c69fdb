"""A modern server that needs input in the middle of a call of a legacy client (PROTOCOL: H5)."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from msgspec import Raw

from polyplex.protocol.jsonrpc import Message
from tests.interaction.scripted_http import scripted_http
from tests.interaction.stage import Json, RefusedError, Stage, stage

SCHEMA: Json = {"type": "object", "properties": {}}
FORM: Json = {"method": "elicitation/create", "params": {"message": "who?", "requestedSchema": SCHEMA}}
SAMPLE: Json = {"method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 5}}
ROOTS: Json = {"method": "roots/list"}
ABLE: Json = {"elicitation": {}, "sampling": {}, "roots": {}}
ACCEPTED: Json = {"action": "accept", "content": {"name": "Ada"}}


@asynccontextmanager
async def modern_server(folder: Path, transport: str) -> AsyncGenerator[Stage]:
    if transport == "stdio":
        async with stage(folder, {"a": {"era": "modern"}}) as on:
            yield on
    else:
        async with (
            scripted_http(era="modern") as server,
            stage(folder, {"a": {"url": server.url, "type": "http"}}) as on,
        ):
            yield on


def rounds(number: int) -> Json:
    return {"name": "a__rounds", "arguments": {"rounds": number, "questions": {"f": FORM}}}


@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_all_questions_of_all_rounds_reach_the_client_and_their_answers_the_server(
    tmp_path: Path, transport: str
) -> None:
    async with modern_server(tmp_path, transport) as on:
        client = await on.legacy(
            ABLE,
            create=lambda params: ACCEPTED,
            createMessage=lambda params: {"role": "assistant", "model": "m", "content": []},
            list=lambda params: {"roots": [{"uri": "file:///r"}]},
        )
        questions = {"form": FORM, "sample": SAMPLE, "roots": ROOTS}
        told = await client.value("a__rounds", rounds=3, questions=questions)
        assert told == {
            "form": ACCEPTED,
            "sample": {"role": "assistant", "model": "m", "content": []},
            "roots": {"roots": [{"uri": "file:///r"}]},
        }
        assert [len(client.asked(each["method"])) for each in questions.values()] == [3, 3, 3]
        assert client.asked("elicitation/create")[0]["params"] == FORM["params"]


async def test_each_round_is_a_request_of_its_own_with_the_original_arguments(tmp_path: Path) -> None:
    async with scripted_http(era="modern") as server:
        async with stage(tmp_path, {"a": {"url": server.url, "type": "http"}}) as on:
            client = await on.legacy(ABLE, create=lambda params: ACCEPTED)
            await client.value("a__rounds", rounds=2, questions={"form": FORM})
        sent = [message for message in server.script.journal if message.get("method") == "tools/call"]
        assert len({message["id"] for message in sent}) == 3
        assert len({str(message["params"]["arguments"]) for message in sent}) == 1
        assert [message["params"].get("requestState") for message in sent] == [None, "1", "2"]


async def test_a_client_without_the_ability_gets_an_error_and_is_not_asked(tmp_path: Path) -> None:
    async with modern_server(tmp_path, "stdio") as on:
        client = await on.legacy({"sampling": {}})
        with pytest.raises(RefusedError, match="elicitation"):
            await client.request("tools/call", rounds(1))
        assert client.asked("elicitation/create") == []


async def test_a_question_that_is_refused_takes_the_others_of_its_round_back(tmp_path: Path) -> None:
    async with modern_server(tmp_path, "stdio") as on:
        client = await on.legacy(ABLE)
        questions = {"form": FORM, "sample": SAMPLE}
        call = client.begin("a__rounds", rounds=1, questions=questions)
        await client.until(lambda: client.asked("sampling/createMessage") and client.asked("elicitation/create"))
        (sample,), (form,) = client.asked("sampling/createMessage"), client.asked("elicitation/create")
        error = Raw(b'{"code":-1,"message":"no"}')
        client.session.answered(Message(id=Raw(str(sample["id"])), error=error))
        with pytest.raises(RefusedError, match="refused sampling"):
            await client.response(call)
        await client.until(lambda: client.notices("notifications/cancelled"))
        assert client.notices("notifications/cancelled") == [{"requestId": form["id"]}]
        assert not client.session._asks


async def test_rounds_without_end_are_ended(tmp_path: Path) -> None:
    async with modern_server(tmp_path, "stdio") as on:
        client = await on.legacy(ABLE, create=lambda params: ACCEPTED)
        with pytest.raises(RefusedError, match="after 10 rounds"):
            await client.request("tools/call", rounds(99))
        assert (await client.value("a__echo", x=1))["arguments"] == {"x": 1}


async def test_a_question_about_a_url_gets_the_id_that_legacy_clients_want(tmp_path: Path) -> None:
    async with modern_server(tmp_path, "stdio") as on:
        client = await on.legacy({"elicitation": {"url": {}}}, create=lambda params: {"action": "accept"})
        link: Json = {
            "method": "elicitation/create",
            "params": {"mode": "url", "url": "https://e.example", "message": "m"},
        }
        assert await client.value("a__rounds", rounds=1, questions={"l": link}) == {"l": {"action": "accept"}}
        (asked,) = client.asked("elicitation/create")
        assert asked["params"]["elicitationId"]
        assert asked["params"] | {"elicitationId": ""} == link["params"] | {"elicitationId": ""}
