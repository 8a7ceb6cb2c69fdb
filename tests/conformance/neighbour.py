"""Two small servers to put beside the fixture, with names of their own: `notes` over stdio, `clock` over HTTP.

python tests/conformance/neighbour.py notes|clock [--port PORT]
"""

import argparse

from fixture import serve
from mcp.server.mcpserver import MCPServer


def notes() -> MCPServer:
    """Tools, resources, a template and a prompt."""
    server = MCPServer("notes", version="1.0.0")
    kept = {"first": "The first note."}

    @server.tool()
    def list_notes() -> str:
        """Lists the names of all notes."""
        return ", ".join(sorted(kept))

    @server.tool()
    def add_note(name: str, text: str) -> str:
        """Keeps a note."""
        kept[name] = text
        return f"Kept {name}"

    @server.resource("note://index", description="The names of all notes")
    def index() -> str:
        return "\n".join(sorted(kept))

    @server.resource("note://by-name/{name}", description="One note")
    def note(name: str) -> str:
        return kept.get(name, "")

    @server.prompt(description="Asks for a summary of one note")
    def summarize_note(name: str) -> str:
        return f"Summarize this note: {kept.get(name, '')}"

    return server


def clock() -> MCPServer:
    """Two tools and nothing else."""
    server = MCPServer("clock", version="1.0.0")

    @server.tool()
    def noon() -> str:
        """Says when noon is."""
        return "12:00"

    @server.tool()
    def add_minutes(time: str, minutes: int) -> str:
        """Adds minutes to a time of day, HH:MM."""
        hours, past = map(int, time.split(":"))
        total = (hours * 60 + past + minutes) % (24 * 60)
        return f"{total // 60:02}:{total % 60:02}"

    return server


def main() -> None:
    """Parse the command line and serve."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", choices=["notes", "clock"])
    parser.add_argument("--port", type=int, default=0)
    arguments = parser.parse_args()
    if arguments.name == "notes":
        notes().run("stdio")
    else:
        serve(clock().streamable_http_app(), arguments.port)


if __name__ == "__main__":
    main()
