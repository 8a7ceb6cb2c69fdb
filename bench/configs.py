"""The config files that polyplex and nginx are measured with."""

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from processes import CACHE, BenchError

HUGE = 1 << 30
PLAIN: dict[str, Any] = {"builtins": [], "payloads": {"inlineLimitBytes": HUGE}, "results": {"maxTokens": HUGE}}
Server = dict[str, Any]


def http_server(port: int) -> Server:
    """An entry for an upstream over Streamable HTTP."""
    return {"type": "http", "url": f"http://127.0.0.1:{port}/mcp"}


def stdio_server(command: list[str]) -> Server:
    """An entry for an upstream over stdio."""
    return {"command": command[0], "args": command[1:]}


def write_config(name: str, servers: Mapping[str, Server], *, trusted: bool = True, bare: bool = False) -> str:
    """Write a config and answer its path: pass-through for trusted servers, the default guards for untrusted ones."""
    own: dict[str, Any] = {**PLAIN, "naming": "bare" if bare else "prefix"}
    if trusted:
        own |= {"expose": "all", "guard": {"pins": "off"}, "servers": {key: {"trust": "trusted"} for key in servers}}
    path = CACHE / f"{name}.json"
    path.write_bytes(msgspec.json.encode({"mcpServers": dict(servers), "polyplex": own}))
    return str(path)


def nginx_program() -> str:
    """The path of nginx. Raises BenchError that says how to install it."""
    found = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/usr/local/sbin:/opt/homebrew/bin")
    if found is None:
        raise BenchError(
            "nginx is not installed; on Debian or Ubuntu: apt-get install nginx-light; on macOS: brew install nginx"
        )
    return found


def write_nginx_config(listen: int, upstream: int) -> Path:
    """A plain reverse proxy of one worker that keeps its upstream connections and writes nothing to disk."""
    root = CACHE / "nginx"
    root.mkdir(parents=True, exist_ok=True)
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    temporary = " ".join(f"{kind}_temp_path {root}/{kind};" for kind in kinds)
    path = root / "nginx.conf"
    path.write_text(f"""\
daemon off; worker_processes 1; pid {root}/nginx.pid; error_log {root}/error.log;
events {{ worker_connections 2048; }}
http {{
  access_log off; {temporary}
  client_max_body_size 64m; keepalive_requests 10000000;
  proxy_buffer_size 64k; proxy_buffers 16 64k; proxy_max_temp_file_size 0;
  upstream mcp {{ server 127.0.0.1:{upstream}; keepalive 128; keepalive_requests 10000000; }}
  server {{
    listen 127.0.0.1:{listen};
    location / {{ proxy_pass http://mcp; proxy_http_version 1.1; proxy_set_header Connection ""; }}
  }}
}}
""")
    return path
