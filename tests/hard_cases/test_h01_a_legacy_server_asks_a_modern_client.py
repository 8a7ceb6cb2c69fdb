"""H1: a legacy server asks in the middle of a call of a modern client; here over real HTTP, on both sides.

tests/interaction/test_parking.py has every turn it can take.
"""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from polyplex.downstream.http import HttpEndpoint, HttpOptions
from polyplex.protocol.revisions import LATEST_MODERN
from tests.interaction.parked import ABLE, ANSWERS, asking, retry
from tests.interaction.scripted_http import ScriptedHttp, scripted_http
from tests.interaction.stage import META, Json, eventually, stage, value
from tests.process.http_stage import RawClient, raw_client

META_FIELDS: Json = {
    META + "protocolVersion": LATEST_MODERN,
    META + "clientCapabilities": ABLE,
    META + "clientInfo": {"name": "raw", "version": "1"},
}


@asynccontextmanager
async def served(folder: Path) -> AsyncGenerator[tuple[int, ScriptedHttp]]:
    """The port of a gateway, over HTTP before a legacy server over HTTP."""
    async with (
        scripted_http(era="legacy") as server,
        stage(folder, {"a": {"url": server.url, "type": "http"}}) as on,
    ):
        endpoint = HttpEndpoint(on.gateway, HttpOptions(port=0), lambda: (True, {}), lambda: b"")
        (_, port), *_ = await endpoint.start()
        try:
            yield port, server
        finally:
            await endpoint.close()


async def send(client: RawClient, params: Json, identifier: object = 1) -> None:
    body = {"jsonrpc": "2.0", "id": identifier, "method": "tools/call"}
    body |= {"params": params | {"_meta": META_FIELDS | params.get("_meta", {})}}
    headers = {
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": LATEST_MODERN,
        "Mcp-Method": "tools/call",
        "Mcp-Name": params["name"],
    }
    await client.request("POST", "/mcp", json.dumps(body).encode(), headers)


async def result(client: RawClient) -> Json:
    response = await client.response()
    assert response.status == 200, response
    return json.loads(response.body)["result"]


def cancelled(server: ScriptedHttp) -> list[Any]:
    return [message for message in server.script.journal if message.get("method") == "notifications/cancelled"]


async def test_the_retry_may_come_over_another_connection(tmp_path: Path) -> None:
    async with served(tmp_path) as (port, server):
        params = asking(*ANSWERS)
        async with raw_client(port) as first:
            await send(first, params, "one")
            questions = await result(first)
            assert questions["resultType"] == "input_required"
        async with raw_client(port) as second:
            await send(second, retry(params, questions), "two")
            assert value(await result(second)) == {"runs": 1, "told": [list(ANSWERS.values())]}
        assert cancelled(server) == []


async def test_a_stream_that_closes_before_the_questions_cancels_and_one_that_closes_after_them_does_not(
    tmp_path: Path,
) -> None:
    async with served(tmp_path) as (port, server):
        async with raw_client(port) as client:
            await send(client, {"name": "a__hold", "arguments": {"key": "k"}})
            await eventually(lambda: server.script.held)
        await eventually(lambda: cancelled(server))
        server.script.journal.clear()
        params = asking("elicitation/create")
        async with raw_client(port) as client:
            await send(client, params)
            questions = await result(client)
        async with raw_client(port) as client:
            await send(client, retry(params, questions))
            assert value(await result(client))["runs"] == 1
        assert cancelled(server) == []


async def test_a_retry_that_is_cut_off_cancels_the_call(tmp_path: Path) -> None:
    async with served(tmp_path) as (port, server):
        params = asking("elicitation/create", then="k")
        async with raw_client(port) as client:
            await send(client, params)
            questions = await result(client)
            await send(client, retry(params, questions))
            await eventually(lambda: server.script.held)
        await eventually(lambda: cancelled(server))
        assert server.script.runs == 1


async def test_clients_that_race_each_get_their_own_answer(tmp_path: Path) -> None:
    async with served(tmp_path) as (port, server):

        async def whole(number: int) -> Any:
            async with raw_client(port) as client:
                params = asking("elicitation/create", "sampling/createMessage", mark=number)
                await send(client, params)
                questions = await result(client)
                form, sample = questions["inputRequests"]
                mine = {form: {"action": "accept", "content": {"n": number}}, sample: ANSWERS["sampling/createMessage"]}
                await send(client, retry(params, questions, mine))
                return value(await result(client))["told"][0][0]["content"]["n"]

        assert await asyncio.gather(*map(whole, range(20))) == list(range(20))
        assert server.script.runs == 20
