"""What this process knows of the tasks that went through it, beside what the state database keeps."""

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from msgspec import Raw

from polyplex.downstream.session import Call, Session
from polyplex.protocol.jsonrpc import encode_json
from polyplex.transports.exchange import Reply
from polyplex.upstreams.upstream import Upstream

MAX_LIVE: Final = 10_000


class HeldAsk:
    """A question of a legacy server that waits for `tasks/update`; `request` is raw JSON for `inputRequests`."""

    __slots__ = ("answer", "request")

    def __init__(self, request: bytes) -> None:
        self.request = request
        self.answer: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()


class Live:
    """A task of a server. `session` is the legacy client's that made it or asked for it last, None for modern ones.

    `quiet` tasks were made by polyplex for a client that knows of none: messages to it do not name them. `waiting` are
    the calls that wait for the outcome, on whose streams questions go out.
    """

    __slots__ = (
        "answered", "arrived", "asks", "caller", "cancelled", "changed", "claimed", "identifier", "local", "noted",
        "public", "pump", "quiet", "session", "token", "upstream", "waiting",
    )  # fmt: skip

    def __init__(self, upstream: Upstream, local: str, public: str, caller: str) -> None:
        self.upstream = upstream
        self.local = local
        self.public = public
        self.caller = caller
        self.cancelled = False
        self.noted = b""
        self.session: Session | None = None
        self.quiet = False
        self.waiting: list[Call] = []
        self.asks: dict[str, HeldAsk] = {}
        self.claimed: set[str] = set()
        self.answered: set[str] = set()
        self.identifier: bytes | None = None
        self.token: bytes | None = None
        self.pump: asyncio.Task[None] | None = None
        self.arrived = asyncio.Event()
        self.changed: set[Callable[[], None]] = set()

    @property
    def in_use(self) -> bool:
        """True while something waits for it."""
        return bool(self.waiting or self.asks or self.changed or self.pump)

    def tell(self) -> None:
        """Something about the task is different now."""
        for changed in list(self.changed):
            changed()

    def questions(self) -> dict[str, Raw]:
        """The `inputRequests` that wait for an answer."""
        return {key: Raw(ask.request) for key, ask in self.asks.items()}

    def release(self, reason: str) -> None:
        """The task is over: what it asked is not wanted any more."""
        for ask in list(self.asks.values()):
            if not ask.answer.done():
                ask.answer.set_result(Reply.failure(-32603, reason))


class Lives:
    """The newest of them, by public id, by session and the server's own id, and by the progress tokens of their calls.

    A server's own id is good in its session alone: two processes of one server may both begin with 1.
    """

    def __init__(self) -> None:
        self._by_public: OrderedDict[str, Live] = OrderedDict()
        self._by_local: dict[tuple[Upstream, str], Live] = {}
        self._tokens: dict[bytes, Live] = {}

    def add(self, live: Live) -> None:
        """Know a task. Where its session had one of that id before, that one is no more."""
        self._by_public[live.public] = live
        self._by_local[(live.upstream, live.local)] = live
        if len(self._by_public) > MAX_LIVE:
            self._drop_oldest()

    def move(self, live: Live, upstream: Upstream) -> None:
        """The session of the task is gone; another one may know the task, unless that has one of the same id."""
        if self._by_local.get((live.upstream, live.local)) is live:
            del self._by_local[(live.upstream, live.local)]
        live.upstream = upstream
        self._by_local.setdefault((upstream, live.local), live)

    def _drop_oldest(self) -> None:
        for public, live in self._by_public.items():
            if not live.in_use:
                del self._by_public[public]
                if self.of_server(live.upstream, live.local) is live:
                    del self._by_local[(live.upstream, live.local)]
                self.over(live)
                return

    def get(self, public: str) -> Live | None:
        """The task with this public id, where this process knows it."""
        return self._by_public.get(public)

    def of_server(self, upstream: Upstream, local: str) -> Live | None:
        """The task that a server names in a session."""
        return self._by_local.get((upstream, local))

    def track(self, identifier: bytes, token: bytes, live: Live) -> None:
        """Progress with our token `identifier` belongs to this task; the client knows it by `token`."""
        live.identifier, live.token = identifier, token
        self._tokens[identifier] = live
        if live.upstream.connection is not None:
            live.upstream.connection.outliving.add(identifier)

    def of_token(self, identifier: bytes) -> Live | None:
        """The task whose call had this progress token of ours."""
        return self._tokens.get(identifier)

    def over(self, live: Live) -> None:
        """The task has reached its end."""
        live.release("the task is over")
        if live.identifier is not None:
            self._tokens.pop(live.identifier, None)
            if live.upstream.connection is not None:
                live.upstream.connection.outliving.discard(live.identifier)


def progress_params(token: bytes, step: int, message: str | None) -> bytes:
    """Params of a progress notification that polyplex makes of a change of status."""
    params: dict[str, object] = {"progressToken": Raw(token), "progress": step}
    return encode_json(params | ({"message": message} if message else {}))
