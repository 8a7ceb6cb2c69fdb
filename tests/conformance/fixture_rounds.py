"""One way to ask the client for input that serves both eras, so that every asking tool of the fixture does too.

In a handshake session a question is a server request on the call's own stream. In a stateless request it is an
`InputRequiredResult`: the tool is run again from its start when the answers come, and earlier rounds' answers travel
in `requestState`.
"""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import mcp_types as types
from mcp.server import ServerRequestContext
from mcp.shared.message import ServerMessageMetadata
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import BaseModel, TypeAdapter

Question: TypeAlias = types.ElicitRequest | types.CreateMessageRequest | types.ListRootsRequest
Answer: TypeAlias = types.InputResponse

ANSWERS: TypeAdapter[dict[str, Answer]] = TypeAdapter(dict[str, types.InputResponse])


class InputNeededError(Exception):
    """Ends this round of a stateless call: `result` goes to the client in place of the tool's own result."""

    def __init__(self, result: types.InputRequiredResult) -> None:
        super().__init__("input required")
        self.result = result


@dataclass(frozen=True, slots=True)
class Call:
    """One running tools/call or prompts/get."""

    ctx: ServerRequestContext
    arguments: Mapping[str, Any]
    responses: Mapping[str, Answer]
    state: str | None

    @property
    def modern(self) -> bool:
        return self.ctx.protocol_version in MODERN_PROTOCOL_VERSIONS

    async def ask(self, questions: Mapping[str, Question], *, keep_state: bool = False) -> dict[str, Answer]:
        """The answers to all questions, by key.

        `keep_state` sends a `requestState` even in a first round, and is needed by tools that ask more than once.

        Raises:
            InputNeededError: a stateless call that does not carry all of the answers yet.
        """
        if not self.modern:
            async with asyncio.TaskGroup() as group:
                tasks = {key: group.create_task(self._request(question)) for key, question in questions.items()}
            return {key: task.result() for key, task in tasks.items()}
        known = self._known_answers()
        if questions.keys() <= known.keys():
            return {key: known[key] for key in questions}
        state = _dump_answers(known) if keep_state else None
        raise InputNeededError(types.InputRequiredResult(input_requests=dict(questions), request_state=state))

    def _known_answers(self) -> dict[str, Answer]:
        earlier = ANSWERS.validate_python(json.loads(self.state)) if self.state else {}
        return {**earlier, **self.responses}

    async def _request(self, question: Question) -> Answer:
        result_type: type[Any] = types.ListRootsResult
        if isinstance(question, types.ElicitRequest):
            result_type = types.ElicitResult
        elif isinstance(question, types.CreateMessageRequest):
            result_type = types.CreateMessageResult
        on_this_stream = ServerMessageMetadata(related_request_id=self.ctx.request_id)
        return await self.ctx.session.send_request(question, result_type, metadata=on_this_stream)


def _dump_answers(answers: Mapping[str, BaseModel]) -> str:
    dumped = {key: value.model_dump(mode="json", by_alias=True, exclude_none=True) for key, value in answers.items()}
    return json.dumps(dumped)


def form(message: str, properties: dict[str, Any], required: list[str]) -> types.ElicitRequest:
    """A form elicitation."""
    schema = {"type": "object", "properties": properties, "required": required}
    return types.ElicitRequest(params=types.ElicitRequestFormParams(message=message, requested_schema=schema))


def sampling(prompt: str, max_tokens: int) -> types.CreateMessageRequest:
    """A sampling request of one user message."""
    message = types.SamplingMessage(role="user", content=types.TextContent(text=prompt))
    return types.CreateMessageRequest(
        params=types.CreateMessageRequestParams(messages=[message], max_tokens=max_tokens)
    )


def field(answer: Answer, name: str) -> Any:
    """One field of an accepted form, None when the form was not accepted or lacks it."""
    if isinstance(answer, types.ElicitResult) and answer.content:
        return answer.content.get(name)
    return None


def sampled_text(answer: Answer) -> str:
    """The text of a sampling answer, empty when it has none."""
    content = getattr(answer, "content", None)
    return content.text if isinstance(content, types.TextContent) else ""


def summary(answer: Answer) -> str:
    """How an elicitation ended, in one line."""
    if not isinstance(answer, types.ElicitResult):
        return "no elicitation result"
    return f"action={answer.action}, content={json.dumps(answer.content or {}, sort_keys=True)}"
