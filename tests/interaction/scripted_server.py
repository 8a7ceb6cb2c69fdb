"""`script.Script` as a stdio server: `python -S scripted_server.py JOURNAL SETTINGS`.

JOURNAL is a file that gets a line for each start and for each message received, which outlives the process.
"""

import heapq
import json
import os
import select
import sys
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from script_tasks import TaskScript  # pyright: ignore[reportMissingImports, reportUnknownVariableType]


class Stdio:
    """Reads lines, keeps timers."""

    def __init__(self, journal: str, settings: dict[str, Any]) -> None:
        self._journal = os.open(journal, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        self._timers: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = count()
        self._note({"start": os.getpid()})
        self.script: Any = TaskScript(settings, self._later, self._send)
        self.script.noise = lambda line: os.write(1, line.encode() + b"\n")

    def _note(self, entry: object) -> None:
        os.write(self._journal, json.dumps(entry).encode() + b"\n")

    def _send(self, message: dict[str, Any]) -> None:
        data = json.dumps(message).encode() + b"\n"
        while data:
            data = data[os.write(1, data) :]

    def _later(self, seconds: float, work: Callable[[], None]) -> None:
        heapq.heappush(self._timers, (time.monotonic() + seconds, next(self._numbers), work))

    def run(self) -> None:
        """Until stdin ends."""
        buffer = b""
        while True:
            wait = max(0.0, self._timers[0][0] - time.monotonic()) if self._timers else None
            if not select.select([0], [], [], wait)[0]:
                heapq.heappop(self._timers)[2]()
                continue
            data = os.read(0, 65536)
            if not data:
                return
            *lines, buffer = (buffer + data).split(b"\n")
            for line in lines:
                message = json.loads(line)
                self._note(message)
                self.script.receive(message, self._send)


if __name__ == "__main__":
    settings = json.loads(sys.argv[2])
    for line in settings.get("stderr", []):
        print(line, file=sys.stderr, flush=True)
    while "waitFor" in settings and not Path(settings["waitFor"]).exists():
        select.select([], [], [], 0.01)
    if settings.get("exit") is not None:
        sys.exit(settings["exit"])
    Stdio(sys.argv[1], settings).run()
