"""Small MCP clients on plain asyncio, over one raw HTTP connection or stdio, that check what they are answered."""

import asyncio
import contextlib
import os
import signal
import subprocess
from collections.abc import Sequence
from typing import Any, cast

import msgspec

LEGACY = "2025-11-25"
MODERN = "2026-07-28"
CLIENT = {"name": "bench-client", "version": "1"}
MODERN_META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": CLIENT,
    "io.modelcontextprotocol/clientCapabilities": {},
}
INITIALIZE = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": CLIENT}
Message = dict[str, Any]


class WrongAnswer(Exception):
    """An answer that breaks the protocol: none, two, one to another request, or one that is no JSON."""


class Refused(Exception):
    """An HTTP status other than success; the session or the endpoint is gone."""


def text_of(message: Message) -> str | None:
    """The text of a successful tools/call, None when the call failed with isError or a JSON-RPC error."""
    result = cast("Message | None", message.get("result"))
    if result is None or result.get("isError"):
        return None
    return cast("str", result["content"][0]["text"])


def error_of(message: Message) -> str:
    """What a failed answer says."""
    error = cast("Message | None", message.get("error"))
    if error is not None:
        return str(error.get("message"))
    return str(cast("Message", message["result"]).get("content"))


def request_body(identity: int | None, method: str, params: Message | None, era: str) -> bytes:
    """The bytes of a request, or of a notification when it has no id."""
    message: Message = {"jsonrpc": "2.0", "method": method}
    if identity is not None:
        message["id"] = identity
    if era == "modern":
        message["params"] = {**(params or {}), "_meta": MODERN_META}
    elif params is not None:
        message["params"] = params
    return msgspec.json.encode(message)


class HttpClient:
    """One client of a Streamable HTTP endpoint: one connection, one request in flight."""

    def __init__(self, port: int, era: str = "legacy", path: str = "/mcp") -> None:
        self.port, self.era, self.path = port, era, path
        self.session = ""
        self.last_id = 0
        self.reader: asyncio.StreamReader | None = None
        self.writer: asyncio.StreamWriter | None = None

    async def connect(self) -> None:
        """Open the connection."""
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port, limit=1 << 22)

    async def open(self) -> None:
        """Connect and, in the legacy era, shake hands."""
        await self.connect()
        if self.era == "legacy":
            await self.request("initialize", INITIALIZE)
            await self.notify("notifications/initialized")

    def head(self, verb: str, method: str, name: str, size: int) -> bytes:
        """The head of an HTTP request."""
        lines = [f"{verb} {self.path} HTTP/1.1", f"Host: 127.0.0.1:{self.port}"]
        lines.append("Accept: text/event-stream" if verb == "GET" else "Accept: application/json, text/event-stream")
        if self.era == "modern":
            lines += [f"MCP-Protocol-Version: {MODERN}", f"Mcp-Method: {method}"]
            lines += [f"Mcp-Name: {name}"] if name else []
        elif self.session:
            lines += [f"MCP-Protocol-Version: {LEGACY}", f"Mcp-Session-Id: {self.session}"]
        if verb == "POST":
            lines += ["Content-Type: application/json", f"Content-Length: {size}"]
        return ("\r\n".join(lines) + "\r\n\r\n").encode()

    async def read_head(self) -> tuple[int, dict[str, str]]:
        """Status and headers of the next response."""
        assert self.reader is not None
        raw = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *lines = raw.rstrip("\r\n").split("\r\n")
        headers = {key.strip().lower(): value.strip() for key, _, value in (line.partition(":") for line in lines)}
        return int(first.split()[1]), headers

    async def read_body(self, headers: dict[str, str]) -> bytes:
        """The whole body of a response."""
        assert self.reader is not None
        if "chunked" not in headers.get("transfer-encoding", ""):
            return await self.reader.readexactly(int(headers.get("content-length", "0")))
        parts: list[bytes] = []
        while size := int((await self.reader.readline()).split(b";")[0], 16):
            parts.append(await self.reader.readexactly(size))
            await self.reader.readexactly(2)
        await self.reader.readline()
        return b"".join(parts)

    async def post(self, method: str, name: str, body: bytes, pause: float = 0) -> tuple[dict[str, str], bytes]:
        """Send a body and read the answer, after a pause of some seconds for a client that reads slowly."""
        assert self.writer is not None
        self.writer.write(self.head("POST", method, name, len(body)) + body)
        await self.writer.drain()
        if pause:
            await asyncio.sleep(pause)
        status, headers = await self.read_head()
        answer = await self.read_body(headers)
        if not 200 <= status < 300 and b'"jsonrpc"' not in answer:
            raise Refused(f"{method}: HTTP {status} {answer[:200]!r}")
        return headers, answer

    async def request(self, method: str, params: Message | None = None, pause: float = 0) -> Message:
        """One request; its one answer, as decoded JSON-RPC."""
        self.last_id += 1
        name = str(params.get("name", "")) if params else ""
        body = request_body(self.last_id, method, params, self.era)
        headers, raw = await self.post(method, name, body, pause)
        self.session = headers.get("mcp-session-id", self.session)
        return only_answer(raw, "event-stream" in headers.get("content-type", ""), self.last_id)

    async def notify(self, method: str) -> None:
        """One notification."""
        await self.post(method, "", request_body(None, method, None, self.era))

    async def call(self, name: str, arguments: Message, pause: float = 0) -> Message:
        """One tools/call."""
        return await self.request("tools/call", {"name": name, "arguments": arguments}, pause)

    async def open_stream(self) -> int:
        """Open the GET stream of the session and leave it open; answers the HTTP status."""
        assert self.writer is not None
        self.writer.write(self.head("GET", "", "", 0))
        status, _ = await self.read_head()
        return status

    async def delete(self) -> int:
        """End the session by DELETE; answers the HTTP status."""
        assert self.writer is not None
        self.writer.write(self.head("DELETE", "", "", 0))
        status, headers = await self.read_head()
        await self.read_body(headers)
        return status

    def drop(self) -> None:
        """Cut the connection without a word."""
        if self.writer is not None:
            self.writer.transport.abort()


def only_answer(raw: bytes, events: bool, identity: int) -> Message:
    """The one answer among a body's messages. Raises WrongAnswer when there is another number of them than one."""
    try:
        if events:
            data = [line[5:] for line in raw.replace(b"\r\n", b"\n").split(b"\n") if line.startswith(b"data:")]
            messages = [msgspec.json.decode(line) for line in data if line.strip()]
        else:
            messages = [msgspec.json.decode(raw)]
    except msgspec.DecodeError as error:
        raise WrongAnswer(f"request {identity} was answered {raw[:200]!r}: {error}") from error
    answers = [message for message in messages if "method" not in message]
    if len(answers) != 1 or answers[0].get("id") != identity:
        raise WrongAnswer(f"request {identity} was answered {[answer.get('id') for answer in answers]}: {raw[:200]!r}")
    return cast("Message", answers[0])


class StdioClient(asyncio.SubprocessProtocol):
    """One client of a stdio server, which is its child; any number of requests in flight."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.waiting: dict[int, asyncio.Future[Message]] = {}
        self.strays: list[str] = []
        self.errors = b""
        self.last_id = 0
        self.ended = asyncio.Event()
        self.transport: asyncio.SubprocessTransport | None = None

    @classmethod
    async def start(cls, command: Sequence[str], environment: dict[str, str] | None = None) -> "StdioClient":
        """Start the server; no handshake yet."""
        loop = asyncio.get_running_loop()
        transport, client = await loop.subprocess_exec(cls, *command, env=environment, start_new_session=True)
        client.transport = transport
        return client

    async def open(self) -> None:
        """Shake hands."""
        await self.request("initialize", INITIALIZE)
        self.send(request_body(None, "notifications/initialized", None, "legacy"))

    @property
    def pid(self) -> int:
        """The process id of the server."""
        assert self.transport is not None
        return self.transport.get_pid()

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Split the child's output into lines."""
        if fd == 2:
            self.errors = (self.errors + data)[-2000:]
            return
        *lines, rest = data.split(b"\n")
        for line in lines:
            self.take(b"".join([*self.parts, line]))
            self.parts.clear()
        if rest:
            self.parts.append(rest)

    def take(self, line: bytes) -> None:
        """Hand one message to whom it answers."""
        try:
            message = msgspec.json.decode(line)
        except msgspec.DecodeError:
            self.strays.append(f"not JSON: {line[:200]!r}")
            return
        if "method" in message:
            return
        future = self.waiting.pop(message.get("id"), None)
        if future is None:
            self.strays.append(f"an answer too many: {line[:200]!r}")
        elif not future.done():
            future.set_result(message)

    def process_exited(self) -> None:
        """Fail what still waits."""
        for future in self.waiting.values():
            if not future.done():
                future.set_exception(
                    WrongAnswer(f"the stdio server ended with calls in flight: {self.errors[-300:]!r}")
                )
        self.ended.set()

    def send(self, body: bytes) -> None:
        """Write one line."""
        assert self.transport is not None
        cast("asyncio.WriteTransport", self.transport.get_pipe_transport(0)).write(body + b"\n")

    async def request(self, method: str, params: Message | None = None) -> Message:
        """One request and its answer."""
        if self.ended.is_set():
            raise WrongAnswer("the stdio server has ended")
        self.last_id += 1
        future: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        self.waiting[self.last_id] = future
        self.send(request_body(self.last_id, method, params, "legacy"))
        return await future

    async def call(self, name: str, arguments: Message) -> Message:
        """One tools/call."""
        return await self.request("tools/call", {"name": name, "arguments": arguments})

    async def close(self, patience: float = 10) -> int | None:
        """Close the child's input and wait for its end; answers the exit status, None when it had to be killed."""
        assert self.transport is not None
        pipe = self.transport.get_pipe_transport(0)
        if pipe is not None:
            pipe.close()
        try:
            await asyncio.wait_for(self.ended.wait(), patience)
            return self.transport.get_returncode()
        except TimeoutError:
            return None
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
            self.transport.close()


async def until_listed(client: HttpClient | StdioClient, tools: int) -> None:
    """Ask for the list of tools until it holds that many."""
    while True:
        listed = await client.request("tools/list", {})
        if len(listed["result"]["tools"]) >= tools:
            return
        await asyncio.sleep(0.05)


async def ready(port: int, tools: int, process: subprocess.Popen[bytes], seconds: float = 60) -> HttpClient:
    """A client of the endpoint once it lists that many tools. Raises TimeoutError, at once if the process ended."""
    async with asyncio.timeout(seconds):
        while True:
            client = HttpClient(port)
            try:
                await client.open()
                await until_listed(client, tools)
                return client
            except (OSError, EOFError, Refused, KeyError) as error:
                client.drop()
                if process.poll() is not None:
                    raise TimeoutError(f"it ended with status {process.returncode}") from error
                await asyncio.sleep(0.05)
