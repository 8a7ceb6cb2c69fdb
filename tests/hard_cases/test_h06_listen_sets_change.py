"""H6: what a listen stream is about cannot be changed, and nothing is replayed: no update is lost, none told twice."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.interaction.scripted_http import scripted_http
from tests.interaction.stage import Client, Json, RefusedError, Stage, stage

URIS = [f"file:///{name}" for name in "abcd"]
LISTED: Json = {"resources": [{"uri": uri, "name": uri[-1]} for uri in URIS]}
TRANSPORTS = pytest.mark.parametrize("transport", ["stdio", "http"])


@asynccontextmanager
async def modern_server(folder: Path, transport: str, **settings: Any) -> AsyncGenerator[Stage]:
    settings = {"era": "modern"} | LISTED | settings
    if transport == "stdio":
        async with stage(folder, {"a": settings}) as on:
            await on.up("a")
            yield on
    else:
        async with (
            scripted_http(**settings) as server,
            stage(folder, {"a": {"url": server.url, "type": "http"}}) as on,
        ):
            await on.up("a")
            yield on


def updated(client: Client) -> list[str]:
    """What the client was told of, by its own spelling."""
    return [each["uri"] for each in client.notices("notifications/resources/updated")]


async def update(client: Client, uri: str) -> None:
    assert (await client.call("a__update", uri=uri))["content"]


@TRANSPORTS
async def test_a_growing_and_shrinking_set_tells_of_each_update_once(tmp_path: Path, transport: str) -> None:
    async with modern_server(tmp_path, transport) as on:
        client, other = await on.legacy(), await on.legacy()
        told: list[str] = []
        for count, uri in enumerate(URIS, 1):
            await client.request("resources/subscribe", {"uri": f"a+{uri}"})
            for each in URIS[:count]:  # while the old stream is still open
                await update(other, each)
                told.append(f"a+{each}")
        await client.until(lambda: len(updated(client)) >= len(told))
        assert updated(client) == told
        await client.request("resources/unsubscribe", {"uri": f"a+{URIS[0]}"})
        await update(other, URIS[0])
        await update(other, URIS[1])
        await client.until(lambda: len(updated(client)) > len(told))
        assert updated(client)[len(told) :] == [f"a+{URIS[1]}"]


@pytest.mark.parametrize(
    ("transport", "how"), [("stdio", "result"), ("stdio", "cancelled"), ("http", "result")]
)  # over HTTP a stream ends by its result
async def test_after_a_gap_everything_counts_as_changed(tmp_path: Path, transport: str, how: str) -> None:
    async with modern_server(tmp_path, transport) as on:
        client = await on.legacy()
        await client.request("resources/subscribe", {"uri": f"a+{URIS[0]}"})
        await client.call("a__unlisten", how=how)
        await client.until(lambda: updated(client))
        assert updated(client) == [f"a+{URIS[0]}"]
        listens = len(
            [each for each in await client.value("a__journal") if each.get("method") == "subscriptions/listen"]
        )
        while listens < 3:
            journal = await client.value("a__journal")
            listens = len([each for each in journal if each.get("method") == "subscriptions/listen"])
        await update(client, URIS[0])
        await client.until(lambda: len(updated(client)) == 2)


@TRANSPORTS
async def test_there_is_one_stream_for_all_and_it_counts_its_users(tmp_path: Path, transport: str) -> None:
    async with modern_server(tmp_path, transport) as on:
        clients = [await on.legacy() for _ in range(3)]
        for client in clients:
            await client.request("resources/subscribe", {"uri": f"a+{URIS[0]}"})
        await update(clients[0], URIS[0])
        for client in clients:
            await client.until(lambda client=client: updated(client) == [f"a+{URIS[0]}"])
        journal = await clients[0].value("a__journal")
        streams = [each["params"]["notifications"] for each in journal if each.get("method") == "subscriptions/listen"]
        subscribed = [each["resourceSubscriptions"] for each in streams if "resourceSubscriptions" in each]
        assert subscribed == [[URIS[0]]]
        assert all(each["toolsListChanged"] for each in streams)


@TRANSPORTS
async def test_what_the_server_does_not_honour_is_not_acknowledged(tmp_path: Path, transport: str) -> None:
    async with modern_server(tmp_path, transport, honours=[URIS[0]]) as on:
        legacy, modern = await on.legacy(), on.modern()
        await legacy.request("resources/subscribe", {"uri": f"a+{URIS[0]}"})
        with pytest.raises(RefusedError, match="takes no subscription"):
            await legacy.request("resources/subscribe", {"uri": f"a+{URIS[1]}"})
        wanted = {"resourceSubscriptions": [f"a+{uri}" for uri in URIS[:2]]}
        stream = modern.send("subscriptions/listen", {"notifications": wanted})
        await modern.until(lambda: modern.notices("notifications/subscriptions/acknowledged"))
        (acknowledged,) = modern.notices("notifications/subscriptions/acknowledged")
        assert acknowledged["notifications"] == {"resourceSubscriptions": [f"a+{URIS[0]}"]}
        await update(legacy, URIS[0])
        await modern.until(lambda: updated(modern) == [f"a+{URIS[0]}"])
        modern.cancel(stream)


async def test_a_legacy_server_is_told_once_for_many_and_updates_survive_its_restart(tmp_path: Path) -> None:
    async with stage(tmp_path, {"a": {"era": "legacy"} | LISTED}) as on:
        one, two = on.modern(), await on.legacy()
        wanted = {"resourceSubscriptions": [f"a+{URIS[0]}"]}
        stream = one.send("subscriptions/listen", {"notifications": wanted})
        await one.until(lambda: one.notices("notifications/subscriptions/acknowledged"))
        await two.request("resources/subscribe", {"uri": f"a+{URIS[0]}"})
        assert len(on.received("a", "resources/subscribe")) == 1
        two.begin("a__die")
        await one.until(lambda: updated(one))
        assert updated(one) == [f"a+{URIS[0]}"], "it may have changed while the server was down"
        await update(two, URIS[0])
        await one.until(lambda: len(updated(one)) == 2)
        one.cancel(stream)
