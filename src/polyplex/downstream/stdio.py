"""The stdio endpoint: one client on our standard input and output, of either era."""

import asyncio
import logging
from typing import Final

from msgspec import UNSET

from polyplex.downstream.calls import Batch, response_frame, response_parts, run_call, whole_reply
from polyplex.downstream.session import STOPPING, Call, Gateway, Session
from polyplex.errors import RemoteProtocolError, RpcError
from polyplex.protocol import envelope, jsonrpc
from polyplex.protocol.jsonrpc import Message
from polyplex.protocol.revisions import LATEST_MODERN, MODERN_ONLY_METHODS, R2025_11_25, Era, allows_batches
from polyplex.transports.exchange import Reply
from polyplex.transports.stdio import StdioEndpointTransport

log = logging.getLogger("polyplex.downstream")
MAX_UNREAD_BYTES: Final = 8 * 1024 * 1024
MAX_UNREAD_WITH_NOTICES: Final = 32 * 1024 * 1024
HANG_UP_SECONDS: Final = 0.5
_NOTICE: Final = b'{"jsonrpc":"2.0","method":'
PARTS_FROM_BYTES: Final = 256 * 1024


class StdioEndpoint:
    """Serves until end of file. A client may speak either era; `initialize` or the first modern request tells."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._legacy = Session(Era.LEGACY, R2025_11_25, http=False)
        self._modern = Session(Era.MODERN, LATEST_MODERN, http=False)
        self._ended = asyncio.Event()
        self._transport = StdioEndpointTransport(self._frame, self._ended.set)
        self._readers: set[asyncio.Task[None]] = set()
        self._pause: asyncio.Task[None] | None = None
        self._dropped = 0
        self._legacy.attach(self._write)
        self._modern.attach(self._write)

    async def start(self) -> None:
        """Take over standard input and output."""
        await self._transport.start()

    async def ended(self) -> None:
        """Wait until the client has closed its side."""
        await self._ended.wait()

    async def close(self) -> None:
        """End the sessions, with an answer to each call under way, and flush what was written."""
        for session in (self._legacy, self._modern):
            session.close(STOPPING)
            self._gateway.closed(session)
        await self._transport.close()

    @property
    def busy(self) -> bool:
        """True while calls are under way."""
        return bool(self._legacy.calls or self._modern.calls)

    def _write(self, frame: bytes) -> None:
        if self._transport.buffered_bytes > MAX_UNREAD_WITH_NOTICES and frame.startswith(_NOTICE):
            self._drop()
            return
        self._transport.write(jsonrpc.one_line(frame))
        self._heed_reader()

    def _drop(self) -> None:
        """Servers may notify for ever, and nothing else holds them back while the client does not read."""
        self._dropped += 1
        if self._dropped & (self._dropped - 1) == 0:
            log.warning("the client does not read; notifications dropped by now: %d", self._dropped)

    def _heed_reader(self) -> None:
        if self._transport.buffered_bytes > MAX_UNREAD_BYTES and self._pause is None:
            self._pause = asyncio.get_running_loop().create_task(self._wait_for_reader())

    async def _wait_for_reader(self) -> None:
        """A client that does not read what it asked for is not read from either."""
        self._transport.pause_reading()
        draining = asyncio.get_running_loop().create_task(self._transport.drain())
        try:
            while not (await asyncio.wait((draining,), timeout=HANG_UP_SECONDS))[0]:
                if self._transport.hung_up():
                    self._ended.set()
        finally:
            draining.cancel()
        self._pause = None
        self._transport.resume_reading()

    def _frame(self, frame: bytes) -> None:
        try:
            decoded = jsonrpc.decode_frame(frame)
            if isinstance(decoded, list) and not allows_batches(self._legacy.revision):
                raise RemoteProtocolError("batches exist in revision 2025-03-26 only")
        except RemoteProtocolError as error:
            log.info("the client sent what is no message: %s", error)
            self._write(jsonrpc.error_response(error.id, jsonrpc.error_object(error.code, str(error))))
            return
        if isinstance(decoded, list):
            self._batch(decoded)
        else:
            self._message(decoded)

    def _batch(self, parts: list[bytes]) -> None:
        batch = Batch(len(parts), lambda frame: None if frame is None else self._write(frame))
        for part in parts:
            try:
                message = jsonrpc.decode(part)
            except RemoteProtocolError as error:
                batch.add(jsonrpc.error_response(error.id, jsonrpc.error_object(error.code, str(error))))
                continue
            if message.method is not UNSET and message.id is not UNSET:
                call = Call(self._legacy, message, self._write)
                run_call(self._gateway, call, batch.answer, batch.unanswered)
            else:
                self._message(message)
                batch.add(None)

    def _message(self, message: Message) -> None:
        if message.method is UNSET:
            self._legacy.answered(message)
            return
        session = self._modern if _is_modern(message) else self._legacy
        if message.id is not UNSET:
            self._request(session, message)
            return
        params = None if message.params is UNSET else bytes(message.params)
        try:
            if message.method == "notifications/cancelled":
                self._legacy.cancel(params)
                self._modern.cancel(params)
            else:
                self._gateway.notified(session, message.method, params)
        except RemoteProtocolError as error:
            log.info("the client's notification is not usable: %s", error)

    def _request(self, session: Session, message: Message) -> None:
        call = Call(session, message, self._write)
        if session is self._modern:
            try:
                envelope.check_params(call.params or b"{}")
            except RpcError as error:
                self._answer(call, Reply.failure(error.code, error.message, error.data))
                return
        run_call(self._gateway, call, self._answer, self._unanswered)

    def _answer(self, call: Call, reply: Reply) -> None:
        if reply.stream is None:
            if reply.result is not None and len(reply.result) >= PARTS_FROM_BYTES:
                self._transport.write_parts(response_parts(call, reply.result))
                self._heed_reader()
            else:
                self._write(response_frame(call, reply))
            return
        task = asyncio.get_running_loop().create_task(self._answer_stream(call, reply))
        self._readers.add(task)
        task.add_done_callback(self._readers.discard)

    async def _answer_stream(self, call: Call, reply: Reply) -> None:
        self._write(response_frame(call, await whole_reply(reply)))

    def _unanswered(self, call: Call) -> None:
        """A cancelled request gets no response."""


def _is_modern(message: Message) -> bool:
    if message.params is not UNSET and envelope.is_modern(message.params):
        return True
    return message.method in MODERN_ONLY_METHODS
