"""H5: a modern server answers with questions, and a legacy client is asked by requests; see also test_rounds.py."""

from pathlib import Path

from tests.interaction.parked import ANSWERS, FORM
from tests.interaction.scripted_http import scripted_http
from tests.interaction.stage import Json, stage, value

QUESTION: Json = {"method": "elicitation/create", "params": FORM}


async def test_the_arguments_are_kept_for_an_answer_that_takes_its_time(tmp_path: Path) -> None:
    async with (
        scripted_http(era="modern") as server,
        stage(tmp_path, {"a": {"url": server.url, "type": "http"}}) as on,
    ):
        client = await on.legacy({"elicitation": {}})
        arguments: Json = {"rounds": 2, "questions": {"f": QUESTION}, "big": "x" * 100_000, "nested": [{"a": [1]}]}
        call = client.begin("a__rounds", **arguments)
        for number in (1, 2):
            await client.until(lambda number=number: len(client.asked("elicitation/create")) == number)
            assert (await client.value("a__echo", n=number))["arguments"] == {"n": number}, "others go on meanwhile"
            client.respond(client.asked("elicitation/create")[-1]["id"], ANSWERS["elicitation/create"])
        assert value(await client.response(call)) == {"f": ANSWERS["elicitation/create"]}
        sent = [each["params"] for each in server.script.journal if each.get("params", {}).get("name") == "rounds"]
        assert [params["arguments"] for params in sent] == [arguments] * 3


async def test_a_client_that_cancels_while_it_is_asked_ends_the_call(tmp_path: Path) -> None:
    async with stage(tmp_path, {"a": {"era": "modern"}}) as on:
        client = await on.legacy({"elicitation": {}})
        call = client.begin("a__rounds", rounds=1, questions={"f": QUESTION})
        await client.until(lambda: client.asked("elicitation/create"))
        client.cancel(call)
        await client.until(lambda: str(call) in client.cancelled)
        (withdrawn,) = client.notices("notifications/cancelled")
        assert withdrawn["requestId"] == client.asked("elicitation/create")[0]["id"]
        assert len(on.received("a", "tools/call")) == 1


async def test_a_client_that_goes_away_while_it_is_asked_leaves_nothing_behind(tmp_path: Path) -> None:
    async with stage(tmp_path, {"a": {"era": "modern"}}) as on:
        client = await on.legacy({"elicitation": {}})
        client.begin("a__rounds", rounds=1, questions={"f": QUESTION})
        await client.until(lambda: client.asked("elicitation/create"))
        client.close()
        other = await on.legacy()
        assert (await other.value("a__echo", n=1))["arguments"] == {"n": 1}
