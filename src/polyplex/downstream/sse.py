"""HTTP+SSE (2024-11-05) for old clients: one event stream out, POSTs to `/messages/` in."""

import asyncio
import logging
from typing import Final
from urllib.parse import parse_qs

from msgspec import UNSET

from polyplex.downstream.callers import caller_of
from polyplex.downstream.calls import Batch, response_frame, run_call, whole_reply
from polyplex.downstream.session import STOPPING, Call, Gateway, Session
from polyplex.errors import RemoteProtocolError
from polyplex.protocol import jsonrpc
from polyplex.protocol.jsonrpc import Message
from polyplex.protocol.revisions import R2024_11_05, Era, allows_batches
from polyplex.protocol.sse import COMMENT, encode_event
from polyplex.transports.exchange import Reply
from polyplex.transports.http_server import Request, ResponseWriter

log = logging.getLogger("polyplex.downstream")
MAX_STREAMS: Final = 10_000


class _Client:
    """One client: its stream is its session, and ends it."""

    __slots__ = ("_readers", "session", "writer")

    def __init__(self, writer: ResponseWriter, caller: str) -> None:
        self.session = Session(Era.LEGACY, R2024_11_05, http=True, caller=caller)
        self.writer = writer
        self._readers: set[asyncio.Task[None]] = set()
        self.session.attach(self.write)

    def write(self, frame: bytes) -> None:
        self.writer.write(encode_event(jsonrpc.one_line(frame)))

    def answer(self, call: Call, reply: Reply) -> None:
        if reply.stream is None:
            self.write(response_frame(call, reply))
            return
        task = asyncio.get_running_loop().create_task(self._gather(call, reply))
        self._readers.add(task)
        task.add_done_callback(self._readers.discard)

    async def _gather(self, call: Call, reply: Reply) -> None:
        self.write(response_frame(call, await whole_reply(reply)))

    def unanswered(self, call: Call) -> None:
        """A cancelled request gets no response."""


class SseEndpoint:
    """The clients of `/sse`."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._clients: dict[str, _Client] = {}

    @property
    def busy(self) -> bool:
        """True while calls are under way."""
        return any(client.session.calls for client in self._clients.values())

    def tick(self, now: float) -> None:
        """Keep the streams alive."""
        for client in self._clients.values():
            client.writer.write(COMMENT)

    def close(self) -> None:
        """End all streams."""
        for client in list(self._clients.values()):
            self._end(client, STOPPING)
            client.writer.end()

    def _end(self, client: _Client, reason: str | None = None) -> None:
        if self._clients.pop(client.session.id, None) is not None:
            client.session.close(reason)
            self._gateway.closed(client.session)

    def open_stream(self, request: Request) -> None:
        """GET /sse."""
        if request.method != "GET":
            request.respond(405, extra=b"Allow: GET\r\n")
            return
        if len(self._clients) >= MAX_STREAMS:
            request.respond(503, b"too many clients", b"text/plain")
            return
        client = _Client(request.respond_events(), caller_of(request))
        self._clients[client.session.id] = client
        request.on_disconnect = lambda: self._end(client)
        endpoint = f"/messages/?session_id={client.session.id}".encode()
        client.writer.write(encode_event(endpoint, event=b"endpoint"))

    def post(self, request: Request) -> None:
        """POST /messages/?session_id=..."""
        if request.method != "POST":
            request.respond(405, extra=b"Allow: POST\r\n")
            return
        client = self._clients.get(parse_qs(request.query).get("session_id", [""])[0])
        if client is None or client.session.caller != caller_of(request):
            request.respond(404, b"this session has ended; open /sse again", b"text/plain")
            return
        try:
            decoded = jsonrpc.decode_frame(request.body)
            if isinstance(decoded, list) and not allows_batches(client.session.revision):
                raise RemoteProtocolError("batches exist in revision 2025-03-26 only")
        except RemoteProtocolError as error:
            body = jsonrpc.error_response(error.id, jsonrpc.error_object(error.code, str(error)))
            request.respond(400, body)
            return
        request.respond(202, b"Accepted", b"text/plain")
        if isinstance(decoded, list):
            self._batch(client, decoded)
        else:
            self._message(client, decoded)

    def _message(self, client: _Client, message: Message, batch: Batch | None = None) -> None:
        session = client.session
        session.last_used = asyncio.get_running_loop().time()
        if message.method is UNSET:
            session.answered(message)
        elif message.id is not UNSET:
            taker = client if batch is None else batch
            run_call(self._gateway, Call(session, message, client.write), taker.answer, taker.unanswered)
            return
        else:
            self._notification(session, message.method, None if message.params is UNSET else bytes(message.params))
        if batch is not None:
            batch.add(None)

    def _notification(self, session: Session, method: str, params: bytes | None) -> None:
        try:
            if method == "notifications/cancelled":
                session.cancel(params)
            else:
                self._gateway.notified(session, method, params)
        except RemoteProtocolError as error:
            log.info("a client's notification is not usable: %s", error)

    def _batch(self, client: _Client, parts: list[bytes]) -> None:
        batch = Batch(len(parts), lambda frame: None if frame is None else client.write(frame))
        for part in parts:
            try:
                self._message(client, jsonrpc.decode(part), batch)
            except RemoteProtocolError as error:
                batch.add(jsonrpc.error_response(error.id, jsonrpc.error_object(error.code, str(error))))
