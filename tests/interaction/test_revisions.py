"""Each legacy revision gets what it knows, from servers of both eras; every message is checked against its schema."""

import itertools
from pathlib import Path
from typing import Any

import pytest

from polyplex.protocol.revisions import LEGACY_REVISIONS, R2024_11_05, R2025_03_26, R2025_06_18, R2025_11_25
from tests.interaction.scripted_http import scripted_http
from tests.interaction.stage import META, Client, Json, RefusedError, Stage, eventually, stage, value

ERAS = ("legacy", "modern")
PAIRS = list(itertools.product(LEGACY_REVISIONS, ERAS))
SAMPLING, ELICITATION = "sampling/createMessage", "elicitation/create"
TEXT: Json = {"type": "text", "text": "t"}
AUDIO: Json = {"type": "audio", "data": "YQ==", "mimeType": "audio/wav"}
IMAGE: Json = {"type": "image", "data": "aQ==", "mimeType": "image/png"}
LINK: Json = {"type": "resource_link", "uri": "file:///x", "name": "x"}
EMBEDDED: Json = {"type": "resource", "resource": {"uri": "file:///y", "text": "y"}}
BLOCKS = [TEXT, AUDIO, IMAGE, LINK, EMBEDDED]
FORM: Json = {"message": "m", "requestedSchema": {"type": "object", "properties": {"n": {"type": "string"}}}}
URL: Json = {"mode": "url", "message": "m", "url": "https://example.com/"}
SET_LEVEL = "logging/setLevel"
COMPLETE = "notifications/elicitation/complete"


async def of_revision(on: Stage, revision: str, capabilities: Json | None = None, **answers: Any) -> Client:
    client = await on.legacy(capabilities, revision, **answers)
    await on.up(*on.config.servers)
    return client


def expected(revision: str) -> list[Json]:
    """The blocks as a client of a revision gets them."""
    audio: Json = {"uri": "urn:polyplex:audio:1", "blob": "YQ==", "mimeType": "audio/wav"}
    link = LINK | {"uri": "a+file:///x"} if revision >= R2025_06_18 else {"type": "text", "text": "[x] a+file:///x"}
    heard = AUDIO if revision >= R2025_03_26 else {"type": "resource", "resource": audio}
    return [TEXT, heard, IMAGE, link, {"type": "resource", "resource": {"uri": "a+file:///y", "text": "y"}}]


@pytest.mark.parametrize(("revision", "era"), PAIRS)
async def test_content_has_the_types_that_a_client_knows(tmp_path: Path, revision: str, era: str) -> None:
    messages = [{"role": "user", "content": block} for block in BLOCKS]
    async with stage(tmp_path, {"a": {"era": era, "prompts": [{"name": "p"}], "messages": messages}}) as on:
        client = await of_revision(on, revision)
        assert (await client.call("a__result", content=BLOCKS))["content"] == expected(revision)
        prompt = await client.request("prompts/get", {"name": "a__p"})
        assert [message["content"] for message in prompt["messages"]] == expected(revision)


@pytest.mark.parametrize("revision", LEGACY_REVISIONS)
@pytest.mark.parametrize("given", [[1, 2], "text", None, 7])
async def test_values_that_are_no_objects_are_wrapped_with_their_schema(
    tmp_path: Path, revision: str, given: Any
) -> None:
    schema: Json = {"type": ["array", "string", "null", "integer"]}
    tool: Json = {"name": "result", "inputSchema": {"type": "object", "properties": {"x": True}}}
    async with stage(tmp_path, {"a": {"era": "modern", "tools": [tool | {"outputSchema": schema}]}}) as on:
        client = await of_revision(on, revision)
        (listed,) = (await client.request("tools/list"))["tools"]
        assert listed["outputSchema"] == {"type": "object", "properties": {"result": schema}, "required": ["result"]}
        assert listed["inputSchema"]["properties"] == {"x": {}}
        result = await client.call("a__result", content=[], structuredContent=given, x=1)
        if given is not None:  # servers write null for nothing
            assert (result["structuredContent"], value(result)) == ({"result": given}, given)
        modern = on.modern()
        (listed,) = (await modern.request("tools/list"))["tools"]
        assert (listed["outputSchema"], listed["inputSchema"]["properties"]) == (schema, {"x": True})
        if given is not None:
            assert (await modern.call("a__result", content=[], structuredContent=given))["structuredContent"] == given


@pytest.mark.parametrize(("revision", "era"), PAIRS)
async def test_structured_content_is_there_as_text_for_clients_that_do_not_know_it(
    tmp_path: Path, revision: str, era: str
) -> None:
    async with stage(tmp_path, {"a": {"era": era}}) as on:
        client = await of_revision(on, revision)
        result = await client.call("a__result", content=[], structuredContent={"a": [1]})
        assert result["structuredContent"] == {"a": [1]}
        assert result["content"] == [] if revision >= R2025_06_18 else value(result) == {"a": [1]}


async def ask(client: Client, era: str, method: str, params: Json) -> Any:
    """Have the server ask; the answer it got, or the error that it or the client was told."""
    if era == "legacy":
        told = await client.value("a__ask", method=method, params=params)
        return told.get("result") or told["error"]
    try:
        questions = {"q": {"method": method, "params": params}}
        return (await client.value("a__rounds", rounds=1, questions=questions))["q"]
    except RefusedError as error:
        return {"code": error.code, "message": error.message}


DECLARED: Json = {"elicitation": {"form": {}, "url": {}}, "sampling": {"tools": {}}, "roots": {}}
SAMPLED: Json = {"role": "assistant", "model": "m", "content": TEXT}
ACCEPTED: Json = {"action": "accept", "content": {"n": "Ada"}}


@pytest.mark.parametrize(("revision", "era"), PAIRS)
async def test_a_client_is_asked_what_its_revision_has(tmp_path: Path, revision: str, era: str) -> None:
    answers: Any = {"createMessage": lambda params: SAMPLED, "create": lambda params: ACCEPTED}
    tools = {"messages": [], "maxTokens": 1, "tools": [{"name": "t", "inputSchema": {"type": "object"}}]}
    message = {"role": "user", "content": [TEXT, IMAGE]}
    async with stage(tmp_path, {"a": {"era": era}}) as on:
        client = await of_revision(on, revision, DECLARED, **answers)
        assert await ask(client, era, SAMPLING, {"messages": [message], "maxTokens": 1}) == SAMPLED
        (asked,) = client.asked(SAMPLING)
        if revision < R2025_11_25:
            assert [each["content"] for each in asked["params"]["messages"]] == [TEXT, IMAGE]
        else:
            assert asked["params"]["messages"] == [message]
        form = await ask(client, era, ELICITATION, FORM)
        url = await ask(client, era, ELICITATION, URL | ({"elicitationId": "e"} if era == "legacy" else {}))
        with_tools = await ask(client, era, SAMPLING, tools)
        assert (form == ACCEPTED) == (revision >= R2025_06_18), form
        assert (url == ACCEPTED, with_tools == SAMPLED) == (revision >= R2025_11_25,) * 2, (url, with_tools)
        claimed = [each["params"]["capabilities"] for each in on.received("a", "initialize") if era == "legacy"]
        assert all(("elicitation" in each) == (revision >= R2025_06_18) for each in claimed if each)


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(
    ("capabilities", "method", "params"),
    [
        ({"elicitation": {}}, ELICITATION, URL),
        ({"elicitation": {"form": {}}}, ELICITATION, URL),
        ({"elicitation": {"url": {}}}, ELICITATION, FORM),
        ({"sampling": {}}, SAMPLING, {"messages": [], "maxTokens": 1, "toolChoice": {"mode": "auto"}}),
    ],
)
async def test_what_a_client_did_not_declare_is_refused(
    tmp_path: Path, era: str, capabilities: Json, method: str, params: Json
) -> None:
    async with stage(tmp_path, {"a": {"era": era}}) as on:
        client = await of_revision(on, R2025_11_25, capabilities)
        refused = await ask(client, era, method, params)
        assert refused["code"] == (-32602 if era == "legacy" else -32600)
        assert client.asked(method) == []


@pytest.mark.parametrize("era", ERAS)
async def test_choices_of_forms_can_be_made_by_older_clients(tmp_path: Path, era: str) -> None:
    titled = [{"const": "r", "title": "Red"}, {"const": "g", "title": "Green"}]
    properties: Json = {
        "one": {"type": "string", "oneOf": titled},
        "many": {"type": "array", "items": {"anyOf": titled}},
    }
    form: Json = {"message": "m", "requestedSchema": {"type": "object", "properties": properties}}
    async with stage(tmp_path, {"a": {"era": era}}) as on:
        accepted = {"action": "accept", "content": {"one": "r", "many": "r, g"}}
        client = await of_revision(on, R2025_06_18, DECLARED, create=lambda params: accepted)
        answer = await ask(client, era, ELICITATION, form)
        assert answer == {"action": "accept", "content": {"one": "r", "many": ["r", "g"]}}
        (asked,) = client.asked(ELICITATION)
        shown = asked["params"]["requestedSchema"]["properties"]
        assert shown["one"] == {"type": "string", "enum": ["r", "g"], "enumNames": ["Red", "Green"]}
        assert "r (Red), g (Green)" in shown["many"]["description"]


async def test_an_older_server_gets_one_block_for_an_answer(tmp_path: Path) -> None:
    async with stage(tmp_path, {"a": {"era": "legacy", "revision": R2024_11_05}}) as on:
        said = SAMPLED | {"content": [TEXT, AUDIO]}
        client = await of_revision(on, R2025_11_25, DECLARED, createMessage=lambda params: said)
        answer = await ask(client, "legacy", SAMPLING, {"messages": [], "maxTokens": 1})
        assert answer["content"] == {"type": "text", "text": "t\ndata:audio/wav;base64,YQ=="}


@pytest.mark.parametrize("revision", LEGACY_REVISIONS)
async def test_context_of_completions_reaches_the_servers_that_know_it(tmp_path: Path, revision: str) -> None:
    async with stage(tmp_path, {"a": {"era": "legacy", "revision": revision, "prompts": [{"name": "p"}]}}) as on:
        client = await of_revision(on, R2025_11_25)
        reference: Json = {"ref": {"type": "ref/prompt", "name": "a__p"}, "argument": {"name": "w", "value": ""}}
        await client.request("completion/complete", reference | {"context": {"arguments": {"v": "1"}}})
        (asked,) = on.received("a", "completion/complete")
        assert ("context" in asked["params"]) == (revision >= R2025_06_18)


async def test_a_modern_server_is_not_told_of_tasks_that_are_not_its_own(tmp_path: Path) -> None:
    async with stage(tmp_path, {"a": {"era": "modern"}}) as on:
        client = await of_revision(on, R2025_11_25, DECLARED | {"tasks": {"list": {}}})
        seen = (await client.value("a__echo"))["_meta"][META + "clientCapabilities"]
        assert seen == DECLARED


VISIT: Json = {"mode": "url", "elicitationId": "e", "url": "https://example.com/", "message": "Log in"}


@pytest.mark.parametrize("revision", LEGACY_REVISIONS)
async def test_a_url_that_must_be_visited_first_is_told_to_every_client(tmp_path: Path, revision: str) -> None:
    error: Json = {"code": -32042, "message": "first", "data": {"elicitations": [VISIT]}}
    async with stage(
        tmp_path, {"a": {"era": "legacy", "prompts": [{"name": "p"}], "refuse": {"prompts/get": error}}}
    ) as on:
        client = await of_revision(on, revision, DECLARED)
        with pytest.raises(RefusedError) as caught:
            await client.request("prompts/get", {"name": "a__p"})
        assert caught.value.data == error["data"]
        if revision == R2025_11_25:
            assert caught.value.code == -32042
            with pytest.raises(RefusedError) as caught:
                await client.call("a__error", **error)
            assert (caught.value.code, caught.value.data) == (-32042, error["data"])
        else:
            assert (caught.value.code, caught.value.message) == (-32603, "first\nLog in: https://example.com/")
            result = await client.call("a__error", **error)
            assert (result["isError"], result["content"][0]["text"]) == (True, caught.value.message)


@pytest.mark.parametrize("action", ["accept", "decline"])
async def test_a_modern_server_that_goes_on_has_done_with_the_url(tmp_path: Path, action: str) -> None:
    async with stage(tmp_path, {"a": {"era": "modern"}}) as on:
        client = await of_revision(on, R2025_11_25, DECLARED, create=lambda params: {"action": action})
        questions = {"q": {"method": ELICITATION, "params": URL}}
        assert await client.value("a__rounds", rounds=2, questions=questions) == {"q": {"action": action}}
        asked = [each["params"]["elicitationId"] for each in client.asked(ELICITATION)]
        assert len(set(asked)) == 2
        done = [params["elicitationId"] for params in client.notices(COMPLETE)]
        assert done == (asked if action == "accept" else [])


async def test_notices_of_other_revisions_do_not_reach_a_client(tmp_path: Path) -> None:
    async with stage(tmp_path, {"a": {"era": "legacy"}}) as on:
        older = await of_revision(on, R2025_06_18)
        await older.call("a__echo")
        task = {"taskId": "t", "status": "working", "ttl": None, "createdAt": "x", "lastUpdatedAt": "x"}
        for method, params in (
            ("notifications/tasks/status", task),
            (COMPLETE, {"elicitationId": "e"}),
            ("notifications/roots/list_changed", {}),
            ("notifications/vendor/thing", {}),
        ):
            await older.call("a__notify", method=method, params=params)
        await older.until(lambda: older.notices("notifications/vendor/thing"))
        assert {frame["method"] for frame in older.frames if "method" in frame} == {"notifications/vendor/thing"}


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("code", [-32002, -32020, -32021, -32022, -32050, -32099])
async def test_codes_of_servers_are_translated_for_everybody(tmp_path: Path, era: str, code: int) -> None:
    async with stage(tmp_path, {"a": {"era": era}}) as on:
        await on.up("a")
        for client in (on.modern(), await on.legacy()):
            with pytest.raises(RefusedError) as caught:
                await client.call("a__error", code=code, message="m", data={"x": 1})
            assert (caught.value.message, caught.value.data) == ("m", {"x": 1})


async def levels(client: Client) -> list[str]:
    """The levels of the messages that a client got, of one at each level."""
    before = len(client.notices("notifications/message"))
    for level in ("debug", "info", "warning", "error"):
        await client.call("a__log", level=level, data=1)
    return [params["level"] for params in client.notices("notifications/message")[before:]]


async def test_a_legacy_server_is_told_the_lowest_level_that_modern_clients_want(tmp_path: Path) -> None:
    async with (
        scripted_http(era="legacy") as server,
        stage(tmp_path, {"a": {"url": server.url, "type": "http"}}) as on,
    ):
        await on.up("a")

        def told() -> list[str]:
            return [each["params"]["level"] for each in server.script.journal if each.get("method") == SET_LEVEL]

        client = on.modern()
        assert await levels(client) == [], "it names no level"
        client.log_level = "warning"
        assert await levels(client) == ["warning", "error"]
        client.log_level = "error"
        assert await levels(client) == ["error"]
        client.log_level = "info"
        assert await levels(client) == ["info", "warning", "error"]
        client.log_level = None
        assert await levels(client) == []
        assert told() == ["warning", "info"], "once for each level that is lower"
        server.forget()
        await client.call("a__echo")
        await eventually(lambda: told() == ["warning", "info", "info"])


async def test_each_of_two_calls_gets_its_own_messages_over_http(tmp_path: Path) -> None:
    async with (
        scripted_http(era="legacy") as server,
        stage(tmp_path, {"a": {"url": server.url, "type": "http"}}) as on,
    ):
        await on.up("a")
        one, two = on.modern(), on.modern()
        one.log_level, two.log_level = "debug", "error"
        held = one.begin("a__hold", key="k")
        assert await levels(two) == ["error"]
        await two.call("a__release", key="k")
        await one.response(held)
        assert one.notices("notifications/message") == []


async def test_a_modern_server_on_stdio_sends_messages_for_calls_that_named_a_level(tmp_path: Path) -> None:
    async with stage(tmp_path, {"a": {"era": "modern"}}) as on:
        await on.up("a")
        one, two = on.modern(), on.modern()
        two.log_level = "info"
        held = one.begin("a__hold", key="k")
        assert await levels(two) == ["info", "warning", "error"], "the other call asked for none"
        await two.call("a__release", key="k")
        await one.response(held)
        one.log_level = "debug"
        held = one.begin("a__hold", key="k")
        assert await levels(two) == [], "it may be of either"
        await two.call("a__release", key="k")
        await one.response(held)
        assert one.notices("notifications/message") == []


async def test_a_legacy_server_on_stdio_sends_messages_for_the_only_call_under_way(tmp_path: Path) -> None:
    async with stage(tmp_path, {"a": {"era": "legacy"}}) as on:
        await on.up("a")
        one, two = on.modern(), on.modern()
        assert await levels(two) == [], "it names no level"
        two.log_level = "warning"
        assert await levels(two) == ["warning", "error"]
        one.log_level = "debug"
        held = one.begin("a__hold", key="k")
        assert await levels(two) == [], "it may be of either"
        await two.call("a__release", key="k")
        await one.response(held)
        assert one.notices("notifications/message") == []
