"""A legacy server's question that belongs to a task: it goes to whoever waits for the task, or is kept for them."""

import asyncio
import secrets
from functools import partial
from typing import Final, NamedTuple

from polyplex.downstream.session import Call
from polyplex.errors import RpcError
from polyplex.gateway.client import call_of
from polyplex.gateway.parking import require
from polyplex.gateway.tasks.live import HeldAsk, Live, Lives
from polyplex.protocol.bridge import questions
from polyplex.protocol.bridge import tasks as bridge
from polyplex.protocol.jsonrpc import INVALID_REQUEST, decode_fields, encode_json
from polyplex.transports.exchange import Exchange, Reply
from polyplex.upstreams.connection import Asking
from polyplex.upstreams.upstream import Upstream

MAX_HELD: Final = 64
HELD_SECONDS: Final = 24 * 3600.0


class Question(NamedTuple):
    """Whom to ask: by `held` nobody now; else on the stream of `call`, or of the client's `session`.

    `task` is the server's own id of the task.
    """

    held: Asking | None
    call: Call | None
    session: str
    params: bytes | None
    task: str


def question_of(
    lives: Lives, upstream: Upstream, exchange: Exchange | None, method: str, params: bytes | None
) -> Question | None:
    """Whom a question concerns that names a task or came on a task's stream; None where there is no task behind it.

    Raises `RpcError` where nobody can be asked.
    """
    live = _live_of(lives, upstream, exchange, params)
    if live is None:
        return None
    asker = None if exchange is None else call_of(exchange.context)
    call = asker if asker in live.waiting else (live.waiting[-1] if live.waiting else None)
    if call is None and live.session is None:
        held = Question(None, None, "", params, live.local)
        return held._replace(held=named_answer(held, _held(live, upstream, method, params)))
    named = bridge.with_related(decode_fields(params or b"{}"), None if live.quiet else live.public)
    session = call.session if call is not None else live.session
    return Question(None, call, "" if session is None else session.id, encode_json(named), live.local)


def _live_of(lives: Lives, upstream: Upstream, exchange: Exchange | None, params: bytes | None) -> Live | None:
    local = bridge.related_id(params)
    if local is not None:
        return lives.of_server(upstream, local)
    return exchange.context if exchange is not None and isinstance(exchange.context, Live) else None


def named_answer(question: Question, asking: Asking) -> Asking:
    """The answer names the task, as all that belongs to one does (2025-11-25, "Associating Task-Related Messages")."""

    async def answer() -> Reply:
        reply = await asking()
        if reply.result is None:
            return reply
        return Reply(result=encode_json(bridge.with_related(decode_fields(bytes(reply.result)), question.task)))

    return answer


def _held(live: Live, upstream: Upstream, method: str, params: bytes | None) -> Asking:
    """Keep the question until `tasks/update` answers it, or the task is over."""
    require(decode_fields(upstream.key.capabilities), method, params)
    if len(live.asks) >= MAX_HELD:
        raise RpcError(INVALID_REQUEST, "too many questions for one task")
    key = f"{method.partition('/')[0]}-{secrets.token_hex(6)}"  # unique for the life of the task, restarts included
    ask = live.asks[key] = HeldAsk(questions.input_request(method, params))
    live.arrived.set()
    live.tell()
    return partial(_answer, live, key, ask)


async def _answer(live: Live, key: str, ask: HeldAsk) -> Reply:
    try:
        async with asyncio.timeout(HELD_SECONDS):
            return await ask.answer
    except TimeoutError:
        raise RpcError(INVALID_REQUEST, f"nobody answered within {HELD_SECONDS:g} s") from None
    finally:
        live.asks.pop(key, None)
