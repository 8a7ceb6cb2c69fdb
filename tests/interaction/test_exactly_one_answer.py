"""Random calls, delays, cancellations and deaths: every request gets exactly one answer, its own, or was cancelled."""

import asyncio
import json
import random
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.interaction.scripted_http import scripted_http
from tests.interaction.stage import Client, stage

CALLS = 500
SERVERS = ("a", "b", "h")


class Chaos:
    """One client's random calls, and what came of them."""

    def __init__(self, client: Client, seed: int) -> None:
        self.client = client
        self.random = random.Random(seed)
        self.sent: dict[Any, tuple[str, Any]] = {}
        self.killed = 0

    def step(self) -> None:
        server, kind = self.random.choice(SERVERS), self.random.random()
        mark = f"{server}-{len(self.sent)}-{self.random.random()}"
        if kind < 0.02 and server != "h":
            self.killed += 1
            self.sent[self.client.begin(f"{server}__die")] = ("die", mark)
        elif kind < 0.6:
            seconds = self.random.random() / 20
            self.sent[self.client.begin(f"{server}__delay", seconds=seconds, value=mark)] = ("delay", mark)
        else:
            self.sent[self.client.begin(f"{server}__echo", mark=mark)] = ("echo", mark)
        if self.random.random() < 0.2:
            self.client.cancel(self.random.choice(list(self.sent)))

    def check(self) -> None:
        for identifier, (kind, mark) in self.sent.items():
            raw = json.dumps(identifier)
            answers = self.client.responses.get(raw, [])
            assert len(answers) == (0 if raw in self.client.cancelled else 1), (kind, answers)
            if not answers:
                continue
            (block,) = answers[0]["result"]["content"]
            if answers[0]["result"].get("isError"):
                assert "The server '" in block["text"]
            elif kind == "echo":
                assert json.loads(block["text"])["arguments"]["mark"] == mark
            else:
                assert (kind, json.loads(block["text"])) == ("delay", mark)


@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_every_request_gets_exactly_one_answer(tmp_path: Path, seed: int) -> None:
    async with AsyncExitStack() as exits:
        server = await exits.enter_async_context(scripted_http(era="legacy"))
        servers = {"a": {"era": "legacy"}, "b": {"era": "modern"}, "h": {"url": server.url, "type": "http"}}
        on = await exits.enter_async_context(stage(tmp_path, servers))
        await on.up(*SERVERS)
        chaos = [Chaos(client, seed * 10 + number) for number, client in enumerate([await on.legacy(), on.modern()])]
        chooser = random.Random(seed)
        for _ in range(CALLS):
            chooser.choice(chaos).step()
            if chooser.random() < 0.3:
                await asyncio.sleep(chooser.random() / 200)
            if chooser.random() < 0.01:
                server.forget()
        for each in chaos:
            client = each.client
            await client.until(
                lambda each=each, client=client: all(
                    json.dumps(identifier) in client.responses or json.dumps(identifier) in client.cancelled
                    for identifier in each.sent
                )
            )
            each.check()
        assert sum(each.killed for each in chaos) > 0
        for upstream in on.gateway.core.pool.all():
            calls = [] if upstream.connection is None else list(upstream.connection.in_flight.values())
            assert [call.method for call in calls if call.method == "tools/call"] == []
