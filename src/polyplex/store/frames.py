"""Frames that memory has no room for, in the state database: written, read and deleted by a thread of its own.

The event loop never waits for the disk: every method returns at once. What is kept is of use to this process alone;
rows that it leaves behind, killed, are deleted by the next one once they have expired.
"""

import logging
import secrets
import sqlite3
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Final

from polyplex.store.database import open_database

log = logging.getLogger("polyplex.store")
ROWS_PER_PROCESS: Final = 1 << 32
READ_AT_ONCE: Final = 500
_SCHEMA: Final = """
    CREATE TABLE IF NOT EXISTS frames (id INTEGER PRIMARY KEY, expires REAL NOT NULL, frame BLOB NOT NULL);
    CREATE INDEX IF NOT EXISTS frames_by_expiry ON frames (expires);
"""


class FrameStore:
    """Bytes by number. `path` is the state database; it is opened when the first frame comes."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._first = secrets.randbits(30) * ROWS_PER_PROCESS  # apart from the rows of other processes
        self._thread = ThreadPoolExecutor(1, "polyplex-frames")
        self._database: sqlite3.Connection | None = None

    def write(self, frames: Sequence[tuple[int, bytes]], seconds: float) -> "Future[bool]":
        """Keep frames by their numbers for that many seconds; False where the database does not take them."""
        return self._thread.submit(self._write, frames, time.time() + seconds)

    def read(self, numbers: Sequence[int]) -> "Future[dict[int, bytes]]":
        """The frames of these numbers; those that cannot be had are missing."""
        return self._thread.submit(self._read, numbers)

    def delete(self, numbers: Iterable[int]) -> None:
        """Forget frames."""
        self._thread.submit(self._delete, list(numbers))

    def sweep(self) -> None:
        """Delete what others left behind and what expired, where there is a database already."""
        self._thread.submit(self._sweep)

    def close(self) -> "Future[None]":
        """Delete all of this process and close the database; nothing may be asked for afterwards."""
        done = self._thread.submit(self._close)
        self._thread.shutdown(wait=False)
        return done

    # -- in the thread
    def _open(self) -> sqlite3.Connection:
        if self._database is None:
            self._database = open_database(self._path, _SCHEMA)
            self._database.execute("DELETE FROM frames WHERE expires < ?", (time.time(),))
        return self._database

    def _write(self, frames: Sequence[tuple[int, bytes]], expires: float) -> bool:
        rows = [(self._first + number, expires, frame) for number, frame in frames]
        try:
            database = self._open()
            database.execute("BEGIN IMMEDIATE")
            try:
                database.executemany("INSERT INTO frames VALUES (?, ?, ?)", rows)
                database.execute("COMMIT")
            except BaseException:
                database.execute("ROLLBACK")
                raise
        except (sqlite3.Error, OSError) as error:
            log.warning("the state database %s takes no events: %s", self._path, error)
            return False
        return True

    def _read(self, numbers: Sequence[int]) -> dict[int, bytes]:
        found: dict[int, bytes] = {}
        try:
            for start in range(0, len(numbers), READ_AT_ONCE):
                wanted = [self._first + number for number in numbers[start : start + READ_AT_ONCE]]
                query = f"SELECT id, frame FROM frames WHERE id IN ({','.join('?' * len(wanted))})"  # noqa: S608
                found |= {row - self._first: frame for row, frame in self._open().execute(query, wanted)}
        except (sqlite3.Error, OSError) as error:
            log.warning("the state database %s gives no events: %s", self._path, error)
        return found

    def _delete(self, numbers: list[int]) -> None:
        if self._database is not None:
            self._attempt("DELETE FROM frames WHERE id = ?", [(self._first + number,) for number in numbers])

    def _sweep(self) -> None:
        if self._database is None and not self._path.exists():
            return
        try:
            self._open()
        except (sqlite3.Error, OSError) as error:
            log.info("the state database %s cannot be opened: %s", self._path, error)
            return
        self._attempt("DELETE FROM frames WHERE expires < ?", [(time.time(),)])

    def _close(self) -> None:
        if self._database is not None:
            own = (self._first, self._first + ROWS_PER_PROCESS)
            self._attempt("DELETE FROM frames WHERE id >= ? AND id < ?", [own])
            self._database.close()
            self._database = None

    def _attempt(self, statement: str, rows: list[tuple[float, ...]]) -> None:
        """Deleting may fail: what stays expires."""
        try:
            if self._database is not None:
                self._database.executemany(statement, rows)
        except sqlite3.Error as error:
            log.info("the state database %s: %s", self._path, error)
