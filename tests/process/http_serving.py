"""An HTTP server whose handler is the test."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

from polyplex.transports.http_request import Request
from polyplex.transports.http_server import HttpLimits, HttpServer
from tests.process.http_stage import until

GET = b"GET /%d HTTP/1.1\r\nHost: localhost\r\n\r\n"


class Stage:
    """A server whose requests are kept, and answered at once with their target unless told otherwise."""

    def __init__(self, limits: HttpLimits, answer: Callable[[Request], None] | None) -> None:
        self.requests: list[Request] = []
        self._answer = answer or (lambda request: request.respond(200, request.target.encode(), b"text/plain"))
        self.server = HttpServer(self._handle, limits)
        self.port = 0

    def _handle(self, request: Request) -> None:
        self.requests.append(request)
        self._answer(request)

    async def request(self, count: int = 1) -> Request:
        """The `count`th request, once it has come."""
        await until(lambda: len(self.requests) >= count)
        return self.requests[count - 1]

    def later(self, seconds: float) -> None:
        """Let time pass: sweep as if it were that much later."""
        loop = asyncio.get_running_loop()
        for connection in list(self.server._connections):
            connection.check(loop.time() + seconds)


def keep(request: Request) -> None:
    """Answer later."""


@asynccontextmanager
async def serving(answer: Callable[[Request], None] | None = None, **limits: float) -> AsyncGenerator[Stage]:
    stage = Stage(HttpLimits(**limits), answer)  # pyright: ignore[reportArgumentType]
    (_, stage.port), *_ = await stage.server.start("127.0.0.1", 0)
    try:
        yield stage
    finally:
        await stage.server.close(0.2)
        await until(lambda: not stage.server._connections)
