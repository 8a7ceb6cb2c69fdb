"""Large results, kept for their callers for a while. A caller is known by a text; what is another's is not there.

`open_store` makes one; it touches nothing until it is used. Whatever blocks runs in threads of the store.
"""

import asyncio
import contextlib
import functools
import logging
import threading
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Final, TypeVar

from polyplex.config.model import PayloadOptions
from polyplex.errors import PayloadError, PayloadMissing, PayloadRefused, PayloadStoreFailed
from polyplex.store.ledger import Ledger, has_expired
from polyplex.store.payload import MAX_MEDIA_TYPE, MAX_ORIGIN, Name, Payload, folder_of, id_of, lifetime_of, new_id
from polyplex.store.place import Place, Sink, Source
from polyplex.store.writer import PayloadWriter

log = logging.getLogger("polyplex.store")
QUICK_THREADS: Final = 8
SCAN_THREADS: Final = 6
CHUNK_BYTES: Final = 256 * 1024
DEFAULT_MEDIA_TYPE: Final = "application/octet-stream"
T = TypeVar("T")


class OpenPayload:
    """A payload that is being read: it is not cut off by its expiry, nor, in a folder, by its removal."""

    def __init__(self, payload: Payload, source: Source, pool: Executor) -> None:
        self.payload, self.source = payload, source
        self._pool = pool
        self._job: asyncio.Future[bytes] | None = None

    async def read(self, offset: int, length: int) -> bytes:
        """Bytes from `offset` on, fewer than `length` only at the end. For one task at a time."""
        loop = asyncio.get_running_loop()
        self._job = loop.run_in_executor(self._pool, self.source.read_at, offset, length)
        return await self._job

    async def chunks(self, size: int = CHUNK_BYTES) -> AsyncGenerator[bytes]:
        """All of it, in order."""
        for offset in range(0, self.payload.size, size):
            yield await self.read(offset, size)

    async def close(self) -> None:
        """Let go of it, once no thread reads it any more."""
        if self._job is not None and not self._job.done():
            await asyncio.wait([self._job])
        await asyncio.get_running_loop().run_in_executor(self._pool, self.source.close)


class PayloadStore:
    """Payloads in one place, with a lifetime and limits. `clock` gives seconds since 1970."""

    def __init__(self, place: Place, options: PayloadOptions, clock: Callable[[], float] = time.time) -> None:
        self.place, self.options = place, options
        self.pool = ThreadPoolExecutor(place.threads, "polyplex-payloads")
        self._quick = ThreadPoolExecutor(QUICK_THREADS, "polyplex-payload-readers")
        self._scans = ThreadPoolExecutor(SCAN_THREADS, "polyplex-payload-scans")
        self._clock = clock
        self._lock = threading.Lock()  # guards the ledger
        self._ledger = Ledger(options.max_bytes, options.caller_max_bytes)
        self._listed = False

    # -- writing
    def writer(self, owner: str, media_type: str = DEFAULT_MEDIA_TYPE, *, origin: str = "") -> PayloadWriter:
        """Begin a payload of a caller; nothing is written before the first lot is full, or the commit."""
        identifier = new_id(self._clock(), self.options.ttl_seconds)
        lifetime = lifetime_of(identifier)
        assert lifetime is not None  # noqa: S101 - it was just made
        draft = Payload(
            id=identifier,
            owner=owner,
            media_type=media_type[:MAX_MEDIA_TYPE],
            size=0,
            sha256="",
            created=lifetime.created,
            expires=lifetime.expires,
            origin=origin[:MAX_ORIGIN],
        )
        return PayloadWriter(self, draft)

    async def put(
        self, owner: str, data: bytes | memoryview, media_type: str = DEFAULT_MEDIA_TYPE, *, origin: str = ""
    ) -> Payload:
        """Keep what is in memory already. Raises `PayloadRefused`, `PayloadStoreFailed`."""
        async with self.writer(owner, media_type, origin=origin) as writer:
            await writer.write(data)
            return await writer.commit()

    # -- reading
    async def stat(self, owner: str, reference: str) -> Payload:
        """What is known of a payload, by its URI or id. Raises `PayloadMissing`, `PayloadStoreFailed`."""
        return await self.in_thread(self._stat, owner, reference)

    @contextlib.asynccontextmanager
    async def opened(self, owner: str, reference: str) -> AsyncGenerator[OpenPayload]:
        """A payload to read from. Raises `PayloadMissing`, the same for what is another's, `PayloadStoreFailed`."""
        opened = await self.in_thread(self._open, owner, reference)
        try:
            yield opened
        finally:
            await asyncio.shield(opened.close())

    async def read(self, owner: str, reference: str, work: Callable[[OpenPayload], T]) -> T:
        """What blocking work, which may take long, makes of a payload, in a thread; raises as `opened`."""
        return await self._run(self._scans, self._read, owner, reference, work)

    async def in_thread(self, work: Callable[..., T], *arguments: object) -> T:
        """Run short work in one of the store's threads."""
        return await self._run(self._quick, work, *arguments)

    async def _run(self, pool: Executor, work: Callable[..., T], *arguments: object) -> T:
        try:
            job = asyncio.get_running_loop().run_in_executor(pool, functools.partial(work, *arguments))
        except RuntimeError as error:
            raise PayloadStoreFailed("the payload store was closed") from error
        return await job

    async def presigned(self, payload: Payload, seconds: float) -> str | None:
        """An address at which anyone may fetch the payload for so long, at most as long as it lives; None for none."""
        if payload.expires is not None:
            seconds = min(seconds, payload.expires - self._clock())
            if seconds <= 0:
                raise self._missing()
        return await self.in_thread(self.place.sign, payload.name, seconds)

    def external_uri(self, payload: Payload) -> str | None:
        """The bucket's own URI of a payload (`s3://...`); None where the store has none."""
        return self.place.uri(payload.name)

    async def has_room(self, size: int) -> bool:
        """False where it is known that a payload of so many bytes cannot be kept: it is too large, or the disk full."""
        free = await self.in_thread(self.place.free)
        return size <= self._ledger.caller_max_bytes and (free is None or size <= free)

    # -- removing
    async def delete(self, owner: str, reference: str) -> bool:
        """Remove a payload of a caller; whether there was one."""
        try:
            payload = await self.stat(owner, reference)
        except PayloadMissing:
            return False
        await self.in_thread(self._remove, [payload.name])
        return True

    async def sweep(self) -> int:
        """Remove what has expired, what is over the limits, and what killed writers left; how many files or objects."""
        return await self.in_thread(self._sweep)

    async def keep_swept(self) -> None:
        """Sweep now and then, until it is cancelled. Failures are logged, and the next time tried again."""
        while True:
            try:
                removed = await self.sweep()
                log.debug("%s: %d swept", self.place.title, removed)
            except PayloadStoreFailed as error:
                log.warning("%s", error)
            await asyncio.sleep(self.place.sweep_seconds)

    async def used_bytes(self, owner: str | None = None) -> int:
        """Bytes kept for a caller, or in all, by the last listing and what was written since."""
        return await self.in_thread(self._used, owner)

    async def close(self) -> None:
        """Wait for what is being written, then let go of the place."""
        await asyncio.to_thread(self._close)

    # -- in threads
    def _open(self, owner: str, reference: str) -> OpenPayload:
        identifier = id_of(reference)
        lifetime = None if identifier is None else lifetime_of(identifier)
        if identifier is None or lifetime is None:
            raise self._missing()
        name = Name(folder_of(owner), identifier)
        if has_expired(name, self._clock()):
            raise self._missing()
        source = self.place.open(name)
        if source is None:
            raise self._missing()
        record = source.record
        payload = Payload(
            id=identifier,
            owner=owner,
            media_type=record.media_type,
            size=record.size,
            sha256=record.sha256,
            created=lifetime.created,
            expires=lifetime.expires,
            origin=record.origin,
        )
        return OpenPayload(payload, source, self._quick)

    def _stat(self, owner: str, reference: str) -> Payload:
        return self._read(owner, reference, lambda opened: opened.payload)

    def _read(self, owner: str, reference: str, work: Callable[[OpenPayload], T]) -> T:
        opened = self._open(owner, reference)
        try:
            return work(opened)
        finally:
            opened.source.close()

    def _missing(self) -> PayloadMissing:
        ttl = self.options.ttl_seconds
        kept = "" if ttl is None else f" Results are kept for {_duration(ttl)}."
        return PayloadMissing(
            "There is no such payload: it has expired, was removed to make room, or never existed for this caller."
            f"{kept} Call the tool again to get a new one."
        )

    def _sweep(self) -> int:
        removed = self.place.clean(self._clock())
        with self._lock:
            self._list()
            names = self._ledger.expired(self._clock())
            for name in names:
                self._ledger.strike(name)
            if self._ledger.over:
                names += self._ledger.trim()
        self._remove(names)
        return removed + len(names)

    def _used(self, owner: str | None) -> int:
        with self._lock:
            if not self._listed:
                self._list()
            return self._ledger.total if owner is None else self._ledger.used_by(folder_of(owner))

    def _list(self) -> None:
        self._ledger.load(self.place.kept())
        self._listed = True

    def _remove(self, names: Sequence[Name]) -> None:
        for name in names:
            self.place.delete(name)
        with self._lock:
            for name in names:
                self._ledger.strike(name)

    def _close(self) -> None:
        self.pool.shutdown(wait=True)
        self._quick.shutdown(wait=True)
        self._scans.shutdown(wait=True)
        self.place.close()

    # -- for writers
    def check(self, size: int) -> None:
        """Raises `PayloadRefused` for a payload of a size that may never be kept."""
        limit = self._ledger.caller_max_bytes
        if size > limit:
            key = "payloads.maxBytes" if limit == self._ledger.max_bytes else "payloads.callerMaxBytes"
            raise PayloadRefused(f"the result is larger than the {limit:,} bytes that may be kept; raise {key}")

    def reserve(self, draft: Payload, more: int) -> None:
        """Hold room for so many bytes more; the oldest make room. Raises `PayloadRefused`, `PayloadStoreFailed`."""
        folder = folder_of(draft.owner)
        with self._lock:
            if not self._listed:
                self._list()
            self._ledger.reserve(folder, more)
            try:
                names = self._ledger.make_room(folder)
            except PayloadRefused:
                self._ledger.release(folder, more)
                raise
        try:
            for name in names:
                self.place.delete(name)
        except PayloadStoreFailed:
            self.release(draft, more)
            raise

    def release(self, draft: Payload, held: int) -> None:
        """What was held is free again."""
        with self._lock:
            self._ledger.release(folder_of(draft.owner), held)

    def open_sink(self, draft: Payload) -> Sink:
        """Begin to write."""
        return self.place.create(draft.name, draft.media_type)

    def enter(self, payload: Payload, held: int) -> None:
        """The payload is complete; what was held is what it takes."""
        with self._lock:
            self._ledger.release(folder_of(payload.owner), held)
            self._ledger.enter(payload.name, held)

    def withdraw(self, payload: Payload) -> None:
        """Delete a payload that nobody was told of; what cannot be deleted expires."""
        try:
            self._remove([payload.name])
        except PayloadError as error:
            log.info("a payload that nobody waits for stays until it expires: %s", error)


def _duration(seconds: float) -> str:
    for unit, length in (("day", 86400), ("hour", 3600), ("minute", 60)):
        if seconds >= 2 * length or (seconds >= length and seconds % length == 0):
            count = round(seconds / length)
            return f"{count} {unit}{'s' if count != 1 else ''}"
    return f"{seconds:g} seconds"
