"""Payloads as files: what is in the folder, who may read it, and what happens when the disk or a file fails."""

import asyncio
import errno
import fcntl
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from polyplex.config.model import PayloadOptions
from polyplex.errors import ConfigError, PayloadMissing, PayloadRefused, PayloadStoreFailed
from polyplex.store import local_files
from polyplex.store.local_files import LocalFiles
from polyplex.store.open_store import open_store
from polyplex.store.payload import Payload
from polyplex.store.payload_store import PayloadStore
from polyplex.store.writer import FLUSH_BYTES

MIB = 1 << 20


class Clock:
    """The time, as far as the store knows."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


def store_in(folder: Path, clock: Clock | None = None, **options: Any) -> PayloadStore:
    return open_store(PayloadOptions(store=f"file:{folder}", **options), folder, clock or Clock())


def path_of(store: PayloadStore, payload: Payload) -> Path:
    assert isinstance(store.place, LocalFiles)
    return store.place.path(payload.name)


def files_in(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


async def content(store: PayloadStore, owner: str, uri: str) -> bytes:
    async with store.opened(owner, uri) as opened:
        return b"".join([chunk async for chunk in opened.chunks(100_000)])


async def test_what_was_written_in_chunks_is_read_whole(tmp_path: Path) -> None:
    store = store_in(tmp_path / "kept")
    chunks = [os.urandom(size) for size in (1, 0, FLUSH_BYTES - 1, 3 * FLUSH_BYTES, 70_000)]
    async with store.writer("me", "text/plain", origin="docs__search") as writer:
        for chunk in chunks:
            await writer.write(memoryview(bytearray(chunk)))
        payload = await writer.commit("text/csv")
    assert await content(store, "me", payload.uri) == b"".join(chunks)
    assert await store.stat("me", payload.id) == payload
    assert (payload.media_type, payload.origin, payload.size) == ("text/csv", "docs__search", writer.size)
    await store.close()
    again = store_in(tmp_path / "kept")
    assert await again.stat("me", payload.uri) == payload
    await again.close()


async def test_files_are_for_their_user_alone_and_marked_when_the_disk_has_them(tmp_path: Path) -> None:
    store = store_in(tmp_path / "a" / "kept")
    payload = await store.put("me", b"secret")
    await store.close()
    path = path_of(store, payload)
    assert stat.S_IMODE(path.stat().st_mode) == 0o400
    assert stat.S_IMODE(path.parent.stat().st_mode) == stat.S_IMODE(path.parent.parent.stat().st_mode) == 0o700
    assert "me" not in path.parts


async def test_anothers_payload_is_as_missing_as_one_that_never_was(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    payload = await store.put("me", b"mine")
    never = await store.put("me", b"gone")
    assert await store.delete("me", never.uri)
    said: set[str] = set()
    for owner, reference in (("you", payload.uri), ("", payload.id), ("me", never.uri), ("me", "../../etc/passwd")):
        with pytest.raises(PayloadMissing) as caught:
            await store.stat(owner, reference)
        said.add(str(caught.value))
        assert not await store.delete(owner, reference)
    assert len(said) == 1
    assert "1 day" in said.pop()
    assert await content(store, "me", payload.uri) == b"mine"
    await store.close()


async def test_an_expired_payload_is_gone_at_once_and_swept_later(tmp_path: Path) -> None:
    clock = Clock()
    store = store_in(tmp_path, clock, ttl_seconds=90.0)
    payload = await store.put("me", b"old")
    async with store.opened("me", payload.uri) as opened:
        clock.now += 90.02
        assert await opened.read(0, 9) == b"old"  # who reads it already is not cut off
        with pytest.raises(PayloadMissing):
            await store.stat("me", payload.uri)
        assert await store.sweep() == 1
        assert await opened.read(1, 9) == b"ld"
    assert files_in(tmp_path) == []
    assert not path_of(store, payload).parent.exists()  # nor the folder of a caller without payloads
    await store.close()


async def test_the_oldest_make_room_and_the_callers_own_first(tmp_path: Path) -> None:
    clock = Clock()
    store = store_in(tmp_path, clock, max_bytes=100, caller_max_bytes=60)
    payloads: list[Payload] = []
    for owner in ("you", "me", "me", "me"):
        payloads.append(await store.put(owner, b"x" * 25))
        clock.now += 1
    left = {path.name for path in files_in(tmp_path)}
    assert left == {payloads[0].id, payloads[2].id, payloads[3].id}
    await store.put("they", b"x" * 50)
    assert {path.name for path in files_in(tmp_path)} >= {payloads[2].id, payloads[3].id}
    assert payloads[0].id not in {path.name for path in files_in(tmp_path)}
    assert await store.used_bytes("me") == 50
    await store.close()


async def test_a_payload_that_can_never_fit_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    store = store_in(tmp_path, max_bytes=10 * MIB, caller_max_bytes=3 * MIB)
    kept = await store.put("me", b"small")
    writer = store.writer("me")
    with pytest.raises(PayloadRefused, match=r"3,145,728 bytes.*payloads\.callerMaxBytes"):
        for _ in range(4):
            await writer.write(bytes(MIB))
    await store.close()
    again = store_in(tmp_path)
    assert all(not path.name.endswith(".part") for path in files_in(tmp_path))
    with pytest.raises(PayloadMissing):  # it made room before it was known how large it would be
        await again.stat("me", kept.uri)
    await again.close()


async def test_nothing_is_left_of_what_was_not_committed(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    with pytest.raises(KeyError):
        async with store.writer("me") as writer:
            await writer.write(bytes(3 * MIB))
            raise KeyError
    async with store.writer("me") as writer:
        await writer.write(b"little")
    with pytest.raises(RuntimeError):
        await writer.write(b"more")
    assert files_in(tmp_path) == []
    assert await store.used_bytes() == 0
    await store.close()


async def test_a_cancelled_commit_leaves_nothing(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    for _ in range(20):
        writer = store.writer("me")
        await writer.write(bytes(100_000))
        task = asyncio.get_running_loop().create_task(writer.commit())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert files_in(tmp_path) == []
    assert await store.used_bytes() == 0
    await store.close()


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EIO])
@pytest.mark.parametrize("size", [1000, 3 * MIB])
async def test_a_full_disk_is_told_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int, size: int
) -> None:
    store = store_in(tmp_path)

    def write(descriptor: int, data: memoryview) -> int:
        raise OSError(code, os.strerror(code))

    with monkeypatch.context() as patch:
        patch.setattr(local_files.os, "write", write)
        with pytest.raises(PayloadStoreFailed, match="no room" if code != errno.EIO else "failed") as caught:
            await store.put("me", bytes(size))
    assert str(tmp_path) in str(caught.value)
    assert files_in(tmp_path) == []
    assert await store.used_bytes() == 0
    assert (await store.put("me", b"later")).size == 5
    await store.close()


async def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(ConfigError, match=r"payloads\.store"):
        store_in(tmp_path / "file")
    store = store_in(tmp_path / "file" / "below")
    with pytest.raises(PayloadStoreFailed, match="below"):
        await store.put("me", b"x")
    await store.close()


@pytest.mark.parametrize("harm", ["short", "long", "record", "empty"])
async def test_a_damaged_file_counts_as_missing(tmp_path: Path, harm: str) -> None:
    store = store_in(tmp_path)
    payload = await store.put("me", bytes(5000))
    await store.close()
    path = path_of(store, payload)
    path.chmod(0o600)
    whole = path.read_bytes()
    at = whole.index(b'"size"')
    path.write_bytes(
        {"short": whole[:-1], "long": whole[:99] + whole, "record": whole[:at] + b"?" + whole[at + 1 :], "empty": b""}[
            harm
        ]
    )
    again = store_in(tmp_path)
    with pytest.raises(PayloadMissing):
        await again.stat("me", payload.uri)
    await again.close()


async def test_bytes_that_a_power_cut_took_are_noticed(tmp_path: Path) -> None:
    """A file that the disk may not have had in full is compared to its hash, once; then it is marked."""
    store = store_in(tmp_path)
    whole, torn = await store.put("me", bytes(9000)), await store.put("me", bytes(9000))
    await store.close()
    for payload in (whole, torn):
        path_of(store, payload).chmod(0o600)
    with path_of(store, torn).open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff")
    again = store_in(tmp_path)
    assert await content(again, "me", whole.uri) == bytes(9000)
    with pytest.raises(PayloadMissing):
        await again.stat("me", torn.uri)
    await again.close()
    assert stat.S_IMODE(path_of(again, whole).stat().st_mode) == 0o400


async def test_links_are_not_followed(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    payload = await store.put("me", b"mine")
    path = path_of(store, payload)
    target = tmp_path / "elsewhere"
    path.rename(target)
    path.symlink_to(target)
    with pytest.raises(PayloadStoreFailed):
        await store.stat("me", payload.uri)
    await store.close()


async def test_the_sweeper_leaves_what_is_being_written_alone(tmp_path: Path) -> None:
    """Two stores in one folder, as two processes have them."""
    one, other = store_in(tmp_path), store_in(tmp_path)
    left = one.writer("me")
    async with one.writer("me") as writer:
        await writer.write(bytes(2 * MIB))
        await left.write(bytes(2 * MIB))
        await writer._landed()  # pyright: ignore[reportPrivateUsage]
        await left._landed()  # pyright: ignore[reportPrivateUsage]
        assert await other.sweep() == 0
        (part,) = [path for path in files_in(tmp_path) if path.name.startswith(left._draft.id)]  # pyright: ignore[reportPrivateUsage]
        abandoned = part.with_name(part.name.replace(left._draft.id, writer._draft.id[::-1]))  # pyright: ignore[reportPrivateUsage]
        abandoned.write_bytes(b"of a process that is no more")
        assert await other.sweep() == 1
        assert not abandoned.exists()
        payload = await writer.commit()
    await left.abort()
    assert await content(other, "me", payload.uri) == bytes(2 * MIB)
    assert await other.used_bytes() == 0  # by its last listing
    assert await other.sweep() == 0
    assert await other.used_bytes() >= 2 * MIB
    await one.close()
    await other.close()


async def test_a_part_that_is_swept_before_it_is_locked_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = store_in(tmp_path)
    lock, swept = fcntl.flock, list[str]()

    def flock(descriptor: int, operation: int) -> None:
        if not swept and not operation & fcntl.LOCK_NB:
            (part,) = files_in(tmp_path)
            swept.append(part.name)
            part.unlink()
            part.parent.rmdir()
        lock(descriptor, operation)

    monkeypatch.setattr(local_files.fcntl, "flock", flock)
    payload = await store.put("me", b"kept")
    assert swept == [payload.id + ".part"]
    assert await content(store, "me", payload.uri) == b"kept"
    await store.close()


async def test_room_that_cannot_be_made_is_not_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = store_in(tmp_path, max_bytes=100)
    await store.put("me", bytes(80))
    with monkeypatch.context() as patch:
        patch.setattr(LocalFiles, "delete", raising(PayloadStoreFailed("the folder is gone")))
        with pytest.raises(PayloadStoreFailed):
            await store.put("me", bytes(80))
    assert (await store.put("me", bytes(100))).size == 100
    await store.close()


async def test_the_sweeper_goes_on_after_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock, naps = Clock(), asyncio.Semaphore(0)
    store = store_in(tmp_path, clock, ttl_seconds=1.0)
    await store.put("me", b"x")
    clock.now += 2
    swept, slept = asyncio.Event(), list[float]()

    async def nap(seconds: float) -> None:
        slept.append(seconds)
        swept.set()
        await naps.acquire()

    with monkeypatch.context() as patch:
        patch.setattr("polyplex.store.payload_store.asyncio.sleep", nap)
        patch.setattr(LocalFiles, "clean", raising(PayloadStoreFailed("the disk is away")))
        task = asyncio.get_running_loop().create_task(store.keep_swept())
        await swept.wait()
        swept.clear()
        assert len(files_in(tmp_path)) == 1
        patch.setattr(LocalFiles, "clean", lambda self, now: 0)  # pyright: ignore[reportUnknownLambdaType, reportUnknownArgumentType]
        naps.release()
        await swept.wait()
        assert files_in(tmp_path) == []
        assert slept == [60.0, 60.0]
        task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await store.close()


def raising(error: Exception) -> Callable[..., None]:
    """What raises, whatever it is called with."""

    def fail(*_: object) -> None:
        raise error

    return fail


async def test_a_closed_store_says_so(tmp_path: Path) -> None:
    store = store_in(tmp_path)
    payload = await store.put("me", b"x")
    await store.close()
    with pytest.raises(PayloadStoreFailed, match="closed"):
        await store.stat("me", payload.uri)
    with pytest.raises(PayloadStoreFailed, match="closed"):
        await store.put("me", b"x")


@pytest.mark.parametrize(
    "address",
    [
        "s3:bucket",
        "ftp://x/y",
        "https://user:hunter2@x/y",
        "file:",
        "file://host/x",
        "s3://",
        "s3://k:hunter2@b/p",
        "bucket",
    ],
)
def test_addresses_that_are_none_are_refused_without_their_secrets(tmp_path: Path, address: str) -> None:
    with pytest.raises(ConfigError, match=r"payloads\.store") as caught:
        open_store(PayloadOptions(store=address), tmp_path)
    assert "hunter2" not in str(caught.value)


def test_options_that_are_none_are_named_without_their_values(tmp_path: Path) -> None:
    pytest.importorskip("obstore")
    for options in ({"no_such_setting": "hunter2"}, {"endpoint": "http://x", "timeout": "hunter2"}):
        with pytest.raises(ConfigError) as caught:
            open_store(PayloadOptions(store="s3://bucket/x", store_options=options), tmp_path)
        assert "hunter2" not in str(caught.value)
        assert "storeOptions" in str(caught.value)


def test_object_stores_need_their_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "obstore", None)
    with pytest.raises(ConfigError, match=r"pip install 'polyplex\[cloud\]'"):
        open_store(PayloadOptions(store="gs://bucket"), tmp_path)
