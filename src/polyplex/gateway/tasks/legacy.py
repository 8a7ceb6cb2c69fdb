"""Tasks of servers of 2025-11-25: `tasks/result` blocks, and questions come as requests that name the task."""

import asyncio
import contextlib
import logging
from typing import Final

from msgspec import Raw

from polyplex.downstream.session import Call
from polyplex.errors import RemoteProtocolError, UpstreamError, UpstreamLost, UpstreamUnavailable
from polyplex.gateway.client import Client
from polyplex.gateway.tasks import talk
from polyplex.gateway.tasks.live import Live
from polyplex.gateway.tasks.registry import Registry, iso_now
from polyplex.mux.rewrite import rewrite_result
from polyplex.protocol.bridge import errors, results
from polyplex.protocol.bridge import tasks as bridge
from polyplex.protocol.jsonrpc import INVALID_PARAMS, Fields, decode_error, decode_fields, encode_json
from polyplex.protocol.revisions import LATEST_MODERN, Era
from polyplex.transports.background import Background
from polyplex.transports.exchange import Reply
from polyplex.upstreams.connection import request_id
from polyplex.upstreams.upstream import Outgoing

log = logging.getLogger("polyplex.gateway")
RESULT_RETRIES: Final = 3
RETRY_SECONDS: Final = 0.25
ARRIVAL_SECONDS: Final = 1.0
COLLECT_SECONDS: Final = 0.01


class LegacyTasks:
    """What the servers of these tasks are asked."""

    def __init__(self, registry: Registry, background: Background) -> None:
        self._registry = registry
        self._background = background

    async def get(self, call: Call, client: Client, live: Live) -> Fields:
        """The task as its server sees it. Raises `RpcError` or `UpstreamError`."""
        return await talk.get(self._registry, call, client, live)

    async def outcome(self, call: Call, client: Client, live: Live, seconds: float = 0) -> Reply:
        """The reply to `tasks/result`, once the task is over.

        A task outlives the stream that waits for it, so a broken one is opened again, a few times.
        """
        members: Fields = {"taskId": Raw(encode_json(live.local))}
        lost: UpstreamError | None = None
        for attempt in range(RESULT_RETRIES + 1):
            outgoing = talk.prepare(call, client, live.upstream, "tasks/result", members)
            try:
                _, reply = await talk.result_once(live.upstream, outgoing, call, seconds)
            except (UpstreamLost, UpstreamUnavailable) as error:
                lost = error
                if attempt == RESULT_RETRIES:
                    raise
                await asyncio.sleep(RETRY_SECONDS * 2**attempt)
                continue
            gone = reply.error is not None and decode_error(reply.error).code == INVALID_PARAMS
            if gone and lost is not None and live.quiet:
                raise lost
            return reply
        raise AssertionError("unreachable")

    async def cancel(self, call: Call, client: Client, live: Live) -> Fields:
        """Cancel it; the task as its server sees it then. Raises `RpcError`."""
        task = await talk.ask(call, client, live.upstream, "tasks/cancel", live.local)
        return talk.noted(self._registry, live, task, "tasks/cancel")

    # -- for modern clients
    async def detailed(self, call: Call, client: Client, live: Live) -> Fields:
        """The task as `tasks/get` of the extension gives it: outcome or questions inlined."""
        task = await self.get(call, client, live)
        status = bridge.status(task)
        if status == "input_required" and not live.asks:
            await self._collect(live)
        flat = bridge.to_flat(task, live.public, iso_now())
        if status in bridge.TERMINAL:
            return await self._with_outcome(call, client, live, flat)
        return self.asking(live, flat)

    def asking(self, live: Live, flat: Fields) -> Fields:
        """A task under way with the questions that are there: no question, no `input_required`."""
        questions = live.questions()
        if not questions:
            return flat | {"status": Raw(b'"working"')}
        return flat | {"status": Raw(b'"input_required"'), "inputRequests": Raw(encode_json(questions))}

    async def _with_outcome(self, call: Call, client: Client, live: Live, flat: Fields) -> Fields:
        if bridge.status(flat) == "cancelled":
            return flat
        reply = await self.outcome(call, client, live, live.upstream.config.options.timeout_seconds)
        if reply.result is None:
            error = errors.error_for("tools/call", reply.error or talk.NO_ANSWER, Era.LEGACY, LATEST_MODERN)
            return bridge.finished(flat, None, error)
        try:
            bare = encode_json(bridge.with_related(decode_fields(reply.result), None))
            result = results.result_for("tools/call", bare, Era.LEGACY, Era.MODERN)
            return bridge.finished(flat, rewrite_result("tools/call", result, live.upstream.naming), None)
        except RemoteProtocolError as error:
            raise talk.unusable(live.upstream, "tasks/result", error) from None

    async def _collect(self, live: Live) -> None:
        """Questions may come on the stream of `tasks/result` only: keep one open, and wait a little for them."""
        live.arrived.clear()
        if live.pump is None:
            live.pump = self._background.start(self._keep_result(live))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(ARRIVAL_SECONDS):
                await live.arrived.wait()
                await asyncio.sleep(COLLECT_SECONDS)  # what is asked together is to be answered together

    async def _keep_result(self, live: Live) -> None:
        """Hold a stream open for the questions; what it ends with is asked for again when the client wants it."""
        params = encode_json({"taskId": live.local})
        try:
            await talk.result_once(live.upstream, Outgoing("tasks/result", params, request_id()), live, 0)
        except UpstreamError as error:
            log.info("%s: waiting for the questions of a task failed: %s", live.upstream.config.name, error.message)
        finally:
            live.pump = None
            live.arrived.set()
            live.tell()
