"""What the doctor finds out about each server: started once, asked for everything, stopped."""

import asyncio
from collections.abc import Callable
from typing import Any, Final, Literal
from urllib.parse import urlsplit

import msgspec

from polyplex.cli.lacks import Lack, lacks_of
from polyplex.cli.progress import Outcome, failure, watch_start
from polyplex.cli.reasons import advice, command_line, split_advice, without_last_words
from polyplex.cli.session import routes
from polyplex.cli.terminal import Terminal, one_line
from polyplex.config import Config, ServerConfig
from polyplex.errors import ConfigError
from polyplex.gateway.app import Gateway
from polyplex.mux.names import hashed_name
from polyplex.protocol.revisions import Era
from polyplex.telemetry.redact import redact
from polyplex.upstreams.pool import Binding
from polyplex.upstreams.upstream import Upstream

STDERR_LINES: Final = 5
KINDS: Final = {"stdio": "stdio", "http": "HTTP", "sse": "HTTP+SSE", "auto-http": "HTTP"}
LISTS: Final = ("tools", "resources", "resourceTemplates", "prompts")


class Aside(msgspec.Struct, frozen=True, rename="camel"):
    """An entry that is not offered."""

    name: str
    reason: str


class Diagnosis(msgspec.Struct, frozen=True, rename="camel"):
    """One server. `state` is `off` where the configuration says not to start it; `unmatched` is what the configuration
    says of tools and parameters that it does not have."""

    name: str
    state: Literal["ok", "failed", "off"]
    transport: str
    address: str
    seconds: float = 0.0
    era: str = ""
    revision: str = ""
    offers: dict[str, int] = {}
    set_aside: list[Aside] = []
    renamed: dict[str, str] = {}
    unmatched: list[str] = []
    reason: str = ""
    advice: list[str] = []
    stderr: list[str] = []


class Collision(msgspec.Struct, frozen=True):
    """A name that several servers claim, so that none has it."""

    kind: str
    name: str
    servers: list[str]


async def diagnose(
    config: Config, unset: dict[str, list[ConfigError]], terminal: Terminal, report: Callable[[Diagnosis], None]
) -> tuple[list[Diagnosis], list[Collision], list[Lack]]:
    """Start every enabled server whose variables are all set; `report` gets each diagnosis when it is made."""
    found: list[Diagnosis] = []

    def add(diagnosis: Diagnosis) -> None:
        found.append(diagnosis)
        report(diagnosis)

    for name, server in config.servers.items():
        if not server.enabled:
            add(_off(server))
        elif name in unset:
            add(_unset(server, unset[name]))
    startable = {name: server for name, server in config.servers.items() if server.enabled and name not in unset}
    gateway = Gateway(msgspec.structs.replace(config, servers={n: _eager(s) for n, s in startable.items()}))
    stops: list[asyncio.Task[None]] = []

    def outcome(result: Outcome) -> None:
        add(of_outcome(result))
        if result.reason is not None:  # one attempt is enough here
            stops.append(asyncio.get_running_loop().create_task(result.upstream.stop()))

    try:
        gateway.start(Binding(Era.MODERN))
        await watch_start(gateway.core.pool, outcome, terminal)
        return found, _collisions(gateway), await lacks_of(gateway)
    finally:
        await asyncio.gather(*stops, return_exceptions=True)
        await gateway.stop()


def _eager(server: ServerConfig) -> ServerConfig:
    return msgspec.structs.replace(server, options=msgspec.structs.replace(server.options, lazy=False))


def _off(server: ServerConfig) -> Diagnosis:
    return Diagnosis(server.name, "off", KINDS[server.kind], address(server))


def _unset(server: ServerConfig, errors: list[ConfigError]) -> Diagnosis:
    reason = "; ".join(f"{error.key}: {error.message.partition('; set it')[0]}" for error in errors)
    do = ["set it where polyplex is started, or give it a default in the configuration: ${NAME:-default}"]
    return Diagnosis(server.name, "failed", KINDS[server.kind], "", reason=reason, advice=do)


def of_outcome(outcome: Outcome) -> Diagnosis:
    """The diagnosis of a server that has been started."""
    upstream = outcome.upstream
    server = upstream.config
    if outcome.reason is not None:
        # A server that both attempts at a handshake have started says everything twice.
        said = dict.fromkeys(redact(one_line(line)) for line in upstream.stderr)
        stderr = [line for line in said if line][-STDERR_LINES:]
        reason = failure(upstream)
        return Diagnosis(
            server.name,
            "failed",
            KINDS[server.kind],
            address(server),
            round(outcome.seconds, 3),
            reason=split_advice(without_last_words(reason) if stderr else reason)[0],
            advice=advice(server, reason, stderr),
            stderr=stderr,
        )
    peer = upstream.peer
    return Diagnosis(
        server.name,
        "ok",
        _transport(upstream),
        address(server),
        round(outcome.seconds, 3),
        era="" if peer is None else str(peer.era),
        revision="" if peer is None else peer.revision,
        offers={member: len(upstream.lists.get(member, ())) for member in LISTS},
        set_aside=[Aside(one_line(item.name), one_line(item.reason)) for item in upstream.set_aside],
        renamed=_renamed(upstream),
        unmatched=[one_line(text) for text in upstream.offers.unknown],
    )


def _transport(upstream: Upstream) -> str:
    """The transport in use; which of the HTTP ones is known only when the connection is there."""
    connection = upstream.connection
    if connection is not None and type(connection.transport).__name__ == "SseClient":
        return KINDS["sse"]
    return "Streamable HTTP" if upstream.config.kind != "stdio" else KINDS["stdio"]


def _renamed(upstream: Upstream) -> dict[str, str]:
    """Tools whose names had to be shortened, with the name that clients see."""
    if not upstream.naming.prefix:
        return {}
    tools = upstream.lists.get("tools", ())
    shortened = {tool.local: hashed_name(tool.server, tool.renamed or tool.local) for tool in tools}
    return {tool.local: tool.key for tool in tools if tool.key == shortened[tool.local]}


def _collisions(gateway: Gateway) -> list[Collision]:
    everything = routes(gateway)
    kinds: dict[str, dict[str, list[str]]] = {
        "tool": everything.tools.collisions,
        "prompt": everything.prompts.collisions,
        "resource": everything.resources.collisions,
    }
    return [Collision(kind, name, servers) for kind, found in kinds.items() for name, servers in found.items()]


def address(server: ServerConfig) -> str:
    """Where a server is, without its secrets."""
    if server.kind == "stdio":
        return command_line(server)
    parts = urlsplit(server.url)
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    port = f":{parts.port}" if parts.port else ""
    return f"{parts.scheme}://{host}{port}{parts.path}"


def as_json(
    config: Config, found: list[Diagnosis], collisions: list[Collision], lacks: list[Lack], *, healthy: bool
) -> bytes:
    """Everything, for programs."""
    content: dict[str, Any] = {
        "ok": healthy,
        "files": [str(path) for path in config.files],
        "searched": [str(path) for path in config.searched],
        "warnings": config.warnings,
        "servers": found,
        "collisions": collisions,
        "lacks": lacks,
    }
    return msgspec.json.encode(content)
