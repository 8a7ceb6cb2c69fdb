"""Changes of tasks on their way to clients: `notifications/tasks/status` (2025-11-25), `notifications/tasks` (the
extension, for the `taskIds` of a `subscriptions/listen`), and progress of calls that became tasks."""

import asyncio
import contextlib
import logging
from collections.abc import Callable
from typing import Final

import msgspec
from msgspec import Raw

from polyplex.downstream.session import Call
from polyplex.errors import RemoteProtocolError, RpcError, UpstreamError
from polyplex.gateway.client import Client
from polyplex.gateway.tasks import talk
from polyplex.gateway.tasks.live import Live
from polyplex.gateway.tasks.methods import Subject, TaskMethods
from polyplex.gateway.tasks.registry import Registry
from polyplex.protocol.bridge import tasks as bridge
from polyplex.protocol.jsonrpc import Fields, decode_fields, encode_json, notification
from polyplex.protocol.revisions import R2025_11_25, Era
from polyplex.transports.background import Background
from polyplex.transports.exchange import Exchange
from polyplex.upstreams.upstream import Outgoing, Upstream

log = logging.getLogger("polyplex.gateway")
MAX_WATCHED: Final = 256
ACKNOWLEDGE_SECONDS: Final = 3.0
FIRST_DELAY: Final = 0.5
LONGEST_DELAY: Final = 30.0
STATUS: Final = "notifications/tasks/status"
DETAILED: Final = "notifications/tasks"
ACKNOWLEDGED: Final = "notifications/subscriptions/acknowledged"


class ServerStream:
    """Our `subscriptions/listen` with a modern server for some of its tasks; the context of that exchange."""

    def __init__(
        self,
        upstream: Upstream,
        lives: list[Live],
        send: Callable[[Live, Fields], None],
        missed: Callable[[Live], None],
    ) -> None:
        self.upstream = upstream
        self.lives = {live.local: live for live in lives}
        self.honoured: set[str] = set()
        self.settled = asyncio.Event()
        self._send = send
        self._missed = missed

    def notified(self, method: str, params: bytes | None) -> None:
        """Something came on the stream."""
        try:
            fields = decode_fields(params or b"{}")
            if method == ACKNOWLEDGED:
                taken = decode_fields(fields.get("notifications", Raw(b"{}"))).get("taskIds", Raw(b"[]"))
                self._acknowledged(set(msgspec.json.decode(taken, type=list[str])))
            elif method == DETAILED:
                live = self.lives.get(bridge.local_id(fields))
                if live is not None:
                    self._send(live, fields)
        except (RemoteProtocolError, msgspec.DecodeError) as error:
            log.info("%s: its %s is not usable: %s", self.upstream.config.name, method, error)

    def _acknowledged(self, honoured: set[str]) -> None:
        """After a gap anything may have happened: only from now on nothing can be missed any more."""
        again = self.settled.is_set()
        self.honoured = honoured
        self.settled.set()
        if again:
            for live in self.lives.values():
                self._missed(live)


class Watch:
    """The tasks that one client's stream watches. Close it when the stream ends."""

    def __init__(self, watching: "Watching", call: Call, client: Client, send: Callable[[bytes], None]) -> None:
        self._watching = watching
        self._call = call
        self._client = client
        self._send = send
        self._background = Background()
        self._lives: list[tuple[Live, Callable[[], None]]] = []
        self._due: dict[str, bool] = {}

    async def open(self, identifiers: list[str]) -> list[str]:
        """Begin to watch; the ids that are honoured."""
        honoured: list[str] = []
        modern: dict[Upstream, list[Live]] = {}
        for public in list(dict.fromkeys(identifiers))[:MAX_WATCHED]:
            try:
                subject = await self._watching.methods.subject(self._call, self._client, public)
            except (RpcError, UpstreamError) as error:
                log.info("a task is not watched: %s", error)
                continue
            if subject.live is None:
                honoured.append(public)  # it is over: nothing will change
            elif talk.era_of(subject.live.upstream) is Era.MODERN:
                modern.setdefault(subject.live.upstream, []).append(subject.live)
            else:
                self._watch_legacy(subject)
                honoured.append(public)
        taken = await asyncio.gather(*(self._watch_modern(upstream, lives) for upstream, lives in modern.items()))
        wanted = {*honoured, *(public for each in taken for public in each)}
        return [public for public in dict.fromkeys(identifiers) if public in wanted]

    def close(self) -> None:
        """The client's stream has ended."""
        for live, changed in self._lives:
            live.changed.discard(changed)
        self._lives.clear()
        self._background.cancel()

    # -- legacy servers
    def _watch_legacy(self, subject: Subject) -> None:
        live = subject.live
        if live is None:
            return

        def changed() -> None:
            self._report_soon(subject)

        live.changed.add(changed)
        self._lives.append((live, changed))

    def _report_soon(self, subject: Subject) -> None:
        """One report of a task at a time, so that none overtakes another; what changes meanwhile makes one more."""
        under_way = subject.public in self._due
        self._due[subject.public] = under_way
        if not under_way:
            self._background.start(self._report_until_still(subject))

    async def _report_until_still(self, subject: Subject) -> None:
        again = True
        while again:
            self._due[subject.public] = False
            await self._report(subject)
            again = self._due[subject.public]
        del self._due[subject.public]

    async def _report(self, subject: Subject) -> None:
        """Send the whole task, as `tasks/get` would give it."""
        try:
            task = await self._watching.methods.detailed(self._call, self._client, subject)
        except (RpcError, UpstreamError, RemoteProtocolError) as error:
            log.info("the state of a watched task cannot be had: %s", error)
            return
        self._send(_notice(task))

    # -- modern servers
    async def _watch_modern(self, upstream: Upstream, lives: list[Live]) -> list[str]:
        stream = ServerStream(upstream, lives, self._pass, self._missed)
        self._background.start(self._keep(stream))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(ACKNOWLEDGE_SECONDS):
                await stream.settled.wait()
        return [live.public for live in lives if live.local in stream.honoured]

    def _pass(self, live: Live, task: Fields) -> None:
        self._watching.registry.note(live, task)
        if self._watching.methods.is_large(task):
            self._report_soon(Subject(live.public, live, None))
            return
        self._send(_notice(self._watching.methods.public_task(task, live)))

    def _missed(self, live: Live) -> None:
        self._report_soon(Subject(live.public, live, None))

    async def _keep(self, stream: ServerStream) -> None:
        """Keep the server's stream open for as long as the client's is; after a gap, say how things stand."""
        delay = FIRST_DELAY
        while True:
            try:
                await self._listen(stream)
            except UpstreamError as error:
                log.info("%s: watching tasks failed: %s", stream.upstream.config.name, error.message)
            stream.settled.set()
            if not stream.honoured:
                return
            await asyncio.sleep(delay)
            delay = min(delay * 2, LONGEST_DELAY)

    async def _listen(self, stream: ServerStream) -> None:
        members: Fields = {"notifications": Raw(encode_json({"taskIds": list(stream.lives)}))}
        outgoing = talk.prepare(self._call, self._client, stream.upstream, "subscriptions/listen", members)
        await _until_ended(stream, outgoing)


async def _until_ended(stream: ServerStream, outgoing: Outgoing) -> None:
    connection = await stream.upstream.ready()
    exchange = connection.start(
        outgoing.method,
        outgoing.params,
        timeout=0,
        context=stream,
        headers=outgoing.headers,
        identifier=outgoing.identifier,
    )
    try:
        await exchange
    except asyncio.CancelledError:
        connection.cancel(exchange, "the client no longer listens")
        raise


class Watching:
    """Takes what servers notify of tasks."""

    def __init__(self, registry: Registry, methods: TaskMethods) -> None:
        self.registry = registry
        self.methods = methods

    def watch(self, call: Call, client: Client, send: Callable[[bytes], None]) -> Watch:
        """A watch for a client's stream; `send` writes a notification on it."""
        return Watch(self, call, client, send)

    def notified(self, upstream: Upstream, exchange: Exchange | None, method: str, params: bytes | None) -> bool:
        """A server notifies; False where it is nothing about tasks."""
        if exchange is not None and isinstance(exchange.context, ServerStream):
            exchange.context.notified(method, params)
            return True
        if method == STATUS:
            self._status(upstream, params)
        elif method == "notifications/progress" and exchange is None:
            self._progress(params)
        elif method != DETAILED:
            return False
        return True

    def _status(self, upstream: Upstream, params: bytes | None) -> None:
        """A legacy server says how a task stands: its client is told by the id it knows."""
        try:
            task = decode_fields(params or b"{}")
            live = self.registry.lives.of_server(upstream, bridge.local_id(task))
            if live is None:
                return
            self.registry.note(live, task)
        except RemoteProtocolError as error:
            log.info("%s: its %s is not usable: %s", upstream.config.name, STATUS, error)
            return
        live.tell()
        session = live.session
        if session is not None and not live.quiet and session.revision >= R2025_11_25:
            session.send(notification(STATUS, encode_json(bridge.renamed(task, live.public))))

    def _progress(self, params: bytes | None) -> None:
        """Progress of a call that became a task: to whoever waits for it, or the session that made it."""
        try:
            fields = decode_fields(params or b"{}")
        except RemoteProtocolError:
            return
        token = bytes(fields.get("progressToken", Raw(b"")))
        live = self.registry.lives.of_token(token) or self.registry.lives.of_token(token.strip(b'"'))
        if live is None or live.token is None or (live.session is None and not live.waiting):
            return
        frame = notification("notifications/progress", encode_json(fields | {"progressToken": Raw(live.token)}))
        if live.waiting:
            live.waiting[-1].send(frame)
        elif live.session is not None:
            live.session.send(frame)


def _notice(task: Fields) -> bytes:
    """A notification of a task with its public id, without what belongs to the message that it came in."""
    raw = task.get("_meta")
    given = decode_fields(raw) if raw is not None and bytes(raw)[:1] == b"{" else {}
    meta = {key: value for key, value in given.items() if not key.startswith("io.modelcontextprotocol/")}
    bare = {key: value for key, value in task.items() if key not in ("_meta", "resultType")}
    return notification(DETAILED, encode_json(bare | ({"_meta": Raw(encode_json(meta))} if meta else {})))
