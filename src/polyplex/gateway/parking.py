"""Calls that wait for a modern client's answers to a legacy server's questions (2026-07-28, "MRTR").

A legacy server asks in the middle of a call and waits. A modern client is asked by the answer to its call, and answers
by calling again. So the call is parked: the client gets its questions with a sealed `requestState`, the exchange with
the server stays open, and the retry waits for what comes next: more questions, or the result. The retry of a parked
call never reaches the server as a call, so nothing runs twice; a call that is lost ends with an error that says so.
"""

import asyncio
import logging
import secrets
from functools import partial
from typing import Final

from msgspec import Raw

from polyplex.downstream.calls import gathered
from polyplex.downstream.session import Call, Cancellable, no_frame
from polyplex.errors import RemoteProtocolError, RpcError
from polyplex.gateway.client import Client
from polyplex.gateway.outcomes import Outcomes
from polyplex.gateway.states import State, States
from polyplex.protocol.bridge import asks, questions
from polyplex.protocol.bridge.requests import read_meta
from polyplex.protocol.jsonrpc import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    Fields,
    decode_fields,
    decode_params,
    encode_json,
)
from polyplex.protocol.revisions import ASK_METHODS, INPUT_METHODS, LATEST_MODERN
from polyplex.transports.background import Background
from polyplex.transports.exchange import Exchange, Reply
from polyplex.upstreams.connection import Asking
from polyplex.upstreams.upstream import Upstream

log = logging.getLogger("polyplex.gateway")
COLLECT_SECONDS: Final = 0.01
KEEP_SECONDS: Final = 60.0
MAX_PARKED: Final = 1000
MAX_QUESTIONS: Final = 32
_GONE: Final = "the client did not come back to answer"


class _Question:
    """One request of the server, until it is answered. `raw` is how the client is asked."""

    __slots__ = ("answer", "capability", "method", "raw")

    def __init__(self, method: str, raw: bytes) -> None:
        self.method = method
        self.capability = ASK_METHODS[method]
        self.raw = raw
        self.answer: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()

    def settle(self, reply: Reply) -> None:
        """Give the server its answer; the first one counts."""
        if not self.answer.done():
            self.answer.set_result(reply)

    def give_up(self, reason: str) -> None:
        """Nobody will answer: a form counts as cancelled, so that the server can clean up."""
        if self.method == "elicitation/create":
            self.settle(Reply(result=questions.CANCELLED))
        else:
            self.settle(Reply.failure(INVALID_REQUEST, reason))


class Parked:
    """One call. `waiters` are the retries that wait for its next round or its end, oldest first."""

    __slots__ = (
        "call", "caller", "capabilities", "exchange", "flush", "id", "number", "questions", "reports",
        "round", "running", "timer", "upstream", "waiters",
    )  # fmt: skip

    def __init__(self, call: Call, client: Client, upstream: Upstream, exchange: Exchange | None) -> None:
        self.id = secrets.token_urlsafe(12)
        self.call = call
        self.caller = client.binding.caller
        self.capabilities = client.capabilities
        self.upstream = upstream
        self.exchange = exchange or _exchange_of(upstream, call)
        self.reports = self.exchange is not None and self.exchange.token is not None
        self.running: Cancellable | None = None
        self.questions: dict[str, _Question] = {}
        self.number = 0
        self.round = 0
        self.waiters: dict[asyncio.Future[Reply], Call] = {}
        self.timer: asyncio.TimerHandle | None = None
        self.flush: asyncio.TimerHandle | None = None

    def tell(self, reply: Reply) -> bool:
        """Answer all retries that wait; False where there is none."""
        waiters, self.waiters = self.waiters, {}
        told = False
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(reply)
                told = True
        return told

    def stop_timers(self) -> None:
        """Nothing is to happen by itself any more."""
        for timer in (self.timer, self.flush):
            if timer is not None:
                timer.cancel()
        self.timer = self.flush = None


class Parking:
    """All parked calls of this process, which is the `replica` in their states."""

    def __init__(self, states: States, ttl_seconds: float) -> None:
        self.states = states
        self.outcomes = Outcomes()
        self.replica = secrets.token_urlsafe(9)
        self._ttl = ttl_seconds
        self._parked: dict[str, Parked] = {}
        self._by_call: dict[int, Parked] = {}
        self._background = Background()

    # -- the server asks
    def ask(
        self,
        upstream: Upstream,
        exchange: Exchange | None,
        call: Call,
        client: Client,
        method: str,
        params: bytes | None,
    ) -> Asking:
        """Park the call, or add a question to one that is. Raises `RpcError` where the client cannot be asked."""
        parked = self._by_call.get(id(call))
        if call.method not in INPUT_METHODS or (parked is None and call.task is None):
            raise RpcError(INVALID_REQUEST, f"{method} belongs to a request in which a client cannot be asked")
        require(client.capabilities if parked is None else parked.capabilities, method, params)
        question = _Question(method, questions.input_request(method, params))
        if parked is None:
            if len(self._by_call) >= MAX_PARKED:
                raise RpcError(INTERNAL_ERROR, f"too many requests wait for answers; at most {MAX_PARKED}")
            parked = self._by_call[id(call)] = Parked(call, client, upstream, exchange)
            self._parked[parked.id] = parked
        if len(parked.questions) >= MAX_QUESTIONS:
            raise RpcError(INVALID_REQUEST, f"too many questions at once; at most {MAX_QUESTIONS}")
        parked.number += 1
        key = f"q{parked.number}"
        parked.questions[key] = question
        self._flush_soon(parked)
        return partial(self._await_answer, parked, key, question)

    async def _await_answer(self, parked: Parked, key: str, question: _Question) -> Reply:
        try:
            return await question.answer
        finally:
            parked.questions.pop(key, None)

    def _flush_soon(self, parked: Parked) -> None:
        """Questions that come together go out together."""
        if parked.flush is not None:
            parked.flush.cancel()
        loop = asyncio.get_running_loop()
        parked.flush = loop.call_later(COLLECT_SECONDS, self._flush, parked)

    def _flush(self, parked: Parked) -> None:
        parked.flush = None
        call = parked.call
        if not parked.questions:
            if parked.running is None:  # the server took back what it asked, and nobody has heard of it
                self._forget(parked)
        elif parked.running is not None:
            if not parked.waiters:
                return
            if parked.tell(self._next_round(parked)):
                self._leave(parked)
            else:  # all of them have just closed their streams
                parked.running.cancel()
        elif call.task is None or call.session.calls.get(call.id) is not call:
            self._drop(parked, "the request is over")
        else:
            parked.running = call.task
            call.task.park(self._next_round(parked), partial(self._finished, parked))
            self._leave(parked)

    def _next_round(self, parked: Parked) -> Reply:
        parked.round += 1
        return Reply(result=self._round(parked))

    def _round(self, parked: Parked) -> bytes:
        call = parked.call
        state = State(
            "parked",
            parked.caller,
            questions.subject_digest(call.method, _fields(call)),
            self.states.expiry(self._ttl),
            replica=self.replica,
            call=parked.id,
            round=parked.round,
        )
        asked = {key: question.raw for key, question in parked.questions.items()}
        return input_required(asked, self.states.seal(state))

    def _leave(self, parked: Parked) -> None:
        """The client has its questions and is away; it has a while to come back. Nothing goes to its old stream."""
        parked.call.send = no_frame
        if parked.timer is not None:
            parked.timer.cancel()
        parked.timer = asyncio.get_running_loop().call_later(self._ttl, self._expire, parked)

    # -- the client comes back
    async def resume(self, call: Call, client: Client, fields: Fields, state: State) -> Reply:
        """The next round, or the final reply. Raises `RpcError` where the call cannot go on."""
        parked = self._parked.get(state.call)
        if parked is None:
            outcome = self.outcomes.get(state.call)
            if outcome is None:
                raise RpcError(INTERNAL_ERROR, self._lost(state))
            self.outcomes.keep(state.call, outcome, KEEP_SECONDS)
            return outcome
        answers = given_answers(fields)
        if state.round < parked.round and not parked.waiters and not answers.keys() & parked.questions.keys():
            return Reply(result=self._round(parked))  # a round that was answered before: what is open now
        self._take_over(parked, call, client)
        if self._answer(parked, answers) or parked.questions:
            self._flush_soon(parked)
        return await self._wait(parked, call)

    def _lost(self, state: State) -> str:
        why = (
            "its result was kept for a while and is gone"
            if state.replica == self.replica
            else "it waited in a process of polyplex that has ended, or in another replica"
        )
        return f"the call cannot go on: {why}. Whether it took effect is unknown, so check before repeating it."

    def _take_over(self, parked: Parked, call: Call, client: Client) -> None:
        """Progress and log messages go to the stream of the retry, and its capabilities count."""
        call.server = parked.call.server
        parked.capabilities = client.capabilities
        if parked.timer is not None:
            parked.timer.cancel()
            parked.timer = None
        _send_to(parked, call)
        for question in list(parked.questions.values()):
            if question.capability not in parked.capabilities:
                question.give_up(f"the client does not support {question.capability} any more")

    def _answer(self, parked: Parked, answers: Fields) -> bool:
        """Hand the answers on; True where some question of the round has none, and must be asked again."""
        for key, question in list(parked.questions.items()):
            raw = answers.get(key)
            if raw is not None:
                reply = Reply(result=questions.legacy_answer(raw))
                parked.questions.pop(key)
                question.settle(reply)
        return bool(parked.questions)

    async def _wait(self, parked: Parked, call: Call) -> Reply:
        waiter: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        parked.waiters[waiter] = call
        try:
            return await waiter
        except asyncio.CancelledError:
            if parked.waiters.pop(waiter, None) is not None:
                if parked.waiters:
                    _send_to(parked, next(reversed(parked.waiters.values())))
                elif parked.running is not None:
                    parked.running.cancel()
            raise

    # -- the end
    def _finished(self, parked: Parked, reply: Reply | None) -> None:
        """The call is over: by its result, its failure, or (None) because it was cancelled."""
        if reply is not None and reply.stream is not None:
            self._background.start(self._gather(parked, reply))
            return
        cancelled = Reply.failure(INTERNAL_ERROR, "the request was cancelled; whether it took effect is unknown")
        outcome = reply or cancelled
        self._forget(parked)
        for question in list(parked.questions.values()):
            question.give_up("the request is over")
        told = parked.tell(outcome)
        self.outcomes.keep(parked.id, outcome, KEEP_SECONDS if told else self._ttl + KEEP_SECONDS)

    async def _gather(self, parked: Parked, reply: Reply) -> None:
        try:
            whole = await gathered(reply)
        except Exception as error:  # noqa: BLE001 - the call is answered whatever happens
            whole = Reply.failure(INTERNAL_ERROR, f"the result was cut short: {error}")
        self._finished(parked, whole)

    def _forget(self, parked: Parked) -> None:
        parked.stop_timers()
        self._by_call.pop(id(parked.call), None)
        self._parked.pop(parked.id, None)

    def _expire(self, parked: Parked) -> None:
        log.info("%s: nobody came back to answer within %g s", parked.upstream.config.name, self._ttl)
        self._drop(parked, _GONE)

    def _drop(self, parked: Parked, reason: str) -> None:
        """Nobody waits for the call: the server gets an end to its questions and is told of the cancellation."""
        for question in list(parked.questions.values()):
            question.give_up(reason)
        if parked.running is not None:
            # In a moment, so that the server hears the answers first; a client that comes back by then gets the result.
            parked.timer = asyncio.get_running_loop().call_later(COLLECT_SECONDS, parked.running.cancel)
        else:
            self._forget(parked)

    def close(self) -> None:
        """polyplex is stopping: calls whose client is away end now."""
        for parked in list(self._parked.values()):
            if not parked.waiters:
                for question in list(parked.questions.values()):
                    question.give_up("polyplex is stopping")
                if parked.running is not None:
                    parked.running.cancel()

    def stop(self) -> None:
        """polyplex has stopped: nobody can come back any more."""
        self.outcomes.stop()
        for parked in list(self._parked.values()):
            self._forget(parked)
        self._background.cancel()

    @property
    def waiting(self) -> int:
        """How many calls are parked."""
        return len(self._by_call)


def input_required(asked: dict[str, bytes], state: str) -> bytes:
    """The result that asks a modern client."""
    requests = {key: Raw(raw) for key, raw in asked.items()}
    return encode_json({"resultType": "input_required", "inputRequests": requests, "requestState": state})


def given_answers(fields: Fields) -> Fields:
    """The `inputResponses` of a retry. Raises `RpcError` -32602 naming the one that is no object."""
    raw = fields.get("inputResponses", Raw(b"{}"))
    try:
        answers = decode_fields(raw)
    except RemoteProtocolError:
        raise RpcError(INVALID_PARAMS, "params.inputResponses is not an object") from None
    for key, answer in answers.items():
        if bytes(answer)[:1] != b"{":
            raise RpcError(INVALID_PARAMS, f"params.inputResponses.{key} is not an object")
    return answers


def require(capabilities: Fields, method: str, params: bytes | None) -> None:
    """Raise `RpcError` where a client with these capabilities cannot be asked."""
    capability = ASK_METHODS[method]
    if capability not in capabilities:
        raise RpcError(METHOD_NOT_FOUND, f"the client does not support {capability}")
    asks.check(method, params, capabilities, LATEST_MODERN)


def _fields(call: Call) -> Fields:
    return call.fields or decode_params(call.params or b"{}")


def _send_to(parked: Parked, call: Call) -> None:
    """What the server sends with the call goes to the stream of this retry."""
    parked.call.send = partial(_send_on, call)
    parked.call.session = call.session
    if parked.exchange is not None and parked.reports:
        token = read_meta(_fields(call)).get("progressToken")
        parked.exchange.token = None if token is None else bytes(token)


def _send_on(call: Call, frame: bytes) -> None:
    """On the stream that the call has by then: none once it is cancelled."""
    call.send(frame)


def _exchange_of(upstream: Upstream, call: Call) -> Exchange | None:
    connection = upstream.connection
    exchanges = () if connection is None else connection.in_flight.values()
    return next((exchange for exchange in exchanges if exchange.context is call), None)
