"""The servers of a run: those of examples/eight-servers as they are there, five more, and one polyplex before them.

The example starts its servers with npx and uvx. Here two small scripts of these names, first on PATH, run what
scripts/peers.py has installed instead, so that nothing is downloaded and every version is locked.
"""

import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.interop.clients.interface import Target, TransportName
from tests.wire import tapped, watch

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
EXAMPLE = ROOT / "examples" / "eight-servers"
START_SECONDS = 60
STOP_SECONDS = 15
POLL_SECONDS = 0.05
SHOWN_CHARACTERS = 3000
PAGE = b"<html><body><h1>Interop</h1><p>The page says hello to fetch.</p></body></html>"
COMMIT = "Begin the interoperability test"
FILE_TEXT = "Hello from a file."


class StageError(Exception):
    """Something did not start; `str()` says what, and what it said."""


@dataclass(frozen=True, slots=True)
class Stage:
    """A running polyplex and what its servers look at."""

    folder: Path
    repository: Path
    example: Path
    page: str
    servers: tuple[str, ...]
    address: str
    lazy_address: str
    environment: Mapping[str, str]

    @property
    def config(self) -> Path:
        """The configuration that polyplex serves."""
        return self.example / "all.json"

    @property
    def example_config(self) -> Path:
        """The example's own configuration, unchanged."""
        return self.example / "polyplex.json"

    @property
    def lazy_config(self) -> Path:
        """The same servers, started on first use."""
        return self.example / "lazy.json"

    def target(self, transport: TransportName, *, lazy: bool = False) -> Target:
        """Where a client finds polyplex. `lazy` finds one that starts servers on first use: for clients that
        connect anew for each request, and declare roots, so that all stdio servers would start for each request.
        """
        if transport == "stdio":
            config = self.lazy_config if lazy else self.config
            return Target("stdio", command=(*self._as_here(), "serve", "--config", str(config), "--stdio"))
        address = self.lazy_address if lazy else self.address
        return Target(transport, url=f"http://{address}/{'mcp' if transport == 'http' else 'sse'}")

    def _as_here(self) -> tuple[str, ...]:
        """polyplex with the environment of the stage, whatever a client hands to the process that it starts."""
        variables = (f"{name}={value}" for name, value in self.environment.items())
        return ("/usr/bin/env", "-i", *variables, *tapped.command(self.folder / "wire.jsonl"))

    def polyplex(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        """Run a command of polyplex to its end."""
        command = [*self._as_here(), *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=START_SECONDS, check=False)


@contextmanager
def running_stage(folder: Path, python_peers: Mapping[str, Path], node_peers: Mapping[str, Path]) -> Generator[Stage]:
    """Start everything; ends it all again.

    Raises:
        StageError: something did not come up in time.
    """
    with ExitStack() as stack:
        example = _copied_example(folder / "repository")
        environment = _environment(folder, python_peers, node_peers)
        stack.enter_context(_running([sys.executable, str(example / "http_servers.py")], folder / "http", environment))
        own = {
            "python-sdk": [sys.executable, str(HERE / "servers" / "python_sdk.py")],
            "fastmcp": [sys.executable, str(HERE / "servers" / "fastmcp_server.py")],
            "typescript-sdk": [
                str(node_peers["node"]),
                str(HERE / "servers" / "typescript_sdk.mjs"),
                str(node_peers["node_modules"]),
            ],
        }
        urls = {
            name: stack.enter_context(_running(command, folder / name, environment)) for name, command in own.items()
        }
        servers = _write_configs(example, folder, urls)
        page = stack.enter_context(_serving_page())
        address, lazy_address = (f"127.0.0.1:{_free_port()}" for _ in range(2))
        stage = Stage(folder, folder / "repository", example, page, servers, address, lazy_address, environment)
        watch.follow(folder / "wire.jsonl")
        # The second finds on disk what the first has learned of the servers.
        stack.enter_context(_serving_polyplex(stage, stage.config, stage.address))
        stack.enter_context(_serving_polyplex(stage, stage.lazy_config, stage.lazy_address))
        yield stage


def _copied_example(repository: Path) -> Path:
    """A copy of the example in a git repository of its own, as deep as in this one."""
    example = repository / EXAMPLE.relative_to(ROOT)
    shutil.copytree(EXAMPLE, example)
    identity = ["-c", "user.name=interop", "-c", "user.email=interop@example.com", "-c", "commit.gpgsign=false"]
    for command in (["init", "-q"], ["add", "-A"], [*identity, "commit", "-q", "-m", COMMIT]):
        subprocess.run(["git", *command], cwd=repository, check=True, timeout=START_SECONDS)
    return example


def _environment(folder: Path, python_peers: Mapping[str, Path], node_peers: Mapping[str, Path]) -> dict[str, str]:
    """What the processes of the stage see: little of this one's own, and npx and uvx that download nothing."""
    commands = folder / "bin"
    commands.mkdir()
    (commands / "node").symlink_to(node_peers["node"].resolve())
    modules = node_peers["mcp-server-everything"].parent
    npx = f'shift\nname="mcp-${{1#@modelcontextprotocol/}}"\nshift\nexec {commands}/node {modules}/"$name" "$@"\n'
    (commands / "npx").write_text(f"#!/bin/sh\n{npx}", encoding="utf-8")
    cases = "\n".join(
        f'{name}) shift; exec {path} "$@";;' for name, path in python_peers.items() if name.startswith("mcp-server-")
    )
    (commands / "uvx").write_text(f'#!/bin/sh\ncase "$1" in\n{cases}\nesac\nexit 127\n', encoding="utf-8")
    for name in ("npx", "uvx"):
        (commands / name).chmod(0o755)
    return {
        "PATH": f"{commands}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
        "HOME": str(folder),
        "TMPDIR": str(folder),
        "XDG_STATE_HOME": str(folder / "state"),
        "EVERYTHING_HTTP_PORT": str(_free_port()),
        "EVERYTHING_SSE_PORT": str(_free_port()),
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def _write_configs(example: Path, folder: Path, urls: Mapping[str, str]) -> tuple[str, ...]:
    """all.json, the example's servers and five more; and lazy.json, the same ones started on first use."""
    config: dict[str, Any] = json.loads((example / "polyplex.json").read_text(encoding="utf-8"))
    servers: dict[str, Any] = config["mcpServers"]
    servers["fetch"]["args"].append("--allow-private-ips")
    servers["everything"] = {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-everything"]}
    servers["sqlite"] = {"command": "uvx", "args": ["mcp-server-sqlite", "--db-path", str(folder / "notes.db")]}
    servers |= {name: {"type": "http", "url": url} for name, url in urls.items()}
    config["polyplex"]["results"] = {"mode": "raw"}
    (example / "all.json").write_text(json.dumps(config, indent=2), encoding="utf-8")
    config["polyplex"]["firstListWaitSeconds"] = START_SECONDS
    config["polyplex"]["servers"] = {name: {"lazy": True} for name in servers}
    (example / "lazy.json").write_text(json.dumps(config, indent=2), encoding="utf-8")
    return tuple(servers)


@contextmanager
def _running(command: list[str], log: Path, environment: Mapping[str, str]) -> Generator[str]:
    """Run a server that prints one line when it is ready; yields the line."""
    with log.with_suffix(".log").open("w", encoding="utf-8") as errors:
        process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=errors, text=True)
    try:
        late = threading.Timer(START_SECONDS, process.kill)
        late.start()
        line = process.stdout.readline().strip() if process.stdout else ""
        late.cancel()
        if not line:
            raise StageError(f"{' '.join(command)} did not start: {_last_lines(log.with_suffix('.log'))}")
        yield line
    finally:
        _end(process)


@contextmanager
def _serving_polyplex(stage: Stage, config: Path, address: str) -> Generator[None]:
    log = stage.folder / f"polyplex-{config.stem}.log"
    command = [*tapped.command(stage.folder / "wire.jsonl"), "serve", "--config", str(config), "--http", address]
    with log.open("w", encoding="utf-8") as errors:
        process = subprocess.Popen(command, env=stage.environment, stdin=subprocess.DEVNULL, stderr=errors)
    try:
        _await_ready(process, f"http://{address}/readyz", log)
        yield
    finally:
        _end(process)


def _await_ready(process: "subprocess.Popen[bytes]", url: str, log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    said = ""
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise StageError(f"polyplex ended: {_last_lines(log)}")
        try:
            with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(url, timeout=2):
                return
        except urllib.error.HTTPError as error:
            said = error.read().decode(errors="replace")
        except OSError as error:
            said = str(error)
        threading.Event().wait(POLL_SECONDS)
    raise StageError(f"polyplex is not ready after {START_SECONDS} s: {said} {_last_lines(log)}")


def _end(process: "subprocess.Popen[Any]") -> None:
    process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stdout is not None:
        process.stdout.close()


class _Page(BaseHTTPRequestHandler):
    """One page; there is no robots.txt."""

    def do_GET(self) -> None:
        found = self.path == "/page.html"
        self.send_response(200 if found else 404)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(PAGE if found else b"")

    def log_message(self, format: str, *args: object) -> None:
        """Silence."""


@contextmanager
def _serving_page() -> Generator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Page) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/page.html"
        finally:
            server.shutdown()
            thread.join()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]


def _last_lines(log: Path) -> str:
    return log.read_text(encoding="utf-8", errors="replace")[-SHOWN_CHARACTERS:]
