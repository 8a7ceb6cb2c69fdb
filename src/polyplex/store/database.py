"""The embedded state database: SQLite in a file of its own, shared by all processes of one user."""

import sqlite3
from pathlib import Path
from typing import Final

BUSY_MS: Final = 5000


def open_database(path: Path | None, schema: str) -> sqlite3.Connection:
    """Open the database, make it where it is missing, and run `schema` (idempotent statements) on it.

    A transaction that was committed survives the end of the process, however it ends (write-ahead log, synchronous
    NORMAL); a power cut may take the last ones. None opens one in memory. The file is readable by its owner only.
    Connections may be used by one thread at a time. Raises `sqlite3.Error` or `OSError` where it cannot be had.
    """
    if path is None:
        connection = sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None)
    else:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        path.touch(mode=0o600, exist_ok=True)
        connection = sqlite3.connect(path, check_same_thread=False, isolation_level=None, timeout=BUSY_MS / 1000)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
    connection.executescript(schema)
    return connection
