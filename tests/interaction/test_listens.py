"""`subscriptions/listen` of modern clients while servers are slow or silent."""

from pathlib import Path

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
