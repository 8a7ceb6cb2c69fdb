"""The same tests over a folder and over real object stores: SeaweedFS and moto (S3), fake-gcs-server, Azurite."""

import asyncio
import gc
import hashlib
import os
import urllib.error
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from polyplex.config.model import PayloadOptions
from polyplex.errors import PayloadMissing, PayloadRefused, PayloadStoreFailed
from polyplex.store.object_store import ABANDONED_SECONDS, PART_BYTES, ObjectBucket
from polyplex.store.open_store import open_store
from polyplex.store.payload_store import PayloadStore
from polyplex.store.reading.reader import PayloadReader
from tests.stores.servers import Server, fetch, free_ports

MIB = 1 << 20
Options = Callable[..., PayloadOptions]
LARGE = os.urandom(MIB) * 20


class Clock:
    """The time, as far as the store knows."""

    now = 1_900_000_000.0

    def __call__(self) -> float:
        return self.now


@asynccontextmanager
async def opened_store(options: PayloadOptions, clock: Clock | None = None) -> AsyncGenerator[PayloadStore]:
    store = open_store(options, Path("/nowhere"), clock or Clock())
    try:
        yield store
    finally:
        for kept in store.place.kept():
            store.place.delete(kept.name)
        await store.close()


async def write(store: PayloadStore, owner: str, data: bytes, media_type: str = "text/plain") -> Any:
    async with store.writer(owner, media_type, origin="docs__search") as writer:
        for start in range(0, len(data), 700_000):
            await writer.write(data[start : start + 700_000])
        return await writer.commit()


@pytest.mark.parametrize("size", [0, 1, 100_000, PART_BYTES, 20 * MIB])
async def test_what_goes_in_comes_out(options: Options, size: int) -> None:
    data = LARGE[:size]
    async with opened_store(options()) as store:
        payload = await write(store, "me", data, "text/csv; charset=utf-8")
        assert payload.sha256 == hashlib.sha256(data).hexdigest()
        assert await store.stat("me", payload.uri) == payload
        async with store.opened("me", payload.uri) as opened:
            assert b"".join([chunk async for chunk in opened.chunks(3 * MIB)]) == data
            assert await opened.read(size // 2, 1000) == data[size // 2 :][:1000]
            assert await opened.read(size + 5, 1000) == b""
        assert [kept.name for kept in store.place.kept()] == [payload.name]


async def test_parts_are_read(options: Options) -> None:
    records = [{"id": number, "text": f"line {number} é"} for number in range(30_000)]
    content = b"\n".join(map(msgspec.json.encode, records)) + b"\n"
    async with opened_store(options()) as store:
        reader = PayloadReader(store)
        uri = (await write(store, "me", content, "application/x-ndjson")).uri
        page = await reader.page("me", uri, 200, page_size=100)
        assert [msgspec.json.decode(line) for line in page.text.splitlines()] == records[19_900:20_000]
        lines = await reader.lines("me", uri, first=29_999, count=5)
        assert lines.text.encode() == b"".join(content.splitlines(keepends=True)[29_998:])
        found = await reader.grep("me", uri, '"id":2500.,', regex=True)
        assert [match.line for match in found.matches] == list(range(25_001, 25_011))
        part = await reader.json_path("me", uri, "$[-1].id")
        assert [node.raw for node in part.nodes] == [b"29999"]
        text = await reader.text("me", uri, offset=-20)
        assert text.text.encode() == content[text.offset :]


async def test_callers_do_not_see_each_other(options: Options) -> None:
    async with opened_store(options()) as store:
        payload = await write(store, "me", b"mine")
        for owner, reference in (
            ("you", payload.uri),
            ("", payload.uri),
            ("me", payload.uri[:-1] + "_"),
            ("me", "../x"),
        ):
            with pytest.raises(PayloadMissing):
                await store.stat(owner, reference)
            assert not await store.delete(owner, reference)
        assert await store.stat("me", payload.uri) == payload
        assert await store.delete("me", payload.uri)
        assert not await store.delete("me", payload.uri)


async def test_what_has_expired_is_gone_and_swept(options: Options) -> None:
    clock = Clock()
    async with opened_store(options(ttl_seconds=60.0), clock) as store:
        old = await write(store, "me", b"old")
        clock.now += 30
        young = await write(store, "you", b"young")
        clock.now += 30.02
        with pytest.raises(PayloadMissing):
            await store.stat("me", old.uri)
        with pytest.raises(PayloadMissing):
            await store.presigned(old, 60)
        assert await store.sweep() == 1
        assert [kept.name for kept in store.place.kept()] == [young.name]
        assert await store.used_bytes("me") == 0
        assert (await store.stat("you", young.uri)).size == 5


async def test_the_oldest_make_room(options: Options) -> None:
    clock = Clock()
    async with opened_store(options(max_bytes=1000), clock) as store:
        first = await write(store, "me", bytes(600))
        clock.now += 1
        second = await write(store, "you", bytes(600))
        assert [kept.name for kept in store.place.kept()] == [second.name]
        with pytest.raises(PayloadMissing):
            await store.stat("me", first.uri)
        with pytest.raises(PayloadRefused, match=r"payloads\.maxBytes"):
            await write(store, "me", bytes(1001))
        assert [kept.name for kept in store.place.kept()] == [second.name]


@pytest.mark.parametrize("size", [1000, 20 * MIB])
async def test_what_is_given_up_leaves_nothing(options: Options, place: Server, size: int) -> None:
    async with opened_store(options()) as store:
        writer = store.writer("me")
        for start in range(0, size, MIB):
            await writer.write(LARGE[start : start + min(MIB, size)])
        await writer.abort()
        assert store.place.kept() == []
        if isinstance(store.place, ObjectBucket):
            assert store.place._listing() == {}  # pyright: ignore[reportPrivateUsage]
        if place.name == "moto":
            body, _ = fetch(f"{place.endpoint}/payloads?uploads")
            assert b"<UploadId>" not in body


async def test_anyone_may_fetch_a_presigned_address(options: Options, place: Server) -> None:
    async with opened_store(options()) as store:
        payload = await write(store, "me", b"a,b\n1,2\n", "text/csv")
        address = await store.presigned(payload, 60)
        if place.name == "folder":
            assert address is None
            assert store.external_uri(payload) is None
            return
        assert address is not None
        body, media_type = await asyncio.to_thread(fetch, address)
        assert (body, media_type) == (b"a,b\n1,2\n", "text/csv")
        assert store.external_uri(payload) == f"{place.address}/{payload.name.folder}/{payload.id}"
        if place.name in ("seaweedfs", "azurite"):  # the others check no signatures
            with pytest.raises(urllib.error.HTTPError) as caught:
                await asyncio.to_thread(fetch, address.partition("?")[0])
            caught.value.close()


async def test_an_upload_that_was_killed_is_not_seen_and_cleaned_later(options: Options, place: Server) -> None:
    if place.name == "folder":
        pytest.skip("tests/process/test_payload_kills.py does this for folders")
    async with opened_store(options()) as store:
        payload = await write(store, "me", b"whole")
        bucket = store.place
        assert isinstance(bucket, ObjectBucket)
        half = store.writer("me")._draft.name  # pyright: ignore[reportPrivateUsage]
        bucket.put(bucket.key(half), b"bytes without a record", "text/plain")
        with pytest.raises(PayloadMissing):
            await store.stat("me", half.id)
        assert [kept.name for kept in bucket.kept()] == [payload.name]
        changed = max(changed for _, changed, _ in bucket._listing().values())  # pyright: ignore[reportPrivateUsage]
        assert bucket.clean(changed + ABANDONED_SECONDS - 60) == 0
        assert bucket.clean(changed + ABANDONED_SECONDS + 60) == 1
        assert set(bucket._listing()) == {payload.name}  # pyright: ignore[reportPrivateUsage]


async def test_nothing_is_written_over(options: Options, place: Server) -> None:
    if place.name == "folder":
        pytest.skip("files are made with O_EXCL")
    async with opened_store(options()) as store:
        payload = await write(store, "me", b"first")
        bucket = store.place
        assert isinstance(bucket, ObjectBucket)
        with pytest.raises(PayloadStoreFailed):
            bucket.put(bucket.key(payload.name), b"second", "text/plain", create=True)
        async with store.opened("me", payload.uri) as opened:
            assert await opened.read(0, 10) == b"first"


async def test_callers_write_and_read_at_once(options: Options) -> None:
    async with opened_store(options()) as store:
        contents = {f"caller {number}": os.urandom(40_000 + number) for number in range(24)}
        payloads = await asyncio.gather(*(write(store, owner, data) for owner, data in contents.items()))

        async def read(owner: str, uri: str) -> bytes:
            async with store.opened(owner, uri) as opened:
                return await opened.read(0, MIB)

        read_back = await asyncio.gather(*(read(payload.owner, payload.uri) for payload in payloads))
        assert read_back == list(contents.values())


async def test_a_store_that_is_down_is_told_without_secrets(place: Server) -> None:
    if place.name == "folder":
        pytest.skip("a folder is not down")
    (port,) = free_ports(1)
    down = {key: value.replace(place.endpoint, f"http://127.0.0.1:{port}") for key, value in place.options.items()}
    options = PayloadOptions(store=place.address, store_options=down)
    store = open_store(options, Path("/nowhere"))
    with pytest.raises(PayloadStoreFailed) as caught:
        await store.put("me", b"x")
    assert place.address.split("/")[2] in str(caught.value)
    for key, value in place.options.items():
        if key not in ("endpoint", "base_url", "region", "account_name"):
            assert value not in str(caught.value)
            assert value not in repr(options)
    await store.close()
    gc.collect()  # no failure is left that nobody asked for
