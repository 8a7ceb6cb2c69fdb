"""Two gateways in a row in the test's own memory, with another revision between them than at the two ends.

What a conversation looks like at both ends is what it would be without them, as far as the revisions can say it.
"""

import asyncio
import itertools
import json
import tempfile
from collections.abc import Callable
from typing import Any, cast
from unittest import mock

from msgspec import UNSET, Raw

from polyplex.config import ServerConfig, load_config_dict
from polyplex.downstream.calls import response_frame, run_call
from polyplex.downstream.session import Call, Session
from polyplex.gateway.app import Gateway
from polyplex.protocol import jsonrpc
from polyplex.protocol.jsonrpc import Message
from polyplex.protocol.revisions import LATEST_LEGACY, LATEST_MODERN, Era
from polyplex.transports.exchange import Exchange, Receiver, Reply
from polyplex.upstreams import upstream as upstream_module
from polyplex.upstreams.connection import Connection, Handler
from polyplex.upstreams.handshake import Identity, open_session
from polyplex.upstreams.manifest import Manifests
from tests.interaction.script import Script
from tests.property.clockwork import Clockwork, quiet

Json = dict[str, Any]
META = "io.modelcontextprotocol/"
NO_SUCH: Json = {"code": -32601, "message": "Method not found"}
NO_HANDSHAKE: Json = {"code": -32022, "message": "no handshake", "data": {"supported": [LATEST_MODERN]}}


class NothingRemembered:
    """No files: the event loop of these tests waits for no thread."""

    def load(self, *arguments: object) -> None:
        """Nothing."""

    async def save(self, *arguments: object) -> None:
        """Nowhere."""


def memory_gateway(entries: Json, **parked: Any) -> Gateway:
    """A gateway that touches no file, and whose states expire by the loop's time."""
    folder = tempfile.gettempdir()
    options: Json = {"naming": "bare", "parked": {"keys": ["k" * 32]} | parked, "state": f"sqlite:{folder}/state.db"}
    gateway = Gateway(load_config_dict({"mcpServers": entries, "polyplex": {"results": {"mode": "raw"}} | options}))
    gateway.core.pool._manifests = cast("Manifests", NothingRemembered())
    gateway.core.parking.states._clock = asyncio.get_running_loop().time
    return gateway


class Front:
    """What an endpoint does for a client of one era, without a wire. `said` gets all frames for the client."""

    def __init__(self, gateway: Gateway, era: Era, said: Callable[[bytes, bytes | None], None]) -> None:
        self.era = era
        self._gateway = gateway
        self._said = said
        self._legacy = Session(Era.LEGACY, LATEST_LEGACY, http=False)
        self._legacy.attach(lambda frame: said(frame, None))
        self.calls: dict[bytes, Call] = {}

    def receive(self, frame: bytes) -> None:
        message = jsonrpc.decode(frame)
        if message.method is UNSET:
            self._legacy.answered(message)
        elif message.id is UNSET:
            params = None if message.params is UNSET else bytes(message.params)
            if message.method == "notifications/cancelled":
                self._legacy.cancel(params)
            else:
                self._gateway.notified(self._legacy, message.method, params)
        else:
            self._request(message)

    def _request(self, message: Message) -> None:
        identifier = bytes(cast("Raw", message.id))
        refusal = {(Era.LEGACY, "server/discover"): NO_SUCH, (Era.MODERN, "initialize"): NO_HANDSHAKE}
        if (self.era, message.method) in refusal:
            error = json.dumps(refusal[self.era, cast("str", message.method)]).encode()
            self._later(jsonrpc.error_response(identifier, error), identifier)
            return
        session = self._legacy
        if self.era is Era.MODERN:
            session = Session(Era.MODERN, LATEST_MODERN, http=True, identifier="modern")
        call = self.calls[identifier] = Call(session, message, lambda frame: self._said(frame, identifier))
        run_call(self._gateway, call, self._answered, lambda call: None)

    def _answered(self, call: Call, reply: Reply) -> None:
        self.calls.pop(call.id, None)
        self._later(response_frame(call, reply), call.id)

    def _later(self, frame: bytes, identifier: bytes) -> None:
        asyncio.get_running_loop().call_soon(self._said, frame, identifier)

    def close(self) -> None:
        self._legacy.close()
        self._gateway.closed(self._legacy)


class Wire:
    """A client transport. `receive` takes its frames; what comes back names the request it belongs to."""

    cancels_by_closing = False

    def __init__(self) -> None:
        self.receive: Callable[[bytes], None]
        self.abandoned: Callable[[bytes], None] = lambda identifier: None
        self._receiver: Receiver
        self._exchanges: dict[bytes, Exchange] = {}

    async def open(self, receiver: Receiver) -> None:
        self._receiver = receiver

    def established(self, revision: str, *, stateful: bool) -> None:
        self.cancels_by_closing = not stateful

    def abandon(self, exchange: Exchange) -> None:
        self.abandoned(exchange.id)

    async def close(self) -> None:
        """Nothing to close."""

    def send(
        self, frame: bytes, exchange: Exchange | None = None, headers: list[tuple[str, str]] | None = None
    ) -> None:
        if exchange is not None:
            self._exchanges[exchange.id] = exchange
        self.receive(frame)

    def said(self, frame: bytes, identifier: bytes | None) -> None:
        """The far side says something."""
        self._receiver.received(frame, None if identifier is None else self._exchanges.get(identifier))


class Client:
    """The near end, of the era `outer`. `answer` answers a question, given its method and params."""

    def __init__(self, gateway: Gateway, era: Era, capabilities: Json, answer: Callable[[str, Json], Json]) -> None:
        self.front = Front(gateway, era, self._said)
        self.asked: list[tuple[str, Json]] = []
        self.notices: list[Json] = []
        self._capabilities = capabilities
        self._answer = answer
        self._responses: dict[int, Json] = {}
        self._ids = itertools.count(1)

    def _said(self, frame: bytes, identifier: bytes | None) -> None:
        message: Json = json.loads(frame)
        if "method" not in message:
            assert message["id"] not in self._responses, "a second answer"
            self._responses[message["id"]] = message
        elif "id" in message:
            result = self._ask(message["method"], message.get("params", {}))
            reply = {"jsonrpc": "2.0", "id": message["id"], "result": result}
            asyncio.get_running_loop().call_soon(self.front.receive, json.dumps(reply).encode())
        else:
            self.notices.append(message)

    def _ask(self, method: str, params: Json) -> Json:
        self.asked.append((method, params))
        return self._answer(method, params)

    async def request(self, method: str, params: Json) -> Json:
        """The response, after all rounds of questions."""
        identifier = next(self._ids)
        sent = params
        if self.front.era is Era.MODERN:
            meta = {META + "protocolVersion": LATEST_MODERN, META + "clientCapabilities": self._capabilities}
            sent = params | {"_meta": params.get("_meta", {}) | meta}
        frame = {"jsonrpc": "2.0", "id": identifier, "method": method, "params": sent}
        self.front.receive(json.dumps(frame).encode())
        await quiet()
        while identifier not in self._responses:
            await asyncio.sleep(0.02)
            await quiet()
        response = self._responses.pop(identifier)
        result = response.get("result", {})
        if result.get("resultType") != "input_required":
            return response
        given = {
            key: self._ask(asked["method"], asked.get("params", {})) for key, asked in result["inputRequests"].items()
        }
        return await self.request(method, params | {"inputResponses": given, "requestState": result["requestState"]})


class Chain:
    """`outer` is the era of the client and the server, `inner` that between the gateways."""

    def __init__(self, outer: Era, inner: Era, capabilities: Json, answer: Callable[[str, Json], Json]) -> None:
        self.outer, self.inner = outer, inner
        self.script = Script({"era": str(outer)}, lambda seconds, work: None, lambda message: None)
        self.near = memory_gateway({"near": {"url": "http://near.invalid/"}})
        self.far = memory_gateway({"far": {"url": "http://far.invalid/"}})
        self.client = Client(self.near, outer, capabilities, answer)
        self._capabilities = capabilities
        self._fronts: list[Front] = []

    async def connect(
        self, config: ServerConfig, handler: Handler, identity: Identity, first: Era, on_stderr: Callable[[str], None]
    ) -> Connection:
        """Stands in for `polyplex.upstreams.dial.connect`."""
        wire = Wire()
        if config.name == "near":
            front = Front(self.far, self.inner, wire.said)
            self._fronts.append(front)
            wire.receive = front.receive
            wire.abandoned = lambda identifier: _stop(front, identifier)
        else:
            wire.receive = lambda frame: self._serve(wire, frame)
        connection = Connection(config.name, wire, handler)
        await wire.open(connection)
        await open_session(connection, identity, first, 5)
        return connection

    def _serve(self, wire: Wire, frame: bytes) -> None:
        message: Json = json.loads(frame)
        identifier = json.dumps(message["id"]).encode() if "id" in message else None
        loop = asyncio.get_running_loop()

        def send(reply: Json) -> None:
            loop.call_soon(wire.said, json.dumps(reply).encode(), identifier)

        self.script.receive(message, send)

    async def open(self) -> None:
        if self.outer is Era.LEGACY:
            info = {"name": "client", "version": "1"}
            params = {"protocolVersion": LATEST_LEGACY, "capabilities": self._capabilities, "clientInfo": info}
            await self.client.request("initialize", params)
            self.client.front.receive(b'{"jsonrpc":"2.0","method":"notifications/initialized"}')
        await self.client.request("tools/list", {})

    async def close(self) -> None:
        self.client.front.close()
        await self.near.stop()
        for front in self._fronts:
            front.close()
        await self.far.stop()
        await quiet()


def _stop(front: Front, identifier: bytes) -> None:
    call = front.calls.get(identifier)
    if call is not None:
        call.stop()


async def through(chain: Chain, talk: Callable[[Client], Any]) -> None:
    """Open a chain, hold a conversation, close."""
    assert isinstance(asyncio.get_running_loop(), Clockwork)
    with mock.patch.object(upstream_module, "connect", chain.connect):
        await chain.open()
        await talk(chain.client)
        await chain.close()
