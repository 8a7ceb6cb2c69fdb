"""A server's request on its way to the one client whose call caused it; what cannot be attributed is refused."""

import asyncio
import logging
from collections import OrderedDict
from functools import partial
from typing import Final

from msgspec import Raw

from polyplex.downstream.session import Call, Send, Session
from polyplex.errors import RemoteProtocolError, RpcError
from polyplex.gateway.client import Client, call_of
from polyplex.gateway.core import Core, calls_on
from polyplex.gateway.tasks.asking import Question, named_answer
from polyplex.gateway.tasks.service import Tasks
from polyplex.protocol.bridge import asks as asked
from polyplex.protocol.bridge.requests import read_meta, with_meta
from polyplex.protocol.bridge.tasks import takes_tasks
from polyplex.protocol.jsonrpc import INVALID_REQUEST, METHOD_NOT_FOUND, decode_fields, decode_text, encode_json
from polyplex.protocol.revisions import ASK_METHODS, LATEST_LEGACY, Era
from polyplex.transports.exchange import Exchange, Reply
from polyplex.upstreams.connection import Asking, request_id
from polyplex.upstreams.upstream import Upstream

log = logging.getLogger("polyplex.gateway")
ASK_SECONDS: Final = 900.0
EARLY_SECONDS: Final = 60.0
REMEMBERED: Final = 1024


class Asks:
    """Sampling, elicitation and roots."""

    def __init__(self, core: Core, tasks: Tasks) -> None:
        self._core = core
        self._task_work = tasks
        self._tokens: dict[bytes, tuple[Upstream, bytes]] = {}
        self._elicitations: OrderedDict[tuple[str, str], tuple[str, Call | None]] = OrderedDict()

    def ask(self, upstream: Upstream, exchange: Exchange | None, method: str, params: bytes | None) -> Asking:
        """Find the client now, before another call can begin or end, and ask it by what is returned.

        Raises `RpcError` where there is not exactly one, or it cannot answer.
        """
        question = self._task_work.question(upstream, exchange, method, params)
        if question is not None:
            return question.held or named_answer(question, self._ask_for_task(upstream, exchange, method, question))
        call = None if exchange is None else call_of(exchange.context)
        if call is None and method == "roots/list" and self._waits_for_call(upstream):
            return partial(self._ask_later, upstream, method, params)
        if call is None:
            call = self._only_call(upstream, method)
        return self._ask_in(upstream, exchange, call, method, params)

    def _ask_in(
        self, upstream: Upstream, exchange: Exchange | None, call: Call | None, method: str, params: bytes | None
    ) -> Asking:
        """Ask in a call, or (None) the only client of the session."""
        if call is not None and call.session.era is Era.MODERN:
            asking = self._core.parking.ask(upstream, exchange, call, self._core.modern.find(call), method, params)
            return partial(_translated, upstream, method, asking)
        return self._ask_client(upstream, self._client(upstream, call, method), call, method, params)

    def _ask_for_task(self, upstream: Upstream, exchange: Exchange | None, method: str, question: Question) -> Asking:
        """Ask who waits for a task, or else whoever had it made."""
        if question.call is not None:
            return self._ask_in(upstream, exchange, question.call, method, question.params)
        client = self._client_of(question.session, method)
        return self._ask_client(upstream, client, None, method, question.params)

    def _ask_client(
        self, upstream: Upstream, client: Client, call: Call | None, method: str, params: bytes | None
    ) -> Asking:
        capability = ASK_METHODS[method]
        if not client.can(capability):
            raise RpcError(METHOD_NOT_FOUND, f"the client does not support {capability}")
        asked.check(method, params, client.capabilities, client.session.revision)
        if method == "elicitation/create":
            self._remember(upstream, params, client.session, call)
        send = self._way(client.session, call)
        return partial(self._await_answer, upstream, client.session, method, params, send)

    async def _await_answer(
        self, upstream: Upstream, session: Session, method: str, params: bytes | None, send: Send
    ) -> Reply:
        token, params = self._own_token(upstream, params)
        params, as_task = self._as_task(session, method, params)
        params, restore = asked.ask_for(method, params, session.revision)
        try:
            async with asyncio.timeout(ASK_SECONDS):
                reply = await session.ask(method, params, send)
            if as_task:
                return self._task_work.reverse.created(upstream, session, reply)
            return _answer(upstream, method, reply, restore)
        except TimeoutError:
            raise RpcError(INVALID_REQUEST, f"the client did not answer within {ASK_SECONDS:g} s") from None
        finally:
            self._tokens.pop(token, None)

    def _waits_for_call(self, upstream: Upstream) -> bool:
        """Many servers ask for roots right after the handshake. A modern client can be asked in a call only."""
        if calls_on(upstream) or b'"roots"' not in upstream.key.capabilities:
            return False
        return not any(user in self._core.clients for user in upstream.users)

    async def _ask_later(self, upstream: Upstream, method: str, params: bytes | None) -> Reply:
        """Ask with the next call in this session."""
        waiting = self._core.next_call(upstream)
        try:
            async with asyncio.timeout(EARLY_SECONDS):
                await waiting
        except TimeoutError:
            raise RpcError(INVALID_REQUEST, "there is no call in which the client could be asked") from None
        return await self.ask(upstream, None, method, params)()

    def _as_task(self, session: Session, method: str, params: bytes | None) -> tuple[bytes | None, bool]:
        """Whether the client is to run the request as a task; one that cannot is not told of the wish (2025-11-25)."""
        if params is None or b'"task"' not in params:
            return params, False
        fields = decode_fields(params)
        if "task" not in fields:
            return params, False
        client: Client | None = session.context
        if client is not None and takes_tasks(client.capabilities, method):
            return params, True
        del fields["task"]
        return encode_json(fields), False

    def _own_token(self, upstream: Upstream, params: bytes | None) -> tuple[bytes, bytes | None]:
        """A progress token of ours for an ask that wants progress: two servers may have chosen the same."""
        if params is None or b'"progressToken"' not in params:
            return b"", params
        fields = decode_fields(params)
        meta = read_meta(fields)
        theirs = meta.get("progressToken")
        if theirs is None:
            return b"", params
        token = request_id()
        self._tokens[token] = (upstream, bytes(theirs))
        return token, encode_json(with_meta(fields, meta | {"progressToken": Raw(token)}))

    def progress(self, params: bytes | None) -> None:
        """A client reports progress on an ask: tell the server that asked, with its own token."""
        fields = decode_fields(params or b"{}")
        known = self._tokens.get(bytes(fields.get("progressToken", Raw(b""))))
        connection = None if known is None else known[0].connection
        if known is not None and connection is not None:
            connection.notify("notifications/progress", encode_json(fields | {"progressToken": Raw(known[1])}))

    def _only_call(self, upstream: Upstream, method: str) -> Call | None:
        """The call of the only client that can be meant by an ask that names none; None where it has no call.

        Each request of a modern client counts as a client: nothing says that two belong to one.
        """
        calls = calls_on(upstream)
        if method == "roots/list" and calls and all(each.session.era is Era.MODERN for each in calls):
            return calls[-1]  # roots are the caller's, and those who share a session are one caller's
        clients = {_who(each) for each in calls} or upstream.users
        if ASK_METHODS[method].encode() in upstream.key.capabilities:
            only = next(iter(clients)) if len(clients) == 1 else ""
            self._core.keep_apart(upstream, only)
        if len(clients) != 1:
            why = f"{len(clients)} calls are under way" if calls else "no call is under way"
            log.warning("%s: refused %s: %s, and it names none", upstream.config.name, method, why)
            raise RpcError(INVALID_REQUEST, f"{method} cannot be attributed to exactly one client: {why}")
        return calls[-1] if calls else None

    def _client(self, upstream: Upstream, call: Call | None, method: str) -> Client:
        return self._client_of(next(iter(upstream.users), "") if call is None else call.session.id, method)

    def _client_of(self, session: str, method: str) -> Client:
        client = self._core.clients.get(session)
        if client is None:
            raise RpcError(INVALID_REQUEST, f"the client of this call cannot be asked for {method}")
        return client

    def _way(self, session: Session, call: Call | None) -> Send:
        """On the call's own stream while it is open, else on the session's."""
        return call.send if call is not None and call.id in session.calls else session.send

    def _remember(self, upstream: Upstream, params: bytes | None, session: Session, call: Call | None) -> None:
        """Who was sent to a URL: the notice of completion goes to the same client."""
        identifier = elicitation_id(params)
        if identifier is not None:
            self._elicitations[(upstream.config.name, identifier)] = (session.id, call)
            if len(self._elicitations) > REMEMBERED:
                self._elicitations.popitem(last=False)

    def elicited(self, upstream: Upstream, params: bytes | None) -> Session | None:
        """The session that was sent to the URL of this elicitation."""
        known = self._elicitations.get((upstream.config.name, elicitation_id(params) or ""))
        client = None if known is None else self._core.clients.get(known[0])
        return None if client is None else client.session


def _who(call: Call) -> str:
    return call.session.id if call.session.era is Era.LEGACY else f"call:{id(call)}"


async def _translated(upstream: Upstream, method: str, asking: Asking) -> Reply:
    return _answer(upstream, method, await asking(), None)


def _answer(upstream: Upstream, method: str, reply: Reply, restore: asked.Restore | None) -> Reply:
    """A client's answer in the form of the server's revision."""
    if reply.result is not None:
        result = bytes(reply.result) if restore is None else restore(bytes(reply.result))
        revision = LATEST_LEGACY if upstream.peer is None else upstream.peer.revision
        reply.result = asked.answer_for(method, result, revision)
    return reply


def elicitation_id(params: bytes | None) -> str | None:
    """The `elicitationId` of params, where there is one."""
    if params is None or b'"elicitationId"' not in params:
        return None
    try:
        return decode_text(decode_fields(params).get("elicitationId", Raw(b"null")))
    except RemoteProtocolError:
        return None
