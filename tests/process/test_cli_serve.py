"""`polyplex serve` as a process: what it says, how it ends, and that nothing is left of it."""

import json
import re
import signal
import socket
import sys
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.process.children import gone
from tests.process.cli import DEADLINE_SECONDS, Home, read_until

INITIALIZE: dict[str, object] = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}


def post(url: str, message: dict[str, object], session: str | None = None) -> tuple[bytes, str]:
    """The body and the session of the answer."""
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    if session is not None:
        headers["Mcp-Session-Id"] = session
    request = urllib.request.Request(url, json.dumps(message).encode(), headers)
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with direct.open(request, timeout=DEADLINE_SECONDS) as response:
        return response.read(), response.headers.get("Mcp-Session-Id", "")


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def test_it_says_what_it_serves_where_and_what_a_client_needs(home: Home) -> None:
    home.configure({"one": home.good, "two": home.dying}, odd=1)
    with home.running("serve", "--http", "127.0.0.1:0") as process:
        said = read_until(process, "ready ")
        url = re.search(r"^serving  (http://127\.0\.0\.1:\d+/mcp)$", said, re.MULTILINE)
        assert url is not None
        body, _ = post(url[1], INITIALIZE)
    assert b'"serverInfo"' in body
    assert re.search(r"^config   polyplex\.json: 2 servers$", said, re.MULTILINE)
    assert re.search(r"^warning  \S*polyplex\.json:1: polyplex\.odd: unknown key", said, re.MULTILINE)
    assert f'client   {{"mcpServers": {{"polyplex": {{"url": "{url[1]}"}}}}}}\n' in said
    assert re.search(r"^ok       one +\d+\.\d s  4 tools, 1 set aside$", said, re.MULTILINE)
    assert re.search(r"^failed   two +\d+\.\d s  exited with code 1; its last words: .*TEST_KEY", said, re.MULTILINE)
    end = "ready    1 of 2 servers up, 4 tools; failed ones are tried again; polyplex doctor says what to do\n"
    assert said.endswith(end)
    assert "\x1b" not in said


def test_it_serves_without_a_configuration_and_says_where_it_looked(home: Home) -> None:
    with home.running("serve", "--http", "127.0.0.1:0") as process:
        said = read_until(process, "servers  none yet")
        process.send_signal(signal.SIGTERM)
        assert process.wait(DEADLINE_SECONDS) == 0
    assert "none found; looked for\n           ./polyplex.json\n" in said


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
async def test_a_signal_ends_it_and_its_servers(home: Home, number: int, code: int) -> None:
    home.configure({"one": home.good})
    with home.running("serve", "--http", "127.0.0.1:0") as process:
        read_until(process, "ready ")
        process.send_signal(number)
        stdout, stderr = process.communicate(timeout=DEADLINE_SECONDS)
    assert (process.returncode, stdout) == (code, "")
    assert "Traceback" not in stderr
    assert home.children()
    await gone(*home.children())


async def test_a_second_signal_ends_it_at_once(home: Home) -> None:
    home.configure({"one": home.good})
    with home.running("serve", "--http", "127.0.0.1:0") as process:
        said = read_until(process, "ready ")
        url = re.findall(r"http://\S+/mcp", said)[0]
        _, session = post(url, INITIALIZE)
        with hanging_call(url, session):
            process.send_signal(signal.SIGTERM)
            read_until(process, "stopping")
            process.send_signal(signal.SIGTERM)
            assert process.wait(DEADLINE_SECONDS) == 130
    await gone(*home.children())


@contextmanager
def hanging_call(url: str, session: str) -> Generator[None]:
    """A call that is under way for as long as the block lasts."""
    params = {"name": "one__hang", "arguments": {}, "_meta": {"progressToken": 1}}
    body = json.dumps({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params}).encode()
    host, port = url.removeprefix("http://").removesuffix("/mcp").split(":")
    head = (
        f"POST /mcp HTTP/1.1\r\nHost: {host}:{port}\r\nMcp-Session-Id: {session}\r\nContent-Type: application/json\r\n"
        f"Accept: application/json, text/event-stream\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    with socket.create_connection((host, int(port)), DEADLINE_SECONDS) as connection:
        connection.sendall(head.encode() + body)
        received = b""
        while b"hanging" not in received:
            part = connection.recv(4096)
            assert part, received
            received += part
        yield


def test_a_port_in_use_is_explained_with_another_to_choose(home: Home) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = home.run("serve", "--http", f"127.0.0.1:{port}")
    assert (result.returncode, result.stdout) == (2, "")
    assert f"port {port} of 127.0.0.1 is in use" in result.stderr
    assert "choose another with --http" in result.stderr


def test_on_stdio_nothing_but_protocol_goes_to_stdout(home: Home) -> None:
    home.configure({"one": home.good, "two": home.dying})
    with home.running("serve", "--stdio", "-v") as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(INITIALIZE) + "\n")
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["result"]["serverInfo"]["name"] == "polyplex"
        said = read_until(process, "ready ")
        stdout, _ = process.communicate(timeout=DEADLINE_SECONDS)
    assert process.returncode == 0
    assert all(json.loads(line)["jsonrpc"] == "2.0" for line in stdout.splitlines())
    assert "ok       one" in said


async def test_on_stdio_the_end_of_the_client_is_the_end(home: Home) -> None:
    home.configure({"one": home.good})
    with home.running("serve", "--stdio") as process:
        assert process.stdin is not None
        process.stdin.write(json.dumps(INITIALIZE) + "\n")
        process.stdin.flush()
        read_until(process, "ready ")
        process.communicate(timeout=DEADLINE_SECONDS)
    assert process.returncode == 0
    await gone(*home.children())


async def test_a_signal_during_the_start_reports_no_server_as_failed(home: Home) -> None:
    silent = {"command": sys.executable, "args": ["-S", "-c", "import sys; sys.stdin.read()"]}
    home.configure({"one": home.good, "silent": silent})
    with home.running("serve", "--http", "127.0.0.1:0") as process:
        read_until(process, "ok       one")
        process.send_signal(signal.SIGTERM)
        _, stderr = process.communicate(timeout=DEADLINE_SECONDS)
    assert process.returncode == 0
    assert "failed" not in stderr
    assert "Traceback" not in stderr
    await gone(*home.children())
