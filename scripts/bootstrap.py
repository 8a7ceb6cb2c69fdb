"""Make the checkout's environment on a machine that has nothing but git and Python 3.11 or newer.

The lock file decides what is installed. uv reads it: the machine's own, or one from PyPI kept in .cache/uv.
Needs nothing but the standard library.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ENVIRONMENT = ROOT / ".venv"
OWN_UV = ROOT / ".cache" / "uv"
UV = "uv>=0.9,<1"


def make_environment(*, development: bool) -> Path:
    """Install polyplex in .venv, with the development group on request; returns the folder of its commands."""
    uv = shutil.which("uv") or _own_uv()
    command = [uv, "sync", "--locked", "--inexact", "--quiet"]
    command.append("--all-extras" if development else "--no-default-groups")
    if not (ENVIRONMENT / "bin" / "python").exists():
        command += ["--python", sys.executable]
    say(f"installing {'polyplex and its development group' if development else 'polyplex'} in .venv")
    # Two names of one setting, for older and newer uv: trust what the machine trusts, as pip and git do.
    environment = {"UV_NATIVE_TLS": "true", "UV_SYSTEM_CERTS": "true", **os.environ}
    if subprocess.run(command, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, check=False).returncode:
        sys.exit("Could not install the locked packages; the lines above say why. Run this again once that is solved.")
    return ENVIRONMENT / "bin"


def say(text: str) -> None:
    print(f"==> {text}", flush=True)


def _own_uv() -> str:
    """A uv of this checkout, in a virtual environment, or in a plain folder where Python comes without venv."""
    for place in (OWN_UV / "bin" / "uv", OWN_UV / "plain" / "bin" / "uv"):
        if place.exists():
            return str(place)
    say("fetching uv from PyPI into .cache/uv")
    if _quietly(sys.executable, "-m", "venv", "--clear", str(OWN_UV)):
        pip, place = [str(OWN_UV / "bin" / "python"), "-m", "pip", "install"], OWN_UV / "bin" / "uv"
    else:
        pip, place = (
            [sys.executable, "-m", "pip", "install", "--target", str(OWN_UV / "plain")],
            OWN_UV / "plain/bin/uv",
        )
    if not _quietly(*pip, "--disable-pip-version-check", UV):
        sys.exit(
            "This Python can neither make a virtual environment nor run pip, or PyPI cannot be reached.\n"
            "On Debian and Ubuntu `apt install python3-venv` helps; or install uv: https://docs.astral.sh/uv/"
        )
    return str(place)


def _quietly(*command: str) -> bool:
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False).returncode == 0
