"""`polyplex serve` in front of servers that are killed: what a client sees, and that no process is left."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.interaction.stage import entry
from tests.process.children import gone
from tests.process.cli import DEADLINE_SECONDS, Home

Json = dict[str, Any]


class Talk:
    """A legacy client on the standard streams of `polyplex serve --stdio`."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.notices: list[Json] = []
        self._count = 0

    def send(self, method: str, params: Json, **members: Any) -> None:
        assert self.process.stdin is not None
        message = {"jsonrpc": "2.0", "method": method, "params": params} | members
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()

    def begin(self, method: str, params: Json) -> int:
        self._count += 1
        self.send(method, params, id=self._count)
        return self._count

    def answer(self, identifier: int) -> Json:
        """Read up to the answer; pytest's time-out is the deadline."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            message: Json = json.loads(line)
            if message.get("id") == identifier and "method" not in message:
                return message
            self.notices.append(message)
        raise AssertionError("stdout ended")

    def request(self, method: str, params: Json) -> Json:
        return self.answer(self.begin(method, params))["result"]

    def call(self, tool: str, **arguments: Any) -> Any:
        """The text of a tool's result."""
        return self.request("tools/call", {"name": tool, "arguments": arguments})["content"][0]["text"]


@contextmanager
def talking(home: Home) -> Generator[Talk]:
    with home.running("serve", "--stdio") as process:
        talk = Talk(process)
        client = {"name": "t", "version": "1"}
        talk.request("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client})
        talk.send("notifications/initialized", {})
        yield talk


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path)
    servers = {
        name: entry(tmp_path / f"{name}.journal", {"era": era}) for name, era in (("a", "legacy"), ("b", "modern"))
    }
    home.configure(servers)
    return home


def started(home: Home) -> list[int]:
    """Every process of every server so far."""
    lines = [line for file in home.folder.glob("*.journal") for line in file.read_text().splitlines()]
    return [message["start"] for message in map(json.loads, lines) if "start" in message]


async def test_a_killed_server_fails_its_calls_comes_back_and_is_gone_at_the_end(home: Home) -> None:
    with talking(home) as talk:
        for server in ("a", "b"):
            first = int(talk.call(f"{server}__pid"))
            held = talk.begin("tools/call", {"name": f"{server}__hold", "arguments": {}})
            talk.call(f"{server}__echo")
            os.kill(first, signal.SIGKILL)
            result = talk.answer(held)["result"]
            assert result["isError"] is True
            assert f"'{server}'" in result["content"][0]["text"]
            assert "SIGKILL" in result["content"][0]["text"]
            assert int(talk.call(f"{server}__pid")) != first
        talk.process.send_signal(signal.SIGTERM)
        assert talk.process.wait(DEADLINE_SECONDS) == 0
    assert len(started(home)) >= 4
    await gone(*started(home))


async def test_servers_end_when_the_client_goes_away(home: Home) -> None:
    with talking(home) as talk:
        talk.call("a__echo")
        talk.begin("tools/call", {"name": "b__hold", "arguments": {}})
        assert talk.process.stdin is not None
        talk.process.stdin.close()
        assert talk.process.wait(DEADLINE_SECONDS) == 0
        talk.process.stdin = None
    await gone(*started(home))


@pytest.mark.skipif(sys.platform != "linux", reason="the reaper needs Linux or macOS process groups")
async def test_servers_end_when_polyplex_itself_is_killed(home: Home) -> None:
    with talking(home) as talk:
        talk.call("a__echo")
        talk.call("b__echo")
        talk.process.kill()
        talk.process.wait(DEADLINE_SECONDS)
    assert started(home)
    await gone(*started(home))
