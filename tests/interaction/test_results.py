"""Results that stay small: stored and described, cut, read on, and raw for those who ask."""

import base64
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from polyplex.content.tokens import estimate
from polyplex.errors import PayloadStoreFailed
from polyplex.protocol.revisions import R2025_03_26, Era
from polyplex.store.payload_store import PayloadStore
from tests.interaction.scripted_http import scripted_http
from tests.interaction.stage import Client, Json, RefusedError, Stage, stage
from tests.interaction.tasks import ABLE, DECLARED, FORM, asking, ended, start, start_modern

ON: Json = {"results": {}, "expose": "all"}
ERAS = (Era.LEGACY, Era.MODERN)
READ = "polyplex__read_payload"
CSV = "id,name,amount\n" + "".join(f"{number},name {number},{number * 1.5}\n" for number in range(20_000))


async def client_of(on: Stage, era: Era) -> Client:
    await on.up("a")
    return await on.legacy() if era is Era.LEGACY else on.modern()


def blocks_of(result: Json, kind: str) -> list[Json]:
    return [block for block in result["content"] if block["type"] == kind]


def texts(result: Json) -> str:
    return "\n".join(block["text"] for block in blocks_of(result, "text"))


def link_of(result: Json) -> Json:
    return blocks_of(result, "resource_link")[0]


async def read(client: Client, uri: str) -> str:
    """A whole payload, read on as the answers say."""
    result = await client.request("resources/read", {"uri": uri, "_meta": {"polyplex/results": "raw"}})
    (contents,) = result["contents"]
    return contents["text"] if "text" in contents else base64.b64decode(contents["blob"]).decode("latin-1")


@pytest.mark.parametrize("era", ERAS)
async def test_a_large_text_is_stored_and_described(tmp_path: Path, era: Era) -> None:
    async with stage(tmp_path, {"a": {}}, **ON) as on:
        client = await client_of(on, era)
        result = await client.call("a__result", content=[{"type": "text", "text": CSV}])
        link = link_of(result)
        assert link["uri"].startswith("polyplex://payload/")
        assert (link["size"], link["mimeType"], link["name"]) == (len(CSV), "text/csv", "result.csv")
        meta = link["_meta"]["polyplex/payload"]
        assert meta["sha256"] == hashlib.sha256(CSV.encode()).hexdigest()
        assert "20,000 rows" in texts(result) and READ in texts(result) and link["uri"] in texts(result)
        assert estimate(texts(result)) < 500
        assert await read(client, link["uri"]) == CSV


@pytest.mark.parametrize("era", ERAS)
async def test_the_tool_reads_on_until_the_end(tmp_path: Path, era: Era) -> None:
    async with stage(tmp_path, {"a": {}}, **ON) as on:
        client = await client_of(on, era)
        text = "".join(f"строка {number} 😀\n" for number in range(5000))
        uri = link_of(await client.call("a__result", content=[{"type": "text", "text": text}]))["uri"]
        got, arguments = "", {"uri": uri, "limit": 40_000}
        while arguments is not None:
            answer = texts(await client.call(READ, **arguments))
            part, _, notice = answer.rpartition("\n[")
            got += part
            assert estimate(answer) <= 20_000
            _, found, call = notice.partition(f"read on with {READ} ")
            arguments = json.loads(call.removesuffix("]")) if found else None
        assert got == text


async def test_small_results_leave_as_they_came(tmp_path: Path) -> None:
    async with stage(tmp_path, {"a": {}}, **ON) as on:
        client = await client_of(on, Era.LEGACY)
        given = {"content": [{"type": "text", "text": "x" * 19_000}], "structuredContent": {"a": 1}}
        assert await client.call("a__result", **given) == given
        assert not (tmp_path / "payloads").exists()


@pytest.mark.parametrize("era", ERAS)
async def test_data_structured_content_and_embedded_resources(tmp_path: Path, era: Era) -> None:
    picture = (
        b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x02\x80\x00\x00\x01\xe0\x08\x06\x00\x00\x00" + b"\x00" * 90_000
    )
    data = base64.b64encode(picture).decode()
    rows = [{"id": number, "name": "n" * 20} for number in range(3000)]
    async with stage(tmp_path, {"a": {}}, **ON) as on:
        client = await client_of(on, era)
        result = await client.call(
            "a__result",
            content=[
                {"type": "image", "data": data, "mimeType": "image/png"},
                {"type": "resource", "resource": {"uri": "file:///notes.md", "text": "# Notes\n" * 20_000}},
            ],
            structuredContent={"rows": rows},
            isError=True,
        )
        assert result["isError"] is True and "structuredContent" not in result
        image, notes = blocks_of(result, "resource_link")
        assert (image["mimeType"], image["size"]) == ("image/png", len(picture))
        assert "640" in texts(result) and "480" in texts(result)
        assert notes["name"] == "notes.md" and "file:///notes.md" in texts(result)
        structured = result["_meta"]["polyplex/payload"]
        assert structured["of"] == "structuredContent" and structured["uri"] in texts(result)
        assert json.loads(await read(client, structured["uri"])) == {"rows": rows}
        assert await read(client, image["uri"]) == picture.decode("latin-1")
        shown = await client.call(READ, uri=image["uri"])
        assert shown["content"] == [{"type": "image", "data": data, "mimeType": "image/png"}]


async def test_structured_content_stays_valid_where_a_schema_says_what_is(tmp_path: Path) -> None:
    schema = {
        "type": "object",
        "properties": {
            "rows": {"type": "array", "items": {"type": "object", "required": ["id"]}},
            "total": {"type": "integer"},
        },
        "required": ["rows", "total"],
    }
    tool = {"name": "result", "inputSchema": {"type": "object"}, "outputSchema": schema}
    rows = [{"id": number, "name": "n" * 40} for number in range(3000)]
    async with stage(tmp_path, {"a": {"tools": [tool]}}, **ON) as on:
        client = await client_of(on, Era.LEGACY)
        result = await client.call("a__result", content=[], structuredContent={"rows": rows, "total": 3000})
        shown = result["structuredContent"]
        assert shown["total"] == 3000 and 0 < len(shown["rows"]) < 3000 and shown["rows"] == rows[: len(shown["rows"])]
        meta = result["_meta"]["polyplex/payload"]
        assert meta["cut"] == ["/rows"] and "/rows" in texts(result)
        assert json.loads(await read(client, meta["uri"])) == {"rows": rows, "total": 3000}


async def test_many_small_contents_are_listed(tmp_path: Path) -> None:
    content = [{"type": "text", "text": f"block {number} " * 30} for number in range(500)]
    async with stage(tmp_path, {"a": {}}, **ON) as on:
        client = await client_of(on, Era.LEGACY)
        result = await client.call("a__result", content=content)
        shown = len(result["content"]) - 2
        assert 0 < shown < 500 and result["content"][:shown] == content[:shown]
        assert f"{shown} of 500" in texts(result)
        assert json.loads(await read(client, link_of(result)["uri"])) == content
        more = await client.call(READ, uri=link_of(result)["uri"], json_path=f"$[{shown}].text")
        assert content[shown]["text"].strip() in texts(more)


async def test_a_long_text_is_cut_and_goes_on_where_it_was_cut(tmp_path: Path) -> None:
    text = "\n\n".join(f"Paragraph {number} says something of no great weight." for number in range(400))
    tools = {"result": {"maxTokens": 600}}
    async with stage(tmp_path, {"a": {}}, **ON, servers={"a": {"tools": tools}}) as on:
        client = await client_of(on, Era.LEGACY)
        result = await client.call("a__result", content=[{"type": "text", "text": text}])
        assert estimate(texts(result)) <= 600
        uri = link_of(result)["uri"]
        first = texts(result).partition("\n[cut: ")[0]
        assert text.startswith(first) and len(first) > 500
        offset = json.loads(texts(result).partition(f"{READ} ")[2].partition("]")[0])["offset"]
        rest = await client.request("resources/read", {"uri": f"{uri}?offset={offset}&limit=1000000"})
        assert rest["contents"][0]["text"] == text[offset:] and text[:offset].rstrip() == first.rstrip()


async def test_records_of_json_stay_json(tmp_path: Path) -> None:
    rows = [{"id": number, "name": f"name {number}"} for number in range(1000)]
    async with stage(tmp_path, {"a": {}}, **ON, servers={"a": {"tools": {"result": {"maxTokens": 1000}}}}) as on:
        client = await client_of(on, Era.LEGACY)
        result = await client.call("a__result", content=[{"type": "text", "text": json.dumps(rows)}])
        shown = json.loads(result["content"][0]["text"])
        assert shown == rows[: len(shown)] and 10 < len(shown) < 1000
        assert f"first {len(shown)} of 1,000" in texts(result)


@pytest.mark.parametrize("summary", ["extractive", "client"])
async def test_a_summary_stands_for_what_is_left_out(tmp_path: Path, summary: str) -> None:
    text = "".join(
        f"# Heading {number}\n\nERROR: the disk {number} is full.\n" + "word " * 200 for number in range(200)
    )
    asked: list[Json] = []

    def write(params: Json) -> Json:
        asked.append(params)
        return {"role": "assistant", "content": {"type": "text", "text": "All disks are full."}, "model": "m"}

    async with stage(tmp_path, {"a": {}}, **ON) as on:
        await on.up("a")
        client = await on.legacy({"sampling": {}}, createMessage=write)
        meta = {"polyplex/summary": summary, "polyplex/focus": "what about the disks?"}
        given = {"content": [{"type": "text", "text": text}]}
        result = await client.request("tools/call", {"name": "a__result", "arguments": given, "_meta": meta})
        told = texts(result)
        if summary == "client":
            assert "All disks are full." in told and "what about the disks?" in json.dumps(asked)
        else:
            assert "Heading" in told and "summary" in told and not asked


async def test_a_client_that_refuses_to_summarise_gets_an_extract(tmp_path: Path) -> None:
    text = "".join(f"# Heading {number}\n\n" + "word " * 300 for number in range(100))
    async with stage(tmp_path, {"a": {}}, results={"summary": "client"}, expose="all") as on:
        await on.up("a")
        client = await on.legacy({"sampling": {}})
        identifier = client.send(
            "tools/call", {"name": "a__result", "arguments": {"content": [{"type": "text", "text": text}]}}
        )
        await client.until(lambda: client.asked("sampling/createMessage"))
        client.stage.gateway.core.clients[client.session.id].session.answered(
            refusal(client.asked("sampling/createMessage")[0])
        )
        assert "Heading" in texts(await client.response(identifier))


def refusal(request: Json) -> Any:
    from msgspec import Raw

    from polyplex.protocol.jsonrpc import Message

    return Message(id=Raw(json.dumps(request["id"])), error=Raw(b'{"code":-1,"message":"no"}'))


@pytest.mark.parametrize("how", ["client", "server", "tool", "request", "everything"])
async def test_raw_for_those_who_ask(tmp_path: Path, how: str) -> None:
    options: Json = {
        "client": {"results": {}, "clients": {"leg*": {"results": "raw"}}},
        "server": {"results": {}, "servers": {"a": {"results": "raw"}}},
        "tool": {"results": {}, "servers": {"a": {"tools": {"result": {"results": "raw"}}}}},
        "request": {"results": {}},
        "everything": {"results": {"mode": "raw"}},
    }[how]
    given = {"content": [{"type": "text", "text": CSV}], "structuredContent": {"a": "x" * 100_000}}
    async with stage(tmp_path, {"a": {}}, expose="all", **options) as on:
        client = await client_of(on, Era.LEGACY)
        meta = {"_meta": {"polyplex/results": "raw"}} if how == "request" else {}
        assert await client.request("tools/call", {"name": "a__result", "arguments": given} | meta) == given
        listed = READ in await client.names()
        assert listed is (how not in ("client", "everything"))


async def test_an_exception_to_raw(tmp_path: Path) -> None:
    options: Json = {"results": {"mode": "raw"}, "servers": {"a": {"tools": {"result": {"results": "bounded"}}}}}
    async with stage(tmp_path, {"a": {}}, expose="all", **options) as on:
        client = await client_of(on, Era.LEGACY)
        assert link_of(await client.call("a__result", content=[{"type": "text", "text": CSV}]))


async def test_older_clients_are_told_in_text_alone(tmp_path: Path) -> None:
    async with stage(tmp_path, {"a": {}}, **ON) as on:
        await on.up("a")
        client = await on.legacy({}, R2025_03_26)
        result = await client.call("a__result", content=[{"type": "text", "text": CSV}])
        (block,) = result["content"]
        assert set(block) == {"type", "text"} and "polyplex://payload/" in block["text"]


@pytest.mark.parametrize("era", ERAS)
async def test_prompts_and_resources_are_bounded(tmp_path: Path, era: Era) -> None:
    text = CSV[:20_000]
    servers = {
        "a": {
            "era": "legacy",
            "prompts": [{"name": "p"}],
            "resources": [{"uri": "file:///r", "name": "r"}],
            "broken": {
                "prompts/get": {"messages": [{"role": "user", "content": {"type": "text", "text": text}}]},
                "resources/read": {
                    "contents": [{"uri": "file:///r", "text": text}, {"uri": "file:///s", "text": "small"}]
                },
            },
        }
    }
    async with stage(tmp_path, servers, **ON, payloads={"inlineLimitBytes": 4096}) as on:
        client = await client_of(on, era)
        prompt = await client.request("prompts/get", {"name": "a__p"})
        (message,) = prompt["messages"]
        assert message["role"] == "user" and message["content"]["_meta"]["polyplex/payload"]["size"] == len(text)
        resource = await client.request("resources/read", {"uri": "a+file:///r"})
        first, second = resource["contents"]
        assert first["uri"] == "a+file:///r" and second["text"] == "small"
        assert await read(client, first["_meta"]["polyplex/payload"]["uri"]) == text


@pytest.mark.parametrize("era", ERAS)
async def test_nobody_reads_what_is_not_there(tmp_path: Path, era: Era) -> None:
    async with stage(tmp_path, {"a": {}}, **ON) as on:
        client = await client_of(on, era)
        uri = link_of(await client.call("a__result", content=[{"type": "text", "text": CSV}]))["uri"]
        for wrong in ("polyplex://payload/x", uri[:-4] + "AAAA", uri[:-1], "polyplex://payload/../../etc/passwd"):
            with pytest.raises(RefusedError) as refused:
                await client.request("resources/read", {"uri": wrong})
            assert refused.value.code == (-32002 if era is Era.LEGACY else -32602)
            assert (await client.call(READ, uri=wrong))["isError"]
        for arguments in ({}, {"uri": 5}, {"uri": uri, "limit": 0}, {"uri": uri, "lines": "x"}, {"uri": uri, "x": 1}):
            failed = await client.call(READ, **arguments)
            assert failed["isError"] and "Nothing was read" in texts(failed)


async def test_payloads_belong_to_their_caller(tmp_path: Path) -> None:
    async with stage(tmp_path, {"a": {}}, **ON) as on:
        client = await client_of(on, Era.LEGACY)
        uri = link_of(await client.call("a__result", content=[{"type": "text", "text": CSV}]))["uri"]
        other = on.gateway.core.clients[client.session.id]
        other.binding = type(other.binding)(
            other.binding.era, other.binding.capabilities, other.binding.session, "other"
        )
        with pytest.raises(RefusedError, match="no such payload"):
            await client.request("resources/read", {"uri": uri})


@pytest.mark.parametrize("era", ERAS)
async def test_a_reference_becomes_the_content_where_that_is_asked_for(tmp_path: Path, era: Era) -> None:
    rows = [{"id": number, "name": "n" * 30} for number in range(3000)]
    tool = {
        "name": "echo",
        "inputSchema": {
            "type": "object",
            "properties": {"rows": {"type": "array"}, "value": {}, "text": {"type": "string"}},
        },
    }
    result_tool = {"name": "result", "inputSchema": {"type": "object"}}
    configured = {"echo": {"resolve": {"text": "content"}}}
    async with stage(tmp_path, {"a": {"tools": [tool, result_tool]}}, **ON, servers={"a": {"tools": configured}}) as on:
        client = await client_of(on, era)
        text = json.dumps(rows)
        uri = link_of(await client.call("a__result", content=[{"type": "text", "text": text}]))["uri"]

        async def sent(arguments: Json, resolve: Any = None) -> Json:
            meta = {} if resolve is None else {"_meta": {"polyplex/resolve": resolve}}
            await client.request("tools/call", {"name": "a__echo", "arguments": arguments} | meta)
            return on.received("a", "tools/call")[-1]["params"]["arguments"]

        assert await sent({"value": uri}) == {"value": uri}
        assert await sent({"value": 1, "text": uri}) == {"value": 1, "text": text}
        assert await sent({"value": 1, "rows": uri, "other": uri}, ["rows"]) == {"value": 1, "rows": rows, "other": uri}
        deep = {"value": {"a": [1.50, uri, f"see {uri}"]}}
        assert await sent(deep, True) == {"value": {"a": [1.5, text, f"see {uri}"]}}
        assert await sent({"value": uri}, {"value": "base64"}) == {"value": base64.b64encode(text.encode()).decode()}
        count = len(on.received("a", "tools/call"))
        for arguments, resolve in (({"value": uri}, {"value": "url"}), ({"value": uri[:-2] + "xx"}, True)):
            meta = {"_meta": {"polyplex/resolve": resolve}}
            failed = await client.request("tools/call", {"name": "a__echo", "arguments": arguments} | meta)
            assert failed["isError"]
        assert len(on.received("a", "tools/call")) == count


async def test_a_store_that_fails_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def full(*arguments: object, **more: object) -> None:
        raise PayloadStoreFailed("the disk is full")

    given = {"content": [{"type": "text", "text": CSV}]}
    async with stage(tmp_path, {"a": {}}, **ON) as on:
        client = await client_of(on, Era.LEGACY)
        monkeypatch.setattr(PayloadStore, "put", full)
        assert await client.call("a__result", **given) == given
        assert "the disk is full" in caplog.text


async def test_calls_by_the_meta_tool_are_bounded(tmp_path: Path) -> None:
    async with stage(tmp_path, {"a": {}}, **ON) as on:
        client = await client_of(on, Era.LEGACY)
        inner = {"name": "a__result", "arguments": {"content": [{"type": "text", "text": CSV}]}}
        assert link_of(await client.call("polyplex__call_tool", **inner))["size"] == len(CSV)


@pytest.mark.parametrize("era", ERAS)
async def test_a_very_large_result_over_http_is_taken_apart(tmp_path: Path, era: Era) -> None:
    text = 'The "quick" brown fox.\n' * 300_000
    async with scripted_http() as server, stage(tmp_path, {"a": {"url": server.url, "type": "http"}}, **ON) as on:
        client = await client_of(on, era)
        given = {
            "content": [{"type": "text", "text": text}],
            "structuredContent": {"rows": [1] * 100_000},
            "isError": True,
        }
        result = await client.call("a__result", **given)
        (first,) = blocks_of(result, "resource_link")
        assert result["isError"] is True and first["size"] == len(text)
        assert "300,000 lines" in texts(result)
        assert hashlib.sha256(text.encode()).hexdigest() == first["_meta"]["polyplex/payload"]["sha256"]
        structured = result["_meta"]["polyplex/payload"]["uri"]
        assert json.loads(await read(client, structured)) == given["structuredContent"]


@pytest.mark.parametrize("server", ["legacy", "modern"])
@pytest.mark.parametrize("era", ERAS)
async def test_results_of_tasks_are_bounded(tmp_path: Path, era: Era, server: str) -> None:
    long: Json = {"action": "accept", "content": {"name": "n" * 100_000}}
    async with stage(tmp_path, {"a": {"tasks": "optional", "era": server}}, **ON) as on:
        await on.up("a")
        if era is Era.LEGACY:
            client = await on.legacy(ABLE, create=lambda params: long)
            task = await start(client, questions=[FORM])
            result = await client.request("tasks/result", {"taskId": task["taskId"]})
        else:
            client = on.modern(ABLE | DECLARED)
            task = await start_modern(client, questions=[FORM])
            asked = await asking(client, task["taskId"])
            answers = dict.fromkeys(asked["inputRequests"], long)
            await client.request("tasks/update", {"taskId": task["taskId"], "inputResponses": answers})
            result = (await ended(client, task["taskId"]))["result"]
        link = link_of(result)
        assert link["size"] > 100_000 and len(json.dumps(result)) < 5000
        assert long["content"]["name"] in await read(client, link["uri"])
