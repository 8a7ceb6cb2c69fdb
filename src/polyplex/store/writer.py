"""One payload on its way into a store."""

import asyncio
import hashlib
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from types import TracebackType
from typing import Final, Protocol, Self

import msgspec

from polyplex.errors import PayloadStoreFailed
from polyplex.store.payload import MAX_MEDIA_TYPE, Payload
from polyplex.store.place import Record, Sink

FLUSH_BYTES: Final = 1 << 20


class Desk(Protocol):
    """What a writer needs of its store. All but `check` is called from threads."""

    @property
    def pool(self) -> Executor:
        """Where the work is done."""
        ...

    def check(self, size: int) -> None:
        """Raises `PayloadRefused` for a payload of a size that may never be kept."""
        ...

    def reserve(self, draft: Payload, more: int) -> None:
        """Hold room for so many bytes more; the oldest make room. Raises `PayloadRefused`, `PayloadStoreFailed`."""
        ...

    def release(self, draft: Payload, held: int) -> None:
        """What was held is free again."""
        ...

    def open_sink(self, draft: Payload) -> Sink:
        """Begin to write."""
        ...

    def enter(self, payload: Payload, held: int) -> None:
        """The payload is complete; what was held is what it takes."""
        ...

    def withdraw(self, payload: Payload) -> None:
        """Delete a payload that nobody was told of; never raises."""
        ...


class PayloadWriter:
    """Takes chunks as they come; nobody can see the payload until `commit` has returned.

    At most two lots of `FLUSH_BYTES`, and the chunk that filled the last one, wait for the disk. Used as a context, it
    leaves nothing behind unless it was committed. For one task at a time.
    """

    def __init__(self, desk: Desk, draft: Payload) -> None:
        self.size = 0
        self._desk, self._draft = desk, draft
        self._hash = hashlib.sha256()
        self._chunks: list[bytes] = []
        self._waiting = 0  # bytes in _chunks
        self._job: asyncio.Future[None] | None = None
        self._ended = False
        self._lock = threading.Lock()  # the rest is used in threads only, one job at a time
        self._sink: Sink | None = None
        self._held = 0
        self._payload: Payload | None = None
        self._given_up = False

    @property
    def uri(self) -> str:
        """What the payload will be known by."""
        return self._draft.uri

    async def write(self, chunk: bytes | bytearray | memoryview) -> None:
        """Take more of it; waits where the disk is behind. Raises `PayloadRefused`, `PayloadStoreFailed`, and ends."""
        self._check_open()
        kept = chunk if isinstance(chunk, bytes) else bytes(chunk)
        self.size += len(kept)
        self._chunks.append(kept)
        self._waiting += len(kept)
        try:
            self._desk.check(self.size)
            if self._waiting >= FLUSH_BYTES:
                await self._landed()
                chunks, self._chunks, self._waiting = self._chunks, [], 0
                self._job = self._in_thread(self._append, chunks)
        except BaseException:
            await self.abort()
            raise

    async def commit(self, media_type: str | None = None) -> Payload:
        """Make it durable and visible. Nothing is left where it fails: `PayloadRefused`, `PayloadStoreFailed`.

        A media type that was found out on the way replaces the one given at first.
        """
        self._check_open()
        try:
            await self._landed()
            draft = self._draft
            if media_type is not None:
                draft = msgspec.structs.replace(draft, media_type=media_type[:MAX_MEDIA_TYPE])
            await asyncio.shield(self._in_thread(self._finish, self._chunks, draft))
        except BaseException:
            await self.abort()
            raise
        self._ended = True
        assert self._payload is not None  # noqa: S101 - the thread has set it
        return self._payload

    async def abort(self) -> None:
        """Leave nothing of it. No error where all was given up already."""
        self._ended = True
        self._chunks, self._job = [], None
        await asyncio.shield(self._in_thread(self._give_up))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._ended:
            await self.abort()

    def _check_open(self) -> None:
        if self._ended:
            raise RuntimeError("the payload was committed or aborted already")

    async def _landed(self) -> None:
        """The lot before this one has been written."""
        if self._job is not None:
            await asyncio.shield(self._job)
            self._job = None

    def _in_thread(self, work: Callable[..., None], *arguments: object) -> asyncio.Future[None]:
        try:
            job = asyncio.get_running_loop().run_in_executor(self._desk.pool, work, *arguments)
        except RuntimeError as error:  # the pool takes nothing any more
            raise PayloadStoreFailed("the payload store was closed") from error
        job.add_done_callback(_seen)
        return job

    # -- in threads
    def _append(self, chunks: Sequence[bytes]) -> None:
        with self._lock:
            if not self._given_up:
                self._write(chunks)

    def _write(self, chunks: Sequence[bytes]) -> Sink:
        more = sum(map(len, chunks))
        self._desk.reserve(self._draft, more)
        self._held += more
        if self._sink is None:
            self._sink = self._desk.open_sink(self._draft)
        for chunk in chunks:
            self._hash.update(chunk)
        self._sink.append(chunks)
        return self._sink

    def _finish(self, chunks: Sequence[bytes], draft: Payload) -> None:
        with self._lock:
            if self._given_up:
                return
            sink = self._write(chunks)
            digest = self._hash.hexdigest()
            sink.finish(Record(media_type=draft.media_type, size=self._held, sha256=digest, origin=draft.origin))
            self._payload = msgspec.structs.replace(draft, size=self._held, sha256=digest)
            self._desk.enter(self._payload, self._held)
            self._held = 0

    def _give_up(self) -> None:
        with self._lock:
            self._given_up = True
            if self._payload is not None:
                self._desk.withdraw(self._payload)
            elif self._sink is not None:
                self._sink.abort()
            self._payload = self._sink = None
            self._desk.release(self._draft, self._held)
            self._held = 0


def _seen(job: asyncio.Future[None]) -> None:
    """A failure that nobody waits for any more is no news."""
    if not job.cancelled():
        job.exception()
