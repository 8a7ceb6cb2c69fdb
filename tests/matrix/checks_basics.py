"""Opening, tools, resources, prompts: what every client starts with."""

from collections.abc import Awaitable

from tests.matrix.client import RefusedError
from tests.matrix.features import feature, server_on_http
from tests.matrix.peer.content import ITEMS, PNG, WAV
from tests.matrix.peer.words import META, MODERN, R2, R3, R4, UI_EXTENSION, VENDOR_EXTENSION, Json, since
from tests.matrix.stage import Pair

BASICS = "Opening and lists"
TOOLS = "Tools and their results"
DATA = "Resources, prompts, completion"
EXACT: Json = {
    "text": 'Grüße \u2028 \\ " 日本',
    "big": 2**63 + 1,
    "small": 1e-9,
    "nothing": None,
    "deep": [[{"a": []}]],
}


async def refusal(pair: Pair, method: str, params: Json) -> RefusedError:
    """The error that a request is answered with."""
    return await refused(pair.client.request(method, params))


async def refused(answer: Awaitable[Json]) -> RefusedError:
    """The error that comes instead of a result."""
    try:
        result = await answer
    except RefusedError as error:
        return error
    raise AssertionError(f"not refused: {result}")


@feature(BASICS, "Opening", "The client opens in its own revision; capabilities and instructions are the server's.")
async def opening(pair: Pair) -> None:
    opened = pair.client.opened
    if pair.client.modern:
        assert MODERN in opened["supportedVersions"]
        assert opened["_meta"][META + "serverInfo"]["name"] == "polyplex"
    else:
        assert opened["protocolVersion"] == pair.client.revision
        assert opened["serverInfo"]["name"] == "polyplex"
    assert opened["instructions"] == "Ask the peer."
    for name in ("tools", "resources", "prompts", "logging"):
        assert name in opened["capabilities"]


@feature(BASICS, "Paged lists", "Lists that the server gives in pages arrive whole, over the pages of polyplex.")
async def pages(pair: Pair) -> None:
    resources = await pair.client.listed("resources/list", "resources")
    items = [entry["name"] for entry in resources if entry["name"].startswith("item ")]
    assert items == [f"item {number}" for number in range(ITEMS)]
    error = await refusal(pair, "resources/list", {"cursor": "not one of ours"})
    assert error.code == -32602


@feature(
    BASICS, "Members of an era", "`resultType`, `ttlMs`, `cacheScope` for clients that know them, for no other client."
)
async def era_members(pair: Pair) -> None:
    client = pair.client
    requests: dict[str, Json] = {method: {} for method in ("tools/list", "prompts/list", "resources/templates/list")}
    for method, params in (requests | {"resources/read": {"uri": "peer+peer://note"}}).items():
        result = await client.request(method, params)
        found = {name for name in ("resultType", "ttlMs", "cacheScope") if name in result}
        assert found == ({"resultType", "ttlMs", "cacheScope"} if client.modern else set()), method
        if client.modern:
            assert result["cacheScope"] in ("public", "private")
            assert result["ttlMs"] >= 0
    result = await client.call("fail")
    assert ("resultType" in result) == client.modern


@feature(BASICS, "Descriptions", "Annotations, titles, icons and `_meta` of tools arrive as the server wrote them.")
async def descriptions(pair: Pair) -> None:
    tools = {tool["name"]: tool for tool in await pair.client.listed("tools/list", "tools")}
    tool = tools["peer__structured"]
    server = pair.server.revision
    assert tool["description"] == "Shows an app."
    assert tool["_meta"]["example.com/tool"] is True
    if server in since(R2):
        assert tool["annotations"] == {"readOnlyHint": True, "title": "Old title"}
    if server in since(R3):
        assert tool["title"] == "Structured"
    if server in since(R4):
        assert tool["icons"][0]["src"] == "https://example.com/icon.png"


@feature(BASICS, "Experimental capabilities", "`capabilities.experimental` reaches the other side, both ways.")
async def experimental(pair: Pair) -> None:
    assert pair.client.opened["capabilities"]["experimental"] == {"example.com/experiment": {"level": 1}}
    seen = (await pair.client.value("echo"))["capabilities"]
    assert seen["experimental"] == {"example.com/client": {"x": 1}}


@feature(BASICS, "Extensions", "`capabilities.extensions` reaches the other side, both ways.")
async def extensions(pair: Pair) -> None:
    assert pair.client.opened["capabilities"]["extensions"][VENDOR_EXTENSION] == {"level": 2}
    seen = (await pair.client.value("echo"))["capabilities"]["extensions"]
    assert seen[VENDOR_EXTENSION] == {}
    assert seen[UI_EXTENSION] == {"mimeTypes": ["text/html;profile=mcp-app"]}


@feature(TOOLS, "Calls", "Arguments and results arrive unchanged, whatever is in them.")
async def calls(pair: Pair) -> None:
    assert (await pair.client.value("echo", **EXACT))["arguments"] == EXACT


@feature(TOOLS, "Vendor `_meta`", "`_meta` keys of others pass: in requests, results and content.")
async def vendor_meta(pair: Pair) -> None:
    seen = await pair.client.value("echo", {"example.com/trace": {"id": [1, None]}})
    assert seen["_meta"] == {"example.com/trace": {"id": [1, None]}}
    result = await pair.client.call("show", what="vendor")
    assert result["_meta"]["example.com/result"] == {"deep": [None, 2**60]}
    assert result["content"][0]["_meta"] == {"example.com/block": 1}


@feature(TOOLS, "Failures and errors", "A tool's failure stays a result; an error keeps code, message and data.")
async def errors(pair: Pair) -> None:
    failed = await pair.client.call("fail")
    assert (failed["isError"], failed["content"][0]["text"]) == (True, "it failed")
    given: Json = {"code": 1234, "message": "no é", "data": {"n": 2**60, "x": None}}
    params = pair.client.call_params("refuse", None, given)
    error = await refusal(pair, "tools/call", params)
    assert (error.code, error.data, str(error)) == (1234, given["data"], "1234: no é")
    assert (await refusal(pair, "tools/call", {"name": "peer__nothing"})).code == -32602
    assert (await refusal(pair, "no/such/method", {})).code == -32601


@feature(TOOLS, "Large results", "A result of 3 MB arrives whole.")
async def large(pair: Pair) -> None:
    count = 1_000_000
    result = await pair.client.call("large", count=count)
    assert result["content"][0]["text"] == "é\n" * count


@feature(TOOLS, "Images and embedded resources", "Content that every revision has arrives as it is.")
async def content(pair: Pair) -> None:
    image = await pair.client.call("show", what="image")
    assert image["content"] == [{"type": "image", "data": PNG, "mimeType": "image/png"}]
    (embedded,) = (await pair.client.call("show", what="embedded"))["content"]
    assert embedded["resource"] == {"uri": "peer+peer://embedded", "text": "embedded text"}


@feature(TOOLS, "Audio", "Audio content arrives; a client older than audio gets it in a form that it knows.")
async def audio(pair: Pair) -> None:
    first, after = (await pair.client.call("show", what="audio"))["content"]
    assert after["text"] == "after"
    if pair.client.revision in since(R2):
        assert first == {"type": "audio", "data": WAV, "mimeType": "audio/wav"}
    else:
        assert "audio/wav" in str(first), "it says what was there"


@feature(TOOLS, "Resource links", "Links arrive with a URI that can be read; an older client gets them as text.")
async def resource_links(pair: Pair) -> None:
    (link,) = (await pair.client.call("show", what="link"))["content"]
    if pair.client.revision in since(R3):
        assert link["type"] == "resource_link"
    assert "peer+peer://linked" in str(link)
    assert "linked" in str(link)
    assert (await pair.client.request("resources/read", {"uri": "peer+peer://linked"}))["contents"]


@feature(TOOLS, "Structured results", "`outputSchema` and `structuredContent` arrive; the text beside them always.")
async def structured(pair: Pair) -> None:
    result = await pair.client.call("structured", what="object")
    assert result["content"] == [{"type": "text", "text": '{"count": 3}'}]
    if pair.client.revision in since(R3):
        assert result["structuredContent"] == {"count": 3}
        tools = {tool["name"]: tool for tool in await pair.client.listed("tools/list", "tools")}
        assert tools["peer__structured"]["outputSchema"]["required"] == ["count"]


@feature(TOOLS, "Structured results of any type", "A list as `structuredContent`; older clients know only objects.")
async def structured_list(pair: Pair) -> None:
    result = await pair.client.call("counted", what="list")
    tools = {tool["name"]: tool for tool in await pair.client.listed("tools/list", "tools")}
    schema = tools["peer__counted"].get("outputSchema")
    if pair.client.modern:
        assert result["structuredContent"] == [1, 2, 3]
        assert schema == {"type": "array", "items": {"type": "integer"}}
    else:
        assert isinstance(result.get("structuredContent", {}), dict)
        assert schema is None or schema["type"] == "object"
        assert (schema is None) == ("structuredContent" not in result)
    assert result["content"] == [{"type": "text", "text": "[1, 2, 3]"}], "the value, for all"


@feature(
    TOOLS,
    "Parameters in headers",
    "`x-mcp-header`: polyplex derives `Mcp-Param-*` for the server, and compares those of a modern HTTP client.",
    applies=server_on_http,
)
async def parameter_headers(pair: Pair) -> None:
    seen = await pair.client.value("regional", region="eu-1", plain="x")
    assert seen["arguments"] == {"region": "eu-1", "plain": "x"}
    if pair.client.modern and pair.client_transport == "http":
        params = pair.client.call_params("regional", None, {"region": "eu-1"})
        identifier = await pair.client.send("tools/call", params, {"Mcp-Param-Region": "us-2"})
        assert (await refused(pair.client.response(identifier))).code == -32020


@feature(TOOLS, "Apps", "The `ui://` resource that a tool names can be read by that name (MCP Apps).")
async def apps(pair: Pair) -> None:
    tools = {tool["name"]: tool for tool in await pair.client.listed("tools/list", "tools")}
    uri = tools["peer__structured"]["_meta"]["ui"]["resourceUri"]
    (part,) = (await pair.client.request("resources/read", {"uri": uri}))["contents"]
    assert (part["uri"], part["mimeType"], part["text"]) == (uri, "text/html;profile=mcp-app", "<p>app</p>")


@feature(DATA, "Resources", "Text and binary resources, and those of templates, can be listed and read.")
async def resources(pair: Pair) -> None:
    client = pair.client
    templates = await client.listed("resources/templates/list", "resourceTemplates")
    assert [entry["uriTemplate"] for entry in templates] == ["peer+peer://of/{name}"]
    for uri in ("peer+peer://note", "peer+peer://of/Ada"):
        (part,) = (await client.request("resources/read", {"uri": uri}))["contents"]
        assert part["uri"] == uri
        assert uri.removeprefix("peer+") in part["text"], "the server was asked by its own URI"
    (part,) = (await client.request("resources/read", {"uri": "peer+peer://blob"}))["contents"]
    assert part["blob"] == PNG


@feature(DATA, "A resource that is not there", "The error has the code of the client's revision, and the URI.")
async def missing_resource(pair: Pair) -> None:
    code = -32602 if pair.client.modern else -32002
    error = await refusal(pair, "resources/read", {"uri": "peer+peer://missing"})
    assert error.code == code
    assert "missing" in error.data["uri"]


@feature(DATA, "Prompts", "Prompts can be listed and filled in.")
async def prompts(pair: Pair) -> None:
    names = [entry["name"] for entry in await pair.client.listed("prompts/list", "prompts")]
    assert names[:2] == ["peer__greeting", "peer__asking"]
    result = await pair.client.request("prompts/get", {"name": "peer__greeting", "arguments": {"who": "Ada"}})
    assert result["messages"] == [{"role": "user", "content": {"type": "text", "text": "Greet Ada"}}]


@feature(DATA, "Completion", "Arguments of prompts and templates are completed by the server's own names.")
async def completion(pair: Pair) -> None:
    for ref, own in (
        ({"type": "ref/prompt", "name": "peer__greeting"}, "greeting"),
        ({"type": "ref/resource", "uri": "peer+peer://of/{name}"}, "peer://of/{name}"),
    ):
        params: Json = {"ref": ref, "argument": {"name": "who", "value": "A"}}
        values = (await pair.client.request("completion/complete", params))["completion"]["values"]
        assert values == [own, "Ada", "nobody"]


@feature(DATA, "Completion in context", "Arguments that are chosen already reach the server.")
async def completion_context(pair: Pair) -> None:
    params: Json = {"ref": {"type": "ref/prompt", "name": "peer__greeting"}, "argument": {"name": "x", "value": "A"}}
    params["context"] = {"arguments": {"who": "Grace"}}
    values = (await pair.client.request("completion/complete", params))["completion"]["values"]
    assert values[2] == "Grace"
