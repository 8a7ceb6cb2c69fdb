"""Client sessions and the calls in them."""

import asyncio
import itertools
import logging
import secrets
from collections import deque
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Final, Protocol

from msgspec import UNSET

from polyplex.downstream.event_log import EventLog, EventLogs
from polyplex.errors import RpcError
from polyplex.protocol import jsonrpc
from polyplex.protocol.jsonrpc import NULL, Fields, Message
from polyplex.protocol.revisions import Era
from polyplex.transports.exchange import Reply

if TYPE_CHECKING:
    from polyplex.downstream.logged_stream import LoggedStream

log = logging.getLogger("polyplex.downstream")
BACKLOG: Final = 64
MAX_CALLS: Final = 1024
STOPPING: Final = "polyplex is stopping"
CLIENT_ENDED: Final = "the client ended the session"
LOCAL: Final = "local"

Send = Callable[[bytes], None]


class Gateway(Protocol):
    """What endpoints call; the gateway implements it."""

    def handle(self, call: "Call") -> Coroutine[Any, Any, Reply]:
        """Answer a request. Never raises but for cancellation."""
        ...

    def notified(self, session: "Session", method: str, params: bytes | None) -> None:
        """The client notifies."""
        ...

    def closed(self, session: "Session") -> None:
        """A session has ended; it may never have begun."""
        ...


class Cancellable(Protocol):
    """What runs a call."""

    def cancel(self) -> object:
        """Stop it."""
        ...

    def end(self, reason: str) -> object:
        """Stop it with an answer that says why."""
        ...

    def park(self, reply: Reply, finished: Callable[[Reply | None], None]) -> None:
        """Answer the client now, and go on; what would have been the answer goes to `finished`, None for none."""
        ...


class Session:
    """One client: a legacy session, or for a modern client what one request tells of it.

    `send` writes to the client outside of any call; while it is None, a bounded backlog is kept for the stream to come.
    `caller` is who began it, and nobody else may use it. `logs` is there where its streams can be taken up again.
    """

    __slots__ = (
        "_ask_ids",
        "_log", "_asks", "_backlog", "_logs", "_send", "caller", "calls", "capabilities", "client_info", "closed",
        "context", "era", "http", "id", "last_used", "log_level", "ready", "resumable", "revision",
    )  # fmt: skip

    def __init__(
        self,
        era: Era,
        revision: str,
        *,
        http: bool,
        identifier: str | None = None,
        caller: str = LOCAL,
        logs: EventLogs | None = None,
    ) -> None:
        self.id = identifier or new_session_id()
        self.caller = caller
        self.era = era
        self.revision = revision
        self.http = http
        self.capabilities = b"{}"
        self.client_info = b"{}"
        self.log_level: str | None = None
        self.ready = False
        self.closed = False
        self.last_used = 0.0
        self.calls: dict[bytes, Call] = {}
        self.context: Any = None
        self._asks: dict[bytes, asyncio.Future[Reply]] = {}
        self._ask_ids = itertools.count(1)
        self._send: Send | None = None
        self._backlog: deque[bytes] | None = None
        self._logs = logs
        self._log: EventLog | None = None
        self.resumable: dict[str, LoggedStream] = {}

    def event_log(self) -> EventLog:
        """What was sent on the session's streams. Raises `LookupError` without `logs`."""
        if self._log is None:
            if self._logs is None:
                raise LookupError("the streams of this session cannot be taken up again")
            self._log = self._logs.open_log()
            if self.closed:
                self._log.close()
        return self._log

    # -- to the client
    def attach(self, send: Send | None) -> None:
        """The general stream has been opened, or (None) closed."""
        self._send = send
        if send is not None and self._backlog is not None:
            backlog, self._backlog = self._backlog, None
            for frame in backlog:
                send(frame)

    @property
    def attached(self) -> Send | None:
        """Where frames outside of calls go."""
        return self._send

    def send(self, frame: bytes) -> None:
        """Write a frame that belongs to no call."""
        if self._send is not None:
            self._send(frame)
        elif not self.closed:
            if self._backlog is None:
                self._backlog = deque(maxlen=BACKLOG)
            if frame not in self._backlog:
                self._backlog.append(frame)

    async def ask(self, method: str, params: bytes | None, send: Send) -> Reply:
        """Send a request to the client by `send` and await its answer. Raises `RpcError` when the session ends."""
        identifier = b"%d" % next(self._ask_ids)
        future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._asks[identifier] = future
        send(jsonrpc.request(identifier, method, params))
        try:
            return await future
        except asyncio.CancelledError:
            send(jsonrpc.notification("notifications/cancelled", b'{"requestId":%b}' % identifier))
            raise
        finally:
            self._asks.pop(identifier, None)

    # -- from the client
    def answered(self, message: Message) -> None:
        """The client answers a request of ours; answers to no request are dropped."""
        future = self._asks.get(b"" if message.id is UNSET else bytes(message.id))
        if future is None or future.done():
            log.debug("a client answered a request that nobody asked")
        elif message.error is not UNSET:
            future.set_result(Reply(error=bytes(message.error)))
        else:
            future.set_result(Reply(result=bytes(message.result)))  # pyright: ignore[reportArgumentType]

    def cancel(self, params: bytes | None) -> None:
        """`notifications/cancelled` from the client: stop the call it names, if it is still under way."""
        raw = jsonrpc.decode_fields(params or b"{}").get("requestId")
        call = None if raw is None else self.calls.get(bytes(raw))
        if call is not None and call.method != "initialize":
            call.stop()

    def close(self, reason: str | None = None) -> None:
        """End the session: calls under way are cancelled, and answered where there is a `reason`; asks fail."""
        self.closed = True
        for call in list(self.calls.values()):
            call.stop(reason)
        for future in list(self._asks.values()):
            if not future.done():
                future.set_exception(RpcError(jsonrpc.INTERNAL_ERROR, "the client has gone"))
        self._send = self._backlog = None
        for stream in self.resumable.values():
            stream.close()
        self.resumable = {}
        if self._log is not None:
            self._log.close()


def new_session_id() -> str:
    """24 random bytes in visible ASCII (2025-11-25, "Session Management"): nobody guesses it."""
    return secrets.token_urlsafe(24)


def no_frame(frame: bytes) -> None:
    """Where frames go that nobody takes."""


class Call:
    """A request of a client on its way through. `send` writes a frame on the call's own stream."""

    fields: Fields | None = None
    streamable = False
    suspend: Callable[[int], None] | None = None
    task: Cancellable | None = None
    server: str | None = None
    log_level: str | None = None  # of a modern request; a legacy session has one for all
    visits = 0

    def __init__(self, session: Session, message: Message, send: Send, headers: dict[str, str] | None = None) -> None:
        self.session = session
        self.id = bytes(message.id)  # pyright: ignore[reportArgumentType]
        self.method: str = message.method  # pyright: ignore[reportAttributeAccessIssue]
        params = None if message.params is UNSET else bytes(message.params)
        self.params: bytes | None = None if params == NULL else params  # as some serializers write what is left out
        self.revision = session.revision
        self.send = send
        self.headers = headers

    def stop(self, reason: str | None = None) -> None:
        """Cancel the call: it gets no answer but the `reason`, where there is one."""
        if self.task is None:
            return
        if reason is None:
            self.send = no_frame  # at once; the task hears of it a moment later
            self.task.cancel()
        else:
            self.task.end(reason)
