"""What a start of polyplex may cost.

CPU seconds are user plus system time of the child process, interpreter included, the lowest of several runs: load on
the machine makes a run slower, never faster. A bare `python -c pass` takes 0.01 to 0.02 s of each budget.
"""

import os
import subprocess
import sys
import threading
import tomllib
from pathlib import Path
from typing import Any

from packaging.markers import Marker

from tests.rules.sources import ROOT

IMPORT_CPU_SECONDS = 0.1
HELP_CPU_SECONDS = 0.3
BASE_PACKAGES = 30
RUNS = 7
DEADLINE_SECONDS = 20

HEAVY_MODULES = (
    "asyncio",
    "cyclopts",
    "fastmcp",
    "http.client",
    "httptools",
    "httpx2",
    "mcp",
    "numpy",
    "pydantic",
    "rich",
    "sqlite3",
    "ssl",
    "starlette",
    "uvicorn",
    "uvloop",
)


def test_importing_polyplex_is_cheap() -> None:
    assert _cpu_seconds(sys.executable, "-c", "import polyplex") < IMPORT_CPU_SECONDS


def test_importing_polyplex_loads_nothing_heavy() -> None:
    code = "import sys, polyplex; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "polyplex" in loaded
    assert set(HEAVY_MODULES) & set(loaded) == set()


def test_help_is_cheap() -> None:
    assert _cpu_seconds(sys.executable, "-m", "polyplex", "--help") < HELP_CPU_SECONDS


def test_the_base_install_is_small() -> None:
    closure = _base_install(ROOT / "uv.lock")
    assert "msgspec" in closure
    assert len(closure) <= BASE_PACKAGES, sorted(closure)


def _cpu_seconds(*command: str) -> float:
    return min(_one_run(command) for _ in range(RUNS))


def _one_run(command: tuple[str, ...]) -> float:
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as child:
        assert child.stderr is not None
        deadline = threading.Timer(DEADLINE_SECONDS, child.kill)
        deadline.start()
        complaint = child.stderr.read()
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        deadline.cancel()
    assert child.returncode == 0, complaint.decode()
    return usage.ru_utime + usage.ru_stime


def _base_install(lock: Path) -> set[str]:
    """Names of all packages that `pip install polyplex` brings on this platform, from the lock file."""
    packages = {package["name"]: package for package in tomllib.loads(lock.read_text(encoding="utf-8"))["package"]}
    found: set[str] = set()
    waiting: list[dict[str, Any]] = list(packages["polyplex"]["dependencies"])
    while waiting:
        dependency = waiting.pop()
        if "marker" in dependency and not Marker(dependency["marker"]).evaluate():
            continue
        package = packages[dependency["name"]]
        if dependency["name"] not in found:
            found.add(dependency["name"])
            waiting += package.get("dependencies", [])
        for extra in dependency.get("extra", ()):
            waiting += package.get("optional-dependencies", {}).get(extra, [])
    return found
