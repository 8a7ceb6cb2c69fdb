"""One request on its way to an upstream, and what came of it."""

import asyncio
from collections.abc import Callable, Generator
from contextvars import Context
from functools import partial
from typing import Any, Final, Protocol

from polyplex.errors import UpstreamError
from polyplex.protocol.jsonrpc import error_object
from polyplex.transports.body import BodyStream

MAX_MESSAGE_BYTES: Final = 256 * 1024 * 1024


class Reply:
    """The answer to a request: a raw `result`, a raw `error`, or a `stream` that starts right at the result's bytes.

    A stream's last byte is the `}` that closes the envelope.
    """

    __slots__ = ("error", "result", "stream")

    def __init__(
        self, result: bytes | None = None, error: bytes | None = None, stream: BodyStream | None = None
    ) -> None:
        self.result, self.error, self.stream = result, error, stream

    @classmethod
    def failure(cls, code: int, message: str, data: bytes | None = None) -> "Reply":
        """An error reply."""
        return cls(error=error_object(code, message, data))


class Exchange:
    """A request and its outcome. `context` is whoever caused it; asks and notifications that belong to it go there.

    `deadline` is in loop time; `timeout` seconds are granted anew with each sign of progress, up to `last_deadline`.
    It is awaited by one waiter: a task, to which it looks like a future of asyncio, or a `Running` call, which is
    resumed in the very moment the outcome is there (`on_done`).
    """

    _asyncio_future_blocking = False
    _outcome: "Reply | BaseException | None" = None
    on_done: "Callable[[Exchange], None] | None" = None
    timeout = 0.0
    deadline = 0.0
    last_deadline = 0.0
    streamable = False
    token: bytes | None = None
    _holders = 0
    _held_since = 0.0

    def __init__(self, loop: asyncio.AbstractEventLoop, identifier: bytes, method: str, context: object) -> None:
        self._loop = loop
        self.id = identifier
        self.method = method
        self.context = context

    def __await__(self) -> Generator[Any, None, Reply]:
        if self._outcome is None:
            self._asyncio_future_blocking = True
            yield self
        return self.result()

    def done(self) -> bool:
        """True once there is an outcome."""
        return self._outcome is not None

    def result(self) -> Reply:
        """The reply; raises what the exchange failed with."""
        outcome = self._outcome
        if isinstance(outcome, Reply):
            return outcome
        raise outcome or asyncio.InvalidStateError("the exchange has no outcome yet")

    def resolve(self, reply: Reply) -> bool:
        """Set the outcome; False where there was one."""
        if self._outcome is None:
            self._settle(reply)
            return True
        if reply.stream is not None:
            reply.stream.abort()
        return False

    def fail(self, error: BaseException) -> bool:
        """Set a failure as the outcome; False where there was one."""
        if self._outcome is None:
            self._settle(error)
            return True
        return False

    def _settle(self, outcome: "Reply | BaseException") -> None:
        self._outcome = outcome
        on_done, self.on_done = self.on_done, None
        if on_done is not None:
            on_done(self)

    def hold(self, now: float) -> None:
        """The server waits for an answer of its client's: until `release`, no time counts."""
        if self._holders == 0:
            self._held_since = now
        self._holders += 1
        self.deadline = 0.0

    def release(self, now: float) -> None:
        """An answer is there; once all are, time counts again."""
        self._holders -= 1
        if self._holders == 0:
            self.last_deadline += now - self._held_since
            self.deadline = min(now + self.timeout, self.last_deadline)

    # -- what asyncio's tasks need of a future
    def cancel(self, msg: object = None) -> bool:
        """Nobody waits any more."""
        return self.fail(asyncio.CancelledError())

    def get_loop(self) -> asyncio.AbstractEventLoop:
        """The event loop."""
        return self._loop

    def add_done_callback(self, callback: Callable[[Any], object], *, context: Context | None = None) -> None:
        """Have a task woken, in the loop's next round."""
        if self._outcome is not None:
            self._loop.call_soon(callback, self, context=context)
        else:
            self.on_done = partial(self._wake, callback, context)

    def _wake(self, callback: Callable[[Any], object], context: Context | None, exchange: "Exchange") -> None:
        self._loop.call_soon(callback, exchange, context=context)


class Receiver(Protocol):
    """Takes what a client transport receives. `exchange` is the request on whose own stream it came, else None."""

    def received(self, frame: bytes | bytearray, exchange: Exchange | None) -> None:
        """A frame came."""
        ...

    def streamed(self, stream: BodyStream, exchange: Exchange) -> None:
        """The result of `exchange` has begun; its bytes follow."""
        ...

    def failed(self, exchange: Exchange, error: UpstreamError) -> None:
        """The exchange has failed by itself; the session goes on."""
        ...

    def session_lost(self, exchange: Exchange | None) -> None:
        """The server no longer knows the session; `exchange` was not carried out."""
        ...

    def suspended(self, exchange: Exchange, retry_ms: int) -> None:
        """The server closed the stream of an exchange and wants to be polled for the rest."""
        ...

    def closed(self, reason: str) -> None:
        """The transport has ended, and with it everything that was under way."""
        ...


class ClientTransport(Protocol):
    """The client half of a transport."""

    async def open(self, receiver: Receiver) -> None:
        """Connect. Raises `UpstreamUnavailable`."""
        ...

    def send(
        self, frame: bytes, exchange: Exchange | None = None, headers: list[tuple[str, str]] | None = None
    ) -> None:
        """Send a frame; `exchange` where it is a request. Failures reach the receiver."""
        ...

    def abandon(self, exchange: Exchange) -> None:
        """Stop waiting for an exchange: its own stream, where it has one, is closed."""
        ...

    def established(self, revision: str, *, stateful: bool) -> None:
        """The handshake is over: requests carry the revision, a stateful session may open its own stream."""
        ...

    @property
    def cancels_by_closing(self) -> bool:
        """True where closing the stream of an exchange is how it is cancelled (modern era over HTTP)."""
        ...

    async def close(self) -> None:
        """End the session and free everything."""
        ...
