"""Everything that passes: names, URIs, tokens, ids, notices, errors, in both eras (PROTOCOL: 1, 2, H9, H10, H15)."""

import itertools
from pathlib import Path
from typing import Any

import pytest
from mcp_types.methods import validate_server_result

from polyplex.protocol.revisions import LATEST_LEGACY, LATEST_MODERN, Era
from tests.interaction.scripted_http import scripted_http
from tests.interaction.stage import META, Client, Json, RefusedError, Stage, eventually, stage, text, value

ERAS = ("legacy", "modern")
PAIRS = list(itertools.product(ERAS, ERAS))
CONTENT: Json = {
    "resources": [{"uri": "file:///x", "name": "x"}],
    "resourceTemplates": [{"uriTemplate": "db://{id}", "name": "d"}],
    "prompts": [{"name": "p", "arguments": [{"name": "w"}]}],
}
UPDATED = "notifications/resources/updated"


async def client_of(on: Stage, era: str) -> Client:
    client = on.modern() if era == "modern" else await on.legacy()
    await on.up(*on.config.servers)
    return client


def leaks(value: Any) -> set[str]:
    """Members and keys of the modern era in a result."""
    if isinstance(value, dict):
        found = {key for key in value if key in ("resultType", "ttlMs", "cacheScope") or key.startswith(META)}
        return found.union(*map(leaks, value.values()))
    return set().union(*map(leaks, value)) if isinstance(value, list) else set()


REQUESTS: dict[str, Json] = {
    "tools/list": {},
    "resources/list": {},
    "resources/templates/list": {},
    "prompts/list": {},
    "tools/call": {"name": "a__fail", "arguments": {}},
    "resources/read": {"uri": "a+file:///x"},
    "prompts/get": {"name": "a__p"},
    "completion/complete": {"ref": {"type": "ref/prompt", "name": "a__p"}, "argument": {"name": "w", "value": "v"}},
}


@pytest.mark.parametrize(("client_era", "server_era"), PAIRS)
async def test_every_result_has_the_shape_of_its_clients_era(tmp_path: Path, client_era: str, server_era: str) -> None:
    async with stage(tmp_path, {"a": CONTENT | {"era": server_era, "cacheScope": "private"}}) as on:
        client = await client_of(on, client_era)
        revision = LATEST_MODERN if client_era == "modern" else LATEST_LEGACY
        for method, params in REQUESTS.items():
            result = await client.request(method, params)
            validate_server_result(method, revision, result)
            if client_era == "legacy":
                assert leaks(result) == set(), method
            else:
                assert result["resultType"] == "complete"
                assert ("ttlMs" in result) == (method.endswith("list") or method == "resources/read")


@pytest.mark.parametrize(("client_era", "server_era"), PAIRS)
async def test_errors_keep_their_code_and_data(tmp_path: Path, client_era: str, server_era: str) -> None:
    async with stage(tmp_path, {"a": CONTENT | {"era": server_era}, "b": CONTENT}) as on:
        client = await client_of(on, client_era)
        failed = await client.call("a__fail")
        assert (failed["isError"], text(failed)) == (True, "it failed"), "a tool's failure stays a result"
        with pytest.raises(RefusedError) as caught:
            await client.call("a__error", code=1234, message="no é", data={"n": 2**60, "x": None})
        assert (caught.value.code, caught.value.message) == (1234, "no é")
        assert caught.value.data == {"n": 2**60, "x": None}
        with pytest.raises(RefusedError) as caught:
            await client.request("resources/read", {"uri": "a+db://missing"})
        assert caught.value.code == (-32602 if client_era == "modern" else -32002)
        with pytest.raises(RefusedError) as caught:
            await client.request("resources/read", {"uri": "nowhere:1"})
        assert caught.value.code == (-32602 if client_era == "modern" else -32002)
        assert caught.value.data == {"uri": "nowhere:1"}
        for method in ("tools/call", "prompts/get"):
            with pytest.raises(RefusedError) as caught:
                await client.request(method, {"name": "a__nothing"})
            assert caught.value.code == -32602
        with pytest.raises(RefusedError) as caught:
            await client.request("no/such/method")
        assert caught.value.code == -32601


async def test_methods_of_the_other_era_do_not_exist(tmp_path: Path) -> None:
    async with stage(tmp_path, {"a": {}}) as on:
        legacy, modern = await on.legacy(), on.modern()
        assert await legacy.request("ping") == {}
        for client, methods in (
            (legacy, ("server/discover", "subscriptions/listen")),
            (modern, ("initialize", "ping")),
        ):
            for method in methods:
                with pytest.raises(RefusedError) as caught:
                    await client.request(method)
                assert caught.value.code == -32601


@pytest.mark.parametrize("era", ERAS)
async def test_names_and_uris_are_the_servers_own_on_its_side(tmp_path: Path, era: str) -> None:
    servers = {"a": CONTENT | {"era": era}, "b": CONTENT | {"era": era}}
    async with stage(tmp_path, servers) as on:
        client = await client_of(on, "legacy")
        for server in servers:
            assert await client.names("prompts/list", "prompts") == ["a__p", "b__p"]
            read = await client.request("resources/read", {"uri": f"{server}+file:///x"})
            assert read["contents"] == [{"uri": f"{server}+file:///x", "text": "file:///x"}]
            read = await client.request("resources/read", {"uri": f"{server}+db://7"})
            assert read["contents"][0]["uri"] == f"{server}+db://7"
            for reference, local in (
                ({"type": "ref/prompt", "name": f"{server}__p"}, {"type": "ref/prompt", "name": "p"}),
                (
                    {"type": "ref/resource", "uri": f"{server}+db://{{id}}"},
                    {"type": "ref/resource", "uri": "db://{id}"},
                ),
            ):
                argument = {"name": "id", "value": ""}
                result = await client.request("completion/complete", {"ref": reference, "argument": argument})
                assert value({"content": [{"text": result["completion"]["values"][0]}]}) == local
            assert [message["params"]["name"] for message in on.received(server, "tools/call")] == []


LINKS: Json = {
    "content": [
        {"type": "resource_link", "uri": "file:///l", "name": "l", "x": 1},
        {"type": "resource", "resource": {"uri": "ui://v/1", "mimeType": "text/html;profile=mcp-app", "text": "<p>"}},
        {"type": "text", "text": 'a "resource" of file:///l'},
        {"type": "vendor", "resource": "file:///l"},
    ],
    "_meta": {"ui": {"resourceUri": "ui://v/1", "csp": {}}, "vendor": [1]},
    "structuredContent": {"resource": {"uri": "file:///l"}},
    "vendor": {"a": None},
}


@pytest.mark.off_schema("content/3", reason="a vendor's content block passes between peers of one era")
@pytest.mark.parametrize("era", ERAS)
async def test_links_in_results_get_public_uris_that_can_be_read(tmp_path: Path, era: str) -> None:
    async with stage(tmp_path, {"a": CONTENT | {"era": era}}) as on:
        client = await client_of(on, era)
        result = await client.call("a__result", **LINKS)
        link, embedded, *rest = result["content"]
        assert link == LINKS["content"][0] | {"uri": "a+file:///l"}
        assert embedded["resource"]["uri"] == "ui://a/v/1"
        assert rest == LINKS["content"][2:]
        assert result["_meta"]["ui"] == {"resourceUri": "ui://a/v/1", "csp": {}}
        assert result["_meta"]["vendor"] == [1]
        assert (result["structuredContent"], result["vendor"]) == (LINKS["structuredContent"], LINKS["vendor"])
        for uri, local in (("a+file:///l", "file:///l"), ("ui://a/v/1", "ui://v/1")):
            assert (await client.request("resources/read", {"uri": uri}))["contents"][0]["text"] == local


async def test_links_in_prompts_and_tools_get_public_uris(tmp_path: Path) -> None:
    messages = [{"role": "user", "content": {"type": "resource", "resource": {"uri": "file:///m", "text": "t"}}}]
    app: Json = {"name": "t", "inputSchema": {"type": "object"}, "_meta": {"ui": {"resourceUri": "ui://v"}}}
    async with stage(tmp_path, {"a": CONTENT | {"messages": messages, "tools": [app]}}) as on:
        client = await client_of(on, "legacy")
        prompt = await client.request("prompts/get", {"name": "a__p"})
        assert prompt["messages"][0]["content"]["resource"] == {"uri": "a+file:///m", "text": "t"}
        (tool,) = (await client.request("tools/list"))["tools"]
        assert tool["_meta"]["ui"] == {"resourceUri": "ui://a/v"}


@pytest.mark.parametrize(("client_era", "server_era"), PAIRS)
@pytest.mark.parametrize("token", [7_000_007, "7", "t", 0])  # 7 may be an id of polyplex's by chance
async def test_progress_comes_with_the_clients_own_token(
    tmp_path: Path, client_era: str, server_era: str, token: Any
) -> None:
    async with stage(tmp_path, {"a": {"era": server_era}}) as on:
        client = await client_of(on, client_era)
        params: Json = {"name": "a__progress", "arguments": {"count": 3}, "_meta": {"progressToken": token}}
        sent = value(await client.request("tools/call", params))
        assert sent != token, "two clients may choose the same"
        notices = client.notices("notifications/progress")
        assert notices == [{"progressToken": token, "progress": step, "x": "kept"} for step in (1, 2, 3)]
        assert "result" in client.frames[-1], "the result is last"


async def test_equal_tokens_and_ids_of_two_clients_do_not_mix(tmp_path: Path) -> None:
    async with stage(tmp_path, {"a": {}}) as on:
        clients = [await on.legacy() for _ in range(2)]
        for number, client in enumerate(clients):
            arguments = {"count": number + 1, "hold": str(number)}
            params: Json = {"name": "a__progress", "arguments": arguments, "_meta": {"progressToken": "same"}}
            client.send("tools/call", params, identifier="same")
        for number, client in enumerate(clients):
            await clients[0].call("a__release", key=str(number))
            assert text(await client.response("same")) == '"released"'
            assert len(client.notices("notifications/progress")) == number + 1
        calls = on.received("a", "tools/call")
        assert len({call["id"] for call in calls}) == len(calls)


FRACTION = pytest.mark.off_schema("id: 1.5 is not of type", reason="JSON-RPC knows such ids, so they come back")


@pytest.mark.parametrize("identifier", [0, -1, 2**53, "", "1", "é", pytest.param(1.5, marks=FRACTION)])
async def test_an_id_comes_back_with_its_type(tmp_path: Path, identifier: Any) -> None:
    async with stage(tmp_path, {"a": {}}) as on:
        client = await client_of(on, "legacy")
        result = await client.request("tools/call", {"name": "a__echo", "arguments": {}}, identifier)
        assert value(result)["name"] == "echo"


@pytest.mark.parametrize(("client_era", "server_era"), PAIRS)
async def test_a_cancelled_call_reaches_the_server_and_gets_no_answer(
    tmp_path: Path, client_era: str, server_era: str
) -> None:
    async with stage(tmp_path, {"a": {"era": server_era}}) as on:
        client = await client_of(on, client_era)
        identifier = client.begin("a__hold")
        assert await client.value("a__pid")
        client.cancel(identifier)
        journal = await client.value("a__journal")
        (held,) = [each for each in journal if each.get("params", {}).get("name") == "hold"]
        cancelled = [each for each in journal if each["method"] == "notifications/cancelled"]
        assert [each["params"]["requestId"] for each in cancelled] == [held["id"]]
        assert str(identifier) not in client.responses
        assert str(identifier) in client.cancelled


async def test_over_modern_http_a_call_is_cancelled_by_closing_its_stream(tmp_path: Path) -> None:
    async with scripted_http(era="modern") as server, stage(tmp_path, {"a": {"url": server.url, "type": "http"}}) as on:
        client = await client_of(on, "legacy")
        identifier = client.begin("a__hold")
        await eventually(lambda: server.script.held)
        client.cancel(identifier)
        (held,) = [each for each in server.script.journal if each.get("params", {}).get("name") == "hold"]
        assert await server.closed.get() == held["id"]
        assert [each for each in server.script.journal if each.get("method") == "notifications/cancelled"] == []


@pytest.mark.parametrize("era", ERAS)
async def test_subscriptions_are_counted_and_updates_renamed(tmp_path: Path, era: str) -> None:
    async with stage(tmp_path, {"a": CONTENT | {"era": era}}) as on:
        one, two, other = [await on.legacy() for _ in range(3)]
        await on.up("a")
        for client in (one, two):
            await client.request("resources/subscribe", {"uri": "a+file:///x"})
        subscribed = "resources/subscribe" if era == "legacy" else "subscriptions/listen"
        assert [bool(opened(message)) for message in on.received("a", subscribed)].count(True) == 1
        await other.call("a__update", uri="file:///x")
        for client in (one, two):
            await client.until(lambda client=client: client.notices(UPDATED))
            assert client.notices(UPDATED) == [{"uri": "a+file:///x"}]
        await one.request("resources/unsubscribe", {"uri": "a+file:///x"})
        await other.call("a__update", uri="file:///x")
        await two.until(lambda: len(two.notices(UPDATED)) == 2)
        two.close()
        ended = "resources/unsubscribe" if era == "legacy" else "notifications/cancelled"
        await eventually(lambda: on.received("a", ended))
        await other.call("a__update", uri="file:///x")
        assert (len(one.notices(UPDATED)), other.notices(UPDATED)) == (1, [])


def opened(message: Json) -> Any:
    """The subscription in a subscribe or listen request."""
    return message["params"].get("uri") or message["params"]["notifications"].get("resourceSubscriptions")


@pytest.mark.parametrize("era", ERAS)
async def test_subscriptions_are_renewed_after_a_restart(tmp_path: Path, era: str) -> None:
    async with stage(tmp_path, {"a": CONTENT | {"era": era}}) as on:
        client = await client_of(on, "legacy")
        await client.request("resources/subscribe", {"uri": "a+file:///x"})
        await client.call("a__die")
        await client.call("a__echo")
        method = "resources/subscribe" if era == "legacy" else "subscriptions/listen"
        await eventually(lambda: [bool(opened(message)) for message in on.received("a", method)].count(True) == 2)
        await client.call("a__update", uri="file:///x")
        await client.until(lambda: client.notices(UPDATED))


@pytest.mark.parametrize("era", ERAS)
async def test_a_modern_client_listens(tmp_path: Path, era: str) -> None:
    async with stage(tmp_path, {"a": CONTENT | {"era": era}, "b": CONTENT}) as on:
        client = await client_of(on, "modern")
        wanted: Json = {
            "toolsListChanged": True,
            "resourceSubscriptions": ["a+file:///x", "nowhere:1"],
            "unknown": True,
        }
        identifier = client.send("subscriptions/listen", {"notifications": wanted}, identifier="s")
        await client.until(lambda: client.frames)
        assert client.frames[0]["method"] == "notifications/subscriptions/acknowledged"
        meta = {META + "subscriptionId": identifier}
        honoured = {"toolsListChanged": True, "resourceSubscriptions": ["a+file:///x"]}
        assert client.frames[0]["params"] == {"notifications": honoured, "_meta": meta}
        await client.call("a__update", uri="file:///x")
        await client.until(lambda: client.notices(UPDATED))
        assert client.notices(UPDATED) == [{"uri": "a+file:///x", "_meta": meta}]
        for member in ("prompts", "tools"):
            entries = [{"name": "change", "inputSchema": {"type": "object"}}]
            await client.call("a__change", member=member, entries=entries)
        changed = "notifications/tools/list_changed"
        await client.until(lambda: client.notices(changed))
        assert client.notices(changed) == [{"_meta": meta}]
        assert client.notices("notifications/prompts/list_changed") == []
        on.gateway.drain()
        assert await client.response(identifier) == {"resultType": "complete", "_meta": meta}


async def levels(client: Client) -> list[str]:
    """The levels of the messages that a client got, of one at each level."""
    for level in ("debug", "info", "warning", "error"):
        await client.call("a__log", level=level, data={"n": [1, None]})
    return [params["level"] for params in client.notices("notifications/message")]


async def test_a_legacy_server_gets_the_lowest_level_and_each_client_its_own(tmp_path: Path) -> None:
    async with stage(tmp_path, {"a": {"era": "legacy"}}) as on:
        verbose, terse, silent = [await on.legacy() for _ in range(3)]
        await on.up("a")
        for client in (verbose, terse, silent):
            await client.call("a__echo")
        await terse.request("logging/setLevel", {"level": "error"})
        await verbose.request("logging/setLevel", {"level": "info"})
        asked = [message["params"]["level"] for message in on.received("a", "logging/setLevel")]
        assert asked == ["error", "info"]
        assert await levels(verbose) == ["info", "warning", "error"]
        assert [params["level"] for params in terse.notices("notifications/message")] == ["error"]
        with pytest.raises(RefusedError) as caught:
            await verbose.request("logging/setLevel", {"level": "loud"})
        assert caught.value.code == -32602
        await verbose.call("a__die")
        await verbose.call("a__echo")
        await eventually(lambda: len(on.received("a", "logging/setLevel")) == 3)
        assert on.received("a", "logging/setLevel")[2]["params"] == {"level": "info"}


async def test_a_modern_server_is_told_the_level_with_each_call(tmp_path: Path) -> None:
    async with scripted_http(era="modern") as server, stage(tmp_path, {"a": {"url": server.url, "type": "http"}}) as on:
        legacy = await client_of(on, "legacy")
        await legacy.request("logging/setLevel", {"level": "warning"})
        assert await levels(legacy) == ["warning", "error"]
        modern = on.modern()
        assert await levels(modern) == [], "it named no level"
        modern.log_level = "error"
        assert await levels(modern) == ["error"]
        (told,) = {
            each["params"]["_meta"].get(META + "logLevel")
            for each in server.script.journal
            if each.get("method") == "tools/call" and each["params"]["_meta"][META + "clientInfo"]["name"] == "legacy"
        } - {None}
        assert told == "warning"


async def test_other_notices_pass_as_they_are(tmp_path: Path) -> None:
    async with stage(tmp_path, {"a": {}}) as on:
        client = await client_of(on, "legacy")
        await client.call("a__echo")
        await client.call("a__notify", method="notifications/vendor/thing", params={"x": [1, None]})
        await client.until(lambda: client.notices("notifications/vendor/thing"))
        assert client.notices("notifications/vendor/thing") == [{"x": [1, None]}]


async def test_what_a_server_says_of_itself_is_merged(tmp_path: Path) -> None:
    servers: dict[str, Json] = {
        "a": {"instructions": "Use a.", "capabilities": {"tools": {}, "experimental": {"x": {"y": 1}}}},
        "b": {"instructions": "Use b.", "capabilities": {"tools": {}, "logging": {}}},
    }
    async with stage(tmp_path, servers) as on:
        await on.up("a", "b")
        client = Client(on, Era.LEGACY, {}, {})
        on.clients.append(client)
        params: Json = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {}}
        result = await client.request("initialize", params)
        assert result["protocolVersion"] == "2025-06-18"
        assert result["serverInfo"]["name"] == "polyplex"
        assert set(result["capabilities"]) == {"tools", "logging", "experimental"}
        assert result["instructions"] == "# a\nUse a.\n\n# b\nUse b."
        discovered = await on.modern().request("server/discover")
        assert discovered["supportedVersions"] == [LATEST_MODERN]
        validate_server_result("server/discover", LATEST_MODERN, discovered)
