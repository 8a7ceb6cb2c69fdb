"""Runs the official conformance suite and reads its result files."""

import asyncio
import json
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent.parent
REVISIONS = ("2025-11-25", "2026-07-28")
SUITE_SECONDS = 180
STATUSES = ("SUCCESS", "WARNING", "SKIPPED", "FAILURE")
RESULT_FOLDER = re.compile(r"(?:server-)?(?P<scenario>.+)-\d{4}-\d\d-\d\dT[\d-]+Z")


class MissingError(Exception):
    """The suite cannot run here; `str()` says why."""


@dataclass(frozen=True, slots=True)
class Check:
    """One check of one scenario run. INFO entries are the suite's log and are no checks, but are kept."""

    id: str
    name: str
    status: str
    message: str


Results = dict[str, list[Check]]
"""Checks by scenario."""


@dataclass(frozen=True, slots=True)
class Requirements:
    """What a revision asks for: scored scenarios, and those run only for information (extensions left out)."""

    scored: tuple[str, ...]
    unscored: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Suite:
    """An installed suite."""

    node: Path
    script: Path

    @property
    def package(self) -> Path:
        return self.script.resolve().parent.parent

    def requirements(self, revision: str, leg: str) -> Requirements:
        """The frozen requirement set of one leg, `server` or `client`; without authorization, which is not ours."""
        text = (self.package / "requirements" / f"{revision}.yaml").read_text(encoding="utf-8")
        scored = _listed(text, leg)
        unscored = [
            entry["scenario"] for entry in _not_scored(text) if entry["leg"] == leg and entry["reason"] != "extension"
        ]
        wanted = [[name for name in names if not name.startswith("auth/")] for names in (scored, unscored)]
        return Requirements(tuple(wanted[0]), tuple(wanted[1]))

    def extension(self, revision: str, prefix: str) -> Requirements:
        """The server scenarios of an extension; the suite only reports them, here they count."""
        text = (self.package / "requirements" / f"{revision}.yaml").read_text(encoding="utf-8")
        wanted = [each["scenario"] for each in _not_scored(text) if each["reason"] == "extension"]
        return Requirements(tuple(name for name in wanted if name.startswith(prefix)), ())

    async def extended(self, url: str, revision: str, folder: Path, scenario: str) -> Results:
        """Run one scenario of an extension against a URL; the suite runs those only when it is told twice."""
        which = ["--scenario", scenario, "--spec-version", revision, "--force"]
        await self._run(["server", "--url", url, *which, "--output-dir", str(folder)], folder)
        return read_results(folder)

    async def server(self, url: str, revision: str, folder: Path, only: str | None = None) -> Results:
        """Run all server scenarios of a revision, or one, against a URL."""
        which = ["--scenario", only, "--spec-version", revision] if only else ["--requirements", revision]
        await self._run(["server", "--url", url, *which, "--output-dir", str(folder)], folder)
        return read_results(folder)

    async def client(self, command: list[str], scenario: str, revision: str, folder: Path) -> Results:
        """Run one client scenario; that the client ended well counts as a check."""
        arguments = ["client", "--command", shlex.join(command), "--scenario", scenario, "--spec-version", revision]
        said = await self._run([*arguments, "--output-dir", str(folder)], folder)
        results = read_results(folder)
        ended = _client_ended(said, folder)
        return {name: [*checks, ended] for name, checks in results.items()}

    async def _run(self, arguments: list[str], folder: Path) -> str:
        shutil.rmtree(folder, ignore_errors=True)
        process = await asyncio.create_subprocess_exec(
            str(self.node),
            str(self.script),
            *arguments,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        try:
            output, _ = await asyncio.wait_for(process.communicate(), SUITE_SECONDS)
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        return _kept(output, folder)


def _client_ended(said: str, folder: Path) -> Check:
    failed = re.search(r"Client (exited with code.*|timed out.*)", said)
    if failed is None:
        return Check("client-ended", "ClientEnded", "SUCCESS", "")
    text = "\n".join(file.read_text(errors="replace") for file in folder.rglob("stderr.txt"))
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return Check("client-ended", "ClientEnded", "FAILURE", f"{failed[0]}: {''.join(lines[-1:])}")


def _kept(output: bytes, folder: Path) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "suite.log").write_bytes(output)
    return output.decode(errors="replace")


def find_suite(*, install: bool) -> Suite:
    """The suite that scripts/peers.py installs.

    Raises:
        MissingError: no Node.js that is new enough, or the package is not installed.
    """
    command = [sys.executable, str(ROOT / "scripts" / "peers.py"), "node", "--json"]
    answer = subprocess.run(
        command if install else [*command, "--installed-only"], capture_output=True, text=True, check=False
    )
    if answer.returncode != 0:
        raise MissingError(answer.stderr.strip())
    paths: dict[str, str] = json.loads(answer.stdout)
    return Suite(Path(paths["node"]), Path(paths["conformance"]))


def read_results(folder: Path) -> Results:
    """All checks.json below a suite's output folder."""
    results: Results = {}
    for file in sorted(folder.rglob("checks.json")):
        match = RESULT_FOLDER.fullmatch(str(file.parent.relative_to(folder)))
        if match:
            entries: list[dict[str, Any]] = json.loads(file.read_text(encoding="utf-8"))
            results[match["scenario"]] = [_check(entry) for entry in entries]
    return results


def _check(entry: dict[str, Any]) -> Check:
    details = entry.get("details") or {}
    message = entry.get("errorMessage") or details.get("message") or details.get("note") or ""
    return Check(entry["id"], entry["name"], entry["status"], str(message))


def _listed(text: str, section: str) -> list[str]:
    match = re.search(rf"^{section}:\n((?:  - .*\n|\s*#.*\n|\n)*)", text, re.MULTILINE)
    return re.findall(r"^  - (\S+)$", match[1], re.MULTILINE) if match else []


def _not_scored(text: str) -> list[dict[str, str]]:
    pattern = r"^  - scenario: (?P<scenario>\S+)\n    leg: (?P<leg>\S+)\n    reason: (?P<reason>\S+)$"
    return [match.groupdict() for match in re.finditer(pattern, text, re.MULTILINE)]
