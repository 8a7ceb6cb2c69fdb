"""Results of odd shapes, and stores that fail while a result comes in: nothing is lost, and nothing crashes."""

import base64
import json
import re
from pathlib import Path
from typing import Any

import pytest

from polyplex.errors import PayloadStoreFailed
from polyplex.protocol.revisions import Era
from polyplex.store.local_files import FileSink, LocalFiles
from tests.interaction.scripted_http import scripted_http
from tests.interaction.stage import Client, Json, stage
from tests.interaction.test_results import ON, READ, blocks_of, client_of, link_of, read, texts

LARGE = "The quick brown fox.\n" * 300_000


async def called(folder: Path, given: Json, *, http: bool = False, **options: Any) -> tuple[Json, dict[str, str]]:
    """The result as the client gets it, and what is behind its links."""

    async def of(client: Client) -> tuple[Json, dict[str, str]]:
        result = await client.call("a__result", **given)
        return result, {link["uri"]: await read(client, link["uri"]) for link in blocks_of(result, "resource_link")}

    if not http:
        async with stage(folder, {"a": {}}, **(ON | options)) as on:
            return await of(await client_of(on, Era.LEGACY))
    async with (
        scripted_http() as server,
        stage(folder, {"a": {"url": server.url, "type": "http"}}, **(ON | options)) as on,
    ):
        return await of(await client_of(on, Era.LEGACY))


@pytest.mark.parametrize("text", ["[" * 200_000, "[" * 100_000 + "]" * 100_000, '{"a":' * 50_000])
async def test_deep_nesting_is_stored_like_anything_else(tmp_path: Path, text: str) -> None:
    _, stored = await called(tmp_path, {"content": [{"type": "text", "text": text}]})
    assert list(stored.values()) == [text]


@pytest.mark.parametrize("http", [False, True])
@pytest.mark.parametrize("data", ["data:image/png;base64," + "A" * 6_000_000, "QQ==" * 1_500_000])
async def test_large_data_that_are_not_base64_are_kept_as_they_are_written(
    tmp_path: Path, data: str, http: bool
) -> None:
    given = {"content": [{"type": "image", "mimeType": "image/png", "data": data}, {"type": "text", "text": "hello"}]}
    result, stored = await called(tmp_path, given, http=http)
    assert list(stored.values()) == [data] and result["content"][-1] == given["content"][-1]


@pytest.mark.parametrize("http", [False, True])
async def test_contents_that_are_not_objects_are_stored_as_they_are(tmp_path: Path, http: bool) -> None:
    odd: Json = {"content": ["odd", {"type": "text", "text": "hello"}], "structuredContent": {"a": "b" * 100_000}}
    (tmp_path / "2").mkdir()
    _, stored = await called(tmp_path, odd, http=http)
    assert [json.loads(text) for text in stored.values()] == [odd["content"], odd["structuredContent"]]
    result, stored = await called(tmp_path / "2", {"content": ["odd", {"type": "text", "text": LARGE}]}, http=http)
    assert LARGE in stored.values() and any('"odd"' in text for text in stored.values())
    assert all(block["type"] in ("text", "resource_link") for block in result["content"])


async def test_what_a_content_says_of_itself_stays_with_what_stands_for_it(tmp_path: Path) -> None:
    block = {"type": "text", "text": "x" * 100_000, "_meta": {"k": "v"}, "annotations": {"priority": 1}}
    result, _ = await called(tmp_path, {"content": [block]})
    shown = result["content"][0]
    assert (shown["_meta"], shown["annotations"]) == (block["_meta"], block["annotations"])


@pytest.mark.parametrize("limit", [None, 10_000_000])
@pytest.mark.parametrize("tokens", [None, 20_000])
@pytest.mark.parametrize("http", [False, True])
async def test_a_large_limit_is_no_reason_to_lose_what_is_within(
    tmp_path: Path, limit: int | None, tokens: int | None, http: bool
) -> None:
    options: Json = {"payloads": {"inlineLimitBytes": limit}, "results": {"maxTokens": tokens}}
    given = {"content": [{"type": "text", "text": LARGE}]}
    result, stored = await called(tmp_path, given, http=http, **options)
    if tokens is None:
        assert result == given
    else:
        assert list(stored.values()) == [LARGE] and READ in texts(result)


async def test_a_schema_that_no_validator_takes_is_none(tmp_path: Path) -> None:
    schema = {"type": "object", "description": "\ud800", "properties": {"a": {"type": "string"}}}
    tool = {"name": "result", "inputSchema": {"type": "object"}, "outputSchema": schema}
    given: Json = {"content": [], "structuredContent": {"a": "b" * 100_000}}
    async with stage(tmp_path, {"a": {"tools": [tool]}}, **ON) as on:
        client = await client_of(on, Era.LEGACY)
        result = await client.call("a__result", **given)
        assert json.loads(await read(client, link_of(result)["uri"])) == given["structuredContent"]


@pytest.mark.parametrize("method", ["content", "structuredContent"])
async def test_a_large_result_that_cannot_be_stored_as_it_comes_in_stays_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    def gone(files: LocalFiles, *arguments: object) -> FileSink:
        raise PayloadStoreFailed("the folder cannot be written to")

    monkeypatch.setattr(LocalFiles, "create", gone)
    given: Json = {"content": [{"type": "text", "text": LARGE}]}
    if method == "structuredContent":
        given = {"content": [], method: {"rows": [LARGE]}}
    result, _ = await called(tmp_path, given, http=True)
    assert result == given


async def test_a_disk_that_is_too_full_for_a_result_is_known_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text, written = LARGE * 4, 0
    append = FileSink.append

    def limited(sink: FileSink, chunks: Any) -> None:
        nonlocal written
        written += sum(map(len, chunks))
        if written > len(text) - 1000:
            raise PayloadStoreFailed("the disk is full")
        append(sink, chunks)

    monkeypatch.setattr(FileSink, "append", limited)
    monkeypatch.setattr(LocalFiles, "free", lambda files: len(text) - 1000)
    given = {"content": [{"type": "text", "text": text}]}
    result, _ = await called(tmp_path, given, http=True)
    assert result == given


@pytest.mark.parametrize("asked", [{}, {"_meta": {"polyplex/results": "raw"}}])
@pytest.mark.parametrize("size", [5_000, 500_000])
async def test_text_that_is_no_utf8_is_read_as_its_bytes(tmp_path: Path, asked: Json, size: int) -> None:
    written = b"name;city\n" * 1000 + "caf\xe9;M\xfcnchen\n".encode("latin-1") * size
    blob = {"uri": "file:///x.csv", "mimeType": "text/csv", "blob": base64.b64encode(written).decode()}
    async with stage(tmp_path, {"a": {}}, **ON) as on:
        client = await client_of(on, Era.LEGACY)
        uri = link_of(await client.call("a__result", content=[{"type": "resource", "resource": blob}]))["uri"]
        got, at = b"", 0
        while at < len(written):
            first, *_ = (await client.request("resources/read", {"uri": f"{uri}?offset={at}"} | asked))["contents"]
            part = base64.b64decode(first["blob"]) if "blob" in first else first["text"].encode()
            got, at = got + part, at + len(part)
        assert got == written


async def test_text_with_replacement_characters_of_its_own_is_text(tmp_path: Path) -> None:
    text = "so \ufffd it is. " * 10_000
    async with stage(tmp_path, {"a": {}}, **ON) as on:
        client = await client_of(on, Era.LEGACY)
        uri = link_of(await client.call("a__result", content=[{"type": "text", "text": text}]))["uri"]
        first, *_ = (await client.request("resources/read", {"uri": uri}))["contents"]
        assert text.startswith(first["text"]) and len(first["text"]) > 1000


@pytest.mark.parametrize("http", [False, True])
@pytest.mark.parametrize("size", [150_000, 2_500_000])
async def test_parts_of_one_result_do_not_push_each_other_out(tmp_path: Path, http: bool, size: int) -> None:
    given = {"content": [{"type": "text", "text": letter * size} for letter in "abc"]}
    options: Json = {"payloads": {"callerMaxBytes": 2 * size + 1000}}
    result, _ = await called(tmp_path, given, http=http, **options)
    assert result == given
    options = {"payloads": {"callerMaxBytes": 3 * size + 1000}}
    _, stored = await called(tmp_path, given, http=http, **options)
    assert list(stored.values()) == [block["text"] for block in given["content"]]


async def test_a_limit_smaller_than_a_notice_does_not_hide_it(tmp_path: Path) -> None:
    given = {"content": [{"type": "text", "text": "x" * 1000}, {"type": "text", "text": "y" * 50}]}
    result, stored = await called(tmp_path, given, payloads={"inlineLimitBytes": 100})
    assert list(stored.values()) == ["x" * 1000] and result["content"][-1] == given["content"][-1]


@pytest.mark.parametrize("http", [False, True])
async def test_structured_content_too_large_to_be_parsed_stays_valid(tmp_path: Path, http: bool) -> None:
    rows = {"type": "array", "items": {"type": "object", "required": ["id"]}}
    schema = {"type": "object", "properties": {"rows": rows}, "required": ["rows"]}
    tool = {"name": "result", "inputSchema": {"type": "object"}, "outputSchema": schema}
    given: Json = {"content": [], "structuredContent": {"rows": [{"id": n, "é": "x" * 80} for n in range(100_000)]}}
    async with (
        scripted_http(tools=[tool]) as server,
        stage(tmp_path, {"a": {"url": server.url, "type": "http"} if http else {"tools": [tool]}}, **ON) as on,
    ):
        client = await client_of(on, Era.LEGACY)
        result = await client.call("a__result", **given)
        shown, meta = result["structuredContent"]["rows"], result["_meta"]["polyplex/payload"]
        assert shown and shown == given["structuredContent"]["rows"][: len(shown)] and meta["cut"] == ["/rows"]
        assert json.loads(await read(client, meta["uri"])) == given["structuredContent"]


@pytest.mark.parametrize("server", ["legacy", "modern"])
@pytest.mark.parametrize("revision", ["2025-03-26", "2025-11-25"])
async def test_a_result_taken_apart_is_translated(tmp_path: Path, server: str, revision: str) -> None:
    many = [{"type": "text", "text": f"{number} {'x' * 1000}"} for number in range(5000)]
    for given in ({"content": many}, {"content": [], "structuredContent": {"rows": [LARGE]}}):
        async with (
            scripted_http(era=server) as http,
            stage(tmp_path, {"a": {"url": http.url, "type": "http"}}, **ON) as on,
        ):
            await on.up("a")
            client = await on.legacy(None, revision)
            result = await client.call("a__result", **given)
            found = re.findall(r"polyplex://payload/[\w-]+", json.dumps(result))
            stored = [json.loads(await read(client, uri)) for uri in dict.fromkeys(found)]
            assert stored == [given.get("structuredContent", many)]
            assert "structuredContent" not in result and "read_payload" in texts(result)
