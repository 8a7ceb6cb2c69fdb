"""What tests of parked calls share: questions of a legacy server, and a modern client's way of answering them."""

from collections.abc import Mapping
from typing import Any

from tests.interaction.stage import Client, Json, RefusedError

FORM: Json = {"message": "who?", "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}}}
SAMPLE: Json = {"messages": [{"role": "user", "content": {"type": "text", "text": "hi"}}], "maxTokens": 5}
ABLE: Json = {"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}}
ACCEPTED: Json = {"action": "accept", "content": {"name": "Ada"}}
SAID: Json = {"role": "assistant", "model": "m", "content": {"type": "text", "text": "ho"}}
ROOTS: Json = {"roots": [{"uri": "file:///r"}]}
ANSWERS: dict[str, Json] = {"elicitation/create": ACCEPTED, "sampling/createMessage": SAID, "roots/list": ROOTS}
PARAMS: dict[str, Json] = {"elicitation/create": FORM, "sampling/createMessage": SAMPLE, "roots/list": {}}


def asking(*methods: str, tool: str = "a__asks", **arguments: Any) -> Json:
    """Params of a call in the middle of which the server asks all of these at once."""
    questions = [{"method": method, "params": PARAMS[method]} for method in methods]
    return {"name": tool, "arguments": {"questions": questions} | arguments}


def answers(result: Json) -> Json:
    """An answer to each question of a round."""
    return {key: ANSWERS[asked["method"]] for key, asked in result["inputRequests"].items()}


def retry(params: Json, result: Json, responses: Mapping[str, Any] | None = None) -> Json:
    """The params of the retry, with an answer to each question where no others are given."""
    given = answers(result) if responses is None else responses
    return params | {"requestState": result["requestState"], "inputResponses": given}


async def first_round(client: Client, params: Json, method: str = "tools/call") -> Json:
    """Call, and expect questions."""
    result = await client.request(method, params)
    assert result["resultType"] == "input_required", result
    return result


async def finished(client: Client, params: Json, method: str = "tools/call") -> Json:
    """Call, and answer all rounds."""
    result = await client.request(method, params)
    while result["resultType"] == "input_required":
        result = await client.request(method, retry(params, result))
    return result


async def refusal(client: Client, params: Json, method: str = "tools/call") -> RefusedError:
    """The error that a request is answered with."""
    try:
        result = await client.request(method, params)
    except RefusedError as error:
        return error
    raise AssertionError(f"it was not refused: {result}")
