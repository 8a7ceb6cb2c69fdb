"""What servers ask of clients: sampling, elicitation, roots; alone, together, in turn."""

from tests.matrix.checks_basics import refused
from tests.matrix.client import ROOTS, SAMPLED, SERVER
from tests.matrix.features import feature
from tests.matrix.peer.words import R4, Json
from tests.matrix.stage import Pair

ASKS = "What servers ask of clients"
SAMPLE: Json = {"method": "sampling/createMessage"}
SAMPLE["params"] = {"messages": [{"role": "user", "content": {"type": "text", "text": "Capital?"}}], "maxTokens": 9}
WITH_TOOLS: Json = {"method": "sampling/createMessage"}
WITH_TOOLS["params"] = SAMPLE["params"] | {"tools": [{"name": "t", "inputSchema": {"type": "object"}}]}
FORM: Json = {"method": "elicitation/create"}
FORM["params"] = {
    "message": "Who?",
    "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
}
LIST_ROOTS: Json = {"method": "roots/list"}
FILLED: Json = {"action": "accept", "content": {"name": "Ada"}}


async def asked(pair: Pair, *turns: dict[str, Json]) -> Json:
    """The server's answers to itself; each ask must have come in the form of the client's revision."""
    before = len(pair.client.asked)
    answers = await pair.client.value("ask", turns=list(turns))
    how = {how for _, _, how in pair.client.asked[before:]}
    assert how == {"input_required" if pair.client.modern else "request"}
    assert len(pair.client.asked) - before == sum(map(len, turns)), "each was asked once"
    return answers


@feature(ASKS, "Sampling", "The server asks the client's model in the middle of a call, and gets its answer.")
async def sampling(pair: Pair) -> None:
    assert (await asked(pair, {"a": SAMPLE}))["a"] == SAMPLED
    assert pair.client.asked[-1][1]["maxTokens"] == 9


@feature(ASKS, "Sampling with tools", "`tools` in a sampling request reach a client that declared `sampling.tools`.")
async def sampling_tools(pair: Pair) -> None:
    assert (await asked(pair, {"a": WITH_TOOLS}))["a"] == SAMPLED
    assert pair.client.asked[-1][1]["tools"][0]["name"] == "t"


@feature(ASKS, "Elicitation by form", "The server asks the user to fill in a form: accepted, declined, cancelled.")
async def elicitation_form(pair: Pair) -> None:
    assert (await asked(pair, {"a": FORM}))["a"] == FILLED
    assert pair.client.asked[-1][1]["requestedSchema"] == FORM["params"]["requestedSchema"]
    usual = pair.client.answers["elicitation/create"]
    try:
        for action in ("decline", "cancel"):
            pair.client.answers["elicitation/create"] = lambda _, action=action: {"action": action}
            assert (await asked(pair, {"a": FORM}))["a"] == {"action": action}
    finally:
        pair.client.answers["elicitation/create"] = usual


@feature(ASKS, "Elicitation by URL", "The server sends the user to a URL, out of the client's sight.")
async def elicitation_url(pair: Pair) -> None:
    before = len(pair.client.asked)
    answers = await pair.client.value("visit", key="visit-1")
    assert answers["visit"]["action"] == "accept"
    ((_, params, how),) = pair.client.asked[before:]
    assert how == ("input_required" if pair.client.modern else "request")
    assert (params["mode"], params["url"]) == ("url", "https://example.com/visit")


@feature(ASKS, "Completion of a URL elicitation", "The client learns that the user is done at the URL.")
async def elicitation_complete(pair: Pair) -> None:
    client = pair.client
    notices, before = len(client.notices), len(client.asked)
    await client.value("visit", key="visit-2")
    identifier = client.asked[before][1]["elicitationId"]
    notice = await client.noticed("notifications/elicitation/complete", notices)
    assert notice["elicitationId"] == identifier


@feature(
    ASKS, "A URL that is needed first", "Error -32042 of 2025-11-25, `input_required` later, text for older clients."
)
async def url_required(pair: Pair) -> None:
    client = pair.client
    key = f"{client.revision}-{pair.client_transport}-{id(client)}"
    params = client.call_params("permit", None, {"key": key})
    before = len(client.asked)
    if client.modern:
        await client.request("tools/call", params)
        assert client.asked[before][1]["url"] == f"https://example.com/permit/{key}"
        assert "elicitationId" not in client.asked[before][1]
        return
    if client.revision == R4 and pair.server.revision == R4:
        error = await refused(client.request("tools/call", params))
        assert error.code == -32042
        assert error.data["elicitations"][0]["url"].endswith(key)
        assert await client.value("permit", key=key) == {"permit": "granted"}
    elif client.revision == R4:
        assert (await client.value("permit", key=key))["permit"]["action"] == "accept"
        assert client.asked[before][1]["url"].endswith(key)
    else:
        result = await client.request("tools/call", params)
        assert result["isError"]
        assert f"https://example.com/permit/{key}" in str(result["content"]), "the user can follow the link by hand"


@feature(ASKS, "Roots", "The server asks for the client's roots.")
async def roots(pair: Pair) -> None:
    assert (await asked(pair, {"a": LIST_ROOTS}))["a"] == ROOTS


@feature(ASKS, "Changed roots", "The client tells that its roots have changed.")
async def roots_changed(pair: Pair) -> None:
    await pair.client.notify("notifications/roots/list_changed")
    # Over HTTP it travels apart from the calls.
    while not await pair.client.value("journal", method="notifications/roots/list_changed"):
        pass


@feature(ASKS, "Several asks at once", "Asks that run in parallel are all answered, each with its own answer.")
async def asks_at_once(pair: Pair) -> None:
    answers = await asked(pair, {"model": SAMPLE, "roots": LIST_ROOTS})
    assert answers == {"model": SAMPLED, "roots": ROOTS}


@feature(ASKS, "Asks in turn", "A call that asks again and again goes on each time.")
async def asks_in_turn(pair: Pair) -> None:
    answers = await asked(pair, {"a": LIST_ROOTS}, {"b": SAMPLE}, {"c": LIST_ROOTS, "d": SAMPLE})
    assert answers == {"a": ROOTS, "b": SAMPLED, "c": ROOTS, "d": SAMPLED}


@feature(ASKS, "Asks of prompts and resources", "`prompts/get` and `resources/read` may ask too.")
async def asks_elsewhere(pair: Pair) -> None:
    client = pair.client
    before = len(client.asked)
    prompt = await client.request("prompts/get", {"name": f"{SERVER}__asking"})
    assert "file:///matrix" in prompt["messages"][0]["content"]["text"]
    read = await client.request("resources/read", {"uri": f"{SERVER}+peer://asking"})
    assert "file:///matrix" in read["contents"][0]["text"]
    assert [method for method, _, _ in client.asked[before:]] == ["roots/list"] * 2


@feature(ASKS, "Undeclared abilities", "The server sees what this client has declared, and asks for nothing else.")
async def undeclared(pair: Pair) -> None:
    client = await pair.another({})
    for ask in (SAMPLE, LIST_ROOTS):
        result = await client.call("ask", turns=[{"a": ask}])
        assert result["isError"]
        assert "has not declared" in result["content"][0]["text"]
    assert client.asked == []
    assert client.violations == []
