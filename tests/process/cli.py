"""Running the command line as a process, in front of small MCP servers written for the tests."""

import json
import os
import subprocess
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

DEADLINE_SECONDS = 60.0
SERVER = """
import json, os, sys
if len(sys.argv) > 1:
    with open(sys.argv[1], "a") as pids:
        pids.write("%d\\n" % os.getpid())
TOOLS = [
    {"name": "echo", "description": "Says it again. At once.", "inputSchema": {"type": "object"}},
    {"name": "fail", "description": "Fails", "inputSchema": {"type": "object"}},
    {"name": "ask", "description": "Asks for a name", "inputSchema": {"type": "object"}},
    {"name": "hang", "description": "Never answers", "inputSchema": {"type": "object"}},
    {"name": "broken", "description": "", "inputSchema": {"type": "array"}},
]
def send(**message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\\n")
    sys.stdout.flush()
def result(request, value):
    send(id=request["id"], result=value)
def call(request):
    name, given = request["params"]["name"], request["params"].get("arguments", {})
    token = request["params"].get("_meta", {}).get("progressToken")
    if name == "hang":
        send(method="notifications/progress", params={"progressToken": token, "progress": 1, "message": "hanging"})
        return
    if name == "ask":
        schema = {"type": "object", "properties": {"name": {"type": "string"}}}
        send(id="q", method="elicitation/create", params={"message": "Who?", "requestedSchema": schema})
        text = json.loads(sys.stdin.readline())["result"]["action"]
    else:
        text = json.dumps(given)
        send(method="notifications/progress", params={"progressToken": token, "progress": 1, "total": 2})
    result(request, {"content": [{"type": "text", "text": text}], "isError": name == "fail"})
for line in sys.stdin:
    request = json.loads(line)
    if request.get("method") == "initialize":
        info = {"name": "test", "version": "1"}
        result(request, {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info})
    elif request.get("method") == "tools/list":
        result(request, {"tools": TOOLS})
    elif request.get("method") == "tools/call":
        call(request)
    elif "id" in request and "method" in request:
        send(id=request["id"], error={"code": -32601, "message": "no such method"})
"""


class Home:
    """A folder with a configuration, used as working folder and home, so that nothing of the user's is seen."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.pids = folder / "pids"
        script = folder / "server.py"
        script.write_text(SERVER, encoding="utf-8")
        self.good = {"command": sys.executable, "args": ["-S", str(script), str(self.pids)]}
        self.dying = {
            "command": sys.executable,
            "args": ["-S", "-c", "import sys; sys.stdin.readline(); sys.exit('Error: TEST_KEY is not set')"],
        }

    def configure(self, servers: Mapping[str, object], /, **options: object) -> Path:
        """Write the configuration that is found without --config."""
        file = self.folder / "polyplex.json"
        file.write_text(json.dumps({"mcpServers": servers, "polyplex": options}), encoding="utf-8")
        return file

    def environment(self) -> dict[str, str]:
        """What the command line sees."""
        kept = {name: os.environ[name] for name in ("PATH", "LANG", "VIRTUAL_ENV") if name in os.environ}
        return kept | {"HOME": str(self.folder), "NO_COLOR": "1"}

    def run(self, *words: str, given: str | None = None) -> subprocess.CompletedProcess[str]:
        """Run a command to its end."""
        stdin = subprocess.DEVNULL if given is None else None
        return subprocess.run(
            [sys.executable, "-m", "polyplex", *words],
            cwd=self.folder,
            env=self.environment(),
            input=given,
            stdin=stdin,
            capture_output=True,
            text=True,
            timeout=DEADLINE_SECONDS,
        )

    @contextmanager
    def running(self, *words: str) -> Generator[subprocess.Popen[str]]:
        """Start a command, and see that it ends."""
        process = subprocess.Popen(
            [sys.executable, "-m", "polyplex", *words],
            cwd=self.folder,
            env=self.environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        try:
            yield process
        finally:
            process.kill()
            process.communicate(timeout=DEADLINE_SECONDS)

    def children(self) -> list[int]:
        """The servers that were started."""
        return [int(pid) for pid in self.pids.read_text(encoding="utf-8").split()] if self.pids.exists() else []


def read_until(process: subprocess.Popen[str], part: str) -> str:
    """The lines of stderr up to one that holds `part`, that one included."""
    assert process.stderr is not None
    lines: list[str] = []
    for line in process.stderr:
        lines.append(line)
        if part in line:
            return "".join(lines)
    raise AssertionError(f"stderr ended without {part!r}:\n{''.join(lines)}")
