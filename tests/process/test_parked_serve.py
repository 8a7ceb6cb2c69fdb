"""Parked calls of a real `polyplex serve` whose processes end in the middle (PROTOCOL: H1)."""

import json
import os
import re
import signal
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from tests.process.children import gone
from tests.process.cli import DEADLINE_SECONDS, Home, read_until

Json = dict[str, Any]
META = "io.modelcontextprotocol/"
ASK: Json = {"name": "one__ask", "arguments": {}}
UNKNOWN = "Whether it took effect is unknown"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    made = Home(tmp_path)
    made.configure({"one": made.good}, parked={"keys": ["k" * 32]})
    return made


def address(said: str) -> str:
    found = re.search(r"^serving  (http://127\.0\.0\.1:\d+/mcp)$", said, re.MULTILINE)
    assert found is not None
    return found[1]


def call(url: str, params: Json, method: str = "tools/call") -> Json:
    """The response to a modern client's request."""
    capabilities: Json = {"elicitation": {"form": {}}}
    meta: Json = {META + "protocolVersion": "2026-07-28", META + "clientCapabilities": capabilities}
    meta |= params.get("_meta", {})
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params | {"_meta": meta}}
    headers = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": method,
        "Mcp-Name": params["name"] if "name" in params else params["uri"],
    }
    request = urllib.request.Request(url, json.dumps(message).encode(), headers)
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with direct.open(request, timeout=DEADLINE_SECONDS) as response:
        body: str = response.read().decode()
    lines = [line.removeprefix("data:") for line in body.splitlines() if line.startswith("data:") and len(line) > 6]
    return json.loads(lines[-1] if lines else body)


def parked(url: str) -> Json:
    """A call that waits for its answer, as the params of its retry."""
    result = call(url, ASK)["result"]
    assert result["resultType"] == "input_required"
    given = {key: {"action": "accept", "content": {"name": "Ada"}} for key in result["inputRequests"]}
    return ASK | {"requestState": result["requestState"], "inputResponses": given}


def text(response: Json) -> str:
    (block,) = response["result"]["content"]
    return block["text"]


async def test_a_server_that_is_killed_ends_the_parked_call_and_the_next_one_works(home: Home) -> None:
    with home.running("serve", "--http", "127.0.0.1:0") as process:
        url = address(read_until(process, "ready "))
        retry = parked(url)
        for pid in home.children():
            os.kill(pid, signal.SIGKILL)
        await gone(*home.children())
        assert UNKNOWN in text(call(url, retry))
        assert UNKNOWN in text(call(url, retry)), "a second retry is told the same"
        assert text(call(url, parked(url))) == "accept"


async def test_a_parked_call_does_not_hold_up_the_end_and_nothing_is_left(home: Home) -> None:
    with home.running("serve", "--http", "127.0.0.1:0") as process:
        parked(address(read_until(process, "ready ")))
        process.send_signal(signal.SIGTERM)
        assert process.wait(DEADLINE_SECONDS) == 0
        assert process.stderr is not None
        said = process.stderr.read()
        assert "cut off" not in said and "Traceback" not in said
    await gone(*home.children())


async def test_a_state_outlives_the_process_and_says_what_became_of_the_call(home: Home) -> None:
    with home.running("serve", "--http", "127.0.0.1:0") as process:
        retry = parked(address(read_until(process, "ready ")))
        process.kill()
        process.wait(DEADLINE_SECONDS)
    await gone(*home.children())
    with home.running("serve", "--http", "127.0.0.1:0") as process:
        url = address(read_until(process, "ready "))
        error = call(url, retry)["error"]
        assert error["code"] == -32603 and UNKNOWN in error["message"]
        assert text(call(url, parked(url))) == "accept"
