"""The tasks that polyplex has handed out: their public ids, what is remembered of them, and results it holds itself."""

import logging
import secrets
import sqlite3
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, TypeVar

import msgspec
from msgspec import Raw

from polyplex.errors import RpcError
from polyplex.gateway.tasks.live import Live, Lives
from polyplex.mux.task_ids import Sealer, TaskRef, open_id, seal_id
from polyplex.protocol.bridge import tasks as bridge
from polyplex.protocol.jsonrpc import INTERNAL_ERROR, Fields, decode_fields, encode_json
from polyplex.store.tasks import KnownTask, StoreFullError, TaskStore
from polyplex.upstreams.upstream import Upstream

log = logging.getLogger("polyplex.gateway")
DEFAULT_TTL_MS: Final = 3_600_000
LONGEST_TTL_MS: Final = 24 * 3_600_000
HELD_POLL_MS: Final = 1000
BUSY_SECONDS: Final = 24 * 3600.0
T = TypeVar("T")


def iso_now() -> str:
    """The time, as tasks give it (ISO 8601)."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Registry:
    """The database is opened on first use: most processes never see a task.

    Where it fails, tasks of servers still work by their handles; only results cannot be held.
    """

    def __init__(self, database: Path | None, ring: Callable[[], Sealer]) -> None:
        self.lives = Lives()
        self._database = database
        self._ring = ring
        self._opened: TaskStore | None = None

    def close(self) -> None:
        """Close the database."""
        if self._opened is not None:
            self._opened.close()
            self._opened = None

    @property
    def _store(self) -> TaskStore:
        if self._opened is None:
            self._opened = TaskStore(self._database)
        return self._opened

    def _attempt(self, work: Callable[[TaskStore], T], otherwise: T) -> T:
        """What the database says, or `otherwise` where it fails."""
        try:
            return work(self._store)
        except (sqlite3.Error, OSError) as error:
            log.warning("the state database cannot be used for tasks: %s", error)
            return otherwise

    # -- ids
    def open(self, public: str, caller: str) -> TaskRef:
        """The task behind a public id. Raises `RpcError` -32602 for one that this caller was never given."""
        try:
            return open_id(self._ring(), public, caller)
        except ValueError:
            raise bridge.not_found() from None

    def public_id(self, upstream: Upstream, local: str, caller: str) -> str:
        """The id under which the caller knows a task that a server lists; a new one where it does not yet."""
        live = self.lives.of_server(upstream, local)
        if live is not None and live.caller == caller:
            return live.public
        server = upstream.config.name
        known = self._attempt(lambda store: store.find(server, local, caller), None)
        public = seal_id(self._ring(), TaskRef(server, local), caller) if known is None else known.id
        self.lives.add(Live(upstream, local, public, caller))
        return public

    # -- tasks of servers
    def record(self, upstream: Upstream, local: str, caller: str, task: Fields, *, quiet: bool) -> Live:
        """A server has made a task; `task` in either shape. A `quiet` one is not remembered: no client knows of it."""
        server = upstream.config.name
        public = seal_id(self._ring(), TaskRef(server, local), caller)
        core = bridge.to_core(task, public, iso_now())
        ttl = _ttl_of(core)
        seconds = None if ttl is None else ttl / 1000
        raw = encode_json(core)
        if not quiet:
            self._attempt(lambda store: store.add(public, caller, server, local, raw, seconds=seconds), None)
        live = Live(upstream, local, public, caller)
        live.quiet = quiet
        self.lives.add(live)
        upstream.tasks[local] = time.monotonic() + (BUSY_SECONDS if seconds is None else min(seconds, BUSY_SECONDS))
        self._end(live, core)
        return live

    def live(self, upstream: Upstream, local: str, public: str, caller: str) -> Live:
        """The task behind a handle, in a session with its server. Raises `RpcError` -32602 where it is not there."""
        live = self.lives.get(public)
        if live is None:
            if self.lives.of_server(upstream, local) is not None:
                raise bridge.not_found()
            live = Live(upstream, local, public, caller)
            self.lives.add(live)
        elif live.upstream is not upstream:
            self.lives.move(live, upstream)
        if self.lives.of_server(upstream, local) is not live:
            raise bridge.not_found()
        return live

    def note(self, live: Live, task: Fields) -> None:
        """Remember what a server says of a task now; `task` in either shape."""
        core = bridge.to_core(task, live.public, iso_now())
        raw = encode_json(core)
        if raw != live.noted:
            live.noted = raw
            self._attempt(lambda store: store.update(live.public, raw), None)
        self._end(live, core)

    def _end(self, live: Live, core: Fields) -> None:
        if bridge.status(core) in bridge.TERMINAL:
            self.lives.over(live)
            live.upstream.tasks.pop(live.local, None)

    def forget(self, live: Live) -> None:
        """The task is no more, or nobody needs to know of it any more."""
        self._attempt(lambda store: store.forget(live.public), None)
        self.lives.over(live)
        live.upstream.tasks.pop(live.local, None)

    def known(self, public: str) -> KnownTask | None:
        """What is remembered of a task."""
        return self._attempt(lambda store: store.get(public), None)

    def hidden(self, upstream: Upstream, local: str, caller: str) -> bool:
        """Whether a server's task is not to be shown: it is somebody else's alone, or no client knows of it."""
        live = self.lives.of_server(upstream, local)
        if live is not None:
            return live.quiet or live.caller != caller
        server = upstream.config.name
        known = self._attempt(lambda store: store.find(server, local), None)
        if known is None or known.caller == caller:
            return False
        return self._attempt(lambda store: store.find(server, local, caller), None) is None

    def page(self, caller: str, after: int, limit: int) -> list[KnownTask]:
        """The caller's tasks, oldest first."""
        return self._attempt(lambda store: store.page(caller, after, limit), [])

    def cancel(self, live: Live, core: Fields) -> Fields:
        """The task counts as cancelled from now on; returns it so."""
        cancelled = core | {
            "status": Raw(b'"cancelled"'),
            "lastUpdatedAt": Raw(encode_json(iso_now())),
            "statusMessage": Raw(b'"The task was cancelled by request."'),
        }
        raw = encode_json(cancelled)
        live.cancelled = True
        self._attempt(lambda store: store.cancel(live.public, raw), None)
        live.tell()
        return cancelled

    # -- results that polyplex holds
    def hold(self, caller: str, result: bytes, wanted: Raw | None) -> Fields:
        """Keep a tool result (legacy shape) as a finished task; `wanted` is the ttl that the client asks for.

        Durable on return. Raises `RpcError` where it cannot be kept.
        """
        ttl = min(_milliseconds(wanted) or DEFAULT_TTL_MS, LONGEST_TTL_MS)
        local = secrets.token_hex(8)
        public = seal_id(self._ring(), TaskRef("", local, own=True), caller)
        now = Raw(encode_json(iso_now()))
        failed = bridge.is_failure(Raw(result))
        task: Fields = {
            "taskId": Raw(encode_json(public)),
            "status": Raw(b'"failed"' if failed else b'"completed"'),
            "createdAt": now,
            "lastUpdatedAt": now,
            "ttl": Raw(b"%d" % ttl),
            "pollInterval": Raw(b"%d" % HELD_POLL_MS),
        }
        try:
            raw = encode_json(task)
            self._store.add(public, caller, "", local, raw, seconds=ttl / 1000, result=result)
        except (sqlite3.Error, OSError, StoreFullError) as error:
            raise RpcError(
                INTERNAL_ERROR, f"the tool has run, but its result cannot be kept as a task: {error}"
            ) from None
        return task

    def held(self, public: str) -> KnownTask:
        """A task that polyplex holds. Raises `RpcError` -32602 where it has expired."""
        known = self.known(public)
        if known is None or known.result is None:
            raise bridge.not_found("task not found: it has expired")
        return known


def core_of(known: KnownTask) -> Fields:
    """A remembered task in the shape of 2025-11-25."""
    return decode_fields(known.task)


def _ttl_of(core: Fields) -> int | None:
    return _milliseconds(core.get("ttl"))


def _milliseconds(raw: Raw | None) -> int | None:
    """A duration; None for null, for none, and for what is no duration."""
    try:
        value = None if raw is None else msgspec.json.decode(raw, type=float | None)
    except msgspec.DecodeError:
        return None
    return None if value is None or not 0 < value < 2**53 else round(value)
