"""Running calls: one task each, exactly one answer each."""

import asyncio
import logging
import types
from collections.abc import Callable, Coroutine, Generator
from functools import partial
from typing import Any

from polyplex.downstream.session import MAX_CALLS, Call, Gateway
from polyplex.protocol import jsonrpc
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
    loop = loop or asyncio.get_running_loop()
    coroutine = _run(gateway, call, answer, unanswered)
    if call.method in ROUTED_METHODS:
        call.task = running = Running(coroutine, loop)
        running.start()
    else:
        call.task = task = loop.create_task(coroutine)
        task.add_done_callback(partial(_ended, call, unanswered))


async def _run(gateway: Gateway, call: Call, answer: Answer, unanswered: Callable[[Call], None]) -> None:
    try:
        reply = await gateway.handle(call)
    except asyncio.CancelledError:
        call.session.calls.pop(call.id, None)
        unanswered(call)
        return
    except Exception:
        log.exception("the request %s failed inside polyplex", call.method)
        reply = Reply.failure(jsonrpc.INTERNAL_ERROR, "polyplex failed; its log says more")
    call.session.calls.pop(call.id, None)
    answer(call, reply)


def _ended(call: Call, unanswered: Callable[[Call], None], task: asyncio.Task[None]) -> None:
    """A task that is cancelled before its first step has run nothing of its coroutine."""
    if task.cancelled() and call.session.calls.get(call.id) is call:
        del call.session.calls[call.id]
        unanswered(call)


class Running:
    """Runs a coroutine without a task for as long as it awaits nothing but exchanges with upstreams.

    A task costs two rounds of the event loop for each request, which is a third of what a small call costs in all.
    The first time the coroutine awaits anything else, a task takes over.
    """

    __slots__ = ("_begun", "_cancelled", "_coroutine", "_loop", "_task", "_waiting")

    def __init__(self, coroutine: Coroutine[Any, Any, None], loop: asyncio.AbstractEventLoop) -> None:
        self._coroutine = coroutine
        self._loop = loop
        self._task: asyncio.Task[None] | None = None
        self._waiting: Exchange | None = None
        self._begun = self._cancelled = False

    def start(self) -> None:
        """Run up to the first await that has to wait."""
        self._step(None)

    def cancel(self) -> None:
        """Raise `CancelledError` where the coroutine waits."""
        if self._task is not None:
            self._cancelled = True
            if self._begun:
                self._task.cancel()
        elif self._waiting is not None:
            self._waiting.on_done = None
            self._step(asyncio.CancelledError())

    def _resume(self, exchange: Exchange) -> None:
        self._step(None)

    def _step(self, error: BaseException | None) -> None:
        self._waiting = None
        try:
            awaited = self._coroutine.send(None) if error is None else self._coroutine.throw(error)
        except StopIteration:
            return
        if isinstance(awaited, Exchange):
            self._waiting = awaited
            awaited.on_done = self._resume
        else:
            self._task = self._loop.create_task(self._rest(awaited))

    async def _rest(self, awaited: object) -> None:
        self._begun = True
        task = asyncio.current_task()
        if self._cancelled and task is not None:
            task.cancel()  # not before: a task that never began would have let go of the coroutine in the middle
        await _go_on(self._coroutine, awaited)


@types.coroutine
def _go_on(coroutine: Coroutine[Any, Any, None], awaited: object) -> Generator[Any, None, None]:
    """The rest of a coroutine that waits for `awaited` already."""
    while True:
        try:
            yield awaited
        except BaseException as error:  # noqa: BLE001 - passed on to where it belongs
            step = partial(coroutine.throw, error)
        else:
            step = partial(coroutine.send, None)
        try:
            awaited = step()
        except StopIteration:
            return


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
