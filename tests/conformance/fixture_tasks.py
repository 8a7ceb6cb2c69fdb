"""The server that the suite's `tasks-*` scenarios are run against: the tasks extension on the official SDK.

    python tests/conformance/fixture_tasks.py [--port 3002] [--era both|modern]

The SDK knows the extension only as something that may be added, so tasks, their methods and the check of the `Mcp-Name`
header are here. Tools have the names and the behaviour that the scenarios ask for.
"""

import argparse
import asyncio
import secrets
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import mcp_types as types
from fixture import OneEra, serve
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.extension import Extension, MethodBinding, ToolBinding
from mcp.server.mcpserver import MCPServer
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolRequestParams, RequestParams
from pydantic import Field

EXTENSION: Final = "io.modelcontextprotocol/tasks"
TTL_MS: Final = 60_000
POLL_MS: Final = 100
MAX_TASKS: Final = 1000
HEADER_MISMATCH: Final = -32020
MISSING_CAPABILITY: Final = -32021
TERMINAL: Final = ("completed", "failed", "cancelled")
Json = dict[str, Any]


class TaskParams(RequestParams):
    """The params of `tasks/get` and `tasks/cancel`."""

    task_id: str = Field(alias="taskId")


class UpdateParams(TaskParams):
    """The params of `tasks/update`."""

    input_responses: Json = Field(alias="inputResponses")


class Task:
    """One task. `ask` waits for the client's answer to a question."""

    def __init__(self) -> None:
        self.id = secrets.token_urlsafe(16)
        self.status = "working"
        self.created = self.updated = now()
        self.open: dict[str, tuple[Json, asyncio.Future[Json]]] = {}
        self.asked = 0
        self.outcome: Json = {}
        self.work: asyncio.Task[None] | None = None

    def shape(self, *, whole: bool) -> Json:
        """The members of the task; `whole` with what is inlined."""
        shape: Json = {
            "taskId": self.id,
            "status": self.status,
            "createdAt": self.created,
            "lastUpdatedAt": self.updated,
            "ttlMs": TTL_MS,
            "pollIntervalMs": POLL_MS,
        }
        if whole and self.open:
            shape["inputRequests"] = {key: request for key, (request, _) in self.open.items()}
        return shape | (self.outcome if whole else {})

    async def ask(self, message: str, name: str) -> Json:
        """Have the client asked for one text or confirmation."""
        self.asked += 1
        key = f"{self.id}-{self.asked}"
        answer: asyncio.Future[Json] = asyncio.get_running_loop().create_future()
        self.open[key] = (form(message, name), answer)
        self._moved()
        try:
            return await answer
        finally:
            self.open.pop(key, None)
            self._moved()

    def _moved(self) -> None:
        if self.status not in TERMINAL:
            self.status = "input_required" if self.open else "working"
            self.updated = now()

    def answered(self, key: str, response: Json) -> None:
        """An answer from the client; one to no question is ignored."""
        request, answer = self.open.pop(key, (None, None))
        if request is not None and answer is not None and not answer.done():
            answer.set_result(response)
        self._moved()

    def end(self, status: str, **outcome: Any) -> None:
        """The end, where there was none before."""
        if self.status not in TERMINAL:
            self.status, self.outcome, self.updated = status, outcome, now()
            self.open.clear()

    async def run(self, work: Callable[["Task"], Awaitable[Json]]) -> None:
        """Do the work of the task."""
        try:
            self.end("completed", result=await work(self))
        except MCPError as error:
            self.end("failed", error={"code": error.code, "message": error.message})
        except asyncio.CancelledError:
            self.end("cancelled")


def now() -> str:
    """The time, in ISO 8601."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def form(message: str, name: str) -> Json:
    """A question for one member of a form."""
    kind = "boolean" if name == "confirm" else "string"
    schema = {"type": "object", "properties": {name: {"type": kind}}, "required": [name]}
    return {"method": "elicitation/create", "params": {"mode": "form", "message": message, "requestedSchema": schema}}


def said(text: str, *, failed: bool = False) -> Json:
    """A tool result."""
    return {"content": [{"type": "text", "text": text}], "isError": failed}


# -- what the tools do
async def greet(name: str = "World") -> str:
    """Greets at once."""
    return f"Hello, {name}!"


async def slow_compute(seconds: float = 0, label: str = "") -> str:
    """Sleeps, then says so."""
    await asyncio.sleep(seconds)
    return f"computed {label} in {seconds:g} s"


async def other() -> str:
    """Stands for the tools that run as tasks only."""
    return ""


async def compute(arguments: Json) -> Json:
    """The work of `slow_compute`."""
    return said(await slow_compute(arguments.get("seconds", 0), arguments.get("label", "")))


async def fail() -> Json:
    """The work of `failing_job`."""
    await asyncio.sleep(0.2)
    return said("the job failed", failed=True)


async def break_down() -> Json:
    """The work of `protocol_error_job`."""
    await asyncio.sleep(0.1)
    raise MCPError(types.INTERNAL_ERROR, "the job broke down")


async def confirm(task: Task, arguments: Json) -> Json:
    """The work of `confirm_delete`."""
    filename = arguments.get("filename", "")
    answer = await task.ask(f"Delete {filename}?", "confirm")
    return said(f"deleted {filename}" if answer.get("action") == "accept" else "kept")


async def collect(task: Task) -> Json:
    """The work of `multi_input`."""
    answers = await asyncio.gather(task.ask("Your name?", "name"), task.ask("Your city?", "name"))
    return said(f"{len(answers)} answers")


async def greet_later(name: str) -> Json:
    """The work of `test_tool_with_task`, once it has been told a name."""
    await asyncio.sleep(0.1)
    return said(f"Hello, {name}!")


NEEDS_TASK: Final = frozenset(
    {"failing_job", "protocol_error_job", "confirm_delete", "multi_input", "test_tool_with_task"}
)


def work_of(name: str, arguments: Json) -> Callable[[Task], Awaitable[Json]]:
    """The work behind a tool that makes tasks."""
    works: dict[str, Callable[[Task], Awaitable[Json]]] = {
        "slow_compute": lambda _: compute(arguments),
        "failing_job": lambda _: fail(),
        "protocol_error_job": lambda _: break_down(),
        "confirm_delete": lambda task: confirm(task, arguments),
        "multi_input": collect,
    }
    return works[name]


class TasksExtension(Extension):
    """`io.modelcontextprotocol/tasks`, for the tools above."""

    identifier = EXTENSION

    def __init__(self) -> None:
        self._tasks: dict[str, Task] = {}

    def tools(self) -> Sequence[ToolBinding]:
        """All tools."""
        plain = {"structured_output": False}
        named = [ToolBinding(other, kwargs=plain | {"name": name}) for name in sorted(NEEDS_TASK)]
        return [ToolBinding(greet, kwargs=plain), ToolBinding(slow_compute, kwargs=plain), *named]

    def methods(self) -> Sequence[MethodBinding]:
        """The methods of the extension."""
        return (
            MethodBinding("tasks/get", TaskParams, self._get),
            MethodBinding("tasks/update", UpdateParams, self._update),
            MethodBinding("tasks/cancel", TaskParams, self._cancel),
        )

    async def intercept_tool_call(
        self, params: CallToolRequestParams, ctx: ServerRequestContext[Any, Any], call_next: CallNext
    ) -> HandlerResult:
        """Make a task where the tool makes one and the client takes one."""
        if params.name == "greet" or (params.name == "slow_compute" and not declared(ctx)):
            return await call_next(ctx)
        if not declared(ctx):
            raise missing()
        arguments = params.arguments or {}
        if params.name != "test_tool_with_task":
            return self._make(work_of(params.name, arguments))
        answer = (params.input_responses or {}).get("user_name")
        if answer is None:
            request = form("What is your name?", "name")
            return {"resultType": "input_required", "inputRequests": {"user_name": request}, "requestState": "asked"}
        content = answer if isinstance(answer, dict) else answer.model_dump(by_alias=True)
        name = str((content.get("content") or {}).get("name", ""))
        return self._make(lambda _: greet_later(name))

    def _make(self, work: Callable[[Task], Awaitable[Json]]) -> Json:
        task = Task()
        self._tasks[task.id] = task
        while len(self._tasks) > MAX_TASKS:
            self._tasks.pop(next(iter(self._tasks)))
        task.work = asyncio.get_running_loop().create_task(task.run(work))
        return {"resultType": "task"} | task.shape(whole=False)

    def _find(self, ctx: ServerRequestContext[Any, Any], params: TaskParams) -> Task:
        """The task of a request that names it in body and header alike."""
        if not declared(ctx):
            raise missing()
        header = ctx.request.headers.get("mcp-name") if ctx.request is not None else params.task_id
        if header != params.task_id:
            raise MCPError(HEADER_MISMATCH, f"Mcp-Name is {header!r} but the body has {params.task_id!r}")
        task = self._tasks.get(params.task_id)
        if task is None:
            raise MCPError(types.INVALID_PARAMS, "Task not found")
        return task

    async def _get(self, ctx: ServerRequestContext[Any, Any], params: TaskParams) -> HandlerResult:
        return {"resultType": "complete"} | self._find(ctx, params).shape(whole=True)

    async def _update(self, ctx: ServerRequestContext[Any, Any], params: UpdateParams) -> HandlerResult:
        task = self._find(ctx, params)
        for key, response in params.input_responses.items():
            task.answered(key, response)
        return {"resultType": "complete"}

    async def _cancel(self, ctx: ServerRequestContext[Any, Any], params: TaskParams) -> HandlerResult:
        task = self._find(ctx, params)
        if task.work is not None:
            task.work.cancel()
        task.end("cancelled")
        return {"resultType": "complete"}


def declared(ctx: ServerRequestContext[Any, Any]) -> bool:
    """Whether the request declares the extension."""
    meta: Json = dict(ctx.meta or {})
    capabilities = meta.get("io.modelcontextprotocol/clientCapabilities") or {}
    return EXTENSION in (capabilities.get("extensions") or {})


def missing() -> MCPError:
    """The refusal of what needs the extension."""
    required = {"requiredCapabilities": {"extensions": {EXTENSION: {}}}}
    return MCPError(MISSING_CAPABILITY, "Missing required client capability", required)


def main() -> None:
    """Parse the command line and serve."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=0, help="0 (the default) takes a free one; the URL is printed")
    parser.add_argument("--era", choices=["both", "modern"], default="both")
    arguments = parser.parse_args()
    app = MCPServer("tasks-fixture", version="1.0.0", extensions=[TasksExtension()]).streamable_http_app()
    serve(app if arguments.era == "both" else OneEra(app, arguments.era), arguments.port)


if __name__ == "__main__":
    main()
