"""Other gateways to compare with, installed on request into virtual environments of their own under CACHE."""

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

from processes import CACHE, HERE, BenchError, say

MCP_PROXY = "mcp-proxy>=0.13,<0.14"
FASTMCP = "fastmcp>=4.2,<4.3"


def environment_with(name: str, requirement: str) -> Path:
    """The bin directory of a virtual environment that holds `requirement`."""
    root = CACHE / f"venv-{name}"
    bin_directory = root / "bin"
    marker = root / "installed"
    if marker.exists():
        return bin_directory
    say(f"installing {requirement} into {root}")
    uv = shutil.which("uv")
    if uv is not None:
        make = [uv, "venv", "--quiet", "--clear", "--python", sys.executable, str(root)]
        install = [uv, "pip", "install", "--quiet", "--python", str(bin_directory / "python"), requirement]
    else:
        make = [sys.executable, "-m", "venv", "--clear", str(root)]
        install = [str(bin_directory / "python"), "-m", "pip", "install", "--quiet", requirement]
    for command in (make, install):
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.returncode:
            raise BenchError(f"{requirement} could not be installed: {result.stderr[-400:]}")
    marker.touch()
    return bin_directory


def mcp_proxy(port: int, server: list[str]) -> list[str]:
    """mcp-proxy over a stdio server."""
    return [
        str(environment_with("mcp-proxy", MCP_PROXY) / "mcp-proxy"),
        "--port",
        str(port),
        "--log-level",
        "ERROR",
        "--",
        *server,
    ]


def fastmcp(port: int, shape: str, server: list[str]) -> list[str]:
    """FastMCP's proxy at its defaults, over a URL or a stdio command; `shape` is default or reuse."""
    if importlib.util.find_spec("fastmcp") is not None:
        python = sys.executable
    else:
        python = str(environment_with("fastmcp", FASTMCP) / "python")
    return [python, str(HERE / "fastmcp_front.py"), shape, str(port), *server]
