"""A server on FastMCP 4: Streamable HTTP on /mcp. Prints its URL once it accepts."""

import socket

import uvicorn
from fastmcp import FastMCP

server = FastMCP("fastmcp", instructions="Adds numbers.")


@server.tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.resource("note://today", mime_type="text/plain")
def note() -> str:
    """A fixed note."""
    return "fastmcp note"


@server.resource("note://of/{name}", mime_type="text/plain")
def note_of(name: str) -> str:
    """The note of a person."""
    return f"note of {name}"


@server.prompt
def greet(name: str) -> str:
    """Greet someone."""
    return f"Greet {name} from fastmcp"


def main() -> None:
    """Serve on a free port of 127.0.0.1."""
    listener = socket.create_server(("127.0.0.1", 0))
    print(f"http://127.0.0.1:{listener.getsockname()[1]}/mcp", flush=True)
    config = uvicorn.Config(server.http_app(path="/mcp"), log_level="error", timeout_graceful_shutdown=1)
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
