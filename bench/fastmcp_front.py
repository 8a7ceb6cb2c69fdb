"""FastMCP as a gateway: fastmcp_front.py default|reuse PORT (URL | COMMAND ARGUMENT...).

default: its proxy as documented; reuse: over one client that stays connected, its fastest shape.
"""

import asyncio
import sys
from typing import Any

from fastmcp import Client
from fastmcp.server import create_proxy


async def main() -> None:
    """Serve until ended."""
    shape, port, *server = sys.argv[1:]
    address: Any = server[0]
    if not server[0].startswith("http"):
        address = {"mcpServers": {"up": {"command": server[0], "args": server[1:]}}}
    options: Any = {"host": "127.0.0.1", "port": int(port), "path": "/mcp", "show_banner": False, "log_level": "error"}
    if shape == "default":
        await create_proxy(address).run_http_async(**options)
    else:
        async with Client(address) as client:
            await create_proxy(client).run_http_async(**options)


asyncio.run(main())
