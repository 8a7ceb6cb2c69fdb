"""Running calls: exactly one answer each, and a task only for those that await more than a server."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Generator
from functools import partial
from typing import Any

from polyplex.downstream.session import MAX_CALLS, Call, Gateway
from polyplex.protocol import jsonrpc
from polyplex.protocol.bridge.results import tool_failure
from polyplex.protocol.revisions import ROUTED_METHODS
from polyplex.transports.exchange import Exchange, Reply

log = logging.getLogger("polyplex.downstream")
Answer = Callable[[Call, Reply], None]


def run_call(
    gateway: Gateway,
    call: Call,
    answer: Answer,
    unanswered: Callable[[Call], None],
    loop: asyncio.AbstractEventLoop | None = None,
) -> None:
    """Start a call. `answer` gets its reply; `unanswered` is called instead where the client cancelled it."""
    calls = call.session.calls
    if call.id in calls:
        answer(call, Reply.failure(jsonrpc.INVALID_REQUEST, "a request with this id is under way already"))
        return
    if len(calls) >= MAX_CALLS:
        answer(call, Reply.failure(jsonrpc.INTERNAL_ERROR, f"too many requests under way; at most {MAX_CALLS}"))
        return
    calls[call.id] = call
    call.task = running = Running(gateway.handle(call), call, answer, unanswered, loop or asyncio.get_running_loop())
    if call.method in ROUTED_METHODS:
        running.start()
    else:
        running.start_task()


class Running:
    """Runs a call to its one answer; without a task for as long as it awaits nothing but exchanges with upstreams.

    A task costs two rounds of the event loop for each request, which is a third of what a small call costs in all.
    The first time the coroutine awaits anything else, a task takes over.
    """

    _task: "asyncio.Task[None] | None" = None
    _waiting: Exchange | None = None
    _begun = False
    _cancelled = False
    _over = False

    def __init__(
        self,
        coroutine: Coroutine[Any, Any, Reply],
        call: Call,
        answer: Answer,
        unanswered: Callable[[Call], None],
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._coroutine = coroutine
        self._call = call
        self._answer = answer
        self._unanswered = unanswered
        self._loop = loop

    def start(self) -> None:
        """Run up to the first await that has to wait."""
        self._step(None)

    def start_task(self) -> None:
        """Run in a task from the beginning."""
        self._task = self._loop.create_task(self._in_task(self._coroutine))

    def cancel(self) -> None:
        """Raise `CancelledError` where the coroutine waits."""
        if self._task is not None:
            self._cancelled = True
            if self._begun:
                self._task.cancel()
        elif self._waiting is not None:
            self._waiting.on_done = None
            self._step(asyncio.CancelledError())

    def end(self, reason: str) -> None:
        """Answer at once, and cancel what would have become the answer."""
        self._finish(ended_reply(self._call, reason))
        self.cancel()

    def park(self, reply: Reply, finished: Callable[[Reply | None], None]) -> None:
        """Answer the client now, and go on; what would have been the answer goes to `finished`.

        From now on the client's stream has nothing to do with the call: that it closes cancels nothing.
        """
        call, answer = self._call, self._answer
        self._forget()
        call.task = None
        self._answer, self._unanswered = _parked(finished)
        answer(call, reply)

    def _forget(self) -> None:
        calls = self._call.session.calls
        if calls.get(self._call.id) is self._call:
            del calls[self._call.id]

    def _resume(self, exchange: Exchange) -> None:
        self._step(None)

    def _step(self, error: BaseException | None) -> None:
        self._waiting = None
        try:
            awaited = self._coroutine.send(None) if error is None else self._coroutine.throw(error)
        except StopIteration as end:
            self._finish(end.value)
        except asyncio.CancelledError:
            self._drop()
        except Exception as failure:  # noqa: BLE001 - a mistake of ours, but the client gets an answer
            self._fail(failure)
        else:
            if isinstance(awaited, Exchange):
                self._waiting = awaited
                awaited.on_done = self._resume
            else:
                self._task = self._loop.create_task(self._in_task(_Rest(self._coroutine, awaited)))

    async def _in_task(self, coroutine: Awaitable[Reply]) -> None:
        self._begun = True
        task = asyncio.current_task()
        if self._cancelled and task is not None:
            task.cancel()  # not before: a task that never began would have let go of the coroutine in the middle
        try:
            reply = await coroutine
        except asyncio.CancelledError:
            self._drop()
        except Exception as failure:  # noqa: BLE001 - a mistake of ours, but the client gets an answer
            self._fail(failure)
        else:
            self._finish(reply)

    def _finish(self, reply: Reply) -> None:
        if self._is_first():
            self._answer(self._call, reply)

    def _drop(self) -> None:
        if self._is_first():
            self._unanswered(self._call)

    def _is_first(self) -> bool:
        """Whether the call is over only now; `end` does not wait for the coroutine, which ends once more."""
        if self._over:
            return False
        self._over = True
        self._forget()
        return True

    def _fail(self, failure: Exception) -> None:
        log.error("the request %s failed inside polyplex", self._call.method, exc_info=failure)
        self._finish(Reply.failure(jsonrpc.INTERNAL_ERROR, "polyplex failed; its log says more"))


def _parked(finished: Callable[[Reply | None], None]) -> tuple[Answer, Callable[[Call], None]]:
    """The two ends of a parked call."""

    def answer(call: Call, reply: Reply) -> None:
        finished(reply)

    def unanswered(call: Call) -> None:
        finished(None)

    return answer, unanswered


class _Rest:
    """The rest of a coroutine that waits for `awaited` already."""

    __slots__ = ("_awaited", "_coroutine")

    def __init__(self, coroutine: Coroutine[Any, Any, Reply], awaited: object) -> None:
        self._coroutine = coroutine
        self._awaited = awaited

    def __await__(self) -> Generator[Any, Any, Reply]:
        awaited = self._awaited
        while True:
            try:
                yield awaited
            except BaseException as error:  # noqa: BLE001 - passed on to where it belongs
                step = partial(self._coroutine.throw, error)
            else:
                step = partial(self._coroutine.send, None)
            try:
                awaited = step()
            except StopIteration as end:
                return end.value


def ended_reply(call: Call, reason: str) -> Reply:
    """The answer to a call that is given up while it is under way: which server, and why."""
    subject = "The request" if call.server is None else f"The request to the server {call.server!r}"
    text = f"{subject} was cancelled: {reason}. Whether it took effect is unknown, so check before repeating it."
    if call.method == "tools/call":
        return Reply(result=tool_failure(text, call.session.era))
    data = None if call.server is None else jsonrpc.encode_json({"server": call.server})
    return Reply.failure(jsonrpc.INTERNAL_ERROR, text, data)


def response_frame(call: Call, reply: Reply) -> bytes:
    """The whole response as one frame; not for streams."""
    if reply.result is not None:
        return jsonrpc.response(call.id, reply.result)
    return jsonrpc.error_response(call.id, reply.error or jsonrpc.error_object(jsonrpc.INTERNAL_ERROR, "no answer"))


def response_parts(call: Call, result: bytes) -> tuple[bytes, bytes, bytes]:
    """A successful response in parts, for one too large to be copied."""
    return b'{"jsonrpc":"2.0","id":%b,"result":' % call.id, result, b"}"


async def gathered(reply: Reply) -> Reply:
    """The reply with its stream read to the end, for a front that needs it whole."""
    if reply.stream is None:
        return reply
    body = (await reply.stream.read()).rstrip()
    return Reply(result=body[:-1])


class Batch:
    """A batch of revision 2025-03-26: its responses leave together, as an array, once the last one is there."""

    def __init__(self, size: int, finished: Callable[[bytes | None], None]) -> None:
        self._left = size
        self._finished = finished
        self._frames: list[bytes] = []
        self._readers: set[asyncio.Task[None]] = set()

    def add(self, frame: bytes | None) -> None:
        """A member is done; `frame` is its response, None for what gets none."""
        if frame is not None:
            self._frames.append(frame)
        self._left -= 1
        if self._left == 0:
            self._finished(b"[" + b",".join(self._frames) + b"]" if self._frames else None)

    def answer(self, call: Call, reply: Reply) -> None:
        """The answer callback for the calls of the batch."""
        if reply.stream is None:
            self.add(response_frame(call, reply))
            return
        task = asyncio.get_running_loop().create_task(self._gather(call, reply))
        self._readers.add(task)
        task.add_done_callback(self._readers.discard)

    async def _gather(self, call: Call, reply: Reply) -> None:
        self.add(response_frame(call, await whole_reply(reply)))

    def unanswered(self, call: Call) -> None:
        """A cancelled member gets no response."""
        self.add(None)


async def whole_reply(reply: Reply) -> Reply:
    """As `gathered`, but a body that is cut short becomes an error: the call is answered whatever happens."""
    try:
        return await gathered(reply)
    except Exception as error:  # noqa: BLE001
        return Reply.failure(jsonrpc.INTERNAL_ERROR, f"the result was cut short: {error}")
