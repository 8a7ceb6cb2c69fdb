"""Finds the program of a configured command, and says what to do where there is none."""

import errno
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from polyplex.errors import UpstreamUnavailable

INSTALL_HINTS: Final = {
    "npx": "npx comes with Node.js, https://nodejs.org",
    "node": "install Node.js, https://nodejs.org",
    "uvx": "uvx comes with uv, https://docs.astral.sh/uv",
    "uv": "install uv, https://docs.astral.sh/uv",
    "docker": "install Docker, https://docs.docker.com/get-docker",
    "bunx": "bunx comes with Bun, https://bun.sh",
    "deno": "install Deno, https://deno.com",
}


def find_program(name: str, command: str, env: Mapping[str, str], cwd: str | None) -> str:
    """Return the path of the program that `command` names, as the child would find it: in its own PATH and directory.

    Raises UpstreamUnavailable for server `name`, saying what is wrong and what to do about it.
    """
    if cwd is not None and not Path(cwd).is_dir():
        raise UpstreamUnavailable(name, f'its working directory {cwd} does not exist; create it or correct "cwd"')
    if not command:
        raise UpstreamUnavailable(name, 'its "command" is empty')
    if os.sep in command:
        return _check_program(name, Path(cwd or ".").absolute() / command)
    found = shutil.which(command, path=env.get("PATH", os.defpath))
    if found is None:
        hint = INSTALL_HINTS.get(command, "install it, or give its full path")
        raise UpstreamUnavailable(name, f'the command "{command}" was not found in PATH; {hint}')
    return str(Path(found).absolute())


def _check_program(name: str, path: Path) -> str:
    if not path.exists():
        raise UpstreamUnavailable(name, f'the command {path} does not exist; correct "command"')
    if path.is_dir():
        raise UpstreamUnavailable(name, f'the command {path} is a directory; correct "command"')
    if not os.access(path, os.X_OK):
        raise UpstreamUnavailable(name, f"the command {path} is not executable; chmod +x it, or name its interpreter")
    return str(path)


def explain_start_failure(name: str, program: str, error: OSError) -> UpstreamUnavailable:
    """Return the error to raise when the system refused to run a program that is there."""
    if error.errno == errno.ENOENT:
        return UpstreamUnavailable(name, f"{program} cannot run: the interpreter in its first line does not exist")
    if error.errno == errno.ENOEXEC:
        return UpstreamUnavailable(name, f"{program} cannot run: it is no program and has no #! line")
    return UpstreamUnavailable(name, f"{program} cannot run: {error.strerror or error}")
