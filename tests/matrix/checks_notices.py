"""What happens beside the answers: progress, logs, cancellation, changes; sessions and streams."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from tests.matrix.features import client_on_http, feature, server_on_http
from tests.matrix.peer.words import META, R2, Json, since
from tests.matrix.stage import Pair
from tests.matrix.wires import HttpWire

FLOW = "While a call runs"
CHANGES = "Changes and subscriptions"
WIRE = "Sessions and streams"
UPDATED = "notifications/resources/updated"
PROGRESS = "notifications/progress"


@feature(FLOW, "Progress", "Progress reaches the client that asked for it, under its own token, before the result.")
async def progress(pair: Pair) -> None:
    client = pair.client
    start = len(client.notices)
    result = await client.call("steps", {"progressToken": "my token"})
    assert result["content"][0]["text"] == '"done"'
    seen = [params for method, params in client.notices[start:] if method == PROGRESS]
    assert [(each["progressToken"], each["progress"], each["total"]) for each in seen] == [
        ("my token", step, 3) for step in (1, 2, 3)
    ]
    if client.revision in since(R2) and pair.server.revision in since(R2):
        assert seen[0]["message"] == "step 1"


@feature(FLOW, "Cancellation", "A call that the client gives up is given up by the server.")
async def cancellation(pair: Pair) -> None:
    client = pair.client
    key = f"cancel-{id(client)}"
    start = len(client.notices)
    identifier = await client.begin("hold", {"progressToken": key}, key=key)
    await client.noticed(PROGRESS, start)
    await client.cancel(identifier)
    assert await client.value("was_cancelled", key=key) is True
    assert json.dumps(identifier) not in client._responses


@feature(FLOW, "Log messages", "Messages of the level that the client asked for, none below, none unasked for.")
async def logging(pair: Pair) -> None:
    client = pair.client
    if client.modern:
        await client.value("say", text="quiet")
        assert not _logged(client.notices, "quiet"), "no level, no messages"
        client.log_level = "warning"
    else:
        await client.request("logging/setLevel", {"level": "warning"})
    await client.value("say", text="loud")
    await client.until(lambda: _logged(client.notices, "loud"))
    await client.value("echo")
    assert _logged(client.notices, "loud") == [
        {"level": "warning", "logger": "peer", "data": {"said": "loud", "n": [1, None]}}
    ]
    client.log_level = None


def _logged(notices: list[tuple[str, Json]], text: str) -> list[Json]:
    return [
        params for method, params in notices if method == "notifications/message" and params["data"]["said"] == text
    ]


@feature(FLOW, "Ping", "A client's ping is answered.")
async def ping(pair: Pair) -> None:
    assert await pair.client.request("ping") == {}


@asynccontextmanager
async def watching(pair: Pair, filters: Json) -> AsyncGenerator[None]:
    """A modern client's listen stream, acknowledged; nothing for a legacy client."""
    client = pair.client
    if not client.modern:
        yield
        return
    start = len(client.notices)
    identifier = await client.send("subscriptions/listen", {"notifications": filters})
    acknowledged = await client.noticed("notifications/subscriptions/acknowledged", start)
    assert acknowledged["_meta"][META + "subscriptionId"] == identifier
    assert acknowledged["notifications"] == filters
    yield
    await client.cancel(identifier)


@feature(CHANGES, "Resource subscriptions", "An update of a resource reaches those who subscribed to it, no others.")
async def subscriptions(pair: Pair) -> None:
    client = pair.client
    uri = "peer+peer://note"
    start = len(client.notices)
    async with watching(pair, {"resourceSubscriptions": [uri]}):
        if not client.modern:
            assert await client.request("resources/subscribe", {"uri": uri}) == {}
        await client.value("touch", uri="peer://blob")
        await client.value("touch", uri="peer://note")
        notice = await client.noticed(UPDATED, start)
        assert notice["uri"] == uri
        if not client.modern:
            assert await client.request("resources/unsubscribe", {"uri": uri}) == {}
    seen = [params["uri"] for method, params in client.notices[start:] if method == UPDATED]
    assert seen == [uri]


@feature(CHANGES, "List changes", "Tools, prompts and resources that come and go are told, and the lists are new.")
async def list_changes(pair: Pair) -> None:
    client = pair.client
    for kind, key in (("tools", "name"), ("prompts", "name"), ("resources", "uri")):
        grown = "peer+peer://grown" if kind == "resources" else "peer__grown"
        async with watching(pair, {f"{kind}ListChanged": True}):
            for _ in range(2):
                before = [entry[key] for entry in await client.listed(f"{kind}/list", kind)]
                start = len(client.notices)
                there = await client.value("grow", kind=kind)
                await client.noticed(f"notifications/{kind}/list_changed", start)
                after = [entry[key] for entry in await client.listed(f"{kind}/list", kind)]
                assert (grown in after, grown in before) == (there, not there), kind


@feature(
    WIRE,
    "Sessions",
    "A session id that is polyplex's own; without it 400, after DELETE 404. A modern client gets none.",
    applies=client_on_http,
)
async def sessions(pair: Pair) -> None:
    other = await pair.another({})
    wire = other.wire
    assert isinstance(wire, HttpWire)
    assert wire.session is not None
    body = json.dumps(other.message("tools/list")).encode()
    headers = wire.headers({"method": "tools/list"})
    bare = {name: value for name, value in headers.items() if name != "Mcp-Session-Id"}
    assert (await wire.exchange("POST", body, bare))[0] == 400
    assert (await wire.exchange("POST", body, headers))[0] == 200
    assert await wire.delete() == 200
    assert (await wire.exchange("POST", body, headers))[0] == 404
    wire.session = None


@feature(
    WIRE,
    "Resumption by the client",
    "A client that lost the stream of a call takes it up again with `Last-Event-ID`, and misses nothing.",
    applies=client_on_http,
)
async def resumption(pair: Pair) -> None:
    client = pair.client
    wire = client.wire
    assert isinstance(wire, HttpWire)
    key = f"resume-{id(client)}"
    start = len(client.notices)
    identifier = await client.begin("hold", {"progressToken": key}, key=key)
    await client.noticed(PROGRESS, start)
    last = wire.drop(identifier)
    assert last is not None
    await client.value("release", key=key)
    await wire.listen(last, "resumed")
    assert (await client.response(identifier))["content"][0]["text"] == '"released"'
    assert len([1 for method, _ in client.notices[start:] if method == PROGRESS]) == 1


@feature(
    WIRE,
    "Resumption towards the server",
    "polyplex takes up a server's stream that broke in the middle of a call; the client notices nothing.",
    applies=server_on_http,
)
async def upstream_resumption(pair: Pair) -> None:
    key = f"cut-{id(pair.client)}"
    start = len(pair.client.notices)
    identifier = await pair.client.begin("hold", {"progressToken": key}, key=key, cut=True)
    async with asyncio.timeout(15):
        while True:
            try:
                await pair.client.value("release", key=key)
                break
            except AssertionError:
                await asyncio.sleep(0.02)
    assert (await pair.client.response(identifier))["content"][0]["text"] == '"released"'
    assert [method for method, _ in pair.client.notices[start:]].count(PROGRESS) == 1


@feature(WIRE, "Batches", "An array of requests is answered by an array, whatever server answers them.")
async def batches(pair: Pair) -> None:
    client = pair.client
    start = len(client.batches)
    messages: list[Any] = [client.message("tools/call", client.call_params("echo", None, {"n": n})) for n in (1, 2)]
    await client.wire.send([*messages, {"jsonrpc": "2.0", "method": "notifications/vendor"}])
    for number, message in enumerate(messages, 1):
        result = await client.response(message["id"])
        assert json.loads(result["content"][0]["text"])["arguments"] == {"n": number}
    if pair.client_transport == "http":
        (batch,) = client.batches[start:]
        assert len(batch) == 2
