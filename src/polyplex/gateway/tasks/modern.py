"""Tasks of modern servers (the extension `io.modelcontextprotocol/tasks`): polled, and answered by `tasks/update`."""

import asyncio
import math
from typing import Final

import msgspec
from msgspec import Raw

from polyplex.downstream.session import Call
from polyplex.errors import (
    RpcError,
    UpstreamError,
    UpstreamLost,
    UpstreamTimeout,
    UpstreamUnavailable,
)
from polyplex.gateway import rounds
from polyplex.gateway.client import Client
from polyplex.gateway.tasks import talk
from polyplex.gateway.tasks.live import Live, progress_params
from polyplex.gateway.tasks.registry import Registry
from polyplex.protocol.bridge import tasks as bridge
from polyplex.protocol.jsonrpc import INTERNAL_ERROR, INVALID_PARAMS, Fields, encode_json, mend_error, notification
from polyplex.transports.exchange import Reply

FIRST_SECONDS: Final = 0.1
GROWTH: Final = 1.5
LONGEST_SECONDS: Final = 5.0
LEAST_SECONDS: Final = 0.02
LONGEST_WISH_SECONDS: Final = 60.0
FAILURES: Final = 3
_decode_questions = msgspec.json.Decoder(dict[str, rounds.Question]).decode


class ModernTasks:
    """What the servers of these tasks are asked."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    async def get(self, call: Call, client: Client, live: Live) -> Fields:
        """The task as its server sees it, with its own id. Raises `RpcError` or `UpstreamError`."""
        return await talk.get(self._registry, call, client, live)

    async def update(self, call: Call, client: Client, live: Live, answers: Fields) -> Fields:
        """Answer questions of a task. Raises `RpcError`."""
        given = Raw(encode_json(answers))
        return await talk.ask(call, client, live.upstream, "tasks/update", live.local, inputResponses=given)

    async def cancel(self, call: Call, client: Client, live: Live) -> Fields:
        """Ask the server to end a task, which it may or may not do. Raises `RpcError`."""
        return await talk.ask(call, client, live.upstream, "tasks/cancel", live.local)

    # -- for clients that wait
    async def outcome(self, call: Call, client: Client, live: Live, seconds: float = 0) -> Reply:
        """Poll to the end, while the client is asked what the server wants to know. Raises `RpcError`.

        Not for longer than `seconds` (0 for without limit), the time in which the client is asked not counted; raises
        `UpstreamTimeout` then.
        """
        wait = _Wait(self, call, client, live, seconds or math.inf)
        live.changed.add(wait.wake)
        try:
            return await wait.outcome()
        finally:
            live.changed.discard(wait.wake)


class _Wait:
    """One client's wait for the end of a task."""

    def __init__(self, tasks: ModernTasks, call: Call, client: Client, live: Live, seconds: float) -> None:
        self._tasks = tasks
        self._call = call
        self._client = client
        self._live = live
        self._pause = FIRST_SECONDS
        self._failures = 0
        self._lost: UpstreamError | None = None
        self._asking: dict[str, asyncio.Task[bytes]] = {}
        self._questions: dict[str, rounds.Question] = {}
        self._said: tuple[str, bytes] | None = None
        self._steps = 0
        self._left = seconds
        self._woken = asyncio.Event()

    def wake(self) -> None:
        """Something about the task is different: look at once."""
        self._woken.set()

    async def outcome(self) -> Reply:
        """Poll until the task is over."""
        try:
            while not self._live.cancelled:
                task = await self._poll()
                status = "working" if task is None else bridge.status(task)
                if task is not None and status in bridge.TERMINAL:
                    return _reply_of(task, status)
                if task is not None:
                    self._tell(task, status)
                    self._ask_new(task if status == "input_required" else {})
                await self._rest()
            return Reply.failure(INTERNAL_ERROR, "the task was cancelled")
        finally:
            for key, asking in self._asking.items():
                self._live.claimed.discard(key)
                asking.cancel()

    async def _poll(self) -> Fields | None:
        """The task now; None where the server cannot be reached for a moment, which the task may survive."""
        try:
            task = await self._tasks.get(self._call, self._client, self._live)
        except (UpstreamLost, UpstreamUnavailable, UpstreamTimeout) as error:
            self._lost = error
            self._failures += 1
            if self._failures > FAILURES:
                raise
            return None
        except RpcError as error:
            if error.code != INVALID_PARAMS or not self._live.quiet:
                raise
            gone = UpstreamLost(self._live.upstream.config.name, "it no longer knows the task of the call")
            raise self._lost or gone from None
        self._failures = 0
        wish = task.get("pollIntervalMs")
        self._pause = min(self._pause * GROWTH, LONGEST_SECONDS) if wish is None else _seconds(wish)
        return task

    def _tell(self, task: Fields, status: str) -> None:
        """A new status is progress to a client that wants to know."""
        said = (status, bytes(task.get("statusMessage", Raw(b"null"))))
        if said == self._said or self._live.token is None:
            return
        self._said = said
        self._steps += 1
        text = msgspec.json.decode(said[1], type=str) if said[1][:1] == b'"' else None
        params = progress_params(self._live.token, self._steps, text or status)
        self._call.send(notification("notifications/progress", params))

    def _ask_new(self, task: Fields) -> None:
        """Ask what is asked for the first time; take back what is not wanted any more."""
        try:
            questions = _decode_questions(task.get("inputRequests", Raw(b"{}")))
        except (msgspec.DecodeError, RecursionError) as error:
            raise talk.unusable(self._live.upstream, "tasks/get", error) from None
        if len(questions) > rounds.MAX_QUESTIONS:
            raise RpcError(INTERNAL_ERROR, f"the server asks {len(questions)} questions at once")
        for key in [key for key in self._asking if key not in questions]:
            self._live.claimed.discard(key)
            self._asking.pop(key).cancel()
        for key, question in questions.items():
            if key in self._live.answered or key in self._live.claimed:
                continue
            question = self._questions[key] = rounds.as_legacy(question)
            rounds.check(self._client, question)
            self._live.claimed.add(key)
            named = None if self._live.quiet else self._live.public
            self._asking[key] = asyncio.get_running_loop().create_task(rounds.ask(self._call, question, named))

    async def _rest(self) -> None:
        """Wait for the next poll, or for an answer of the client, which is passed on at once."""
        await self._pass_time()
        answers = {key: asking for key, asking in self._asking.items() if asking.done()}
        if not answers:
            return
        for key in answers:
            del self._asking[key]
        try:
            given = {key: Raw(asking.result()) for key, asking in answers.items()}
            await self._tasks.update(self._call, self._client, self._live, given)
            self._live.answered.update(answers)
            rounds.complete(self._call, rounds.visited({key: self._questions[key] for key in given}, given))
        finally:
            self._live.claimed.difference_update(answers)
        self._pause = FIRST_SECONDS

    async def _pass_time(self) -> None:
        """Until the next poll, an answer, or a change. Raises `UpstreamTimeout` where the server has had its time."""
        if self._left <= 0 and not self._asking:
            raise UpstreamTimeout(self._live.upstream.config.name, "the task of the call took too long")
        loop = asyncio.get_running_loop()
        began = loop.time()
        woken = loop.create_task(self._woken.wait())
        try:
            await asyncio.wait(
                (*self._asking.values(), woken), timeout=self._pause, return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            woken.cancel()
        self._woken.clear()
        if not self._asking:
            self._left -= loop.time() - began


def _reply_of(task: Fields, status: str) -> Reply:
    """What the call would have been answered with."""
    if status == "completed":
        return Reply(result=bytes(task.get("result", Raw(b"{}"))))
    if status == "failed" and "error" in task:
        return Reply(error=mend_error(task["error"]))
    said = task.get("statusMessage")
    text = msgspec.json.decode(said, type=str) if said is not None and bytes(said)[:1] == b'"' else ""
    return Reply.failure(INTERNAL_ERROR, f"the task was {status}" + (f": {text}" if text else ""))


def _seconds(raw: Raw) -> float:
    """How long the server wants to be left alone, within reason."""
    try:
        value = msgspec.json.decode(raw, type=float) / 1000
    except msgspec.DecodeError:
        return FIRST_SECONDS
    return min(max(value, LEAST_SECONDS), LONGEST_WISH_SECONDS)
