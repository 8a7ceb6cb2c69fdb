"""A server on the official Python SDK 2.x: Streamable HTTP, both eras on /mcp. Prints its URL once it accepts."""

import asyncio
import socket
import warnings
from typing import Annotated, Literal

import uvicorn
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.resolve import Elicit, Resolve, Sample
from mcp.shared.exceptions import MCPDeprecationWarning
from mcp_types import (
    Completion,
    CompletionArgument,
    CompletionContext,
    CreateMessageResult,
    PromptReference,
    ResourceTemplateReference,
    SamplingMessage,
    TextContent,
)
from pydantic import BaseModel

NOTE = "note://today"
NAMES = ("Ada", "Alan", "Grace")
WAIT_SECONDS = 20

server = MCPServer("python-sdk", instructions="Adds numbers, holds calls, asks questions.")
_cancelled: dict[str, asyncio.Event] = {}


class Person(BaseModel):
    """What the elicitation asks for."""

    name: str


@server.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool()
async def hold(key: str, ctx: Context) -> str:
    """Report progress, then wait until cancelled; `was_cancelled` tells."""
    try:
        await ctx.report_progress(1, 2, "holding")
        await asyncio.sleep(WAIT_SECONDS)
    except asyncio.CancelledError:
        _cancelled.setdefault(key, asyncio.Event()).set()
        raise
    return "nobody cancelled"


@server.tool()
async def was_cancelled(key: str) -> bool:
    """Wait until the call of `hold` with this key has been cancelled."""
    try:
        async with asyncio.timeout(WAIT_SECONDS):
            return await _cancelled.setdefault(key, asyncio.Event()).wait()
    except TimeoutError:
        return False


@server.tool()
async def say(level: Literal["debug", "warning"], text: str, ctx: Context) -> str:
    """Log a text."""
    await ctx.log(level, text)  # pyright: ignore[reportDeprecated]
    return "said"


@server.tool()
async def touch(ctx: Context) -> str:
    """Tell subscribers that the note has changed."""
    await ctx.notify_resource_updated(NOTE)
    return "touched"


async def _name() -> Elicit[Person]:
    return Elicit("What is your name?", Person)


async def _capital() -> Sample:
    question = SamplingMessage(role="user", content=TextContent(type="text", text="What is the capital of France?"))
    return Sample([question], max_tokens=20)


@server.tool()
async def ask_user(person: Annotated[Person, Resolve(_name)]) -> str:
    """Ask the user for a name."""
    return f"Hello, {person.name}!"


@server.tool()
async def ask_model(answer: Annotated[CreateMessageResult, Resolve(_capital)]) -> str:
    """Ask the client's model."""
    return f"It said: {answer.content.text if isinstance(answer.content, TextContent) else ''}"


@server.resource(NOTE, mime_type="text/plain")
def note() -> str:
    """A fixed note."""
    return "python-sdk note"


@server.resource("note://of/{name}", mime_type="text/plain")
def note_of(name: str) -> str:
    """The note of a person."""
    return f"note of {name}"


@server.prompt()
def greet(name: str) -> str:
    """Greet someone."""
    return f"Greet {name} from python-sdk"


@server.completion()
async def complete(
    ref: PromptReference | ResourceTemplateReference, argument: CompletionArgument, context: CompletionContext | None
) -> Completion:
    """Names that start as the value does."""
    return Completion(values=[name for name in NAMES if name.startswith(argument.value)])


def main() -> None:
    """Serve on a free port of 127.0.0.1."""
    warnings.simplefilter("ignore", MCPDeprecationWarning)
    listener = socket.create_server(("127.0.0.1", 0))
    print(f"http://127.0.0.1:{listener.getsockname()[1]}/mcp", flush=True)
    config = uvicorn.Config(server.streamable_http_app(), log_level="error", timeout_graceful_shutdown=1)
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
