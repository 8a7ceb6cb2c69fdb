"""`subscriptions/listen` of modern clients while servers are slow or silent."""

from pathlib import Path

import pytest

from polyplex.gateway import listens
from tests.interaction.stage import Json, eventually, stage
from tests.interaction.tasks import DECLARED, start_modern

ACKNOWLEDGED = "notifications/subscriptions/acknowledged"


async def test_nothing_comes_before_the_acknowledgement(tmp_path: Path) -> None:
    resource: Json = {"uri": "file:///x", "name": "x"}
    slow: Json = {"era": "legacy", "slow": {"resources/subscribe": "tools/call"}, "resources": [resource]}
    async with stage(tmp_path, {"a": {"era": "modern", "tasks": "optional"}, "b": slow}) as on:
        await on.up("b")
        client = on.modern(DECLARED)
        task = await start_modern(client, hold=True)
        wanted = {"taskIds": [task["taskId"]], "resourceSubscriptions": ["b+file:///x"]}
        client.send("subscriptions/listen", {"notifications": wanted})
        await eventually(lambda: on.received("b", "resources/subscribe"))
        await client.call("a__finish")
        await client.call("b__echo")  # lets the subscription be answered
        await client.until(lambda: client.notices("notifications/tasks"))
        came = [frame["method"] for frame in client.frames if "method" in frame]
        assert came == [ACKNOWLEDGED, "notifications/tasks"]
        assert client.notices(ACKNOWLEDGED)[0]["notifications"] == wanted


async def test_a_silent_server_keeps_no_others_subscription_from_being_acknowledged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listens, "SUBSCRIBE_SECONDS", 0.2)
    names = [{"uri": f"file:///{name}", "name": name} for name in ("x", "y")]
    silent: Json = {"era": "legacy", "silent": ["resources/subscribe"], "resources": names}
    async with stage(tmp_path, {"a": {"era": "legacy", "resources": names}, "b": silent}) as on:
        await on.up("a", "b")
        client = on.modern()
        wanted = ["b+file:///x", "a+file:///y", "b+file:///y", "a+file:///x"]
        client.send("subscriptions/listen", {"notifications": {"resourceSubscriptions": wanted}})
        await client.until(lambda: client.notices(ACKNOWLEDGED))
        taken = {"resourceSubscriptions": ["a+file:///y", "a+file:///x"]}
        assert client.notices(ACKNOWLEDGED)[0]["notifications"] == taken


async def test_a_burst_of_changes_of_a_task_is_reported_once_more_and_in_order(tmp_path: Path) -> None:
    settings: Json = {"tasks": "optional", "slow": {"tasks/get": "prompts/get"}, "prompts": [{"name": "p"}]}
    async with stage(tmp_path, {"a": {"era": "legacy"} | settings}) as on:
        client = on.modern(DECLARED)
        task = await start_modern(client, hold=True)
        client.send("subscriptions/listen", {"notifications": {"taskIds": [task["taskId"]]}})
        await client.until(lambda: client.notices(ACKNOWLEDGED))
        status = {"taskId": "task-1", "status": "working", "createdAt": "x", "lastUpdatedAt": "x", "ttl": None}
        for _ in range(20):
            await client.call("a__notify", method="notifications/tasks/status", params=status)
        await client.request("prompts/get", {"name": "a__p"})  # lets the first report be answered
        await client.until(lambda: len(client.notices("notifications/tasks")) == 2)
        await client.call("a__echo")
        assert len(on.received("a", "tasks/get")) == 2


@pytest.mark.parametrize("how", ["result", "cancelled"])
async def test_after_a_gap_a_task_is_asked_after_once_its_changes_are_heard_again(tmp_path: Path, how: str) -> None:
    async with stage(tmp_path, {"a": {"era": "modern", "tasks": "optional"}}) as on:
        client = on.modern(DECLARED)
        task = await start_modern(client, hold=True)
        client.send("subscriptions/listen", {"notifications": {"taskIds": [task["taskId"]]}})
        await client.until(lambda: client.notices(ACKNOWLEDGED))
        await client.call("a__unlisten", how=how)
        await client.until(lambda: client.notices("notifications/tasks"))
        asked = ("subscriptions/listen", "tasks/get")
        sent = [each for each in on.journal("a") if each.get("method") in asked]
        kinds = [
            each["method"]
            for each in sent
            if each["method"] == "tasks/get" or "taskIds" in each["params"]["notifications"]
        ]
        assert kinds == ["subscriptions/listen", "subscriptions/listen", "tasks/get"]
        (told,) = client.notices("notifications/tasks")
        assert "resultType" not in told
        assert list(told["_meta"]) == ["io.modelcontextprotocol/subscriptionId"]


async def test_many_resources_are_one_stream_to_a_modern_server(tmp_path: Path) -> None:
    resources = [{"uri": f"file:///{number}", "name": f"r{number}"} for number in range(40)]
    only: Json = {"honours": [each["uri"] for each in resources[:30]]}
    async with stage(tmp_path, {"a": {"era": "modern", "resources": resources} | only}) as on:
        await on.up("a")
        client = on.modern()
        wanted = [f"a+{each['uri']}" for each in resources]
        await eventually(lambda: on.received("a", "subscriptions/listen"))  # the one for list changes
        before = len(on.received("a", "subscriptions/listen"))
        listening = client.send("subscriptions/listen", {"notifications": {"resourceSubscriptions": wanted}})
        await client.until(lambda: client.notices(ACKNOWLEDGED))
        assert client.notices(ACKNOWLEDGED)[0]["notifications"] == {"resourceSubscriptions": wanted[:30]}
        assert len(on.received("a", "subscriptions/listen")) == before + 1
        client.cancel(listening)
        await eventually(lambda: len(on.received("a", "subscriptions/listen")) == before + 2)
        assert "resourceSubscriptions" not in on.received("a", "subscriptions/listen")[-1]["params"]["notifications"]
