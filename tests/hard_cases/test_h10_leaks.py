"""H10: nothing that only one era or revision has reaches a peer of another. Every message is checked (tests/wire)."""

import itertools
from pathlib import Path
from typing import Any

import pytest

from polyplex.protocol.revisions import LATEST_MODERN, LEGACY_REVISIONS, R2025_11_25
from tests.interaction.stage import META, Client, Json, RefusedError, Stage, stage

REVISIONS = (*LEGACY_REVISIONS, LATEST_MODERN)
PAIRS = list(itertools.product(REVISIONS, REVISIONS))
VISIT: Json = {"mode": "url", "elicitationId": "e", "url": "https://example.com/", "message": "m"}
URL_REQUIRED: Json = {"code": -32042, "message": "first", "data": {"elicitations": [VISIT]}}
CAPABILITIES: Json = {"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}}
CONTENT: Json = {
    "resources": [{"uri": "file:///x", "name": "x"}],
    "resourceTemplates": [{"uriTemplate": "db://{id}", "name": "d"}],
    "prompts": [{"name": "p", "arguments": [{"name": "w"}]}],
    "cacheScope": "private",
}
REQUESTS: dict[str, Json] = {
    "tools/list": {},
    "resources/list": {},
    "resources/templates/list": {},
    "prompts/list": {},
    "tools/call": {"name": "a__fail", "arguments": {}},
    "resources/read": {"uri": "a+file:///x"},
    "prompts/get": {"name": "a__p", "_meta": {"vendor": 1, "progressToken": "t"}},
    "completion/complete": {"ref": {"type": "ref/prompt", "name": "a__p"}, "argument": {"name": "w", "value": "v"}},
}
FOREIGN = {"resultType", "ttlMs", "cacheScope", "inputRequests", "requestState"}


def server(revision: str) -> Json:
    """A server of one revision."""
    if revision == LATEST_MODERN:
        return CONTENT | {"era": "modern"}
    return CONTENT | {"era": "legacy", "revision": revision}


async def client_of(on: Stage, revision: str) -> Client:
    """A client of one revision."""
    client = on.modern(CAPABILITIES) if revision == LATEST_MODERN else await on.legacy(CAPABILITIES, revision)
    await on.up("a")
    return client


def members(found: Any) -> set[str]:
    """All names of members, at any depth."""
    if isinstance(found, dict):
        return set(found).union(*map(members, found.values()))
    return set[str]().union(*map(members, found)) if isinstance(found, list) else set()


@pytest.mark.parametrize(("client_revision", "server_revision"), PAIRS)
async def test_nothing_of_one_revision_reaches_another(
    tmp_path: Path, client_revision: str, server_revision: str
) -> None:
    async with stage(tmp_path, {"a": server(server_revision)}) as on:
        client = await client_of(on, client_revision)
        for method, params in REQUESTS.items():
            result = await client.request(method, params)
            names = members(result)
            if client_revision == LATEST_MODERN:
                assert result["resultType"] == "complete"
                assert ("ttlMs" in result) == ("cacheScope" in result) == (method in CACHED), method
            else:
                assert not names & FOREIGN, method
                assert not [name for name in names if name.startswith(META)], method
        seen = await client.value("a__echo", x=1)
        assert (META + "protocolVersion" in seen.get("_meta", {})) == (server_revision == LATEST_MODERN)


CACHED = {"tools/list", "resources/list", "resources/templates/list", "prompts/list", "resources/read"}


@pytest.mark.parametrize(("client_revision", "server_revision"), PAIRS)
async def test_a_missing_resource_has_the_code_of_the_clients_era(
    tmp_path: Path, client_revision: str, server_revision: str
) -> None:
    async with stage(tmp_path, {"a": server(server_revision)}) as on:
        client = await client_of(on, client_revision)
        with pytest.raises(RefusedError) as caught:
            await client.request("resources/read", {"uri": "a+db://missing"})
        assert caught.value.code == (-32602 if client_revision == LATEST_MODERN else -32002)
        assert caught.value.data == {"uri": "a+db://missing"}


@pytest.mark.parametrize(("client_revision", "server_revision"), PAIRS)
async def test_the_url_error_reaches_the_one_revision_that_has_it(
    tmp_path: Path, client_revision: str, server_revision: str
) -> None:
    async with stage(tmp_path, {"a": server(server_revision)}) as on:
        client = await client_of(on, client_revision)
        identifier = client.begin("a__error", **URL_REQUIRED)
        try:
            result = await client.response(identifier)
        except RefusedError as error:
            assert error.code == (-32042 if client_revision == R2025_11_25 else -32603)
            return
        if client_revision == LATEST_MODERN:
            (asked,) = result["inputRequests"].values()
            assert (asked["params"]["url"], "elicitationId" in asked["params"]) == (VISIT["url"], False)
        else:
            assert (client_revision < R2025_11_25, result["isError"]) == (True, True)
            assert VISIT["url"] in result["content"][0]["text"]


@pytest.mark.parametrize(("client_revision", "server_revision"), PAIRS)
async def test_notices_of_a_call_have_the_form_of_the_client(
    tmp_path: Path, client_revision: str, server_revision: str
) -> None:
    async with stage(tmp_path, {"a": server(server_revision)}) as on:
        client = await client_of(on, client_revision)
        client.log_level = "debug"
        if client_revision != LATEST_MODERN:
            await client.request("logging/setLevel", {"level": "debug"})
        call = {"name": "a__progress", "arguments": {"count": 2}, "_meta": {"progressToken": "t"}}
        await client.request("tools/call", call)
        assert [each["progressToken"] for each in client.notices("notifications/progress")] == ["t", "t"]
        await client.call("a__log", level="info", data={"a": None})
        await client.until(lambda: client.notices("notifications/message"))
        assert client.notices("notifications/message") == [{"level": "info", "data": {"a": None}}]
        if server_revision != LATEST_MODERN:
            assert [each["params"] for each in on.received("a", "logging/setLevel")] == [{"level": "debug"}]
