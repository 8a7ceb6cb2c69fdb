"""A small stdio MCP server that answers only after a delay: slow_server.py NAME answers|silent|dies SECONDS."""

import json
import sys
import time
from typing import Any

VERSION = "2025-11-25"


def result_for(method: str, params: dict[str, Any], name: str) -> dict[str, Any] | None:
    """The result of a request, None when the method is not known."""
    if method == "initialize":
        return {"protocolVersion": VERSION, "capabilities": {"tools": {}}, "serverInfo": {"name": name, "version": "1"}}
    if method == "tools/list":
        return {"tools": [{"name": "who", "description": "Say who this is", "inputSchema": {"type": "object"}}]}
    if method == "tools/call":
        return {"content": [{"type": "text", "text": name}], "isError": params.get("name") != "who"}
    return {} if method == "ping" else None


def main() -> None:
    """Wait, then answer line by line; or be silent, or die at once."""
    name, manner, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
    if manner == "dies":
        sys.exit(1)
    time.sleep(seconds)
    for line in sys.stdin:
        message = json.loads(line)
        if manner == "silent" or "id" not in message or "method" not in message:
            continue
        result = result_for(message["method"], message.get("params", {}), name)
        answer: dict[str, Any] = {"jsonrpc": "2.0", "id": message["id"]}
        answer |= {"error": {"code": -32601, "message": "Method not found"}} if result is None else {"result": result}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


main()
