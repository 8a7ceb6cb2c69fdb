#!/usr/bin/env python3
"""Start polyplex in front of real MCP servers and show that it works: python3 scripts/start.py

Installs polyplex in .venv and the servers of examples/quickstart.json in .cache/peers, serves them at one address,
lists the tools there, makes a call, and keeps serving until Ctrl-C. Needs git and Python 3.11 or newer; servers that
need Node.js are left out where it is missing. --check stops after the demonstration.
"""

import argparse
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from bootstrap import ROOT, make_environment, say
from peers import CACHE, PeersError, node_peers, python_peers

FOLDER = ROOT / ".cache" / "start"
EXAMPLE = ROOT / "examples" / "quickstart.json"
START_SECONDS = 90
STOP_SECONDS = 20


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="stop after the demonstration")
    parser.add_argument("--port", type=int, default=7332, help="on 127.0.0.1 (default: 7332)")
    options = parser.parse_args()
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    try:
        return _run(options.port, check=options.check)
    except KeyboardInterrupt:
        say("stopped")
        return 0


def _run(port: int, *, check: bool) -> int:
    commands = make_environment(development=False)
    servers = _installed_servers()
    FOLDER.mkdir(parents=True, exist_ok=True)
    config = _write("config.json", {"mcpServers": servers})
    port = _free_port(port)
    url = f"http://127.0.0.1:{port}/mcp"
    with _serving(commands, config, port) as server:
        _await_ready(server, f"http://127.0.0.1:{port}/readyz")
        shown = _demonstrate(commands, url, list(servers))
        if check:
            return 0 if shown else 1
        say(f"serving at {url} - give this address to any MCP client; Ctrl-C stops")
        return server.wait()


def _installed_servers() -> dict[str, Any]:
    """The servers of the example that can run here."""
    try:
        python_peers()
    except PeersError as error:
        sys.exit(str(error))
    servers: dict[str, Any] = json.loads(EXAMPLE.read_text(encoding="utf-8"))["mcpServers"]
    try:
        node_peers()
    except PeersError as error:
        skipped = [name for name, server in servers.items() if "/node/" in server["command"]]
        say(f"left out: {', '.join(skipped)}. {error}")
        return {name: server for name, server in servers.items() if name not in skipped}
    return servers


@contextmanager
def _serving(commands: Path, config: Path, port: int) -> Generator[subprocess.Popen[bytes]]:
    """polyplex as a process of its own session, so that Ctrl-C reaches it once and by us."""
    log = FOLDER / "serve.log"
    command = [str(commands / "polyplex"), "serve", "--config", str(config), "--http", f"127.0.0.1:{port}"]
    say(f"polyplex serve --config {config.relative_to(ROOT)} --http 127.0.0.1:{port}   (log: {log.relative_to(ROOT)})")
    with log.open("wb") as output:
        server = subprocess.Popen(
            command,
            cwd=ROOT,
            env={**os.environ, "POLYPLEX_PEERS": str(CACHE), "POLYPLEX_CHECKOUT": str(ROOT)},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        yield server
    finally:
        server.terminate()
        try:
            server.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


def _await_ready(server: subprocess.Popen[bytes], url: str) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not _answers(url):
        if server.poll() is not None or time.monotonic() > deadline:
            tail = (FOLDER / "serve.log").read_text(encoding="utf-8", errors="replace")[-2000:]
            sys.exit(f"polyplex did not become ready at {url}. The end of its log:\n{tail}")
        time.sleep(0.1)  # noqa: TID251 - a script without an event loop


def _answers(url: str) -> bool:
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with direct.open(url, timeout=5):
            return True
    except (OSError, urllib.error.URLError):
        return False


def _demonstrate(commands: Path, url: str, servers: list[str]) -> bool:
    """List the tools and call one, through the address that clients use. False where a server's tools are missing."""
    client = _write(
        "client.json", {"mcpServers": {"demo": {"url": url}}, "polyplex": {"naming": "bare", "builtins": []}}
    )
    polyplex = str(commands / "polyplex")
    deadline = time.monotonic() + START_SECONDS
    while True:
        listing = _output(polyplex, "tools", "--config", str(client))
        missing = [name for name in servers if f"{name}__" not in listing]
        if not missing or time.monotonic() > deadline:
            break
        time.sleep(0.5)  # noqa: TID251 - a script without an event loop
    say(f"polyplex tools: what {len(servers)} servers offer at {url}")
    print(listing, flush=True)
    arguments = '{"timezone": "Europe/Berlin"}'
    say(f"polyplex call time__get_current_time '{arguments}'")
    answer = _output(polyplex, "call", "time__get_current_time", arguments, "--config", str(client))
    print(answer, flush=True)
    if missing:
        say(f"no tools from: {', '.join(missing)}; .cache/start/serve.log says why")
    return not missing and "Europe/Berlin" in answer


def _output(*command: str) -> str:
    answer = subprocess.run(
        command, cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False
    )
    if answer.returncode:
        sys.exit(f"{' '.join(command)} failed:\n{answer.stderr.strip() or answer.stdout.strip()}")
    return answer.stdout.strip()


def _free_port(wanted: int) -> int:
    """The wanted port, or one that the system picks where it is taken."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", wanted))
        except OSError:
            say(f"port {wanted} is taken, using another")
            probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _write(name: str, content: dict[str, Any]) -> Path:
    path = FOLDER / name
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    return path


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
