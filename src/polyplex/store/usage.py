"""What the results of each tool have cost so far: one row a tool, added to, never a row a call."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from polyplex.store.database import open_database

MAX_ROWS: Final = 20_000
_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS usage (
  server TEXT NOT NULL, tool TEXT NOT NULL,
  calls INTEGER NOT NULL, bytes INTEGER NOT NULL, tokens INTEGER NOT NULL, offloaded INTEGER NOT NULL,
  first REAL NOT NULL, last REAL NOT NULL,
  PRIMARY KEY (server, tool)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS usage_by_age ON usage (last);
"""
_ADD: Final = """
INSERT INTO usage (server, tool, calls, bytes, tokens, offloaded, first, last) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (server, tool) DO UPDATE SET
  calls = calls + excluded.calls, bytes = bytes + excluded.bytes, tokens = tokens + excluded.tokens,
  offloaded = offloaded + excluded.offloaded, last = MAX(last, excluded.last)
"""
_TRIM: Final = "DELETE FROM usage WHERE (server, tool) IN (SELECT server, tool FROM usage ORDER BY last LIMIT ?)"


class Counts(msgspec.Struct):
    """Calls, bytes that the server sent, estimated tokens that reached the client, bytes kept as payloads instead."""

    calls: int = 0
    bytes: int = 0
    tokens: int = 0
    offloaded: int = 0


class ToolUsage(msgspec.Struct, frozen=True):
    """The counts of one tool; `first` and `last` are Unix times of a call."""

    server: str
    tool: str
    counts: Counts
    first: float
    last: float


class UsageStore:
    """Bounded in rows: the tools called longest ago go first. Raises `sqlite3.Error` where the database fails."""

    def __init__(self, path: Path | None) -> None:
        self._database = open_database(path, _SCHEMA)

    def close(self) -> None:
        """Close the database."""
        self._database.close()

    def add(self, counts: Mapping[tuple[str, str], Counts]) -> None:
        """Add to the counts of (server, tool), in one transaction; several processes may add to the same ones."""
        now = time.time()
        rows = [
            (server, tool, each.calls, each.bytes, each.tokens, each.offloaded, now, now)
            for (server, tool), each in counts.items()
        ]
        self._database.execute("BEGIN IMMEDIATE")
        try:
            self._database.executemany(_ADD, rows)
            (total,) = self._database.execute("SELECT COUNT(*) FROM usage").fetchone()
            if total > MAX_ROWS:
                self._database.execute(_TRIM, (total - MAX_ROWS,))
        except BaseException:
            self._database.execute("ROLLBACK")
            raise
        self._database.execute("COMMIT")

    def all(self) -> list[ToolUsage]:
        """Every tool that was called, by server and name."""
        query = "SELECT server, tool, calls, bytes, tokens, offloaded, first, last FROM usage ORDER BY server, tool"
        return [
            ToolUsage(server, tool, Counts(calls, size, tokens, offloaded), first, last)
            for server, tool, calls, size, tokens, offloaded, first, last in self._database.execute(query)
        ]


def read_usage(path: Path) -> list[ToolUsage]:
    """What is known in a state database; nothing where there is none. Raises `sqlite3.Error` or `OSError`."""
    if not path.exists():
        return []
    store = UsageStore(path)
    try:
        return store.all()
    finally:
        store.close()
