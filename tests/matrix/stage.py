"""A pair: a scripted peer of one revision behind a real polyplex, and a raw client of one revision before it."""

import asyncio
import json
import os
import re
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.matrix.client import Client
from tests.matrix.peer.words import MODERN, R1, Json
from tests.matrix.wires import HttpWire, SseWire, StdioWire

PEER = Path(__file__).parent / "peer" / "server.py"
START_SECONDS = 30
STOP_SECONDS = 15


def transports(revision: str) -> tuple[str, ...]:
    """The transports that a peer of a revision may use. HTTP+SSE is of 2024-11-05; clients and servers that negotiate
    down to that revision over Streamable HTTP are common, so it has all three.
    """
    return ("stdio", "http", "sse") if revision == R1 else ("stdio", "http")


@dataclass
class Server:
    """A running peer: its entry in the configuration, and what should not have reached it."""

    revision: str
    transport: str
    entry: Json
    record: Path

    def violations(self) -> list[str]:
        """What has reached it so far though its revision does not have it."""
        lines = self.record.read_text().splitlines() if self.record.exists() else []
        return [json.loads(line)["violation"] for line in lines]


@dataclass
class Pair:
    """A client, opened, and what it is connected to."""

    client: Client
    server: Server
    client_transport: str
    front: "Front"
    others: list[Client] = field(default_factory=list[Client])

    @property
    def revisions(self) -> tuple[str, str]:
        """Of client and server."""
        return self.client.revision, self.server.revision

    @property
    def bridged(self) -> bool:
        """Whether the two are of different eras."""
        return (self.client.revision == MODERN) != (self.server.revision == MODERN)

    async def another(self, capabilities: Json | None = None) -> Client:
        """One more client of the same kind."""
        client = await self.front.connect(self.client.revision, self.client_transport, capabilities)
        self.others.append(client)
        return client

    async def close(self) -> None:
        """All clients go."""
        for client in (self.client, *self.others):
            await client.close()


class Front:
    """polyplex before one server: a process that serves HTTP, and one for each stdio client."""

    def __init__(self, folder: Path, server: Server) -> None:
        self.folder = folder
        self.server = server
        self.config = folder / "polyplex.json"
        self.url = ""
        self._clients = 0

    def configure(self) -> None:
        """Write the configuration."""
        # A client that lists once and never again is to see the tools of a server that is slow to start.
        options: Json = {"state": f"sqlite:{self.folder / 'state.db'}", "firstListWaitSeconds": 30}
        options["results"] = {"mode": "raw"}
        config = {"mcpServers": {"peer": self.server.entry}, "polyplex": options}
        self.config.write_text(json.dumps(config))

    async def spawn(self, *arguments: str, stdio: bool) -> asyncio.subprocess.Process:
        """A polyplex of its own."""
        self._clients += 1
        folder = self.folder / f"state-{self._clients}"
        environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "XDG_STATE_HOME": str(folder)}
        errors = None if not stdio else (self.folder / f"client-{self._clients}.log").open("wb")
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "polyplex", "serve", "--config", str(self.config), *arguments),
            env=environment,
            stdin=asyncio.subprocess.PIPE if stdio else asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE if stdio else asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE if errors is None else errors,
            limit=1 << 26,
        )
        if errors is not None:
            errors.close()
        return process

    async def connect(self, revision: str, transport: str, capabilities: Json | None = None) -> Client:
        """A client, opened."""
        client = Client(revision, capabilities)
        if transport == "stdio":
            client.wire = StdioWire(await self.spawn("--stdio", stdio=True), client.receive)
        elif transport == "http":
            client.wire = HttpWire(self.url, revision, client.receive)
        else:
            wire = SseWire(self.url.replace("/mcp", "/sse"), client.receive)
            await wire.open()
            client.wire = wire
        await client.open()
        return client

    @asynccontextmanager
    async def pair(self, revision: str, transport: str) -> AsyncGenerator[Pair]:
        """A client of everything that its revision has."""
        pair = Pair(await self.connect(revision, transport), self.server, transport, self)
        try:
            yield pair
        finally:
            await pair.close()


@asynccontextmanager
async def _peer(folder: Path, revision: str, transport: str) -> AsyncGenerator[Server]:
    record = folder / "violations.jsonl"
    command = [sys.executable, "-S", str(PEER), revision, transport, str(record)]
    if transport == "stdio":
        yield Server(revision, transport, {"command": command[0], "args": command[1:]}, record)
        return
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    try:
        assert process.stdout is not None
        async with asyncio.timeout(START_SECONDS):
            url = (await process.stdout.readline()).decode().strip()
        yield Server(revision, transport, {"type": transport, "url": url}, record)
    finally:
        process.terminate()
        await process.wait()


@asynccontextmanager
async def front(folder: Path, revision: str, transport: str) -> AsyncGenerator[Front]:
    """A scripted peer of a revision on a transport, and polyplex that serves it over HTTP."""
    async with _peer(folder, revision, transport) as server, serving(Front(folder, server)) as made:
        yield made


@asynccontextmanager
async def serving(made: Front) -> AsyncGenerator[Front]:
    """polyplex, configured as it should be, that serves over HTTP."""
    folder = made.folder
    made.configure()
    process = await made.spawn("--http", "127.0.0.1:0", stdio=False)
    said: list[bytes] = []
    address = asyncio.get_running_loop().create_future()
    reader = asyncio.create_task(_read(process, said, address))
    try:
        async with asyncio.timeout(START_SECONDS):
            made.url = await address
        yield made
    finally:
        if process.returncode is None:
            process.terminate()
        async with asyncio.timeout(STOP_SECONDS):
            await process.wait()
        await reader
        (folder / "polyplex.log").write_bytes(b"".join(said))


async def _read(process: asyncio.subprocess.Process, said: list[bytes], address: "asyncio.Future[str]") -> None:
    assert process.stderr is not None
    while line := await process.stderr.readline():
        said.append(line)
        found = re.search(rb"serving +(\S+/mcp)", line)
        if found is not None:
            address.set_result(found[1].decode())
    if not address.done():
        address.set_exception(RuntimeError(b"".join(said).decode()))


PLACES: Mapping[str, str] = {"stdio": "stdio", "http": "Streamable HTTP", "sse": "HTTP+SSE"}
