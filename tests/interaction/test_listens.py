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
