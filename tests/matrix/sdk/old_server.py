"""A server on an old release of the official Python SDK, which speaks the revision of its day and none later.

    python old_server.py stdio|sse|streamable-http PORT

Runs in the environment of that release, so it uses nothing of this repository, and nothing that 1.7 does not have.
"""

# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
# The SDK in the development environment is of another generation.

import json
import sys

from mcp import types
from mcp.server.fastmcp import Context, FastMCP

server = FastMCP("old", instructions="Ask the old one.", port=int(sys.argv[2]))


@server.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool()
async def steps(ctx: Context) -> str:
    """Report progress, and log."""
    await ctx.report_progress(1, 2)
    await ctx.info("half way")
    await ctx.report_progress(2, 2)
    return "done"


@server.tool()
async def ask_model(ctx: Context) -> str:
    """Ask the client's model."""
    content = types.TextContent(type="text", text="What is the capital of France?")
    answer = await ctx.session.create_message([types.SamplingMessage(role="user", content=content)], max_tokens=20)
    return f"It said: {answer.content.text}"


@server.tool()
async def ask_roots(ctx: Context) -> str:
    """Ask for the client's roots."""
    roots = await ctx.session.list_roots()
    return json.dumps([str(root.uri) for root in roots.roots])


@server.tool()
async def ask_user(ctx: Context) -> str:
    """Ask the user for a name; releases before elicitation have no such call."""
    schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    answer = await ctx.session.elicit("What is your name?", schema)
    return f"Hello, {answer.content['name']}!"


@server.resource("note://today")
def note() -> str:
    """A fixed note."""
    return "an old note"


@server.resource("note://of/{name}")
def note_of(name: str) -> str:
    """The note of a person."""
    return f"note of {name}"


@server.prompt()
def greet(name: str) -> str:
    """Greet someone."""
    return f"Greet {name}"


@server._mcp_server.completion()
async def complete(ref: object, argument: types.CompletionArgument, *_: object) -> types.Completion:
    """Names that start as the value does."""
    return types.Completion(values=[name for name in ("Ada", "Alan", "Grace") if name.startswith(argument.value)])


if __name__ == "__main__":
    server.run(sys.argv[1])
