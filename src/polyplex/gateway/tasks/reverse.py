"""Tasks the other way round (2025-11-25): a server has a client run its request as a task, and asks after it.

Clients' ids are theirs alone, so servers get ids of ours, which mean nothing to another server.
"""

import asyncio
import secrets
from collections import OrderedDict
from functools import partial
from typing import Final, NamedTuple

from msgspec import Raw

from polyplex.downstream.session import Send, Session
from polyplex.errors import RemoteProtocolError, RpcError
from polyplex.protocol.bridge import tasks as bridge
from polyplex.protocol.jsonrpc import decode_fields, decode_text, encode_json
from polyplex.protocol.revisions import Era
from polyplex.transports.exchange import Reply
from polyplex.upstreams.connection import Asking
from polyplex.upstreams.upstream import Upstream

MAX_TASKS: Final = 4096
GET_SECONDS: Final = 60.0
RESULT_SECONDS: Final = 24 * 3600.0


class _Owned(NamedTuple):
    """A task that a client runs for a server."""

    upstream: Upstream
    session: Session
    local: str

    def is_for(self, upstream: Upstream) -> bool:
        """Whether the server may ask after it, in whichever session."""
        return self.upstream.config.name == upstream.config.name and not self.session.closed


class ReverseTasks:
    """All of them, by the id the server knows."""

    def __init__(self) -> None:
        self._tasks: OrderedDict[str, _Owned] = OrderedDict()
        self._ids: dict[_Owned, str] = {}

    # -- the request that makes a task
    def created(self, upstream: Upstream, session: Session, reply: Reply) -> Reply:
        """The client's answer to a task-augmented request, with the id that the server gets."""
        if reply.result is None:
            return reply
        try:
            made = bridge.created(bytes(reply.result), Era.LEGACY)
        except RemoteProtocolError as error:
            return Reply.failure(error.code, f"the client's task is not usable: {error}")
        if made is None:
            return reply
        public = self._public(_Owned(upstream, session, made.local))
        return Reply(result=bridge.created_core(bridge.renamed(made.task, public), made.meta))

    def _public(self, owned: _Owned) -> str:
        public = self._ids.get(owned)
        if public is None:
            public = self._ids[owned] = secrets.token_urlsafe(16)
            self._tasks[public] = owned
            if len(self._tasks) > MAX_TASKS:
                _, oldest = self._tasks.popitem(last=False)
                del self._ids[oldest]
        return public

    # -- what servers ask after
    def ask(self, upstream: Upstream, method: str, params: bytes | None) -> Asking:
        """A server asks after a client's tasks. Raises `RpcError` -32602 for an id that it was not given."""
        if method == "tasks/list":
            return partial(self._list, upstream)
        fields = decode_fields(params or b"{}")
        public = decode_text(fields.get("taskId", Raw(b"null")))
        owned = self._tasks.get(public)
        if owned is None or not owned.is_for(upstream):
            raise bridge.not_found()
        own = encode_json(fields | {"taskId": Raw(encode_json(owned.local))})
        return partial(self._forward, owned, public, method, own)

    async def _forward(self, owned: _Owned, public: str, method: str, params: bytes) -> Reply:
        seconds = RESULT_SECONDS if method == "tasks/result" else GET_SECONDS
        try:
            async with asyncio.timeout(seconds):
                reply = await owned.session.ask(method, params, way_to(owned.session))
        except TimeoutError:
            raise RpcError(-32603, f"the client did not answer {method} within {seconds:g} s") from None
        if reply.result is None:
            return reply
        try:
            fields = decode_fields(bytes(reply.result))
        except RemoteProtocolError as error:
            return Reply.failure(error.code, f"the client's answer to {method} is not usable: {error}")
        if method == "tasks/result":
            return Reply(result=encode_json(bridge.with_related(fields, public)))
        return Reply(result=encode_json(bridge.renamed(fields, public)))

    async def _list(self, upstream: Upstream) -> Reply:
        """The tasks that clients run for this server; none of them are a page long."""
        mine = [(public, owned) for public, owned in self._tasks.items() if owned.is_for(upstream)]
        params = [encode_json({"taskId": owned.local}) for _, owned in mine]
        replies = await asyncio.gather(
            *(
                self._forward(owned, public, "tasks/get", raw)
                for (public, owned), raw in zip(mine, params, strict=True)
            ),
            return_exceptions=True,
        )
        found = [reply.result for reply in replies if isinstance(reply, Reply) and reply.result is not None]
        return Reply(result=b'{"tasks":[' + b",".join(map(bytes, found)) + b"]}")

    # -- what clients notify
    def status(self, session: Session, params: bytes | None) -> None:
        """A client says how a task stands: its server is told, by the id that it knows."""
        fields = decode_fields(params or b"{}")
        local = decode_text(fields.get("taskId", Raw(b"null")))
        for owned, public in self._ids.items():
            if owned.session is session and owned.local == local and owned.upstream.connection is not None:
                told = encode_json(bridge.renamed(fields, public))
                owned.upstream.connection.notify("notifications/tasks/status", told)

    def drop(self, session: Session) -> None:
        """A client has gone, and its tasks with it."""
        for public in [public for public, owned in self._tasks.items() if owned.session is session]:
            del self._ids[self._tasks.pop(public)]


def way_to(session: Session) -> Send:
    """The session's own stream, or, while a client over HTTP has none open, that of its newest call."""
    if session.attached is None and session.calls:
        return next(reversed(session.calls.values())).send
    return session.send
