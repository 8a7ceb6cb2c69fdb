"""The same server on the present release of the official Python SDK, as a server of 2026-07-28 only.

python new_server.py streamable-http PORT
"""

import json
import sys
import warnings
from typing import Annotated, Any

import uvicorn
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.resolve import Elicit, ListRoots, Resolve, Sample
from mcp.shared.exceptions import MCPDeprecationWarning
from mcp_types import (
    Completion,
    CompletionArgument,
    CompletionContext,
    CreateMessageResult,
    ListRootsResult,
    PromptReference,
    ResourceTemplateReference,
    SamplingMessage,
    TextContent,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import BaseModel

server = MCPServer("new", instructions="Ask the new one.")


class Person(BaseModel):
    """What the elicitation asks for."""

    name: str


@server.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool()
async def steps(ctx: Context) -> str:
    """Report progress, and log."""
    await ctx.report_progress(1, 2)
    await ctx.log("info", "half way")  # pyright: ignore[reportDeprecated] - what is tried here
    await ctx.report_progress(2, 2)
    return "done"


async def _capital() -> Sample:
    question = SamplingMessage(role="user", content=TextContent(type="text", text="What is the capital of France?"))
    return Sample([question], max_tokens=20)


async def _roots() -> ListRoots:
    return ListRoots()


async def _name() -> Elicit[Person]:
    return Elicit("What is your name?", Person)


@server.tool()
async def ask_model(answer: Annotated[CreateMessageResult, Resolve(_capital)]) -> str:
    """Ask the client's model."""
    return f"It said: {answer.content.text if isinstance(answer.content, TextContent) else ''}"


@server.tool()
async def ask_roots(roots: Annotated[ListRootsResult, Resolve(_roots)]) -> str:
    """Ask for the client's roots."""
    return json.dumps([str(root.uri) for root in roots.roots])


@server.tool()
async def ask_user(person: Annotated[Person, Resolve(_name)]) -> str:
    """Ask the user for a name."""
    return f"Hello, {person.name}!"


@server.resource("note://today")
def note() -> str:
    """A fixed note."""
    return "a new note"


@server.resource("note://of/{name}")
def note_of(name: str) -> str:
    """The note of a person."""
    return f"note of {name}"


@server.prompt()
def greet(name: str) -> str:
    """Greet someone."""
    return f"Greet {name}"


@server.completion()
async def complete(
    ref: PromptReference | ResourceTemplateReference, argument: CompletionArgument, context: CompletionContext | None
) -> Completion:
    """Names that start as the value does."""
    return Completion(values=[name for name in ("Ada", "Alan", "Grace") if name.startswith(argument.value)])


class ModernOnly:
    """Answers a handshake as a server would that has never heard of one."""

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        headers = dict(scope.get("headers", ()))
        revision = headers.get(b"mcp-protocol-version", b"").decode("latin-1")
        if scope["type"] != "http" or revision in MODERN_PROTOCOL_VERSIONS:
            await self._app(scope, receive, send)
            return
        data = {"supported": list(MODERN_PROTOCOL_VERSIONS), "requested": revision or "unknown"}
        error = {"code": -32022, "message": "Unsupported protocol version", "data": data}
        body = json.dumps({"jsonrpc": "2.0", "id": None, "error": error}).encode()
        headers = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": 400, "headers": headers})
        await send({"type": "http.response.body", "body": body})


if __name__ == "__main__":
    warnings.simplefilter("ignore", MCPDeprecationWarning)
    config = uvicorn.Config(
        ModernOnly(server.streamable_http_app()), port=int(sys.argv[2]), log_level="error", timeout_graceful_shutdown=1
    )
    uvicorn.Server(config).run()
