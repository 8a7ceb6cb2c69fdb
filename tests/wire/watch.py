"""Every message that polyplex sends in a test is checked; what is found fails that test.

Where a test has a peer send what is no message of its revision, and polyplex passes it on, the test says so:
`@pytest.mark.off_schema("regular expression of the problem", reason="...")`. A mark that excuses nothing fails too.
"""

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from tests.wire.schema import LATEST_LEGACY, MODERN, RESERVED, REVISIONS, Json, Sender, problems

_FOUND: Final[list[str]] = []
_REPORTS: Final[dict[Path, int]] = {}
SHOWN: Final = 600


def begin() -> None:
    """Forget what was found before."""
    _FOUND.clear()
    _read_reports()
    _FOUND.clear()


def follow(reported: Path) -> None:
    """A process writes what it finds to this file (see tapped.py): it counts for the test that runs then."""
    _REPORTS[reported] = 0


def _read_reports() -> None:
    for file, offset in _REPORTS.items():
        if file.exists():
            data = file.read_bytes()[offset:]
            whole = data[: data.rfind(b"\n") + 1]
            _REPORTS[file] = offset + len(whole)
            for line in whole.splitlines():
                entry = json.loads(line)
                report(entry["where"], entry["message"], [entry["problem"]])


def report(where: str, message: Any, found: Iterable[str]) -> None:
    """Note what is wrong with a message."""
    _FOUND.extend(f"{where}: {problem}\n    {json.dumps(message)[:SHOWN]}" for problem in found)


def check(excuses: dict[str, str]) -> None:
    """Fail for what was found since `begin`, but for what an excuse (pattern: reason) matches."""
    _read_reports()
    found, needed = list(_FOUND), set[str]()
    _FOUND.clear()
    left: list[str] = []
    for problem in found:
        matching = [pattern for pattern in excuses if re.search(pattern, problem)]
        needed.update(matching)
        if not matching:
            left.append(problem)
    assert not left, "polyplex sent what its revision does not allow:\n" + "\n".join(left[:20])
    spare = excuses.keys() - needed
    assert not spare, f"excused by off_schema, but not found: {sorted(spare)}"


class Line:
    """One conversation with a peer. `revision` may be unknown until the handshake; `came` and `sent` are in order."""

    def __init__(self, where: str, peer: Sender, revision: str | None = None) -> None:
        self.where = where
        self.revision = revision
        self._sender: Sender = "server" if peer == "client" else "client"
        self._asked: dict[str, str] = {}

    def came(self, message: Any) -> None:
        """The peer has sent a message: its requests are what responses belong to."""
        for each in message if isinstance(message, list) else [message]:
            if isinstance(each, dict) and isinstance(each.get("method"), str) and "id" in each:
                self._asked[json.dumps(each["id"])] = each["method"]
            elif isinstance(each, dict):
                self._negotiated(each)

    def sent(self, message: Any, revision: str | None = None) -> None:
        """Polyplex has sent a message."""
        answers: str | None = None
        if isinstance(message, dict) and "method" not in message:
            answers = self._asked.get(json.dumps(message.get("id")))
            if answers == "initialize":
                self._negotiated(message)
        elif isinstance(message, list):
            for each in message:
                self.sent(each, revision or self.revision)
            return
        revision = revision or self.revision or LATEST_LEGACY
        report(self.where, message, problems(message, revision, self._sender, answers))

    def _negotiated(self, message: Json) -> None:
        result = message.get("result")
        chosen = result.get("protocolVersion") if isinstance(result, dict) else None
        if chosen in REVISIONS:
            self.revision = chosen


def check_journal(where: str, messages: Iterable[Json], revision: str) -> None:
    """Check what a scripted stdio server received; `revision` is the one it negotiates with legacy clients."""
    modern = True
    for message in messages:
        if "start" in message:
            modern = True
            continue
        method = message.get("method")
        if method == "initialize":
            modern = False
        envelope = message.get("params", {}).get("_meta", {}) if isinstance(message.get("params"), dict) else {}
        known: str = envelope.get(RESERVED + "protocolVersion") or (MODERN if modern else revision)
        if method == "initialize":
            known = message["params"]["protocolVersion"]
        answers = str(message["id"]).partition(":")[2] if method is None else None
        report(where, message, problems(message, known, "client", answers))
