"""The library finds tools for a turn, and carries out the calls that a provider's model makes."""

import json
from pathlib import Path

import pytest

import polyplex
from polyplex.content.tokens import estimate
from polyplex.errors import ExportError
from tests.interaction.stage import DEADLINE_SECONDS, Json
from tests.interaction.test_as_tools import CONTENT
from tests.interaction.test_find_and_call import FILES, MAIL
from tests.interaction.test_multiplexer import config


async def test_tools_are_found_best_first_within_a_budget(tmp_path: Path) -> None:
    async with polyplex.Multiplexer.from_config(config(tmp_path, files=FILES, mail=MAIL, a=CONTENT)) as mux:
        await mux.settled(DEADLINE_SECONDS)
        listed = {tool["name"]: tool for tool in await mux.list_tools()}
        assert not [name for name in listed if name.startswith("polyplex__")]
        found = await mux.find_tools("read a file")
        assert found[0] == listed["files__read_file"]
        assert [tool["name"] for tool in await mux.find_tools("find e-mails", k=1)] == ["mail__search_mail"]
        assert await mux.find_tools("quantum chromodynamics") == []
        assert await mux.find_tools("file", server="mail") == []
        whole = await mux.find_tools("mail file", k=5)
        cost = estimate(json.dumps(whole[0]))
        few = await mux.find_tools("mail file", k=5, token_budget=2 * cost)
        assert 1 <= len(few) < len(whole)
        assert few == [tool for tool in whole if tool in few]
        assert await mux.find_tools("mail file", token_budget=1) == []
        assert (await mux.find_resources("groceries"))[0]["uri"] == "a+note:1"
        assert [each["name"] for each in await mux.find_prompts("greet")] == ["a__greet"]


CALLS: dict[str, Json] = {
    "openai": {"id": "1", "type": "function", "function": {"name": "files__read_file", "arguments": '{"path": "x"}'}},
    "anthropic": {"type": "tool_use", "id": "1", "name": "files__read_file", "input": {"path": "x"}},
    "gemini": {"functionCall": {"id": "1", "name": "files__read_file", "args": {"path": "x"}}},
}


@pytest.mark.parametrize("provider", CALLS)
async def test_calls_of_exported_tools_are_carried_out_and_answered(tmp_path: Path, provider: str) -> None:
    async with polyplex.Multiplexer.from_config(config(tmp_path, files=FILES, mail=MAIL)) as mux:
        await mux.settled(DEADLINE_SECONDS)
        exported = mux.export_tools(provider)  # pyright: ignore[reportArgumentType]
        assert len(exported.exported) == 6
        answer = json.dumps(await mux.call_exported(exported, CALLS[provider]))
        assert "read_file" in answer
        few = mux.export_tools(provider, await mux.find_tools("send mail", k=1))  # pyright: ignore[reportArgumentType]
        assert [tool.public for tool in few.exported] == ["mail__send_mail", "polyplex__read_payload"]
        refused = json.dumps(await mux.call_exported(few, CALLS[provider]))
        assert "no tool 'files__read_file' was exported" in refused
        with pytest.raises(ExportError):
            await mux.call_exported(exported, {"nothing": 1})


async def test_what_reads_on_is_exported_once_and_only_where_results_are_bounded(tmp_path: Path) -> None:
    settings = config(tmp_path, files=FILES)
    async with polyplex.Multiplexer.from_config(settings) as mux:
        await mux.settled(DEADLINE_SECONDS)
        once = mux.export_tools("anthropic", [])
        assert [tool.public for tool in once.exported] == ["polyplex__read_payload"]
        reader = {"name": "polyplex__read_payload", "inputSchema": {"type": "object"}}
        assert len(mux.export_tools("anthropic", iter([reader])).exported) == 1
        call = {
            "type": "tool_use",
            "id": "1",
            "name": "polyplex__read_payload",
            "input": {"uri": "polyplex://payload/x"},
        }
        assert "Nothing was read" in json.dumps(await mux.call_exported(once, call))
    raw = settings | {"polyplex": settings.get("polyplex", {}) | {"results": {"mode": "raw"}}}
    async with polyplex.Multiplexer.from_config(raw) as mux:
        await mux.settled(DEADLINE_SECONDS)
        assert mux.export_tools("anthropic", []).exported == ()


async def test_a_tool_that_is_gone_answers_the_model(tmp_path: Path) -> None:
    async with polyplex.Multiplexer.from_config(config(tmp_path, files=FILES)) as mux:
        await mux.settled(DEADLINE_SECONDS)
        exported = mux.export_tools("anthropic", [{"name": "files__gone", "inputSchema": {"type": "object"}}])
        answer = await mux.call_exported(exported, {"type": "tool_use", "id": "1", "name": "files__gone", "input": {}})
        assert answer["is_error"] is True
        assert "unknown tool: files__gone" in json.dumps(answer)
