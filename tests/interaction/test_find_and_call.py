"""Tools that are searched for: what is listed, how they are found, and that a call by `call_tool` is a call."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.interaction.parked import ABLE, ANSWERS, asking, first_round, retry
from tests.interaction.stage import Client, Json, Stage, eventually, stage, text, value

FIND, CALL = "polyplex__find_tools", "polyplex__call_tool"
OBJECT = {"type": "object"}
FORM: Json = {"type": "object", "properties": {}}


def tool(name: str, description: str = "", required: tuple[str, ...] = (), **properties: Json) -> Json:
    schema = {"type": "object", "properties": properties, "required": list(required)}
    return {"name": name, "description": description, "inputSchema": schema}


FILES = {
    "tools": [
        tool("read_file", "Reads a file.\nMore.", ("path",), path={"type": "string"}, head={"type": "integer"}),
        tool(
            "write_file", "Writes text to a file.", ("path", "text"), path={"type": "string"}, text={"type": "string"}
        ),
        tool("list_directory", "Lists what a folder holds."),
    ]
}
MAIL = {
    "tools": [
        tool("send_mail", "Sends an e-mail.", ("to",), to={"type": "string"}, urgency={"enum": ["low", "high"]}),
        tool("search_mail", "Finds e-mails by words.", query={"type": "string"}),
    ],
    "instructions": "Mail is slow.",
}
EVERY = {"tools": [{"name": name, "inputSchema": OBJECT} for name in ("echo", "progress", "hold", "asks", "rounds")]}


async def client_of(on: Stage, era: str, capabilities: Json | None = None) -> Client:
    return await on.legacy(capabilities or {}) if era == "legacy" else on.modern(capabilities)


async def through(client: Client, name: str, **arguments: Any) -> Json:
    return await client.call(CALL, name=name, arguments=arguments)


ERAS = pytest.mark.parametrize("era", ["legacy", "modern"])


@ERAS
async def test_only_the_search_tools_and_pinned_ones_are_listed(tmp_path: Path, era: str) -> None:
    options: Json = {
        "expose": "search",
        "pinnedTools": ["mail__sen?_*"],
        "servers": {"files": {"tools": {"list_directory": {"pinned": True}}}},
    }
    async with stage(tmp_path, {"files": FILES, "mail": MAIL}, **options) as on:
        await on.up("files", "mail")
        client = await client_of(on, era)
        assert await client.names() == [FIND, CALL, "files__list_directory", "mail__send_mail"]


@ERAS
async def test_a_tool_is_found_and_called_in_two_calls(tmp_path: Path, era: str) -> None:
    async with stage(tmp_path, {"files": FILES, "mail": MAIL}, expose="search") as on:
        await on.up("files", "mail")
        client = await client_of(on, era)
        found = await client.call(FIND, query="read a file")
        lines = text(found).splitlines()
        assert lines[0].endswith(
            "of 5 tools for 'read a file', best first; call one with polyplex__call_tool(name, arguments):"
        )
        assert lines[1] == "files__read_file(path: string, head?: integer) – Reads a file."
        first = found["structuredContent"]["tools"][0]
        assert first == {"name": "files__read_file", "tool": "(path: string, head?: integer) – Reads a file."}
        result = await through(client, first["name"], path="x")
        assert value(result)["called"]["name"] == "read_file"
        assert value(result)["called"]["arguments"] == {"path": "x"}
        assert ("resultType" in found) == (era == "modern")


async def test_all_tools_are_listed_while_they_fit_the_budget(tmp_path: Path) -> None:
    async with stage(tmp_path, {"files": FILES, "mail": MAIL}, toolBudgetTokens=100_000) as on:
        await on.up("files", "mail")
        client = await on.legacy()
        names = await client.names()
        assert len(names) == 5
        assert FIND not in names
        assert text(await client.call(FIND, query="read a file")).count("files__read_file") == 1  # listed or not


async def test_beyond_the_budget_tools_are_searched_for(tmp_path: Path) -> None:
    async with stage(tmp_path, {"files": FILES, "mail": MAIL}, toolBudgetTokens=100) as on:
        await on.up("files", "mail")
        client = await on.legacy()
        assert await client.names() == [FIND, CALL]
        told = client.initialized["instructions"]
        assert told.startswith("5 tools are not listed here. polyplex__find_tools(query)")
        assert "files (3), mail (2)" in told
        assert "# mail\nMail is slow." in told


async def test_clients_may_differ_by_their_name(tmp_path: Path) -> None:
    options: Json = {"expose": "search", "clients": {"leg*": {"expose": "all"}}}
    async with stage(tmp_path, {"files": FILES}, **options) as on:
        await on.up("files")
        legacy, modern = await on.legacy(), on.modern()
        assert FIND not in await legacy.names()
        assert await modern.names() == [FIND, CALL]
        assert (await modern.request("tools/list"))["cacheScope"] == "private"
        as_other = await modern.request(
            "tools/list", {"_meta": {"io.modelcontextprotocol/clientInfo": {"name": "legacy", "version": "1"}}}
        )
        assert len(as_other["tools"]) == 3


async def test_another_polyplex_gets_all_tools_and_no_cache_gives_them_to_others(tmp_path: Path) -> None:
    async with stage(tmp_path, {"files": FILES | {"era": "modern"}}, expose="auto", toolBudgetTokens=1) as on:
        await on.up("files")
        modern = on.modern()
        info = {"io.modelcontextprotocol/clientInfo": {"name": "polyplex", "version": "1"}}
        nested = await modern.request("tools/list", {"_meta": info})
        assert [tool["name"] for tool in nested["tools"]] == [
            "files__read_file",
            "files__write_file",
            "files__list_directory",
        ]
        assert nested["cacheScope"] == (await modern.request("tools/list"))["cacheScope"] == "private"


@pytest.mark.parametrize(
    ("query", "more", "expected"),
    [
        ("quantum chromodynamics", {}, "No tool fits 'quantum chromodynamics'."),
        ("mail", {"server": "files"}, "No tool fits 'mail'."),
        ("mail", {"server": "mali"}, "There is no server 'mali'. The servers are: files (3), mail (2)."),
        ("", {}, "- query: "),
        ("x", {"k": 0}, "- k: 0 is less than the minimum of 1"),
        ("x", {"k": "3"}, '- k: expected integer, got "3"'),
        ("x", {"detail": "all"}, '- detail: expected "compact"|"full", got "all"'),
    ],
)
async def test_a_search_that_finds_nothing_says_why(tmp_path: Path, query: str, more: Json, expected: str) -> None:
    async with stage(tmp_path, {"files": FILES, "mail": MAIL}) as on:
        await on.up("files", "mail")
        client = await on.legacy()
        result = await client.call(FIND, query=query, **more)
        assert expected in text(result)
        assert ("isError" in result) == (not expected.startswith("No tool"))


async def test_what_models_write_for_nothing_is_nothing(tmp_path: Path) -> None:
    async with stage(tmp_path, {"files": FILES, "mail": MAIL}) as on:
        await on.up("files", "mail")
        client = await on.legacy()
        for more in ({"server": None, "k": None, "detail": None}, {"server": ""}):
            assert "files__read_file(" in text(await client.call(FIND, query="read a file", **more))
        refused = await client.call(FIND, query="x" * (1 << 20))
        assert "larger than 1048576 bytes" in text(refused)
        assert "- query: missing (string)" in text(await client.call(FIND, query=None))


async def test_whole_schemas_on_demand_within_the_budget(tmp_path: Path) -> None:
    long = [
        tool(f"read_{number}", "Reads. " + "word " * 300, ("path",), path={"type": "string"}) for number in range(9)
    ]
    async with stage(tmp_path, {"files": FILES, "long": {"tools": long}}, search={"budgetTokens": 1200}) as on:
        await on.up("files", "long")
        client = await on.legacy()
        result = await client.call(FIND, query="read file", detail="full", server="files")
        whole = json.loads(text(result).splitlines()[1])
        assert whole == {key: FILES["tools"][0][key] for key in ("description", "inputSchema")} | {
            "name": "files__read_file"
        }
        for detail in ("full", "compact"):
            answer = await client.call(FIND, query="read", k=9, detail=detail)
            assert len(json.dumps(answer)) < 1200 * 5
            assert all(line.startswith(("long__read_", "files__read_", "{")) for line in text(answer).splitlines()[1:4])


@ERAS
@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (
            {"name": "mail__send_mail", "arguments": {"urgency": "hi"}},
            [
                "- to: missing (string)",
                '- urgency: expected "low"|"high", got "hi"',
                "It takes mail__send_mail(to: string, urgency?: ",
            ],
        ),
        (
            {"name": "mail__send_mail", "arguments": {"too": "x"}},
            ["- to: missing (string)", "- too: unknown; did you mean to?"],
        ),
        ({"name": "mail__send_mail", "arguments": []}, ['its "arguments" must be an object']),
        ({"name": "mail__send_mail", "arguments": "{"}, ['its "arguments" must be an object']),
        ({"name": "mail__send_mail", "to": "x"}, ['put to into "arguments"']),
        (
            {"name": "send_mail"},
            ["There is no tool 'send_mail'", "Did you mean one of these?\nmail__send_mail(to: string"],
        ),
        (
            {"name": "mail__send_mai", "arguments": {}},
            ["There is no tool 'mail__send_mai'", "mail__send_mail(to: string"],
        ),
        ({"name": CALL, "arguments": {"name": "mail__send_mail"}}, ["cannot call itself"]),
        ({"name": 7}, ['needs the "name" of a tool']),
        ({}, ['needs the "name" of a tool']),
    ],
)
async def test_a_wrong_call_says_how_to_mend_it_and_calls_nothing(
    tmp_path: Path, era: str, arguments: Json, expected: list[str]
) -> None:
    async with stage(tmp_path, {"mail": MAIL}, expose="search") as on:
        await on.up("mail")
        client = await client_of(on, era)
        result = await client.call(CALL, **arguments)
        assert result["isError"] is True
        for part in expected:
            assert part in text(result)
        assert on.received("mail", "tools/call") == []


async def test_arguments_may_be_written_as_a_text_and_numbers_stay_as_they_are(tmp_path: Path) -> None:
    async with stage(tmp_path, {"a": EVERY}, expose="search") as on:
        await on.up("a")
        client = await on.legacy()
        result = await client.call(CALL, name="a__echo", arguments='{"n": 12345678901234567890123, "f": 1.50}')
        assert value(result)["arguments"] == {"n": 12345678901234567890123, "f": 1.5}
        assert value(await client.call(CALL, name="a__echo"))["arguments"] == {}
        assert value(await client.call(CALL, name="a__echo", arguments=None))["arguments"] == {}


async def test_built_in_tools_can_be_called_through_call_tool(tmp_path: Path) -> None:
    async with stage(tmp_path, {"files": FILES}) as on:
        await on.up("files")
        client = await on.legacy()
        found = text(await through(client, FIND, query="read a file"))
        assert "files__read_file(" in found


@ERAS
@pytest.mark.parametrize("server", ["legacy", "modern"])
async def test_progress_and_cancellation_pass(tmp_path: Path, era: str, server: str) -> None:
    async with stage(tmp_path, {"a": EVERY | {"era": server}}, expose="search") as on:
        await on.up("a")
        client = await client_of(on, era)
        params = {
            "name": CALL,
            "arguments": {"name": "a__progress", "arguments": {"count": 2}},
            "_meta": {"progressToken": "t"},
        }
        await client.request("tools/call", params)
        notices = client.notices("notifications/progress")
        assert [(each["progressToken"], each["progress"], each["x"]) for each in notices] == [
            ("t", 1, "kept"),
            ("t", 2, "kept"),
        ]
        held = client.begin(CALL, name="a__hold", arguments={})
        await eventually(lambda: [each for each in on.received("a", "tools/call") if each["params"]["name"] == "hold"])
        client.cancel(held)
        await client.until(lambda: json.dumps(held) in client.cancelled)
        await eventually(lambda: on.received("a", "notifications/cancelled"))


async def test_a_legacy_client_is_asked_in_the_middle(tmp_path: Path) -> None:
    async with stage(tmp_path, {"a": EVERY | {"era": "legacy"}}, expose="search") as on:
        await on.up("a")
        client = await on.legacy(
            {"sampling": {}},
            createMessage=lambda params: {
                "model": "m",
                "role": "assistant",
                "content": {"type": "text", "text": "yes"},
            },
        )
        question = {"method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 5}}
        result = value(await through(client, "a__asks", questions=[question]))
        assert result["told"][0][0]["content"]["text"] == "yes"


async def test_a_parked_call_goes_on_by_its_retry_and_runs_once(tmp_path: Path) -> None:
    async with stage(tmp_path, {"a": EVERY | {"era": "legacy"}}, expose="search") as on:
        await on.up("a")
        client = on.modern(ABLE)
        inner = asking("elicitation/create")
        params = {"name": CALL, "arguments": {"name": inner["name"], "arguments": inner["arguments"]}}
        result = await first_round(client, params)
        final = await client.request("tools/call", retry(params, result))
        assert value(final) == {"runs": 1, "told": [[ANSWERS["elicitation/create"]]]}
        direct = await first_round(client, inner)
        assert (
            value(await client.request("tools/call", retry(params, direct)))["runs"] == 2
        )  # the same call, however made


async def test_rounds_of_a_modern_server_pass_with_their_state(tmp_path: Path) -> None:
    async with stage(tmp_path, {"a": EVERY | {"era": "modern"}}, expose="search") as on:
        await on.up("a")
        client = on.modern(ABLE)
        question = {
            "method": "elicitation/create",
            "params": {"mode": "form", "message": "?", "requestedSchema": FORM},
        }
        params = {
            "name": CALL,
            "arguments": {"name": "a__rounds", "arguments": {"rounds": 1, "questions": {"q": question}}},
        }
        result = await client.request("tools/call", params)
        assert result["resultType"] == "input_required"
        again = params | {
            "requestState": result["requestState"],
            "inputResponses": {"q": {"action": "accept", "content": {}}},
        }
        assert value(await client.request("tools/call", again)) == {"q": {"action": "accept", "content": {}}}


async def test_list_changes_are_told_for_what_is_shown_alone_and_found_at_once(tmp_path: Path) -> None:
    files = {"tools": [*FILES["tools"], {"name": "change", "inputSchema": OBJECT}]}
    async with stage(tmp_path, {"files": files}, expose="search", pinnedTools=["*list_directory"]) as on:
        await on.up("files")
        client = await on.legacy()
        await client.names()
        entries = [*files["tools"], tool("delete_file", "Deletes a file.")]
        await client.call("files__change", member="tools", entries=entries)
        await eventually(lambda: len(on.upstreams("files")[0].lists["tools"]) == 5)
        assert "files__delete_file(" in text(await client.call(FIND, query="delete a file"))
        assert not client.notices("notifications/tools/list_changed")
        shown = [each for each in entries if each["name"] != "list_directory"]
        await client.call("files__change", member="tools", entries=shown)
        await client.until(lambda: client.notices("notifications/tools/list_changed"))
        assert len(client.notices("notifications/tools/list_changed")) == 1
        assert await client.names() == [FIND, CALL]


async def test_many_searches_at_once_while_the_index_is_built(tmp_path: Path) -> None:
    async with stage(tmp_path, {"files": FILES, "mail": MAIL}, expose="search") as on:
        await on.up("files", "mail")
        client = await on.legacy()
        answers = await asyncio.gather(*(client.call(FIND, query="send e-mail") for _ in range(20)))
        assert {text(answer).splitlines()[1].partition("(")[0] for answer in answers} == {"mail__send_mail"}


async def test_nobody_is_in_the_way_of_the_reserved_names(tmp_path: Path) -> None:
    impostor = {"tools": [tool(FIND, "Not ours."), tool("other")]}
    async with stage(tmp_path, {"a": impostor}, naming="bare", expose="search", pinnedTools=["*"]) as on:
        await on.up("a")
        client = await on.legacy()
        assert await client.names() == [FIND, CALL, "other"]
        await client.call(FIND, query="other")
        assert on.received("a", "tools/call") == []
