"""A gateway in the test's own process, scripted servers behind it, clients in front; nothing of it may be left."""

import asyncio
import gc
import itertools
import json
import sys
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from msgspec import Raw

from polyplex.config import load_config_dict
from polyplex.downstream.calls import response_frame, run_call, whole_reply
from polyplex.downstream.session import Call, Session
from polyplex.gateway.app import Gateway
from polyplex.protocol.jsonrpc import Message
from polyplex.protocol.revisions import LATEST_LEGACY, LATEST_MODERN, Era
from polyplex.transports.exchange import Reply
from polyplex.upstreams.upstream import State, Upstream
from tests.interaction.scripted_http import TEST_SERVER
from tests.process.children import gone
from tests.wire.watch import Line, check_journal

Json = dict[str, Any]
DEADLINE_SECONDS = 20.0
META = "io.modelcontextprotocol/"
SERVER = Path(__file__).with_name("scripted_server.py")


class RefusedError(Exception):
    """A request was answered with an error."""

    def __init__(self, error: Json) -> None:
        super().__init__(f"{error['code']}: {error['message']}")
        self.code: int = error["code"]
        self.message: str = error["message"]
        self.data: Any = error.get("data")


async def eventually(condition: Callable[[], object]) -> None:
    """Wait for what nobody tells of."""
    async with asyncio.timeout(DEADLINE_SECONDS):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


def entry(journal: Path, settings: Json) -> Json:
    """The configuration of a scripted stdio server."""
    return {"command": sys.executable, "args": ["-S", str(SERVER), str(journal), json.dumps(settings)]}


class Client:
    """A client of one era. `answers` maps ask methods to functions from params to result; `frames` is all it got."""

    def __init__(
        self, stage: "Stage", era: Era, capabilities: Json, answers: Mapping[str, Callable[[Json], Any]]
    ) -> None:
        self.stage = stage
        self.era = era
        self.capabilities = capabilities
        self.answers = dict(answers)
        self.frames: list[Json] = []
        self.responses: dict[str, list[Json]] = {}
        self.cancelled: set[str] = set()
        self.log_level: str | None = None
        self.revision = LATEST_LEGACY
        self.initialized: Json = {}
        self._changed = asyncio.Event()
        self._ids = itertools.count(1)
        self._calls: dict[str, Call] = {}
        self._readers: set[asyncio.Task[None]] = set()
        self._line = Line(f"to the {era} client", "client", LATEST_MODERN if era is Era.MODERN else None)
        self.session = self._session()

    def _session(self) -> Session:
        revision = LATEST_MODERN if self.era is Era.MODERN else LATEST_LEGACY
        session = Session(self.era, revision, http=False, identifier="modern" if self.era is Era.MODERN else None)
        session.attach(self._received)
        return session

    # -- what comes
    def _received(self, frame: bytes) -> None:
        message: Json = json.loads(frame)
        self._line.sent(message)
        self.frames.append(message)
        if "method" in message and "id" in message:
            self._answer(message)
        elif "method" not in message:
            self.responses.setdefault(json.dumps(message["id"]), []).append(message)
        self._changed.set()

    def _answer(self, message: Json) -> None:
        answer = self.answers.get(message["method"])
        if answer is None:
            return
        result = answer(message.get("params", {}))
        if result is not None:
            self.respond(message["id"], result)

    def respond(self, identifier: Any, result: Json) -> None:
        """Answer a server's request."""
        self.session.answered(Message(id=Raw(json.dumps(identifier)), result=Raw(json.dumps(result))))

    def asked(self, method: str) -> list[Json]:
        """The requests that came."""
        return [frame for frame in self.frames if frame.get("method") == method and "id" in frame]

    def notices(self, method: str) -> list[Json]:
        """The params of the notifications that came."""
        return [frame.get("params", {}) for frame in self.frames if frame.get("method") == method and "id" not in frame]

    async def until(self, condition: Callable[[], object]) -> None:
        """Wait for frames until `condition` holds."""
        async with asyncio.timeout(DEADLINE_SECONDS):
            while not condition():
                self._changed.clear()
                await self._changed.wait()

    # -- requests
    def send(self, method: str, params: Json | None = None, identifier: Any = None) -> Any:
        """Send a request; returns its id."""
        identifier = next(self._ids) if identifier is None else identifier
        params = dict(params or {})
        session = self.session
        if self.era is Era.MODERN:
            session = self._session()
            meta = {
                META + "protocolVersion": LATEST_MODERN,
                META + "clientCapabilities": self.capabilities,
                META + "clientInfo": {"name": "modern", "version": "1"},
            }
            if self.log_level is not None:
                meta[META + "logLevel"] = self.log_level
            params["_meta"] = meta | params.get("_meta", {})
        raw = json.dumps(identifier)
        self._line.came({"id": identifier, "method": method})
        message = Message(id=Raw(raw), method=method, params=Raw(json.dumps(params)))
        call = self._calls[raw] = Call(session, message, self._received)
        run_call(self.stage.gateway, call, self._answered, self._unanswered)
        return identifier

    def _answered(self, call: Call, reply: Reply) -> None:
        if reply.stream is None:
            self._received(response_frame(call, reply))
            return
        task = asyncio.get_running_loop().create_task(self._gather(call, reply))
        self._readers.add(task)
        task.add_done_callback(self._readers.discard)

    async def _gather(self, call: Call, reply: Reply) -> None:
        self._received(response_frame(call, await whole_reply(reply)))

    def _unanswered(self, call: Call) -> None:
        self.cancelled.add(call.id.decode())
        self._changed.set()

    async def response(self, identifier: Any) -> Json:
        """The result of a request. Raises `RefusedError` where it was answered with an error."""
        raw = json.dumps(identifier)
        await self.until(lambda: raw in self.responses or raw in self.cancelled)
        assert raw not in self.cancelled, "it was cancelled"
        (message,) = self.responses[raw]
        if "error" in message:
            raise RefusedError(message["error"])
        return message["result"]

    async def request(self, method: str, params: Json | None = None, identifier: Any = None) -> Json:
        """Send a request and await its result. Raises `RefusedError`."""
        return await self.response(self.send(method, params, identifier))

    def begin(self, tool: str, **arguments: Any) -> Any:
        """Begin to call a tool; returns the id."""
        return self.send("tools/call", {"name": tool, "arguments": arguments})

    async def call(self, tool: str, **arguments: Any) -> Json:
        """Call a tool; its result."""
        return await self.response(self.begin(tool, **arguments))

    async def value(self, tool: str, **arguments: Any) -> Any:
        """Call a tool; the JSON in its text."""
        return value(await self.call(tool, **arguments))

    async def names(self, method: str = "tools/list", member: str = "tools", key: str = "name") -> list[str]:
        """The names of all entries of a list."""
        names: list[str] = []
        params: Json = {}
        while True:
            result = await self.request(method, params)
            names += [each[key] for each in result[member]]
            if "nextCursor" not in result:
                return names
            params = {"cursor": result["nextCursor"]}

    def cancel(self, identifier: Any) -> None:
        """Cancel a request: by notification, or as a modern HTTP client by closing its stream."""
        if self.era is Era.LEGACY:
            self.session.cancel(json.dumps({"requestId": identifier}).encode())
        else:
            self._calls[json.dumps(identifier)].stop()

    def notify(self, method: str, params: Json | None = None) -> None:
        """Send a notification."""
        self.stage.gateway.notified(self.session, method, None if params is None else json.dumps(params).encode())

    async def initialize(self) -> Json:
        """The handshake of a legacy client."""
        info = {"name": "legacy", "version": "1"}
        params = {"protocolVersion": self.revision, "capabilities": self.capabilities, "clientInfo": info}
        result = await self.request("initialize", params)
        self.notify("notifications/initialized")
        self.initialized = result
        return result

    def close(self) -> None:
        """The client goes away."""
        for call in list(self._calls.values()):
            if call.session is not self.session:
                call.stop()
        self.session.close()
        self.stage.gateway.closed(self.session)


def value(result: Json) -> Any:
    """The JSON in the text of a tool result."""
    (block,) = result["content"]
    return json.loads(block["text"])


def text(result: Json) -> str:
    """The text of a tool result."""
    (block,) = result["content"]
    return block["text"]


class Stage:
    """The gateway and its servers."""

    def __init__(self, folder: Path, servers: Mapping[str, Json], options: Json) -> None:
        self.folder = folder
        self.problems: list[Json] = []
        entries = {
            name: settings if {"url", "command"} & set(settings) else entry(self.journal_file(name), settings)
            for name, settings in servers.items()
        }
        self._revisions = {name: settings["revision"] for name, settings in servers.items() if "revision" in settings}
        state: Json = {"state": f"sqlite:{folder / 'state.db'}", "results": {"mode": "raw"}}
        self.config = load_config_dict({"mcpServers": entries, "polyplex": state | options})
        self.gateway = Gateway(self.config)
        self.clients: list[Client] = []

    def journal_file(self, server: str) -> Path:
        return self.folder / f"{server}.journal"

    def journal(self, server: str) -> list[Json]:
        """What all processes of a server received."""
        file = self.journal_file(server)
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    def received(self, server: str, method: str) -> list[Json]:
        """The messages of one method."""
        return [message for message in self.journal(server) if message.get("method") == method]

    def pids(self, server: str) -> list[int]:
        """The processes that were started for a server."""
        return [message["start"] for message in self.journal(server) if "start" in message]

    def upstreams(self, server: str) -> list[Upstream]:
        """The sessions with a server."""
        return self.gateway.core.pool.servers[server].all()

    async def up(self, *servers: str) -> None:
        """Wait until these servers are ready."""
        await eventually(
            lambda: all(any(each.state is State.READY for each in self.upstreams(server)) for server in servers)
        )

    async def legacy(
        self, capabilities: Json | None = None, revision: str = LATEST_LEGACY, /, **answers: Callable[[Json], Any]
    ) -> Client:
        """A legacy client after its handshake. `answers` by the part of the method after the slash."""
        methods = {"createMessage": "sampling/createMessage", "create": "elicitation/create", "list": "roots/list"}
        client = Client(self, Era.LEGACY, capabilities or {}, {methods[name]: each for name, each in answers.items()})
        client.revision = revision
        self.clients.append(client)
        await client.initialize()
        return client

    def modern(self, capabilities: Json | None = None) -> Client:
        """A modern client."""
        client = Client(self, Era.MODERN, capabilities or {}, {})
        self.clients.append(client)
        return client

    async def stop(self) -> None:
        """End everything; no task and no process may be left, and no error may have gone by unseen."""
        async with asyncio.timeout(DEADLINE_SECONDS):
            for client in self.clients:
                client.close()
            await self.gateway.stop()
        left = {task for task in asyncio.all_tasks() if task.get_name() != TEST_SERVER} - {asyncio.current_task()}
        if left:
            _, left = await asyncio.wait(left, timeout=DEADLINE_SECONDS)
        assert not left, f"tasks left behind: {left}"
        await gone(*(pid for name in self.config.servers for pid in self.pids(name)))
        for name in self.config.servers:
            check_journal(f"to the server {name}", self.journal(name), self._revisions.get(name, LATEST_LEGACY))
        gc.collect()
        assert not self.problems, self.problems


@asynccontextmanager
async def stage(
    folder: Path, servers: Mapping[str, Json], /, *, start: bool = True, **options: Any
) -> AsyncGenerator[Stage]:
    """A gateway in front of scripted servers (settings) or others (configuration entries)."""
    made = Stage(folder, servers, options)
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: made.problems.append(context))
    if start:
        made.gateway.start()
    try:
        yield made
    finally:
        await made.stop()
