"""Tasks that polyplex has handed out: what it last knew of each, and results that it holds itself.

A handle works without this memory, as its id says everything; lists, cancellations and held results need it.
"""

import sqlite3
import time
from pathlib import Path
from typing import Final

import msgspec

from polyplex.store.database import open_database

MAX_TASKS: Final = 20_000
MAX_HELD_BYTES: Final = 256 * 1024 * 1024
MAX_HELD_PER_CALLER: Final = 2000
KEPT_SECONDS: Final = 7 * 24 * 3600.0
SWEEP_SECONDS: Final = 60.0
_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS tasks (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE, caller TEXT NOT NULL, server TEXT NOT NULL, local TEXT NOT NULL,
  held INTEGER NOT NULL, cancelled INTEGER NOT NULL DEFAULT 0,
  expires REAL NOT NULL, task BLOB NOT NULL, result BLOB
);
CREATE INDEX IF NOT EXISTS tasks_by_local ON tasks (server, local, caller);
CREATE INDEX IF NOT EXISTS tasks_by_caller ON tasks (caller, number);
CREATE INDEX IF NOT EXISTS tasks_by_expiry ON tasks (expires);
"""
_COLUMNS: Final = "number, id, caller, server, local, held, cancelled, task, result"


class StoreFullError(Exception):
    """No further result can be held."""


class KnownTask(msgspec.Struct, frozen=True):
    """One task: `task` as raw JSON of 2025-11-25, and the `result` of its call where polyplex holds it."""

    number: int
    id: str
    caller: str
    server: str
    local: str
    held: bool
    cancelled: bool
    task: bytes
    result: bytes | None


class TaskStore:
    """Bounded in number, bytes and age. Raises `sqlite3.Error` where the database fails."""

    def __init__(self, path: Path | None) -> None:
        self._database = open_database(path, _SCHEMA)
        self._swept = 0.0

    def close(self) -> None:
        """Close the database."""
        self._database.close()

    def add(
        self,
        identifier: str,
        caller: str,
        server: str,
        local: str,
        task: bytes,
        *,
        seconds: float | None,
        result: bytes | None = None,
    ) -> None:
        """Remember a task for so many seconds (None for as long as any). Durable on return.

        Raises `StoreFullError` where `result` does not fit; without one the oldest make room.
        """
        now = time.time()
        self._sweep(now)
        if result is not None:
            self._check_room(caller, len(result))
        kept = KEPT_SECONDS if seconds is None else min(seconds, KEPT_SECONDS)
        self._database.execute(
            "INSERT OR REPLACE INTO tasks (id, caller, server, local, held, expires, task, result) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (identifier, caller, server, local, result is not None, now + kept, task, result),
        )

    def _check_room(self, caller: str, size: int) -> None:
        query = "SELECT COALESCE(SUM(LENGTH(result)), 0), COALESCE(SUM(caller = ?), 0) FROM tasks WHERE held"
        held, own = self._database.execute(query, (caller,)).fetchone()
        if held + size > MAX_HELD_BYTES or own >= MAX_HELD_PER_CALLER:
            raise StoreFullError("too many results are held already")

    def _sweep(self, now: float) -> None:
        """Forget what has expired, and the oldest of what is over the limit; results that are held stay."""
        if now - self._swept < SWEEP_SECONDS:
            return
        self._swept = now
        self._database.execute("DELETE FROM tasks WHERE expires <= ?", (now,))
        (count,) = self._database.execute("SELECT COUNT(*) FROM tasks").fetchone()
        if count > MAX_TASKS:
            self._database.execute(
                "DELETE FROM tasks WHERE number IN (SELECT number FROM tasks WHERE NOT held ORDER BY number LIMIT ?)",
                (count - MAX_TASKS,),
            )

    def get(self, identifier: str) -> KnownTask | None:
        """The task with this public id."""
        return self._one("id = ?", (identifier,))

    def find(self, server: str, local: str, caller: str | None = None) -> KnownTask | None:
        """The task that a server knows by this id, of this caller or of any."""
        if caller is None:
            return self._one("server = ? AND local = ?", (server, local))
        return self._one("server = ? AND local = ? AND caller = ?", (server, local, caller))

    def _one(self, where: str, values: tuple[str, ...]) -> KnownTask | None:
        query = f"SELECT {_COLUMNS} FROM tasks WHERE {where} AND expires > ? ORDER BY number DESC LIMIT 1"  # noqa: S608 - no outside text
        row = self._database.execute(query, (*values, time.time())).fetchone()
        return None if row is None else _known(row)

    def page(self, caller: str, after: int, limit: int) -> list[KnownTask]:
        """The caller's tasks in the order they were made, from behind the one numbered `after`."""
        query = (
            f"SELECT {_COLUMNS} FROM tasks WHERE caller = ? AND number > ? AND expires > ? "  # noqa: S608
            "ORDER BY number LIMIT ?"
        )
        rows = self._database.execute(query, (caller, after, time.time(), limit))
        return [_known(row) for row in rows]

    def update(self, identifier: str, task: bytes) -> None:
        """Note what is known now."""
        self._database.execute("UPDATE tasks SET task = ? WHERE id = ?", (task, identifier))

    def cancel(self, identifier: str, task: bytes) -> None:
        """The task counts as cancelled from now on, whatever its server makes of it."""
        self._database.execute("UPDATE tasks SET cancelled = 1, task = ? WHERE id = ?", (task, identifier))

    def forget(self, identifier: str) -> None:
        """The task is no more."""
        self._database.execute("DELETE FROM tasks WHERE id = ?", (identifier,))


def _known(row: tuple[int, str, str, str, str, int, int, bytes, bytes | None]) -> KnownTask:
    number, identifier, caller, server, local, held, cancelled, task, result = row
    return KnownTask(number, identifier, caller, server, local, bool(held), bool(cancelled), task, result)


def failure_of(error: Exception) -> str:
    """What a failing database is reported as."""
    return f"the state database cannot be used: {error}" if isinstance(error, sqlite3.Error) else str(error)
