"""Conversations through the bridge and back are equal where the revisions can express it; all else is named here.

What does not come back as it was:
- modern, legacy, modern: `ttlMs` and `cacheScope` (legacy results have none: the defaults), the server's own
  `serverInfo` (polyplex gives its own, or none), `inputResponses` and `requestState` (they end at the call that they
  resume), the codes -32020 to -32022 (what only polyplex could mend is -32603).
- legacy, modern, legacy: members and reserved `_meta` keys of the modern era, which mean nothing in the legacy one; the
  `elicitationId`, `task` and `_meta` of a question (an id of its own is made for a page); codes from -32020 to -32099
  (-32603; -32042 becomes a round) and, for `resources/read`, -32602 (which means -32002 in the modern era).
"""

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw

from polyplex.gateway.rounds import Question, as_legacy
from polyplex.protocol import envelope
from polyplex.protocol.bridge import errors, questions, requests, results
from polyplex.protocol.bridge.requests import ClientFacts
from polyplex.protocol.jsonrpc import decode_fields, encode_json, error_object
from polyplex.protocol.revisions import CACHEABLE_METHODS, LATEST_LEGACY, LATEST_MODERN, LEGACY_REVISIONS, Era
from tests.property.chain import META, Chain, Client, through
from tests.property.clockwork import run
from tests.property.test_messages import TEXT, VALUES

Json = dict[str, Any]
MODERN_CODES = (-32020, -32021, -32022)
UNDEFINED = range(-32099, -32022)
MODERN_MEMBERS = {"resultType", "ttlMs", "cacheScope"}
RESERVED = {*envelope.ENVELOPE_KEYS, envelope.SERVER_INFO_KEY}
METHODS = ["tools/call", "prompts/get", "resources/read", "completion/complete", "tools/list", "resources/list"]
OBJECTS = st.dictionaries(TEXT, VALUES, max_size=3)
VENDOR = st.dictionaries(TEXT.map(lambda key: "x-" + key), VALUES, max_size=2)
METAS = st.none() | st.dictionaries(TEXT.map(lambda key: "vendor.example/" + key), VALUES, max_size=3)
ANNOTATIONS = st.none() | st.fixed_dictionaries({"audience": st.just(["user"]), "priority": st.floats(0, 1)})
BOTH = pytest.mark.parametrize(("outer", "inner"), [(Era.MODERN, Era.LEGACY), (Era.LEGACY, Era.MODERN)])


def having(strategies: dict[str, Any]) -> Any:
    """An object with these members, without those that are drawn as None, and with a vendor's own."""
    return st.tuples(st.fixed_dictionaries(strategies), VENDOR).map(
        lambda pair: {key: value for key, value in pair[0].items() if value is not None} | pair[1]
    )


def block(kind: str, **members: Any) -> Any:
    return having({"type": st.just(kind), "annotations": ANNOTATIONS, "_meta": METAS} | members)


def blocks(revision: str) -> Any:
    """The kinds of content that a revision has."""
    resource = having({"uri": st.just("file:///x"), "text": TEXT, "mimeType": st.just("text/plain")})
    kinds = [
        block("text", text=TEXT),
        block("image", data=st.just("AA=="), mimeType=st.just("image/png")),
        block("resource", resource=resource),
    ]
    if revision >= "2025-03-26":
        kinds.append(block("audio", data=st.just("AA=="), mimeType=st.just("audio/wav")))
    if revision >= "2025-06-18":
        kinds.append(block("resource_link", uri=st.just("file:///x"), name=TEXT))
    return st.one_of(kinds)


def tool_results(revision: str) -> Any:
    """`CallToolResult` of a revision."""
    members = {"content": st.lists(blocks(revision), max_size=3), "isError": st.none() | st.booleans(), "_meta": METAS}
    if revision >= "2025-06-18":
        members["structuredContent"] = st.none() | OBJECTS
    return having(members)


def shapes(method: str, revision: str) -> Any:
    """The results of a method, as the revision's schema has them."""
    if method == "tools/call":
        return tool_results(revision)
    text = having({"role": st.sampled_from(["user", "assistant"]), "content": blocks(revision)})
    entry = having({"name": TEXT, "uri": st.just("file:///x"), "inputSchema": st.just({"type": "object"})})
    member = {
        "prompts/get": {"messages": st.lists(text, max_size=2), "description": st.none() | TEXT},
        "resources/read": {"contents": st.lists(having({"uri": st.just("file:///x"), "text": TEXT}), max_size=2)},
        "completion/complete": {"completion": having({"values": st.lists(TEXT, max_size=3)})},
        "tools/list": {"tools": st.lists(entry, max_size=2), "nextCursor": st.none() | TEXT},
        "resources/list": {"resources": st.lists(entry, max_size=2), "nextCursor": st.none() | TEXT},
    }[method]
    return having(member | {"_meta": METAS})


def revised(strategy: Any) -> Any:
    """Drawn for each revision in turn; the revision comes along."""
    return st.sampled_from([*LEGACY_REVISIONS, LATEST_MODERN]).flatmap(
        lambda revision: st.tuples(st.just(revision), strategy(revision))
    )


def read(raw: bytes) -> Json:
    return msgspec.json.decode(raw)


def there_and_back(method: str, result: Json, outer: Era) -> Json:
    inner = Era.LEGACY if outer is Era.MODERN else Era.MODERN
    between = results.result_for(method, encode_json(result), outer, inner)
    if inner is Era.LEGACY:
        assert not MODERN_MEMBERS & set(read(between)), "a member of the modern era leaks"
    else:
        assert read(between)["resultType"] == "complete"
        assert ("ttlMs" in read(between)) is (method in CACHEABLE_METHODS)
    return read(results.result_for(method, between, inner, outer))


@given(
    st.sampled_from(METHODS).flatmap(lambda method: st.tuples(st.just(method), revised(lambda r: shapes(method, r))))
)
def test_results(case: tuple[str, tuple[str, Json]]) -> None:
    method, (revision, result) = case
    if revision != LATEST_MODERN:
        assert there_and_back(method, result, Era.LEGACY) == result
        return
    caching = {"ttlMs": 5000, "cacheScope": "public"} if method in CACHEABLE_METHODS else {}
    meta = result.get("_meta", {}) | {envelope.SERVER_INFO_KEY: {"name": "s", "version": "1"}}
    back = there_and_back(method, {"resultType": "complete"} | result | caching | {"_meta": meta}, Era.MODERN)
    lost = {"ttlMs": 0, "cacheScope": "private"} if method in CACHEABLE_METHODS else {}
    kept = {key: value for key, value in result.items() if key != "_meta" or value}
    assert back == {"resultType": "complete"} | kept | lost


@given(OBJECTS, METAS, st.none() | VALUES, st.sampled_from([None, "debug", "error"]), OBJECTS)
def test_requests(arguments: Json, vendor: Json | None, token: Any, level: str | None, capabilities: Json) -> None:
    meta = (vendor or {}) | ({} if token is None else {"progressToken": token})
    facts = ClientFacts(encode_json(capabilities), encode_json({"name": "c", "version": "1"}), level)
    stamped = envelope.stamp(
        decode_fields(encode_json(meta)), LATEST_MODERN, facts.capabilities, facts.info, facts.log_level
    )
    for era, params in (
        (Era.LEGACY, {"name": "t", "arguments": arguments} | ({"_meta": meta} if meta else {})),
        (Era.MODERN, {"name": "t", "arguments": arguments, "_meta": read(encode_json(stamped))}),
    ):
        other = Era.MODERN if era is Era.LEGACY else Era.LEGACY
        fields = decode_fields(encode_json(params))
        between = requests.with_meta(
            fields, requests.meta_for(requests.read_meta(fields), era, other, LATEST_MODERN, facts)
        )
        if other is Era.LEGACY:
            assert not RESERVED & set(read(encode_json(between)).get("_meta", {}))
        back = requests.with_meta(
            between, requests.meta_for(requests.read_meta(between), other, era, LATEST_MODERN, facts)
        )
        assert read(encode_json(back)) == params


@given(st.sampled_from(METHODS), st.integers(-32100, -31990) | st.integers(), TEXT, st.none() | VALUES)
def test_errors(method: str, code: int, message: str, data: Any) -> None:
    raw = error_object(code, message, None if data is None else encode_json(data))
    there = errors.error_for(method, raw, Era.LEGACY, LATEST_MODERN)
    assert read(there)["code"] not in (-32002, *UNDEFINED), "a code leaks that the modern era does not define"
    back = errors.error_for(method, there, Era.MODERN, LATEST_LEGACY)
    expected = -32603 if code in (*UNDEFINED, *MODERN_CODES) else -32602 if code == -32002 else code
    if expected == -32602 and method == "resources/read":
        expected = -32002
    assert read(back) == read(raw) | {"code": expected}
    if code != -32002 and code not in UNDEFINED:
        there = errors.error_for(method, raw, Era.MODERN, LATEST_LEGACY)
        back = errors.error_for(method, there, Era.LEGACY, LATEST_MODERN)
        assert read(back) == read(raw) | {"code": -32603 if code in MODERN_CODES else code}


LOST_OF_A_QUESTION = st.fixed_dictionaries({}, optional={"elicitationId": TEXT, "task": OBJECTS, "_meta": OBJECTS})
FORMS = having(
    {"message": TEXT, "requestedSchema": OBJECTS.map(lambda extra: {"type": "object", "properties": extra})}
).map(lambda params: ("elicitation/create", params))
PAGES = having({"mode": st.just("url"), "message": TEXT, "url": st.just("https://e.example/")}).map(
    lambda params: ("elicitation/create", params)
)
SAMPLES = having(
    {
        "messages": st.lists(st.fixed_dictionaries({"role": st.just("user"), "content": block("text", text=TEXT)})),
        "maxTokens": st.integers(1, 9),
        "systemPrompt": st.none() | TEXT,
        "temperature": st.none() | st.floats(0, 1),
    }
).map(lambda params: ("sampling/createMessage", params))
ROOTS = st.just(("roots/list", {}))
QUESTIONS = st.one_of(FORMS, PAGES, SAMPLES, ROOTS)


@given(QUESTIONS, LOST_OF_A_QUESTION)
def test_questions(question: tuple[str, Json], lost: Json) -> None:
    method, params = question
    asked = read(questions.input_request(method, encode_json(params | lost)))
    assert asked["method"] == method and asked.get("params", {}) == params
    back = read(bytes(as_legacy(Question(method, Raw(encode_json(asked.get("params", {}))))).params))
    if params.get("mode") == "url":
        assert back.pop("elicitationId"), "legacy clients know a page by an id"
    assert back == params


@given(OBJECTS)
def test_answers(answer: Json) -> None:
    answer.pop("resultType", None)
    assert read(questions.legacy_answer(Raw(encode_json(answer)))) == answer
    assert read(questions.legacy_answer(Raw(encode_json({"resultType": "complete"} | answer)))) == answer


ABLE: Json = {"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}}
TURNS = st.lists(
    st.one_of(
        st.tuples(st.just("echo"), OBJECTS),
        st.tuples(st.just("result"), tool_results("2025-11-25")),
        st.tuples(st.just("error"), st.fixed_dictionaries({"code": st.integers(1, 99), "message": TEXT})),
        st.tuples(st.just("progress"), st.integers(0, 3)),
        st.tuples(st.just("questions"), st.lists(QUESTIONS, min_size=1, max_size=3), st.integers(1, 3)),
    ),
    max_size=4,
)


def answer_of(method: str, params: Json) -> Json:
    """An answer that tells what was asked."""
    if method == "roots/list":
        return {"roots": [{"uri": "file:///r", "name": "é"}]}
    if method == "elicitation/create":
        return {"action": "accept", "content": {"message": params["message"]}}
    return {"role": "assistant", "model": "m", "content": {"type": "text", "text": str(params["maxTokens"])}}


async def take_turn(chain: Chain, client: Client, turn: tuple[Any, ...]) -> None:
    kind, given_ = turn[0], turn[1]
    if kind == "questions":
        await ask_questions(chain, client, given_, turn[2])
        return
    params: Json = {"name": kind, "arguments": given_}
    client.notices.clear()
    if kind == "progress":
        params = {"name": kind, "arguments": {"count": given_}, "_meta": {"progressToken": "t"}}
    response = await client.request("tools/call", params)
    if kind == "error":
        assert response["error"] == given_
    elif kind == "result":
        result = response["result"]
        own = {"resultType": "complete"} if chain.outer is Era.MODERN else {}
        meta = {key: value for key, value in result.get("_meta", {}).items() if not key.startswith(META)}
        expected = {key: value for key, value in given_.items() if key != "_meta"}
        assert {key: value for key, value in result.items() if key != "_meta"} == own | expected
        assert meta == given_.get("_meta", {})
    elif kind == "echo":
        told = read(response["result"]["content"][0]["text"].encode())
        assert told["arguments"] == given_
    else:
        steps = [notice["params"] for notice in client.notices]
        assert steps == [{"progressToken": "t", "progress": step + 1, "x": "kept"} for step in range(given_)]


async def ask_questions(chain: Chain, client: Client, wanted: list[tuple[str, Json]], rounds: int) -> None:
    """The server asks in as many rounds; each question reaches the client as it was, and its answer the server."""
    client.asked.clear()
    if chain.outer is Era.LEGACY:
        asked = [{"method": method, "params": params} for method, params in wanted]
        response = await client.request(
            "tools/call", {"name": "asks", "arguments": {"questions": asked, "rounds": rounds}}
        )
        told = read(response["result"]["content"][0]["text"].encode())["told"]
        assert told == [[answer_of(*question) for question in wanted]] * rounds
    else:
        keyed = {f"k{number}": {"method": method, "params": params} for number, (method, params) in enumerate(wanted)}
        response = await client.request(
            "tools/call", {"name": "rounds", "arguments": {"questions": keyed, "rounds": rounds}}
        )
        told = read(response["result"]["content"][0]["text"].encode())
        assert told == {f"k{number}": answer_of(*question) for number, question in enumerate(wanted)}
    for _, params in client.asked:
        if params.get("mode") == "url" and chain.outer is Era.LEGACY:
            assert params.pop("elicitationId")
    order = repr
    assert sorted(client.asked, key=order) == sorted(wanted * rounds, key=order)


@BOTH
@settings(max_examples=max(10, settings().max_examples // 2))
@given(TURNS)
def test_whole_conversations_through_two_gateways(outer: Era, inner: Era, turns: list[Any]) -> None:
    async def main() -> None:
        chain = Chain(outer, inner, ABLE, answer_of)

        async def talk(client: Client) -> None:
            for turn in turns:
                await take_turn(chain, client, turn)

        await through(chain, talk)

    run(main)
