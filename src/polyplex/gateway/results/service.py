"""All that the gateway does so that results stay small, put together: `Core.results`."""

import asyncio
import contextlib
import logging
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Final

from polyplex.config import Config
from polyplex.downstream.session import Call
from polyplex.errors import PayloadError, RemoteProtocolError, RpcError, UpstreamLost
from polyplex.gateway import rounds
from polyplex.gateway.client import Client
from polyplex.gateway.results.intake import MAX_WHOLE_BYTES, Intake, Spare, TakenApart
from polyplex.gateway.results.keeper import Keeper, Part
from polyplex.gateway.results.limits import Limiter, Limits
from polyplex.gateway.results.reading import Reading
from polyplex.gateway.results.reshape import Order, Reshaper
from polyplex.gateway.results.resolving import resolved
from polyplex.gateway.results.shapes import MEMBERS
from polyplex.gateway.results.structured import output_schema
from polyplex.gateway.results.summaries import Summaries
from polyplex.mux.router import Target
from polyplex.protocol import jsonrpc
from polyplex.protocol.bridge.results import tool_failure
from polyplex.protocol.jsonrpc import Fields
from polyplex.protocol.revisions import R2025_06_18
from polyplex.store.open_store import open_store
from polyplex.transports.body import stream_of
from polyplex.transports.exchange import Reply
from polyplex.transports.http_client import HttpFailure
from polyplex.upstreams.upstream import Outgoing, Upstream

log = logging.getLogger("polyplex.gateway")
GATHERED_BYTES: Final = 4 * 1024 * 1024
MAX_APART_BYTES: Final = 1024 * 1024
FIRST_SWEEP_SECONDS: Final = 30.0
_ENVELOPE: Final = b'{"jsonrpc":"2.0","id":0,"result":'
_SHAPES: Final = {"content": b'[{"type":"text","text":%b}]', "structuredContent": b'{"polyplex/part":%b}'}
_PLAIN: Final = Reply(result=b"{}")
_NO_PARTS: Final[Mapping[str, Part]] = {}
_NO_MEMBERS: Final[Mapping[str, str]] = {}


class ApartReply(Reply):
    """A reply whose result was taken apart on its way in."""

    __slots__ = ("members", "parts")

    def __init__(self, apart: TakenApart) -> None:
        super().__init__(result=_shaped(apart))
        self.parts, self.members = apart.parts, apart.members


def _shaped(apart: TakenApart) -> bytes:
    """What stayed of a result, with what stands for its members in their shape: it may be translated before it is
    bounded."""
    kept = apart.kept
    for mark, member in apart.members.items():
        shape = _SHAPES.get(member)
        if shape is not None:
            written = jsonrpc.encode_json(mark)
            kept = kept.replace(written, shape % written, 1)
    return kept


class Results:
    """Bounds results. Where the configuration bounds none, `off` is True and nothing here is called.

    Raises `ConfigError` for a store that cannot be used.
    """

    def __init__(self, config: Config, state_folder: Path) -> None:
        self.limiter = Limiter(config.options, config.servers)
        self.off = self.limiter.off
        self.least = self.limiter.least
        self.keeper = Keeper(config.options.payloads, open_store(config.options.payloads, state_folder))
        self.reading = Reading(self.keeper, self.limiter)
        self._prefix = b":" if config.options.payloads.uri == "store" else b"polyplex:"
        self._spare = Spare()
        self._sweeping: asyncio.Task[None] | None = None

    # -- life
    def start(self) -> None:
        """Begin to remove from time to time what has expired."""
        if not self.off and self._sweeping is None:
            self._sweeping = asyncio.get_running_loop().create_task(self._sweep())

    async def stop(self) -> None:
        """Wait for what is being written."""
        if self._sweeping is not None:
            self._sweeping.cancel()
            await asyncio.gather(self._sweeping, return_exceptions=True)
        await self.keeper.close()

    async def _sweep(self) -> None:
        await asyncio.sleep(FIRST_SWEEP_SECONDS)  # a command that is over by then has nothing to do with it
        await self.keeper.store.keep_swept()

    # -- what the straight line calls
    def refers(self, call: Call) -> bool:
        """True where the arguments of a call may name payloads."""
        params = call.params
        return params is not None and self._prefix in params and call.method == "tools/call" and not self.off

    async def resolved(self, call: Call, client: Client, target: Target, fields: Fields) -> Fields:
        """The params with what payload URIs stand for, where that is wanted. Raises `RpcError`, `PayloadError`."""
        tool = self.limiter.tool(target)
        return await resolved(self.keeper, client.binding.caller, tool, call, target, fields)

    def concerns(self, reply: Reply, result: bytes) -> bool:
        """False for most results, which are small: then there is nothing to do."""
        return len(result) > self.least or type(reply) is not Reply

    async def received(
        self, call: Call, client: Client, target: Target, upstream: Upstream, outgoing: Outgoing, reply: Reply
    ) -> Reply:
        """A result that comes as a stream: it streams on where it may, else it is read.

        What is very large and to be bounded is taken apart on the way, and its large parts stored. Raises
        `UpstreamLost` for what is cut short, or is no result.
        """
        stream = reply.stream
        if stream is None:
            return reply
        final = not stream.begins_with(*rounds.MARKS)
        bounding = final and not self.off and call.method in MEMBERS
        limits = self.limiter.of(call, client, target) if bounding else None
        if final and outgoing.passes and (limits is None or stream.length <= limits.least):
            return reply
        server = upstream.config.name
        try:
            if limits is None or stream.length <= GATHERED_BYTES or not await self._stores(stream.length, limits):
                body = await stream.read()
                return Reply(result=_whole(body) if limits is None else _bare(body))
            intake = Intake(stream, self.keeper, client.binding.caller, _origin(call, target), limits, self._spare)
            return await _taken(intake, upstream.config.options.timeout_seconds)
        except (RemoteProtocolError, HttpFailure, TimeoutError) as error:
            reason = str(error) or "nothing came for too long"
            raise UpstreamLost(server, f"its answer cannot be read: {reason}") from None
        except PayloadError as error:
            log.warning("a result of %r could not be stored while it came in: %s", server, error)
            return Reply(result=_not_kept(call, server, error))

    async def bounded(
        self,
        call: Call,
        client: Client,
        target: Target,
        reply: Reply,
        result: bytes,
        of: str | None = None,
    ) -> bytes:
        """A result as the client gets it. `of` is the method whose result it is, where the call only fetches it."""
        apart = isinstance(reply, ApartReply)
        method = of or call.method
        limits = self.limiter.of(call, client, target)
        if limits is None or method not in MEMBERS or (len(result) <= limits.least and not apart):
            return result
        parts, members = (reply.parts, reply.members) if isinstance(reply, ApartReply) else (_NO_PARTS, _NO_MEMBERS)
        order = self._order(call, client, target, limits, method)
        try:
            kept = result
            if not apart and len(result) > GATHERED_BYTES and limits.apart <= MAX_APART_BYTES:
                intake = Intake(stream_of(memoryview(result)), self.keeper, order.owner, order.origin, limits)
                with contextlib.suppress(
                    RemoteProtocolError
                ):  # then in one go; that tells what is wrong, if it matters
                    kept, parts, members = await intake.run(1.0)
            return await Reshaper(self.keeper, order, parts, members).run(kept)
        except PayloadError as error:
            log.warning("a result of %r stays whole, as it could not be stored: %s", target.server, error)
        except RemoteProtocolError as error:
            raise UpstreamLost(target.server, f"its answer cannot be read: {error}") from None
        return result

    async def small(self, call: Call, client: Client, target: Target, result: bytes, of: str | None = None) -> bytes:
        """As `bounded`, for a result that did not come as a stream."""
        if len(result) <= self.least:
            return result
        return await self.bounded(call, client, target, _PLAIN, result, of)

    async def _stores(self, size: int, limits: Limits) -> bool:
        """Whether a stream is to be stored as it comes in: not where it is known before that there is no room for it.

        What is too large to be held in memory is tried all the same.
        """
        if limits.apart > MAX_APART_BYTES:
            return False
        return size > MAX_WHOLE_BYTES or await self.keeper.store.has_room(size)

    def _order(self, call: Call, client: Client, target: Target, limits: Limits, method: str) -> Order:
        current = call.session.revision >= R2025_06_18
        summaries = Summaries(self.keeper, call, client, limits)
        return Order(
            method=method,
            owner=client.binding.caller,
            origin=_origin(call, target),
            limits=limits,
            links=current,
            metas=current,
            output_schema=None if target.entry is None else output_schema(target.entry.raw),
            summarise=partial(summaries.of, client.binding.caller),
        )


def _origin(call: Call, target: Target) -> str:
    """What a payload came from, as clients know it."""
    return target.local if target.entry is None else target.entry.key


async def _taken(intake: Intake, idle_seconds: float) -> Reply:
    """A stream taken apart; whole, where it cannot be and its beginning is still there. Raises as `Intake.run`."""
    try:
        return ApartReply(await intake.run(idle_seconds))
    except (PayloadError, RemoteProtocolError) as error:
        whole = await intake.whole(idle_seconds)
        if whole is None:
            raise
        log.info("a result was not taken apart while it came in: %s", error)
        return Reply(result=_bare(whole))


def _whole(body: bytes) -> bytes:
    """The result at the beginning of the rest of an envelope. Raises `RemoteProtocolError` for what is none."""
    result = jsonrpc.decode(_ENVELOPE + body).result
    return bytes(result)  # pyright: ignore[reportArgumentType, reportCallIssue]


def _bare(body: bytes) -> bytes:
    """As `_whole`, for what is decoded later on."""
    jsonrpc.check_text(body)
    body = body.rstrip()
    if body[-1:] != b"}":
        raise RemoteProtocolError("not JSON: it ends too early")
    return body[:-1]


def _not_kept(call: Call, server: str, error: PayloadError) -> bytes:
    text = (
        f"The server {server!r} answered with a result that is too large to be passed on, and it could not be stored: "
        f"{error}. The call itself took effect. Ask for less, or ask without limits where the program can take it."
    )
    if call.method == "tools/call":
        return tool_failure(text, call.session.era)
    raise RpcError(jsonrpc.INTERNAL_ERROR, text)
