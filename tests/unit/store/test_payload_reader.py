"""The readers over a store: what is refused, what is bounded, and how long it may take."""

import asyncio
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from polyplex.config.model import PayloadOptions
from polyplex.errors import PayloadMissing, PayloadQueryError
from polyplex.store.local_files import FileSource
from polyplex.store.open_store import open_store
from polyplex.store.payload_store import PayloadStore
from polyplex.store.reading import window
from polyplex.store.reading.reader import PayloadReader

JSON = (
    b'{"orders":['
    + b",".join(b'{"id":%d,"state":"%s"}' % (n, b"open" if n % 3 else b"done") for n in range(900))
    + b"]}"
)
Read = Callable[[PayloadReader, str, str], Awaitable[Any]]


@asynccontextmanager
async def reading(folder: Path, seconds: float = 60) -> AsyncGenerator[tuple[PayloadStore, PayloadReader]]:
    store = open_store(PayloadOptions(), folder)
    yield store, PayloadReader(store, seconds)
    await store.close()


async def test_a_path_through_what_is_no_json_says_so(tmp_path: Path) -> None:
    async with reading(tmp_path) as (store, reader):
        table = await store.put("me", b"a,b\n1,2\n3,4\n", "text/csv")
        with pytest.raises(PayloadQueryError, match="it is text/csv, no JSON; read it by page"):
            await reader.json_path("me", table.uri, "$.a")
        empty = await store.put("me", b"{}", "application/json")
        assert (await reader.json_path("me", empty.uri, "$.a")).nodes == []


READS: list[tuple[str, Read]] = [
    ("bytes", lambda reader, owner, uri: reader.bytes(owner, uri)),
    ("text", lambda reader, owner, uri: reader.text(owner, uri)),
    ("lines", lambda reader, owner, uri: reader.lines(owner, uri)),
    ("grep", lambda reader, owner, uri: reader.grep(owner, uri, "a")),
    ("json_path", lambda reader, owner, uri: reader.json_path(owner, uri, "$.a")),
    ("page", lambda reader, owner, uri: reader.page(owner, uri)),
]
WRONG: list[tuple[str, Read, str]] = [
    ("an offset behind the end", lambda r, o, u: r.bytes(o, u, offset=10**7), "behind the end"),
    ("no bytes", lambda r, o, u: r.bytes(o, u, limit=0), "limit must be from 1"),
    ("too many bytes", lambda r, o, u: r.text(o, u, limit=1 << 40), "limit must be from 1"),
    ("line 0", lambda r, o, u: r.lines(o, u, first=0), "counted from 1"),
    ("a line behind the end", lambda r, o, u: r.lines(o, u, first=9), "there are 1 lines"),
    ("no pattern", lambda r, o, u: r.grep(o, u, ""), "1 to 1000 characters"),
    ("a pattern of two lines", lambda r, o, u: r.grep(o, u, "a\nb"), "all in one line"),
    ("no expression", lambda r, o, u: r.grep(o, u, "(", regex=True), "no regular expression"),
    ("look-around", lambda r, o, u: r.grep(o, u, "(?=a)b", regex=True), "look-around"),
    ("a huge expression", lambda r, o, u: r.grep(o, u, r"(\w{900}){900}", regex=True), "must not grow too large"),
    ("much context", lambda r, o, u: r.grep(o, u, "a", context=99), "context must be from 0 to 20"),
    ("a cursor of another kind", lambda r, o, u: r.grep(o, u, "a", cursor="next"), "without it"),
    ("a cursor behind the end", lambda r, o, u: r.grep(o, u, "a", cursor="99999999.1"), "without it"),
    ("no path", lambda r, o, u: r.json_path(o, u, "$.a["), "wrong at character 5"),
    ("a long path", lambda r, o, u: r.json_path(o, u, "$" + ".a" * 999), "1000 characters"),
    ("a page behind the end", lambda r, o, u: r.page(o, u, 99), "there are 900 records"),
    ("page 0", lambda r, o, u: r.page(o, u, 0), "page must be from 1"),
    ("a kind that is none", lambda r, o, u: r.page(o, u, kind="xml"), "json, jsonl, csv, tsv, lines"),  # pyright: ignore[reportArgumentType]
]


@pytest.mark.parametrize(("name", "read"), READS, ids=[name for name, _ in READS])
async def test_nothing_is_read_for_another_caller(tmp_path: Path, name: str, read: Read) -> None:
    async with reading(tmp_path) as (store, reader):
        payload = await store.put("me", JSON, "application/json")
        await read(reader, "me", payload.uri)
        with pytest.raises(PayloadMissing):
            await read(reader, "you", payload.uri)


@pytest.mark.parametrize(("name", "read"), READS, ids=[name for name, _ in READS])
@pytest.mark.parametrize("content", [b"", b"\x00\xff\xfe" * 3000, b"[]", b"\xef\xbb\xbf", "é".encode()[:1]])
async def test_any_content_is_read_or_refused(tmp_path: Path, name: str, read: Read, content: bytes) -> None:
    async with reading(tmp_path) as (store, reader):
        for media_type in ("application/octet-stream", "application/json", "text/csv", "image/png"):
            payload = await store.put("me", content, media_type)
            try:
                part = await read(reader, "me", payload.uri)
            except PayloadQueryError as error:
                assert name in ("json_path", "page"), error
            else:
                assert part.size == len(content)


@pytest.mark.parametrize(("what", "read", "said"), WRONG, ids=[what for what, _, _ in WRONG])
async def test_what_cannot_be_answered_says_why(tmp_path: Path, what: str, read: Read, said: str) -> None:
    async with reading(tmp_path) as (store, reader):
        payload = await store.put("me", JSON, "application/json")
        with pytest.raises(PayloadQueryError) as caught:
            await read(reader, "me", payload.uri)
        assert said in str(caught.value)


async def test_every_part_is_bounded(tmp_path: Path) -> None:
    async with reading(tmp_path) as (store, reader):
        uri = (await store.put("me", JSON, "application/json")).uri
        text = await reader.text("me", uri, offset=-100, limit=30)
        assert (text.text, text.next_offset) == (JSON[-100:-70].decode(), len(JSON) - 70)
        page = await reader.page("me", uri, 2, page_size=400, max_bytes=300)
        assert len(page.text) <= 300 and page.cut
        assert (page.first, page.next_record, page.total, page.pages) == (400, 400 + page.count, 900, 3)
        nodes = await reader.json_path("me", uri, "orders[?@.state=='done'].id", max_bytes=20)
        assert [node.raw for node in nodes.nodes] == [b"%d" % number for number in range(0, 36, 3)]
        more = await reader.json_path("me", uri, "orders[?@.state=='done'].id", skip=nodes.next_skip or 0, limit=1)
        assert [node.path for node in more.nodes] == ["$['orders'][36]['id']"]
        (whole,) = (await reader.json_path("me", uri, "$", max_bytes=50)).nodes
        assert (whole.cut, whole.raw, whole.end) == (True, JSON[:50], len(JSON))


async def test_grep_gives_what_it_has_when_the_time_is_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And goes on from there; what cannot go on says so."""
    content = b"".join(b"line %d\n" % number for number in range(100_000))
    blocks = 0

    class Clock:
        """Each block takes half of the time there is."""

        @staticmethod
        def monotonic() -> float:
            return blocks * 30.0

    at = FileSource.read_at

    def read_at(self: FileSource, offset: int, length: int) -> bytes:
        nonlocal blocks
        blocks += 1
        return at(self, offset, length)

    monkeypatch.setattr(FileSource, "read_at", read_at)
    monkeypatch.setattr(window, "time", Clock)
    async with reading(tmp_path, 60) as (store, reader):
        uri = (await store.put("me", content, "text/plain")).uri
        found: list[int] = []
        cursor, parts = None, 0
        while parts == 0 or cursor is not None:
            part = await reader.grep("me", uri, "999", cursor=cursor, max_matches=10_000)
            found += [match.line for match in part.matches]
            cursor, parts = part.next_cursor, parts + 1
        assert found == [number + 1 for number in range(100_000) if "999" in str(number)]
        assert parts >= 2
        with pytest.raises(PayloadQueryError, match="takes too long"):
            await reader.json_path("me", (await store.put("me", b"[" + b" " * (1 << 20) + b"]")).uri, "$[1]")


async def test_lines_that_were_not_counted_in_time_are_counted_by_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = b"".join(b"line %d\n" % number for number in range(100_000))
    async with reading(tmp_path, 60) as (store, reader):
        uri = (await store.put("me", content, "text/plain")).uri
        monkeypatch.setattr(window.Watch, "over", property(lambda self: self._stopped.is_set()))  # pyright: ignore[reportUnknownLambdaType, reportUnknownMemberType, reportUnknownArgumentType]
        counted = 0

        def check(self: window.Watch) -> None:
            nonlocal counted
            counted += 1
            if counted == 3:
                raise PayloadQueryError("takes too long")

        monkeypatch.setattr(window.Watch, "check", check)
        with pytest.raises(PayloadQueryError):
            await reader.lines("me", uri, first=99_999)
        part = await reader.lines("me", uri, first=99_999)
        assert part.text == "line 99998\nline 99999\n"


async def test_a_part_that_nobody_waits_for_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread stops, and only then is the file closed."""
    started, closed = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()
    at, close = FileSource.read_at, FileSource.close

    def read_at(self: FileSource, offset: int, length: int) -> bytes:
        loop.call_soon_threadsafe(started.set)
        return at(self, 0, length)

    def noted(self: FileSource) -> None:
        close(self)
        loop.call_soon_threadsafe(closed.set)

    async with reading(tmp_path, 3600) as (store, reader):
        uri = (await store.put("me", b"x" * 3_000_000, "text/plain")).uri
        monkeypatch.setattr(FileSource, "read_at", read_at)
        monkeypatch.setattr(FileSource, "close", noted)
        monkeypatch.setattr(window.Window, "size", 1 << 60, raising=False)
        task = loop.create_task(reader.grep("me", uri, "nothing"))
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await closed.wait()


async def test_one_caller_does_not_take_all_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with reading(tmp_path) as (store, reader):
        mine, yours = await store.put("me", JSON), await store.put("you", JSON)
        go, at_once, most = threading.Event(), 0, 0
        at = FileSource.read_at

        def read_at(self: FileSource, offset: int, length: int) -> bytes:
            nonlocal at_once, most
            at_once += 1
            most = max(most, at_once)
            go.wait()
            at_once -= 1
            return at(self, offset, length)

        uris = [mine.uri, yours.uri]
        with monkeypatch.context() as patch:
            patch.setattr(FileSource, "read_at", read_at)
            tasks = [asyncio.get_running_loop().create_task(reader.bytes("me", uris[0])) for _ in range(20)]
            tasks.append(asyncio.get_running_loop().create_task(reader.bytes("you", uris[1])))
            await asyncio.sleep(0)
            await store.stat("me", uris[0])  # short work has threads of its own
            go.set()
            await asyncio.gather(*tasks)
        assert most <= 3
