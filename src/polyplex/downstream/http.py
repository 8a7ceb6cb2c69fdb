"""The HTTP endpoint: `/mcp` for both eras, `/sse` and `/messages/` for HTTP+SSE, health."""

import asyncio
import logging
from collections.abc import Callable
from typing import Final

import msgspec

from polyplex.downstream.checks import OriginChecks
from polyplex.downstream.event_store import EventOptions, EventStore
from polyplex.downstream.http_calls import HttpCall
from polyplex.downstream.legacy_http import LegacyHttp
from polyplex.downstream.modern_http import ModernHttp
from polyplex.downstream.session import Gateway
from polyplex.downstream.sse import SseEndpoint
from polyplex.protocol import headers as mirrored
from polyplex.protocol import jsonrpc
from polyplex.protocol.revisions import LEGACY_REVISIONS
from polyplex.transports.http_server import HttpLimits, HttpServer, Request

log = logging.getLogger("polyplex.downstream")
TICK_SECONDS: Final = 5.0
_JSON: Final = "application/json"
_LEGACY: Final = frozenset({*LEGACY_REVISIONS, None})
Health = Callable[[], tuple[bool, dict[str, object]]]


class HttpOptions(msgspec.Struct, frozen=True):
    """Settings of the endpoint."""

    host: str = "127.0.0.1"
    port: int = 7332
    allowed_hosts: tuple[str, ...] = ()
    allowed_origins: tuple[str, ...] = ()
    max_body_bytes: int = 16 * 1024 * 1024
    session_idle_seconds: float = 1800.0
    events: EventOptions = EventOptions()


class HttpEndpoint:
    """Serves any number of clients on one port. `health` tells whether we are ready, and what to report."""

    def __init__(self, gateway: Gateway, options: HttpOptions, health: Health, metrics: Callable[[], bytes]) -> None:
        self._options = options
        self._health = health
        self._metrics = metrics
        self._server = HttpServer(self._handle, HttpLimits(body_bytes=options.max_body_bytes))
        self._active: set[HttpCall] = set()
        self._legacy = LegacyHttp(gateway, self._active, options.session_idle_seconds, EventStore(options.events))
        self._modern = ModernHttp(gateway, self._active)
        self._sse = SseEndpoint(gateway)
        self._checks = OriginChecks((options.host,), options.allowed_hosts, options.allowed_origins)
        self._timer: asyncio.TimerHandle | None = None

    async def start(self) -> list[tuple[str, int]]:
        """Listen. Raises `OSError` where the address is taken or not ours."""
        addresses = await self._server.start(self._options.host, self._options.port)
        self._tick()
        return addresses

    def _tick(self) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time()
        for call in list(self._active):
            call.keep_alive(now)
        self._legacy.tick(now)
        self._sse.tick(now)
        self._timer = loop.call_later(TICK_SECONDS, self._tick)

    @property
    def busy(self) -> bool:
        """True while calls are under way."""
        return bool(self._active) or self._legacy.busy or self._sse.busy

    def stop_accepting(self) -> None:
        """Take no new work; what is under way goes on."""
        self._server.stop_accepting()

    async def close(self) -> None:
        """End all sessions and connections."""
        if self._timer is not None:
            self._timer.cancel()
        await self._legacy.close()
        self._sse.close()
        self._modern.close()
        await self._server.close()

    # -- requests
    def _handle(self, request: Request) -> None:
        try:
            usual = request.duplicate is None and self._checks.usual(request.headers)
            if not usual and not self._permitted(request):
                return
            if request.target == "/mcp":
                self._mcp(request)
            else:
                self._route(request)
        except Exception:
            log.exception("the HTTP request %s %s failed inside polyplex", request.method, request.path)
            if not request.answered:
                request.fail()

    def _permitted(self, request: Request) -> bool:
        host, origin = request.headers.get("host"), request.headers.get("origin")
        if request.duplicate is not None:
            _refuse(request, 400, f"the header {request.duplicate} appears twice")
        elif not self._checks.host(host):
            _refuse(request, 403, "this Host is not served here; add it to polyplex.allowedHosts")
        elif not self._checks.origin(origin):
            _refuse(request, 403, "this Origin is not allowed; add it to polyplex.allowedOrigins")
        else:
            return True
        return False

    def _route(self, request: Request) -> None:
        path = request.path
        if path in ("/mcp", "/mcp/"):
            self._mcp(request)
        elif path == "/sse":
            self._sse.open_stream(request)
        elif path in ("/messages", "/messages/"):
            self._sse.post(request)
        elif request.method not in ("GET", "HEAD"):
            request.respond(404)
        elif path == "/healthz":
            request.respond(200, b'{"status":"ok"}')
        elif path == "/readyz":
            ready, report = self._health()
            request.respond(200 if ready else 503, msgspec.json.encode(report))
        elif path == "/metrics":
            request.respond(200, self._metrics(), b"text/plain; version=0.0.4; charset=utf-8")
        else:
            request.respond(404, b'{"error":"not found; the MCP endpoint is /mcp"}')

    def _mcp(self, request: Request) -> None:
        headers = request.headers
        revision = headers.get(mirrored.REVISION)
        if request.method == "POST":
            kind = headers.get("content-type", _JSON)
            if kind != _JSON and not kind.lower().startswith(_JSON):
                _refuse(request, 415, "the body must be application/json")
            elif self._legacy.knows(headers.get("mcp-session-id")) and (
                revision is None or revision in LEGACY_REVISIONS
            ):
                self._legacy.post(request)
            elif self._modern.claims(request, revision):
                self._modern.post(request)
            else:
                self._legacy.post(request)
        elif revision is not None and revision not in LEGACY_REVISIONS:
            request.respond(405, extra=b"Allow: POST\r\n")
        elif request.method == "GET":
            self._legacy.get(request)
        elif request.method == "DELETE":
            self._legacy.delete(request)
        else:
            request.respond(405, extra=b"Allow: POST, GET, DELETE\r\n")


def _refuse(request: Request, status: int, message: str) -> None:
    error = jsonrpc.error_object(jsonrpc.INVALID_REQUEST, message)
    request.respond(status, jsonrpc.error_response(jsonrpc.NULL, error))
