"""One open session with an upstream: requests out and their answers, asks and notifications in."""

import asyncio
import itertools
import logging
import re
from collections.abc import Callable, Coroutine
from typing import Any, Final, Protocol

from msgspec import UNSET, Raw

from polyplex.errors import (
    RemoteProtocolError,
    RpcError,
    UpstreamError,
    UpstreamLost,
    UpstreamTimeout,
    UpstreamUnavailable,
)
from polyplex.mux.entries import MAX_NESTING
from polyplex.protocol import jsonrpc
from polyplex.protocol.bridge.tasks import offers_tasks
from polyplex.protocol.envelope import SUBSCRIPTION_KEY
from polyplex.protocol.jsonrpc import Fields, Message
from polyplex.protocol.revisions import ASK_METHODS, LEGACY, LIST_METHODS, TASK_METHODS, Era
from polyplex.transports.body import BodyStream, stream_of
from polyplex.transports.exchange import ClientTransport, Exchange, Reply

log = logging.getLogger("polyplex.upstreams")
SWEEP_SECONDS: Final = 0.25
MAX_ASKS: Final = 2048
SKIPS_LOGGED: Final = 16
STREAM_FROM_BYTES: Final = 1024 * 1024
_ids: Final = itertools.count(1)
_SUBSCRIPTION: Final = SUBSCRIPTION_KEY.encode()
# Their results say nothing, and some servers answer null to them.
_EMPTY_RESULTS: Final = frozenset({"ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"})
_METHOD_HINT: Final = re.compile(rb'"method"\s*:\s*"[^"]')
# How serializers that know one kind of number write our ids.
_ZERO_FRACTION: Final = re.compile(rb"\.0+$")


# Asks whoever was found to be the one, and waits for the answer. Raises `RpcError`.
Asking = Callable[[], Coroutine[Any, Any, Reply]]


class Handler(Protocol):
    """What a connection calls."""

    def ask(self, exchange: Exchange | None, method: str, params: bytes | None) -> Asking:
        """The server asks its client: whom, is decided now. Raises `RpcError` where nobody can be asked."""
        ...

    def notified(self, exchange: Exchange | None, method: str, params: bytes | None) -> None:
        """The server notifies; `exchange` is the request it belongs to, where that is known."""
        ...

    def suspended(self, exchange: Exchange, retry_ms: int) -> None:
        """The server wants to be polled for the rest of an exchange."""
        ...

    def lost(self, reason: str, *, expired: bool = False) -> None:
        """The connection has ended by itself; `expired` where the server is well and only forgot the session."""
        ...


class Peer:
    """What the server said of itself in the handshake; `tasks` where it makes tasks of tool calls."""

    __slots__ = ("capabilities", "era", "info", "instructions", "revision", "tasks")

    def __init__(self, era: Era, revision: str, capabilities: Fields, info: bytes, instructions: str | None) -> None:
        self.era = era
        self.revision = revision
        self.capabilities = capabilities
        self.info = info
        self.instructions = instructions
        self.tasks = offers_tasks(era, revision, capabilities)


def request_id() -> bytes:
    """A raw request id, unique in this process, so that no retry ever repeats one."""
    return b"%d" % next(_ids)


class Connection:
    """Implements the receiver side of a client transport.

    `outliving` are progress tokens that are still good though their exchange is over, as of calls that became tasks.
    """

    def __init__(self, server: str, transport: ClientTransport, handler: Handler) -> None:
        self.server = server
        self.transport = transport
        self.peer: Peer | None = None
        self.open = True
        self.stray: str | None = None
        self.in_flight: dict[bytes, Exchange] = {}
        self.outliving: set[bytes] = set()
        self.last_used = asyncio.get_running_loop().time()
        self._handler = handler
        self._asks: dict[bytes, asyncio.Task[None]] = {}
        self._loop = asyncio.get_running_loop()
        self._sweep: asyncio.TimerHandle | None = None
        self._skipped = 0

    # -- out
    def start(
        self,
        method: str,
        params: bytes | None,
        *,
        timeout: float,
        last: float | None = None,
        context: object = None,
        streamable: bool = False,
        headers: list[tuple[str, str]] | None = None,
        identifier: bytes | None = None,
        token: bytes | None = None,
    ) -> Exchange:
        """Send a request; await it for the outcome. `timeout` and `last` in seconds, 0 for none.

        `token` is the client's own progress token; the params sent carry the id in its place.
        """
        exchange = Exchange(self._loop, identifier or request_id(), method, context)
        if not self.open:
            exchange.fail(UpstreamUnavailable(self.server, "the connection has ended"))
            return exchange
        now = self.last_used = self._loop.time()
        exchange.token = token
        exchange.streamable = streamable
        exchange.timeout = timeout
        if timeout:
            exchange.last_deadline = now + (last or timeout)
            exchange.deadline = min(now + timeout, exchange.last_deadline)
            if self._sweep is None:
                self._sweep = self._loop.call_later(SWEEP_SECONDS, self._check_deadlines)
        self.in_flight[exchange.id] = exchange
        self.transport.send(jsonrpc.request(exchange.id, method, params), exchange, headers)
        return exchange

    async def request(self, method: str, params: bytes | None, *, seconds: float) -> Fields:
        """Send a request of our own and return the members of its result. Raises `RpcError` or `UpstreamError`."""
        headers = None if self.peer is None or self.peer.era is LEGACY else [("Mcp-Method", method)]
        exchange = self.start(method, params, timeout=seconds, headers=headers)
        try:
            reply = await exchange
        except asyncio.CancelledError:
            self.cancel(exchange, "polyplex no longer needs it")
            raise
        if reply.error is not None:
            error = jsonrpc.decode_error(reply.error)
            data = None if error.data is UNSET else bytes(error.data)
            raise RpcError(error.code, error.message, data)
        try:
            return jsonrpc.decode_fields(reply.result or b"{}")
        except RemoteProtocolError as error:
            raise UpstreamLost(self.server, f"its answer to {method} is not usable: {error}") from None

    def notify(self, method: str, params: bytes | None = None) -> None:
        """Send a notification."""
        if self.open:
            self.transport.send(jsonrpc.notification(method, params))

    def cancel(self, exchange: Exchange, reason: str) -> None:
        """Tell the server that an exchange is not wanted any more, and forget it."""
        if self.in_flight.pop(exchange.id, None) is None:
            return
        exchange.cancel()
        if not self.open:
            return
        if not self.transport.cancels_by_closing and exchange.method != "initialize":
            params = b'{"requestId":%b,"reason":%b}' % (exchange.id, jsonrpc.encode_json(reason))
            self.transport.send(jsonrpc.notification("notifications/cancelled", params))
        self.transport.abandon(exchange)

    def _check_deadlines(self) -> None:
        now = self._loop.time()
        late = [exchange for exchange in self.in_flight.values() if exchange.deadline and exchange.deadline <= now]
        for exchange in late:
            waited = exchange.timeout if now < exchange.last_deadline else None
            what = (
                f"no answer to {exchange.method} within {waited:g} s" if waited else f"{exchange.method} took too long"
            )
            exchange.fail(UpstreamTimeout(self.server, what))
            self.cancel(exchange, "timed out")
        self._sweep = self._loop.call_later(SWEEP_SECONDS, self._check_deadlines) if self.in_flight else None

    # -- in (the receiver interface of client transports)
    def received(self, frame: bytes | bytearray, exchange: Exchange | None) -> None:
        """A frame came. Whatever goes wrong with one frame must not end the connection for the others."""
        try:
            self._received(frame, exchange)
        except Exception:
            log.exception("%s: a message could not be handled", self.server)

    def _received(self, frame: bytes | bytearray, exchange: Exchange | None) -> None:
        try:
            message = jsonrpc.decode(frame)  # pyright: ignore[reportArgumentType]
        except RemoteProtocolError as error:
            self._unreadable(bytes(frame), exchange, error)
            return
        if message.method is UNSET:
            self._response(message, exchange)
        elif message.id is UNSET:
            self._notification(message.method, message.params, exchange)
        else:
            self._request(message.method, bytes(message.id), message.params, exchange)

    def _response(self, message: Message, hint: Exchange | None) -> None:
        identifier = b"null" if message.id is UNSET else bytes(message.id)
        exchange = self.in_flight.pop(identifier, None)
        if exchange is None:
            exchange = self.in_flight.pop(_ZERO_FRACTION.sub(b"", identifier.strip(b'"')), None)
        if exchange is None and identifier == b"null" and hint is not None and message.error is not UNSET:
            exchange = self.in_flight.pop(hint.id, None)
        if exchange is None:
            log.debug("%s: an answer to no request of ours, id %s", self.server, identifier[:80])
        elif message.error is not UNSET:
            exchange.resolve(Reply(error=jsonrpc.mend_error(message.error)))
        else:
            self._resolve(exchange, memoryview(message.result))  # pyright: ignore[reportArgumentType]

    def _resolve(self, exchange: Exchange, result: memoryview) -> None:
        start = bytes(result[:40])
        if start[:1] != b"{":
            if start != jsonrpc.NULL or exchange.method not in _EMPTY_RESULTS:
                what = start.decode("utf-8", "replace")
                exchange.fail(UpstreamLost(self.server, f"its result for {exchange.method} is no object: {what}"))
                return
            result = memoryview(b"{}")
        large = exchange.streamable and len(result) >= STREAM_FROM_BYTES
        exchange.resolve(Reply(stream=stream_of(result)) if large else Reply(result=bytes(result)))

    def _notification(self, method: str, raw: Raw | object, hint: Exchange | None) -> None:
        params = None if raw is UNSET else bytes(raw)  # pyright: ignore[reportArgumentType, reportCallIssue]
        if method == "notifications/progress":
            self._progress(params)
        elif method == "notifications/cancelled":
            self._cancelled(params)
        else:
            if hint is None and params is not None and _SUBSCRIPTION in params:
                hint = self._subscribed(params)
            self._handler.notified(hint, method, params)

    def _subscribed(self, params: bytes) -> Exchange | None:
        """On a shared stream, the `subscriptionId` tells which listen request a notification belongs to."""
        try:
            meta = jsonrpc.decode_fields(jsonrpc.decode_fields(params)["_meta"])
        except (RemoteProtocolError, KeyError):
            return None
        return self.in_flight.get(bytes(meta.get(SUBSCRIPTION_KEY, Raw(b""))))

    def _progress(self, params: bytes | None) -> None:
        """Progress belongs to the exchange whose token it carries; any other token is nobody's."""
        try:
            token = bytes(jsonrpc.decode_fields(params or b"{}").get("progressToken", Raw(b"")))
        except RemoteProtocolError:
            return
        exchange = self.in_flight.get(token) or self.in_flight.get(token.strip(b'"'))
        if exchange is None:
            if token in self.outliving or token.strip(b'"') in self.outliving:
                self._handler.notified(None, "notifications/progress", params)
            return
        if exchange.deadline:
            exchange.deadline = min(self._loop.time() + exchange.timeout, exchange.last_deadline)
        if exchange.token is not None:
            self._handler.notified(exchange, "notifications/progress", params)

    def _cancelled(self, params: bytes | None) -> None:
        """The server takes an ask back, or (modern) ends a stream of notifications."""
        try:
            identifier = bytes(jsonrpc.decode_fields(params or b"{}").get("requestId", Raw(b"")))
        except RemoteProtocolError:
            return
        ask = self._asks.get(identifier)
        if ask is not None:
            self._loop.call_soon(ask.cancel)  # a task that was never begun would not clean up
            return
        exchange = self.in_flight.get(identifier)
        if exchange is not None and exchange.method == "subscriptions/listen":
            del self.in_flight[identifier]
            exchange.fail(UpstreamLost(self.server, "the server ended the stream of notifications"))

    def _request(self, method: str, identifier: bytes, raw: Raw | object, hint: Exchange | None) -> None:
        if method == "ping":
            self.transport.send(jsonrpc.response(identifier, b"{}"))
            return
        known = method in ASK_METHODS or method in TASK_METHODS
        if not known or len(self._asks) >= MAX_ASKS or identifier in self._asks:
            code = jsonrpc.INVALID_REQUEST if known else jsonrpc.METHOD_NOT_FOUND
            error = jsonrpc.error_object(code, f"{method} cannot be served here")
            self.transport.send(jsonrpc.error_response(identifier, error))
            return
        params = None if raw is UNSET else bytes(raw)  # pyright: ignore[reportArgumentType, reportCallIssue]
        if params == jsonrpc.NULL:
            params = None  # as some serializers write what is left out
        try:
            asking = self._handler.ask(hint, method, params)
        except (RpcError, RemoteProtocolError) as error:
            failure = jsonrpc.error_object(error.code, str(error), getattr(error, "data", None))
            self.transport.send(jsonrpc.error_response(identifier, failure))
            return
        self._asks[identifier] = self._loop.create_task(self._answer(identifier, hint, asking))

    async def _answer(self, identifier: bytes, hint: Exchange | None, asking: Asking) -> None:
        """Have an ask answered. The call that waits for it does not time out meanwhile: a human may be reading."""
        held = [exchange for exchange in (self.in_flight.values() if hint is None else [hint]) if exchange.timeout]
        for exchange in held:
            exchange.hold(self._loop.time())
        try:
            reply = await asking()
        except RpcError as error:
            reply = Reply.failure(error.code, error.message, error.data)
        except RemoteProtocolError as error:
            reply = Reply.failure(error.code, str(error))
        finally:
            self._asks.pop(identifier, None)
            for exchange in held:
                exchange.release(self._loop.time())
        if not self.open:
            return
        if reply.result is not None:
            self.transport.send(jsonrpc.response(identifier, bytes(reply.result)))
        else:
            self.transport.send(
                jsonrpc.error_response(identifier, reply.error or jsonrpc.error_object(-32603, "failed"))
            )

    def _unreadable(self, frame: bytes, hint: Exchange | None, error: RemoteProtocolError) -> None:
        """A frame that is no message: log lines on stdout are skipped, a broken answer fails its call only."""
        if error.code != jsonrpc.PARSE_ERROR and frame.lstrip()[:1] == b"[" and self._batch(frame, hint):
            return
        identifier = jsonrpc.find_id(frame) if hint is None else hint.id
        exchange = self.in_flight.get(identifier) if identifier is not None else None
        if exchange is not None and exchange.method in LIST_METHODS and self._shallow(frame, hint):
            return
        exchange = self.in_flight.pop(identifier, None) if identifier is not None else None
        if exchange is not None and (hint is not None or not _METHOD_HINT.search(frame, 0, 256)):
            exchange.fail(UpstreamLost(self.server, f"its answer cannot be read: {error}"))
        else:
            if exchange is not None:
                self.in_flight[exchange.id] = exchange
            self._skip(frame)

    def _shallow(self, frame: bytes, hint: Exchange | None) -> bool:
        """A list with an entry that is nested too deeply must not lose the others: read what is not; False if none."""
        try:
            message = jsonrpc.decode(jsonrpc.cut_deep(frame, 2 * MAX_NESTING))
        except RemoteProtocolError:
            return False
        if message.result is UNSET:
            return False
        self._response(message, hint)
        return True

    def _skip(self, frame: bytes) -> None:
        """Log a line that is no message: the first ones, then ever fewer, as logging is what takes the time here."""
        self._skipped += 1
        count = self._skipped
        if count <= SKIPS_LOGGED or count & (count - 1) == 0:
            text = frame[:120].decode("utf-8", "replace")
            self.stray = self.stray or text
            log.info("%s: skipped a line that is no message (%d by now): %s", self.server, count, text)

    def _batch(self, frame: bytes, hint: Exchange | None) -> bool:
        """Take a batch apart; False where it is none."""
        try:
            parts = jsonrpc.decode_frame(frame)
        except RemoteProtocolError as error:
            log.info("%s: skipped a batch: %s", self.server, error)
            return False
        if not isinstance(parts, list):
            return False
        for part in parts:
            self.received(part, hint)
        return True

    def streamed(self, stream: BodyStream, exchange: Exchange) -> None:
        """A large result has begun."""
        if self.in_flight.pop(exchange.id, None) is None:
            stream.abort()
        else:
            exchange.resolve(Reply(stream=stream))

    def failed(self, exchange: Exchange, error: UpstreamError) -> None:
        """An exchange failed by itself; where nothing could be sent at all, the session is over."""
        known = self.in_flight.pop(exchange.id, None) is not None
        if isinstance(error, UpstreamUnavailable) and self.peer is not None and self.open:
            self.closed(error.message)
        if known:  # last: whoever waits may go on at once, and must find the session as it is now
            exchange.fail(error)

    def session_lost(self, exchange: Exchange | None) -> None:
        """The server forgot the session: the exchange was not carried out, and a new session is needed."""
        reason = "the server no longer knows the session"
        known = exchange is not None and self.in_flight.pop(exchange.id, None) is not None
        if self.open and self.peer is not None:
            self.open = False
            self._handler.lost(reason, expired=True)
        if exchange is not None and known:
            exchange.fail(UpstreamUnavailable(self.server, reason))

    def suspended(self, exchange: Exchange, retry_ms: int) -> None:
        """The server wants to be polled for the rest of an exchange."""
        self._handler.suspended(exchange, retry_ms)

    def closed(self, reason: str) -> None:
        """The transport has ended."""
        was_open, self.open = self.open, False
        self._fail_all(reason)
        if was_open:
            self._handler.lost(reason)

    def _fail_all(self, reason: str) -> None:
        exchanges, self.in_flight = list(self.in_flight.values()), {}
        for exchange in exchanges:
            exchange.fail(UpstreamLost(self.server, reason))
        for ask in list(self._asks.values()):
            self._loop.call_soon(ask.cancel)
        if self._sweep is not None:
            self._sweep.cancel()
            self._sweep = None

    async def close(self, reason: str = "polyplex is closing the connection") -> None:
        """End the session; what is under way fails with `reason`."""
        self.open = False
        self._fail_all(reason)
        await self.transport.close()
