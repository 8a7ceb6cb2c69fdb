"""The check of all messages finds what it is there for, and fails the test that caused it."""

from pathlib import Path
from typing import Any

import pytest

from tests.interaction.stage import stage
from tests.wire import watch
from tests.wire.schema import LATEST_LEGACY, MODERN, RESERVED, REVISIONS, Json, definitions, problems

TEXT: Json = {"content": [{"type": "text", "text": "x"}]}
AUDIO: Json = {"content": [{"type": "audio", "data": "", "mimeType": "audio/wav"}]}
LINK: Json = {"content": [{"type": "resource_link", "uri": "file:///x", "name": "x"}]}
COMPLETE: Json = {"resultType": "complete"}
ENVELOPE: Json = {RESERVED + "protocolVersion": MODERN, RESERVED + "clientCapabilities": {}}


def result(members: Json) -> Json:
    return {"jsonrpc": "2.0", "id": 1, "result": members}


def error(code: int) -> Json:
    return {"jsonrpc": "2.0", "id": 1, "error": {"code": code, "message": "m"}}


def call(method: str, **params: Any) -> Json:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def notice(method: str, **params: Any) -> Json:
    return {"jsonrpc": "2.0", "method": method, "params": params}


@pytest.mark.parametrize("revision", REVISIONS)
def test_what_every_revision_allows_is_no_problem(revision: str) -> None:
    modern = revision == MODERN
    assert problems(result(TEXT | (COMPLETE if modern else {})), revision, "server", "tools/call") == []
    params: Json = {"name": "t"} | ({"_meta": ENVELOPE} if modern else {})
    assert problems(call("tools/call", **params), revision, "client") == []
    assert problems(error(-32602), revision, "server") == []
    assert problems({**error(-32700), "id": None}, revision, "server") == []
    assert problems(notice("notifications/vendor/thing", x=1), revision, "server") == []
    if not modern:
        question = call("sampling/createMessage", messages=[], maxTokens=1)
        assert problems(question, revision, "server") == []


WRONG: dict[str, tuple[Any, str, str | None]] = {
    "audio before it was there": (result(AUDIO), "2024-11-05", "tools/call"),
    "a link before it was there": (result(LINK), "2025-03-26", "tools/call"),
    "a member left out": (result({}), LATEST_LEGACY, "tools/call"),
    "no result type": (result(TEXT), MODERN, "tools/call"),
    "no time to live": (result({"tools": []} | COMPLETE), MODERN, "tools/list"),
    "a result type for a legacy client": (result(TEXT | COMPLETE), LATEST_LEGACY, "tools/call"),
    "a reserved key": (result(TEXT | {"_meta": {RESERVED + "serverInfo": {}}}), "2025-06-18", "tools/call"),
    "an answer to nothing": (result(TEXT), LATEST_LEGACY, None),
    "structured content that is no object": (result(TEXT | {"structuredContent": [1]}), LATEST_LEGACY, "tools/call"),
    "a list in a single answer": ([result(TEXT)], "2025-06-18", "tools/call"),
    "not even an object": ("text", MODERN, None),
    "a legacy code": (error(-32002), MODERN, None),
    "a code that nobody defined": (error(-32050), MODERN, None),
    "a modern code": (error(-32021), LATEST_LEGACY, None),
    "a code of the last legacy revision": (error(-32042), "2025-06-18", None),
    "a question to a modern client": (call("roots/list"), MODERN, None),
    "a question before it was there": (
        call("elicitation/create", message="m", requestedSchema={"type": "object", "properties": {}}),
        "2025-03-26",
        None,
    ),
    "a form without a schema": (call("elicitation/create", message="m"), LATEST_LEGACY, None),
    "a notice before it was there": (
        notice("notifications/elicitation/complete", elicitationId="e"),
        "2025-06-18",
        None,
    ),
    "a notice without params": ({"jsonrpc": "2.0", "method": "notifications/progress"}, "2024-11-05", None),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_a_revision_does_not_allow_is_found(name: str) -> None:
    message, revision, answers = WRONG[name]
    assert problems(message, revision, "server", answers) != []


@pytest.mark.parametrize(
    ("message", "revision"),
    [
        (call("tools/call", name="t"), MODERN),
        (call("tools/call", name="t", _meta=ENVELOPE), LATEST_LEGACY),
        (call("ping"), MODERN),
        (call("server/discover", _meta=ENVELOPE), LATEST_LEGACY),
        (notice("notifications/initialized"), MODERN),
        (call("tasks/get", _meta=ENVELOPE), MODERN),
    ],
)
def test_requests_to_servers_are_checked_too(message: Json, revision: str) -> None:
    assert problems(message, revision, "client") != []


def test_all_methods_of_all_revisions_have_results() -> None:
    for revision in REVISIONS:
        assert {"CallToolResult", "ListToolsResult", "ReadResourceResult"} <= definitions(revision).keys()


def test_a_batch_is_checked_message_by_message() -> None:
    line = watch.Line("here", "client", "2025-03-26")
    line.came([call("tools/call", name="t") | {"id": 1}, call("tools/list") | {"id": 2}])
    line.sent([result(TEXT), {**result({"tools": []}), "id": 2}])
    watch.check({})
    line.sent([result(TEXT), {**result(TEXT), "id": 2}])
    with pytest.raises(AssertionError, match="no ListToolsResult"):
        watch.check({})


def test_a_conversation_is_checked_in_the_revision_it_agreed_on() -> None:
    line = watch.Line("here", "client")
    line.came(call("initialize"))
    agreed = {"protocolVersion": "2025-03-26", "capabilities": {}, "serverInfo": {"name": "n", "version": "1"}}
    line.sent(result(agreed))
    line.came(call("tools/call", name="t"))
    line.sent(result(AUDIO))
    watch.check({})
    line.sent(result(LINK))
    with pytest.raises(AssertionError, match="of 2025-03-26"):
        watch.check({})


def test_an_excuse_needs_something_to_excuse() -> None:
    watch.report("here", {}, ["odd"])
    watch.check({"^here: odd": "as this test wants it"})
    with pytest.raises(AssertionError, match="excused by off_schema, but not found"):
        watch.check({"odd": "no longer"})


@pytest.mark.xfail(strict=True, raises=AssertionError, reason="the server's garbage has no excuse")
@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_a_test_fails_in_which_a_client_gets_what_is_not_allowed(tmp_path: Path, era: str) -> None:
    async with stage(tmp_path, {"a": {"era": era}}) as on:
        client = on.modern() if era == "modern" else await on.legacy()
        await on.up("a")
        assert await client.call("a__result", content=[{"type": "text"}])


@pytest.mark.xfail(strict=True, raises=AssertionError, reason="the client's garbage has no excuse")
async def test_a_test_fails_in_which_a_server_gets_what_is_not_allowed(tmp_path: Path) -> None:
    async with stage(tmp_path, {"a": {"era": "legacy"}}) as on:
        client = await on.legacy({"roots": {}}, list=lambda params: {"roots": [{"uri": 7}]})
        assert await client.value("a__ask", method="roots/list")
