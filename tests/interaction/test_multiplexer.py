"""The library: the same line as the endpoints, behind plain methods."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

import polyplex
from polyplex.config import Config
from polyplex.errors import RpcError
from tests.interaction.stage import DEADLINE_SECONDS, Json, entry, value
from tests.process.children import gone


def config(folder: Path, **servers: Json) -> Json:
    entries = {name: entry(folder / f"{name}.journal", settings) for name, settings in servers.items()}
    return {"mcpServers": entries, "polyplex": {"state": f"sqlite:{folder / 'state.db'}"}}


CONTENT: Json = {
    "resources": [{"uri": "x:1", "name": "x"}],
    "resourceTemplates": [{"uriTemplate": "db://{id}", "name": "d"}],
    "prompts": [{"name": "p"}],
}


async def test_lists_calls_reads_prompts_and_completions(tmp_path: Path) -> None:
    async with polyplex.Multiplexer.from_config(config(tmp_path, a=CONTENT, b={"era": "modern"})) as mux:
        await mux.settled(DEADLINE_SECONDS)
        assert {"a__echo", "b__echo"} < {tool["name"] for tool in await mux.list_tools()}
        assert [each["uri"] for each in await mux.list_resources()] == ["a+x:1"]
        assert [each["uriTemplate"] for each in await mux.list_resource_templates()] == ["a+db://{id}"]
        assert [each["name"] for each in await mux.list_prompts()] == ["a__p"]
        for server in ("a", "b"):
            assert value(await mux.call_tool(f"{server}__echo", {"x": 1}))["arguments"] == {"x": 1}
        assert (await mux.call_tool("a__fail"))["isError"] is True
        assert (await mux.read_resource("a+x:1"))["contents"][0]["text"] == "x:1"
        assert (await mux.get_prompt("a__p"))["messages"]
        completed = await mux.complete({"type": "ref/prompt", "name": "a__p"}, {"name": "n", "value": ""})
        assert completed["completion"]["values"] == ['{"type": "ref/prompt", "name": "p"}']
        with pytest.raises(RpcError, match="unknown tool: a__nothing") as caught:
            await mux.call_tool("a__nothing")
        assert caught.value.code == -32602
        with pytest.raises(RpcError) as caught:
            await mux.call_tool("a__error", {"code": 42, "message": "m", "data": {"k": 1}})
        assert (caught.value.code, caught.value.message, caught.value.data) == (42, "m", b'{"k": 1}')
        pids = [value(await mux.call_tool(f"{server}__pid")) for server in ("a", "b")]
    await gone(*pids)


async def test_progress(tmp_path: Path) -> None:
    seen: list[tuple[float, float | None, str | None]] = []
    async with polyplex.Multiplexer.from_config(config(tmp_path, a={})) as mux:
        result = await mux.call_tool("a__progress", {"count": 2}, progress=lambda *step: seen.append(step))
        assert isinstance(value(result), int)
    assert seen == [(1, None, None), (2, None, None)]


async def test_answers_to_questions_and_only_those_abilities(tmp_path: Path) -> None:
    async def sample(params: dict[str, Any]) -> dict[str, Any]:
        return {"echo": params}

    async def roots(params: dict[str, Any]) -> dict[str, Any]:
        if params:
            raise ValueError("no roots today")
        return {"roots": []}

    answers = {"sampling/createMessage": sample, "roots/list": roots}
    settings = config(tmp_path, a={"era": "legacy"})
    async with polyplex.Multiplexer.from_config(settings, answers=answers) as mux:
        asked = await mux.call_tool("a__ask", {"method": "sampling/createMessage", "params": {"k": 1}})
        assert value(asked) == {"result": {"echo": {"k": 1}}}
        assert value(await mux.call_tool("a__ask", {"method": "roots/list"})) == {"result": {"roots": []}}
        refused = value(await mux.call_tool("a__ask", {"method": "roots/list", "params": {"x": 1}}))
        assert refused["error"]["code"] == -32603
        refused = value(await mux.call_tool("a__ask", {"method": "elicitation/create"}))
        assert refused["error"]["code"] == -32601
        journal = value(await mux.call_tool("a__journal"))
        (handshake,) = [message for message in journal if message.get("method") == "initialize"]
        assert set(handshake["params"]["capabilities"]) == {"sampling", "roots"}


async def test_a_cancelled_task_cancels_its_call(tmp_path: Path) -> None:
    async with polyplex.Multiplexer.from_config(config(tmp_path, a={})) as mux:
        await mux.settled(DEADLINE_SECONDS)
        async with asyncio.TaskGroup() as group:
            task = group.create_task(mux.call_tool("a__hold"))
            await mux.call_tool("a__echo")
            task.cancel()
        assert task.cancelled()
        methods = [message["method"] for message in value(await mux.call_tool("a__journal"))]
        assert "notifications/cancelled" in methods
        assert value(await mux.call_tool("a__release")) == 0


async def test_calls_from_many_tasks_do_not_mix(tmp_path: Path) -> None:
    async with polyplex.Multiplexer.from_config(config(tmp_path, a={}, b={"era": "modern"})) as mux:

        async def call(number: int) -> None:
            server = "ab"[number % 2]
            result = await mux.call_tool(f"{server}__delay", {"seconds": (number % 7) / 500, "value": number})
            assert value(result) == number

        await mux.settled(DEADLINE_SECONDS)
        async with asyncio.timeout(DEADLINE_SECONDS), asyncio.TaskGroup() as group:
            for number in range(100):
                group.create_task(call(number))


async def test_a_file_a_config_and_nothing_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "polyplex.json"
    file.write_text('{"mcpServers": {}}')
    monkeypatch.chdir(tmp_path)
    for source in (file, str(file), Config(), None):
        async with polyplex.Multiplexer.from_config(source) as mux:
            assert await mux.list_tools() == []


async def test_leaving_by_an_error_leaves_no_process(tmp_path: Path) -> None:
    pids: list[int] = []
    with pytest.raises(ZeroDivisionError):
        async with polyplex.Multiplexer.from_config(config(tmp_path, a={})) as mux:
            pids.append(value(await mux.call_tool("a__pid")))
            raise ZeroDivisionError
    await gone(*pids)
