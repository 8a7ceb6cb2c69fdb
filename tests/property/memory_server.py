"""A legacy server in the test's own memory, which does what the test says and keeps what it is told."""

import asyncio
import itertools
import json
from collections.abc import Callable
from typing import Any

from polyplex.config import ServerConfig
from polyplex.protocol.revisions import LATEST_LEGACY, Era
from polyplex.transports.exchange import Exchange, Receiver
from polyplex.upstreams.connection import Connection, Handler
from polyplex.upstreams.handshake import Identity, open_session
from tests.property.clockwork import Clockwork

Json = dict[str, Any]
TOOL: Json = {"name": "t", "inputSchema": {"type": "object"}}
QUESTIONS: dict[str, Callable[[str], Json]] = {
    "elicitation/create": lambda tag: {"message": tag, "requestedSchema": {"type": "object", "properties": {}}},
    "sampling/createMessage": lambda tag: {
        "messages": [{"role": "user", "content": {"type": "text", "text": tag}}],
        "maxTokens": 1,
    },
    "roots/list": lambda tag: {},
}


class Execution:
    """One run of the tool. `ended` says how it is over for the server."""

    def __init__(self, wire: "Wire", message: Json, exchange: Exchange) -> None:
        self.wire = wire
        self.id = message["id"]
        self.mark: int = message["params"]["arguments"]["mark"]
        self.token = message["params"].get("_meta", {}).get("progressToken")
        self.exchange = exchange
        self.ended: str | None = None
        self.cancels = 0
        self.result: Json | None = None


class Ask:
    """One question. `answers` is all that came back for it."""

    def __init__(self, execution: Execution, identifier: str, method: str) -> None:
        self.execution = execution
        self.id = identifier
        self.tag = identifier
        self.method = method
        self.taken_back = self.taken_back_in_quiet = False
        self.answers: list[Json] = []


class Wire:
    """One connection: a client transport whose far side is the server."""

    cancels_by_closing = False

    def __init__(self, server: "MemoryServer") -> None:
        self._server = server
        self.open_ = True
        self._receiver: Receiver

    async def open(self, receiver: Receiver) -> None:
        self._receiver = receiver

    def established(self, revision: str, *, stateful: bool) -> None:
        """Nothing depends on it."""

    def abandon(self, exchange: Exchange) -> None:
        """Nothing to close."""

    async def close(self) -> None:
        self._end()

    def die(self) -> None:
        """The server goes away in the middle of whatever there is."""
        if self.open_:
            self._end()
            self._receiver.closed("it died")

    def _end(self) -> None:
        self.open_ = False
        for execution in self._server.executions:
            if execution.wire is self and execution.ended is None:
                execution.ended = "died"

    def send(
        self, frame: bytes, exchange: Exchange | None = None, headers: list[tuple[str, str]] | None = None
    ) -> None:
        message: Json = json.loads(frame)
        assert self.open_, f"sent to a server that is gone: {message}"
        self._server.received(self, message, exchange)

    def say(self, message: Json, exchange: Exchange | None) -> None:
        """To the client; an HTTP server says it on the stream of a request."""
        if self.open_:
            hint = exchange if self._server.attributes else None
            self._receiver.received(json.dumps({"jsonrpc": "2.0"} | message).encode(), hint)


class MemoryServer:
    """All connections of one server. With `attributes`, what it sends names the request it belongs to."""

    def __init__(self, *, attributes: bool) -> None:
        self.attributes = attributes
        self.executions: list[Execution] = []
        self.asks: list[Ask] = []
        self.wires: list[Wire] = []
        self._numbers = itertools.count(1)

    async def connect(
        self, config: ServerConfig, handler: Handler, identity: Identity, first: Era, on_stderr: Callable[[str], None]
    ) -> Connection:
        """Stands in for `polyplex.upstreams.dial.connect`."""
        wire = Wire(self)
        self.wires.append(wire)
        connection = Connection(config.name, wire, handler)
        await wire.open(connection)
        await open_session(connection, identity, Era.LEGACY, 5)
        return connection

    # -- what it receives
    def received(self, wire: Wire, message: Json, exchange: Exchange | None) -> None:
        method = message.get("method")
        if method is None:
            (ask,) = [ask for ask in self.asks if ask.id == message["id"] and ask.execution.wire is wire]
            ask.answers.append(message)
        elif method == "notifications/cancelled":
            for execution in self.executions:
                if execution.wire is wire and execution.id == message["params"]["requestId"]:
                    execution.cancels += 1
                    execution.ended = execution.ended or "cancelled"
        elif method == "tools/call":
            assert exchange is not None
            self.executions.append(Execution(wire, message, exchange))
        elif "id" in message:
            result: Json = {}
            if method == "initialize":
                info = {"name": "memory", "version": "1"}
                result = {"protocolVersion": LATEST_LEGACY, "capabilities": {"tools": {}}, "serverInfo": info}
            elif method == "tools/list":
                result = {"tools": [TOOL]}
            loop = asyncio.get_running_loop()
            loop.call_soon(wire.say, {"id": message["id"], "result": result}, exchange)

    # -- what it does
    def live(self) -> list[Execution]:
        """The runs that are not over."""
        return [execution for execution in self.executions if execution.ended is None]

    def open_asks(self) -> list[Ask]:
        """Its questions that have no answer yet."""
        return [ask for ask in self.asks if not ask.answers and not ask.taken_back and ask.execution.wire.open_]

    def ask(self, execution: Execution, method: str) -> None:
        ask = Ask(execution, f"ask-{next(self._numbers)}", method)
        self.asks.append(ask)
        message: Json = {"id": ask.id, "method": method, "params": QUESTIONS[method](ask.tag)}
        execution.wire.say(message, execution.exchange)

    def take_back(self, ask: Ask) -> None:
        """An answer may be on its way already, unless all is quiet."""
        loop = asyncio.get_running_loop()
        ask.taken_back, ask.taken_back_in_quiet = True, isinstance(loop, Clockwork) and loop.idle
        message: Json = {"method": "notifications/cancelled", "params": {"requestId": ask.id}}
        ask.execution.wire.say(message, ask.execution.exchange)

    def finish(self, execution: Execution, *, failing: bool = False) -> None:
        execution.ended = "finished"
        execution.result = {"content": [{"type": "text", "text": f"done {execution.mark}"}]}
        outcome: Json = {"result": execution.result}
        if failing:
            outcome = {"error": {"code": -32099, "message": f"failed {execution.mark}"}}
        execution.wire.say({"id": execution.id} | outcome, execution.exchange)

    def progress(self, execution: Execution) -> None:
        if execution.token is not None:
            params = {"progressToken": execution.token, "progress": next(self._numbers)}
            execution.wire.say({"method": "notifications/progress", "params": params}, execution.exchange)
