"""What clients ask about tasks: `tasks/get`, `result`, `list` and `cancel` (2025-11-25), `get`, `update` and `cancel`
(the extension). Each goes to the server that the id names, in that server's words."""

from typing import NamedTuple

from msgspec import Raw

from polyplex.downstream.session import Call
from polyplex.errors import RpcError
from polyplex.gateway import pipeline
from polyplex.gateway.client import Client
from polyplex.gateway.core import Core
from polyplex.gateway.parking import given_answers
from polyplex.gateway.tasks import talk
from polyplex.gateway.tasks.legacy import LegacyTasks
from polyplex.gateway.tasks.live import Live
from polyplex.gateway.tasks.modern import ModernTasks
from polyplex.gateway.tasks.registry import Registry, core_of, iso_now
from polyplex.mux.rewrite import rewrite_result
from polyplex.mux.router import Target
from polyplex.protocol.bridge import questions, results
from polyplex.protocol.bridge import tasks as bridge
from polyplex.protocol.jsonrpc import INVALID_PARAMS, Fields, decode_fields, encode_json, mend_error
from polyplex.protocol.revisions import Era
from polyplex.store.tasks import KnownTask
from polyplex.transports.exchange import Reply
from polyplex.upstreams.upstream import State


class Subject(NamedTuple):
    """What a request is about: a task of a server, or one that polyplex holds."""

    public: str
    live: Live | None
    held: KnownTask | None


class TaskMethods:
    """The handlers by method."""

    def __init__(self, core: Core, registry: Registry, legacy: LegacyTasks, modern: ModernTasks) -> None:
        self._core = core
        self._registry = registry
        self._legacy = legacy
        self._modern = modern

    # -- the handlers
    async def get(self, call: Call, client: Client) -> bytes:
        """`tasks/get`."""
        subject = await self.subject(call, client, talk.task_id(_checked(call)))
        if client.binding.era is Era.MODERN:
            return bridge.complete(await self.detailed(call, client, subject))
        return encode_json(await self.core(call, client, subject))

    async def result(self, call: Call, client: Client) -> bytes:
        """`tasks/result` (2025-11-25): the outcome, as soon as there is one. Raises it where it is an error."""
        subject = await self.subject(call, client, talk.task_id(_checked(call)))
        if subject.live is None:
            result = (subject.held and subject.held.result) or b"{}"
            return encode_json(bridge.with_related(decode_fields(result), subject.public))
        live, era = subject.live, talk.era_of(subject.live.upstream)
        self._cancelled(live)
        live.waiting.append(call)
        live.session = call.session
        try:
            servers = self._modern if era is Era.MODERN else self._legacy
            reply = await servers.outcome(call, client, live)
        finally:
            live.waiting.remove(call)
        if reply.result is None:
            raise talk.rpc_error(reply, live.upstream, client, "tools/call")
        result = pipeline.finish(call, reply.result, era, live.upstream.naming, of="tools/call")
        result = await self._core.results.small(call, client, _task_of(live), result, of="tools/call")
        return encode_json(bridge.with_related(decode_fields(result), live.public))

    async def update(self, call: Call, client: Client) -> bytes:
        """`tasks/update` (the extension): answers to `inputRequests`. Those to no question are ignored."""
        fields = _checked(call)
        subject = await self.subject(call, client, talk.task_id(fields))
        answers = given_answers(fields)
        live = subject.live
        if live is None:
            return bridge.complete({})
        if talk.era_of(live.upstream) is Era.MODERN:
            return bridge.complete(await self._modern.update(call, client, live, answers))
        if not live.asks:
            await self._legacy.get(call, client, live)  # is there such a task at all?
        for key, answer in answers.items():
            ask = live.asks.pop(key, None)
            if ask is not None and not ask.answer.done():
                ask.answer.set_result(Reply(result=questions.legacy_answer(answer)))
        return bridge.complete({})

    async def cancel(self, call: Call, client: Client) -> bytes:
        """`tasks/cancel`. Modern clients get an acknowledgement, legacy ones the cancelled task."""
        subject = await self.subject(call, client, talk.task_id(_checked(call)))
        live = subject.live
        if client.binding.era is Era.MODERN:
            if live is not None:
                await self._cancel_for_modern(call, client, live)
            return bridge.complete({})
        if live is None:
            raise _already_over(subject)
        if talk.era_of(live.upstream) is Era.LEGACY:
            return encode_json(bridge.renamed(await self._legacy.cancel(call, client, live), live.public))
        core = await self.core(call, client, subject)
        if bridge.status(core) in bridge.TERMINAL:
            raise _already_over(subject)
        await self._modern.cancel(call, client, live)
        return encode_json(self._registry.cancel(live, core))

    async def _cancel_for_modern(self, call: Call, client: Client, live: Live) -> None:
        """Modern clients may cancel what is over; legacy servers refuse that (-32602), as they do unknown ids."""
        if talk.era_of(live.upstream) is Era.MODERN:
            await self._modern.cancel(call, client, live)
            return
        task = await self._legacy.get(call, client, live)
        if bridge.status(task) in bridge.TERMINAL:
            return
        try:
            await self._legacy.cancel(call, client, live)
        except RpcError as error:
            if error.code != INVALID_PARAMS:
                raise

    # -- the shapes
    async def subject(self, call: Call, client: Client, public: str) -> Subject:
        """What a public id stands for. Raises `RpcError` -32602 for an id that means nothing to this caller."""
        caller = client.binding.caller
        ref = self._registry.open(public, caller)
        if ref.own:
            return Subject(public, None, self._registry.held(public))
        if ref.server not in self._core.pool.servers:
            raise bridge.not_found(f"task not found: the server {ref.server!r} is not configured any more")
        known = self._registry.lives.get(public)
        if known is not None and known.upstream.state is not State.STOPPED:
            upstream = known.upstream
        else:
            upstream = await self._core.upstream(client, ref.server)
        call.server = ref.server
        await upstream.ready()
        return Subject(public, self._registry.live(upstream, ref.local, public, caller), None)

    async def core(self, call: Call, client: Client, subject: Subject) -> Fields:
        """The task as 2025-11-25 shows it. Raises `RpcError` or `UpstreamError`."""
        live = subject.live
        if live is None:
            return core_of(subject.held) if subject.held is not None else {}
        if talk.era_of(live.upstream) is Era.LEGACY:
            return bridge.renamed(await self._legacy.get(call, client, live), subject.public)
        cancelled = self._cancelled(live)
        if cancelled is not None:
            return cancelled
        return bridge.to_core(await self._modern.get(call, client, live), subject.public, iso_now())

    def _cancelled(self, live: Live) -> Fields | None:
        """A task that a legacy client has cancelled stays so, whatever its modern server makes of it (2025-11-25)."""
        known = self._registry.known(live.public)
        if known is None or not known.cancelled:
            return None
        live.cancelled = True
        return core_of(known)

    async def detailed(self, call: Call, client: Client, subject: Subject) -> Fields:
        """The task as the extension shows it. Raises `RpcError` or `UpstreamError`."""
        live = subject.live
        if live is None and subject.held is not None:
            flat = bridge.to_flat(core_of(subject.held), subject.public, iso_now())
            held = results.result_for("tools/call", subject.held.result or b"{}", Era.LEGACY, Era.MODERN)
            return bridge.finished(flat, held, None)
        if live is None:
            raise bridge.not_found()
        if talk.era_of(live.upstream) is Era.LEGACY:
            task = await self._legacy.detailed(call, client, live)
        else:
            task = self.public_task(await self._modern.get(call, client, live), live)
        if "result" in task:
            result = bytes(task["result"])
            task["result"] = Raw(await self._core.results.small(call, client, _task_of(live), result, of="tools/call"))
        return task

    def is_large(self, task: Fields) -> bool:
        """True for a task with a result that may have to be bounded before a client gets it."""
        return "result" in task and memoryview(task["result"]).nbytes > self._core.results.least

    def public_task(self, task: Fields, live: Live) -> Fields:
        """A modern server's task under its public id, with public URIs in its result and an error that is one."""
        result = task.get("result")
        if result is not None and bytes(result)[:1] == b"{":
            task["result"] = Raw(rewrite_result("tools/call", bytes(result), live.upstream.naming))
        if "error" in task:
            task["error"] = Raw(mend_error(task["error"]))
        return bridge.renamed(task, live.public)


def _checked(call: Call) -> Fields:
    """The params of a `tasks/` request of a client that may send it. Raises `RpcError`."""
    fields = talk.fields_of(call)
    if call.session.era is Era.MODERN:
        bridge.require_extension(fields)
    return fields


def _task_of(live: Live) -> Target:
    """Where a task's result comes from; which tool made it is not known any more."""
    return Target(live.upstream.config.name, "task", None)


def _already_over(subject: Subject) -> RpcError:
    return RpcError(INVALID_PARAMS, f"cannot cancel the task {subject.public}: it is over already")
