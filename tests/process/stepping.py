"""Servers with one long call, `slow`, that reports progress and ends exactly when a test says so."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from tests.process.http_stage import Peer, Received

Json = dict[str, Any]
INFO = {"name": "stepping", "version": "1"}
TOOLS = [{"name": name, "inputSchema": {"type": "object"}} for name in ("slow", "step", "finish")]
STDIO = """
import json, sys
slow, steps = None, 0
def send(**message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\\n")
    sys.stdout.flush()
def text(identifier, value):
    send(id=identifier, result={"content": [{"type": "text", "text": value}]})
def call(identifier, params):
    global slow, steps
    if params["name"] == "slow":
        slow = (identifier, params.get("_meta", {}).get("progressToken"))
    elif params["name"] == "step":
        steps += 1
        send(method="notifications/progress", params={"progressToken": slow[1], "progress": steps})
        text(identifier, "stepped")
    else:
        text(slow[0], "the end")
        text(identifier, "finished")
for line in sys.stdin:
    message = json.loads(line)
    identifier, method, params = message.get("id"), message.get("method"), message.get("params", {})
    with open(sys.argv[1], "a") as journal:
        journal.write(line)
    if method == "initialize":
        info = json.loads(sys.argv[2])
        send(id=identifier, result={"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info})
    elif method == "tools/list":
        send(id=identifier, result={"tools": json.loads(sys.argv[3])})
    elif method == "tools/call":
        call(identifier, params)
    elif identifier is not None and method is not None:
        send(id=identifier, error={"code": -32601, "message": "no such method"})
"""


def stdio_entry(folder: Path) -> Json:
    """The configuration of the server on stdio; `journal` in the folder has what it received."""
    script = folder / "stepping_server.py"
    script.write_text(STDIO, encoding="utf-8")
    arguments = ["-S", str(script), str(folder / "journal"), json.dumps(INFO), json.dumps(TOOLS)]
    return {"command": sys.executable, "args": arguments}


def journal(folder: Path) -> list[Json]:
    """What the server on stdio received."""
    return [json.loads(line) for line in (folder / "journal").read_text(encoding="utf-8").splitlines()]


class PollingServer:
    """The server over HTTP in a given revision. It closes the stream of `slow` whenever it has said what it has to say.

    With 2025-11-25 it primes its streams and wants to be polled; in the older revisions the first event opens them, and
    its connections break. `cut` says how: None closes the stream in good order.
    """

    def __init__(self, revision: str = "2025-11-25", cut: int | None = None) -> None:
        self.revision = revision
        self.cut = cut
        self.frames: list[bytes] = []
        self.calls = 0
        self.losses = 0
        self.told = 0
        self.begun = asyncio.Event()
        self._more = asyncio.Condition()
        self._slow: tuple[Any, Any] = (None, None)

    async def step(self) -> None:
        """The next progress; returns once it has left."""
        params = {"progressToken": self._slow[1], "progress": len(self.frames) + 1}
        await self._say({"method": "notifications/progress", "params": params})

    async def finish(self) -> None:
        """The result."""
        await self._say({"id": self._slow[0], "result": {"content": [{"type": "text", "text": "the end"}]}})

    async def _say(self, message: Json) -> None:
        async with self._more:
            self.frames.append(json.dumps({"jsonrpc": "2.0"} | message).encode())
            self._more.notify_all()
            number = len(self.frames)
            await self._more.wait_for(lambda: self.told >= number)

    async def serve(self, peer: Peer) -> None:
        """The script of a connection."""
        while True:
            request = await peer.request()
            if request.method == "GET":
                await self._take_up(peer, request)
            elif request.method == "DELETE":
                await peer.answer()
            else:
                await self._message(peer, json.loads(request.body))

    async def _message(self, peer: Peer, message: Json) -> None:
        method, identifier = message.get("method"), message.get("id")
        if identifier is None:
            await peer.answer(status="202 Accepted")
        elif method == "initialize":
            result = {"protocolVersion": self.revision, "capabilities": {"tools": {}}, "serverInfo": INFO}
            await self._result(peer, identifier, result, "Mcp-Session-Id: only\r\n")
        elif method == "tools/list":
            await self._result(peer, identifier, {"tools": TOOLS[:1]})
        elif method == "tools/call":
            self._slow = identifier, message["params"].get("_meta", {}).get("progressToken")
            self.calls += 1
            self.begun.set()
            if self.revision == "2025-11-25":
                await peer.events(b"id: 0\nretry: 10\ndata:\n\n")
            else:
                await self._stream(peer, 0)
        else:
            error = {"code": -32601, "message": "no such method"}
            await peer.answer(
                json.dumps({"jsonrpc": "2.0", "id": identifier, "error": error}).encode(), "400 Bad Request"
            )

    async def _result(self, peer: Peer, identifier: Any, result: Json, extra: str = "") -> None:
        body = json.dumps({"jsonrpc": "2.0", "id": identifier, "result": result}).encode()
        await peer.answer(body, extra=extra)

    async def _take_up(self, peer: Peer, request: Received) -> None:
        last = request.headers.get("last-event-id")
        if last is None:
            await peer.answer(status="405 Method Not Allowed")
        else:
            await self._stream(peer, int(last))

    async def _stream(self, peer: Peer, position: int) -> None:
        """What there is after an event, or else the next; then the connection is lost, now and then within the last."""
        self.losses += 1
        async with self._more:
            await self._more.wait_for(lambda: len(self.frames) > position)
        numbers = range(position + 1, len(self.frames) + 1)
        events = [b"id: %d\nretry: 10\ndata: %b\n\n" % (number, self.frames[number - 1]) for number in numbers]
        whole = self.cut is None or self.losses % 2 == 1
        if self.cut is None:
            await peer.events(*events)
        else:
            await peer.events(*events[:-1], end=False)
            last = b"%x\r\n%b\r\n" % (len(events[-1]), events[-1])
            await peer.say(last if whole else last[: self.cut])
            peer.close()
        async with self._more:
            self.told = max(self.told, len(self.frames) if whole else len(self.frames) - 1)
            self._more.notify_all()
        if self.cut is not None:
            await peer.gone()
