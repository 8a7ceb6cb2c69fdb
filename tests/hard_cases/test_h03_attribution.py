"""H3: on stdio, nothing ties a server's question or log message to the call that caused it."""

from pathlib import Path

import msgspec

from tests.interaction.parked import ABLE, FORM, asking, finished, first_round, refusal, retry
from tests.interaction.scripted_http import scripted_http
from tests.interaction.stage import Json, eventually, stage, value

ASK: Json = {"name": "a__ask", "arguments": {"method": "elicitation/create", "params": FORM}}


async def test_a_question_never_reaches_a_client_that_it_may_not_be_for(tmp_path: Path) -> None:
    async with stage(tmp_path, {"a": {"era": "legacy"}}) as on:
        one = await on.legacy(
            {"elicitation": {"form": {}, "url": {}}, "sampling": {}}, create=lambda _: {"action": "x"}
        )
        two = on.modern({"elicitation": {"form": {}, "url": {}}, "sampling": {}})
        held = one.begin("a__hold", key="k")
        await one.value("a__pid")
        answer = value(await two.request("tools/call", ASK))
        assert "cannot be attributed" in answer["error"]["message"]
        assert one.asked("elicitation/create") == [], "and nobody was asked"
        assert (await first_round(two, ASK))["inputRequests"], "from then on each has a session of its own"
        assert one.asked("elicitation/create") == []
        one.cancel(held)


async def test_over_http_the_stream_tells_and_all_may_share_a_session(tmp_path: Path) -> None:
    async with (
        scripted_http(era="legacy") as server,
        stage(tmp_path, {"a": {"url": server.url, "type": "http"}}) as on,
    ):
        one, two = on.modern(ABLE), on.modern(ABLE)
        first, second = asking("elicitation/create", mark=1), asking("roots/list", mark=2)
        questions = await first_round(one, first), await first_round(two, second)
        assert value(await two.request("tools/call", retry(second, questions[1])))["told"][0][0] == {
            "roots": [{"uri": "file:///r"}]
        }
        assert value(await one.request("tools/call", retry(first, questions[0])))["told"][0][0]["action"] == "accept"
        assert len(server.sessions) == 2, "one that declares nothing, for the lists, and one for both"


async def test_a_state_tells_nothing_and_serves_nobody_else(tmp_path: Path) -> None:
    async with stage(tmp_path, {"a": {"era": "legacy"}}) as on:
        client = on.modern(ABLE)
        params = asking("elicitation/create", secret="to be or not to be")
        questions = await first_round(client, params)
        assert "secret" not in questions["requestState"] and "asks" not in questions["requestState"]
        for each in on.gateway.core.modern.all():
            each.binding = msgspec.structs.replace(each.binding, caller="somebody else")
        error = await refusal(client, retry(params, questions))
        assert error.code == -32602 and "given to somebody else" in error.message


async def test_a_log_message_that_belongs_to_no_call_reaches_no_modern_client(tmp_path: Path) -> None:
    async with stage(tmp_path, {"a": {"era": "legacy"}}) as on:
        client = on.modern()
        client.log_level = "debug"
        params: Json = {"method": "notifications/message", "params": {"level": "error", "data": "whose?"}}
        await client.value("a__pid")
        held = client.begin("a__hold", key="k")
        await eventually(lambda: len(on.received("a", "tools/call")) == 2)
        await client.value("a__notify", **params)
        await finished(client, {"name": "a__pid", "arguments": {}})
        assert client.notices("notifications/message") == [], "two calls were under way"
        client.cancel(held)
        await eventually(lambda: on.received("a", "notifications/cancelled"))
        await client.value("a__notify", **params)
        assert client.notices("notifications/message") == [params["params"]], "and now it is the only one's"
