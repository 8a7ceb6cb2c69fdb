"""A client of one revision, exactly: what that revision has, and nothing of another comes to it unnoticed."""

import asyncio
import itertools
import json
from collections.abc import Callable
from typing import Any

from tests.matrix.peer.words import (
    META,
    MODERN,
    R2,
    R3,
    R4,
    REVISIONS,
    SERVER_METHODS,
    TASKS_EXTENSION,
    UI_EXTENSION,
    VENDOR_EXTENSION,
    Json,
    since,
)
from tests.matrix.wires import HttpWire, Wire

DEADLINE_SECONDS = 20.0
INFO: Json = {"name": "matrix", "version": "1"}
SERVER = "peer"
BLOCKS = {"audio": since(R2), "resource_link": since(R3)}
MODERN_ONLY = ("resultType", "ttlMs", "cacheScope")
SAMPLED: Json = {"role": "assistant", "model": "m", "content": {"type": "text", "text": "Paris"}}
ROOTS: Json = {"roots": [{"uri": "file:///matrix", "name": "matrix"}]}
Answer = Callable[[Json], Json | None]


class RefusedError(Exception):
    """A request was answered with an error."""

    def __init__(self, error: Json) -> None:
        super().__init__(f"{error['code']}: {error['message']}")
        self.code: int = error["code"]
        self.data: Any = error.get("data")


def full_capabilities(revision: str) -> Json:
    """All that a client of the revision can do."""
    found: Json = {"roots": {} if revision == MODERN else {"listChanged": True}, "sampling": {}}
    if revision in since(R3):
        found["elicitation"] = {}
    if revision in since(R4):
        found |= {"elicitation": {"form": {}, "url": {}}, "sampling": {"tools": {}}}
    if revision == R4:
        found["tasks"] = {"list": {}, "cancel": {}}
    if revision == MODERN:
        ui = {"mimeTypes": ["text/html;profile=mcp-app"]}
        found["extensions"] = {TASKS_EXTENSION: {}, UI_EXTENSION: ui, VENDOR_EXTENSION: {}}
    found["experimental"] = {"example.com/client": {"x": 1}}
    return found


def _accept(params: Json) -> Json:
    return {"action": "accept"} if params.get("mode") == "url" else {"action": "accept", "content": {"name": "Ada"}}


class Client:
    """`asked` is what servers asked, as (method, params, how); `violations` what should not have come."""

    def __init__(self, revision: str, capabilities: Json | None = None) -> None:
        self.revision = revision
        self.modern = revision == MODERN
        self.capabilities = full_capabilities(revision) if capabilities is None else capabilities
        self.wire: Wire
        self.opened: Json = {}
        self.asked: list[tuple[str, Json, str]] = []
        self.notices: list[tuple[str, Json]] = []
        self.violations: list[str] = []
        self.batches: list[list[Json]] = []
        self.answers: dict[str, Answer] = {
            "sampling/createMessage": lambda params: SAMPLED,
            "elicitation/create": _accept,
            "roots/list": lambda params: ROOTS,
        }
        self.log_level: str | None = None
        self.rounds = 0
        self._responses: dict[str, Json] = {}
        self._methods: dict[str, str] = {}
        self._changed = asyncio.Event()
        self._ids = itertools.count(1)
        self._sending: set[asyncio.Task[None]] = set()

    # -- in
    def receive(self, message: Any) -> None:
        """A message, or the array that answers a batch."""
        if isinstance(message, list):
            self.batches.append(message)
            for each in message:
                self.receive(each)
            return
        method = message.get("method")
        if method is None:
            self._response(message)
        elif self.revision not in SERVER_METHODS.get(method, ()):
            self.violations.append(f"{method} does not exist in {self.revision}")
        elif "id" in message:
            self._ask(method, message)
        else:
            self._notice(method, message.get("params", {}))
        self._changed.set()

    def _ask(self, method: str, message: Json) -> None:
        params = message.get("params", {})
        if method == "ping":
            self._reply({"jsonrpc": "2.0", "id": message["id"], "result": {}})
            return
        self._asked(method, params, "request")
        answer = self.answers[method](params)
        if answer is not None:
            self._reply({"jsonrpc": "2.0", "id": message["id"], "result": answer})

    def _reply(self, message: Json) -> None:
        task = asyncio.create_task(self.wire.send(message))
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)

    def _asked(self, method: str, params: Json, how: str) -> None:
        self.asked.append((method, params, how))
        if method == "elicitation/create":
            if params.get("mode") == "url" and self.revision not in since(R4):
                self.violations.append("an elicitation by URL")
            if ("elicitationId" in params) != (params.get("mode") == "url" and self.revision == R4):
                self.violations.append(f"elicitationId: {params}")

    def _notice(self, method: str, params: Json) -> None:
        self.notices.append((method, params))

    def _response(self, message: Json) -> None:
        key = json.dumps(message.get("id"))
        if key in self._responses:
            self.violations.append(f"two responses to {key}")
        self._responses[key] = message
        if "result" in message:
            self._check_result(self._methods.get(key, ""), message["result"])
        elif self.modern and message["error"]["code"] in (-32002, -32042):
            self.violations.append(f"error code {message['error']['code']}")

    def _check_result(self, method: str, result: Json) -> None:
        if self.modern:
            if "resultType" not in result:
                self.violations.append(f"{method} without resultType")
            if method.endswith("list") and method != "roots/list" and "ttlMs" not in result:
                self.violations.append(f"{method} without ttlMs")
        else:
            leaks = [name for name in MODERN_ONLY if name in result]
            leaks += [key for key in result.get("_meta", {}) if key == META + "serverInfo"]
            if leaks:
                self.violations.append(f"{method} with {leaks}")
        blocks = [*result.get("content", []), *(each["content"] for each in result.get("messages", []))]
        for block in blocks:
            if self.revision not in BLOCKS.get(block["type"], REVISIONS):
                self.violations.append(f"content of type {block['type']}")

    async def until(self, condition: Callable[[], object]) -> None:
        """Wait for messages until something holds."""
        async with asyncio.timeout(DEADLINE_SECONDS):
            while not condition():
                self._changed.clear()
                await self._changed.wait()

    async def noticed(self, method: str, since: int = 0) -> Json:
        """The params of the first notification of a method, from position `since` on."""
        await self.until(lambda: any(seen == method for seen, _ in self.notices[since:]))
        return next(params for seen, params in self.notices[since:] if seen == method)

    # -- out
    def meta(self) -> Json:
        """The envelope of a modern request."""
        if not self.modern:
            return {}
        meta = {META + "protocolVersion": MODERN, META + "clientCapabilities": self.capabilities}
        meta[META + "clientInfo"] = INFO
        return meta if self.log_level is None else meta | {META + "logLevel": self.log_level}

    def message(self, method: str, params: Json | None = None) -> Json:
        """A request of the revision."""
        params = dict(params or {})
        meta = self.meta() | params.get("_meta", {})
        if meta:
            params["_meta"] = meta
        identifier = next(self._ids)
        self._methods[json.dumps(identifier)] = method
        return {"jsonrpc": "2.0", "id": identifier, "method": method} | ({"params": params} if params else {})

    async def send(self, method: str, params: Json | None = None, headers: dict[str, str] | None = None) -> Any:
        """Send a request; its id."""
        message = self.message(method, params)
        await self.wire.send(message, headers)
        return message["id"]

    async def response(self, identifier: Any) -> Json:
        """The result. Raises `RefusedError`."""
        key = json.dumps(identifier)
        await self.until(lambda: key in self._responses)
        message = self._responses[key]
        if "error" in message:
            raise RefusedError(message["error"])
        return message["result"]

    async def request(self, method: str, params: Json | None = None) -> Json:
        """A request through to its final result: input that it wants is given. Raises `RefusedError`."""
        result = await self.response(await self.send(method, params))
        while self.modern and result["resultType"] == "input_required":
            self.rounds += 1
            answers: Json = {}
            for key, ask in result.get("inputRequests", {}).items():
                self._asked(ask["method"], ask.get("params", {}), "input_required")
                answers[key] = self.answers[ask["method"]](ask.get("params", {}))
            again = dict(params or {}) | {"inputResponses": answers}
            if "requestState" in result:
                again["requestState"] = result["requestState"]
            result = await self.response(await self.send(method, again))
        return result

    async def notify(self, method: str, params: Json | None = None) -> None:
        """A notification."""
        message: Json = {"jsonrpc": "2.0", "method": method}
        if params is not None or self.modern:
            message["params"] = params or {}
        await self.wire.send(message)

    async def open(self) -> Json:
        """The opening of the revision; the result."""
        if self.modern:
            self.opened = await self.request("server/discover")
            return self.opened
        params = {"protocolVersion": self.revision, "capabilities": self.capabilities, "clientInfo": INFO}
        self.opened = await self.request("initialize", params)
        await self.notify("notifications/initialized")
        if isinstance(self.wire, HttpWire):
            await self.wire.listen()
        return self.opened

    # -- what tests say
    async def begin(self, tool: str, meta: Json | None = None, **arguments: Any) -> Any:
        """Begin to call a tool; the id."""
        return await self.send("tools/call", self.call_params(tool, meta, arguments))

    def call_params(self, tool: str, meta: Json | None, arguments: Json) -> Json:
        """The params of a tool call."""
        params: Json = {"name": f"{SERVER}__{tool}", "arguments": arguments}
        return params | ({"_meta": meta} if meta else {})

    async def call(self, tool: str, meta: Json | None = None, **arguments: Any) -> Json:
        """Call a tool; its result."""
        return await self.request("tools/call", self.call_params(tool, meta, arguments))

    async def value(self, tool: str, meta: Json | None = None, **arguments: Any) -> Any:
        """Call a tool; the JSON in its one text."""
        result = await self.call(tool, meta, **arguments)
        assert not result.get("isError"), result
        (block,) = result["content"]
        return json.loads(block["text"])

    async def listed(self, method: str, member: str) -> list[Json]:
        """A list over all its pages."""
        found: list[Json] = []
        cursor: Json = {}
        while True:
            page = await self.request(method, cursor)
            found += page[member]
            if "nextCursor" not in page:
                return found
            cursor = {"cursor": page["nextCursor"]}

    async def cancel(self, identifier: Any) -> None:
        """Cancel a request by the means of revision and transport."""
        if not await self.wire.cancel(identifier):
            await self.notify("notifications/cancelled", {"requestId": identifier})

    async def close(self) -> None:
        """Go away."""
        if self._sending:
            await asyncio.wait(self._sending)
        await self.wire.close()
