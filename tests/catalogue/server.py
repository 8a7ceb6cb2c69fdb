"""The tools of a data set behind HTTP, each server of it at a path of its own. Standard library only.

    python server.py TOOLS.jsonl

Prints its address. A call is answered with what was called, as JSON in a text.
"""

import json
import sys
from collections import defaultdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote

Json = dict[str, Any]


def read_tools(file: Path) -> dict[str, list[Json]]:
    """The tools by server, as `tools/list` has them; what the servers say of themselves is left out."""
    servers: dict[str, list[Json]] = defaultdict(list)
    for line in file.read_text(encoding="utf-8").splitlines():
        tool = json.loads(line)
        entry = {"name": tool["name"], "description": tool["description"], "inputSchema": tool["input_schema"]}
        servers[tool["server"]].append({key: value for key, value in entry.items() if value is not None})
    return servers


class Handler(BaseHTTPRequestHandler):
    """Streamable HTTP of the handshake era, answers as plain JSON."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    servers: dict[str, list[Json]]

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if "id" not in message:
            self._respond(202, b"")
            return
        server = unquote(self.path).strip("/")
        answer: Json = {"jsonrpc": "2.0", "id": message["id"]}
        try:
            answer["result"] = self._result(server, message["method"], message.get("params", {}))
        except LookupError:
            answer["error"] = {"code": -32601, "message": "unknown method"}
        self._respond(200, json.dumps(answer).encode())

    def do_GET(self) -> None:
        self._respond(405, b"")

    do_DELETE = do_GET

    def _result(self, server: str, method: str, params: Json) -> Json:
        if method == "initialize":
            info = {"name": server, "version": "1"}
            return {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info}
        if method == "tools/list":
            return {"tools": self.servers[server]}
        if method == "tools/call":
            called = {"server": server, "tool": params["name"], "arguments": params.get("arguments")}
            return {"content": [{"type": "text", "text": json.dumps(called)}]}
        raise LookupError(method)

    def _respond(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Requests are no news."""


class Server(ThreadingHTTPServer):
    """Many connections at once."""

    daemon_threads = True
    request_queue_size = 256


def main() -> None:
    """Serve until the end of the process."""
    Handler.servers = read_tools(Path(sys.argv[1]))
    with Server(("127.0.0.1", 0), Handler) as server:
        print(f"http://127.0.0.1:{server.server_port}", flush=True)
        server.serve_forever()


if __name__ == "__main__":
    main()
