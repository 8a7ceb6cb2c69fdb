"""Vectors that are kept on disk: a text is embedded once, however often a server is started."""

import hashlib
import logging
import sqlite3
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np

from polyplex.embed.embedder import Embedder, Vectors

MAX_VECTORS: Final = 50_000
_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS vectors (
  embedder TEXT NOT NULL, text BLOB NOT NULL, vector BLOB NOT NULL, PRIMARY KEY (embedder, text)
) WITHOUT ROWID;
"""
_BUSY_SECONDS: Final = 2.0
log = logging.getLogger("polyplex.embed")


class CachedEmbedder:
    """An embedder whose vectors are kept in a database file, by the hash of each text.

    The file may be shared by processes, deleted, or broken: what cannot be kept is embedded again. No text is in it.
    """

    def __init__(self, embedder: Embedder, path: Path, *, most: int = MAX_VECTORS) -> None:
        self._embedder = embedder
        self._path = path
        self._most = most
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._broken = False

    @property
    def name(self) -> str:
        """That of the embedder."""
        return self._embedder.name

    @property
    def dimensions(self) -> int:
        """The length of a vector."""
        return self._embedder.dimensions

    def embed(self, texts: Sequence[str]) -> Vectors:
        """A row of length 1 for each text, from the file where it is there."""
        keys = [hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest() for text in texts]
        vectors = np.zeros((len(texts), self.dimensions), np.float32)
        with self._lock:
            known = self._read(set(keys))
        missing = [place for place, key in enumerate(keys) if key not in known]
        for place, key in enumerate(keys):
            if key in known:
                vectors[place] = known[key]
        if missing:
            fresh = self._embedder.embed([texts[place] for place in missing])
            vectors[missing] = fresh
            with self._lock:
                self._write({keys[place]: fresh[row] for row, place in enumerate(missing)})
        return vectors

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _read(self, keys: set[bytes]) -> dict[bytes, Vectors]:
        found: dict[bytes, Vectors] = {}
        connection = self._opened()
        if connection is None:
            return found
        try:
            for key in keys:
                row = connection.execute(
                    "SELECT vector FROM vectors WHERE embedder = ? AND text = ?", (self.name, key)
                ).fetchone()
                if row is not None and len(row[0]) == 2 * self.dimensions:
                    found[key] = np.frombuffer(row[0], np.float16).astype(np.float32)
        except sqlite3.Error as error:
            self._give_up(error)
        return found

    def _write(self, vectors: dict[bytes, Vectors]) -> None:
        connection = self._opened()
        if connection is None:
            return
        rows = [(self.name, key, vector.astype(np.float16).tobytes()) for key, vector in vectors.items()]
        try:
            with connection:
                connection.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?)", rows)
                self._make_room(connection)
        except sqlite3.Error as error:
            self._give_up(error)

    def _make_room(self, connection: sqlite3.Connection) -> None:
        """Begin anew where the file has grown too large: keys are hashes, so that what goes is as good as any."""
        (count,) = connection.execute("SELECT count(*) FROM vectors").fetchone()
        if count > self._most:
            connection.execute(
                "DELETE FROM vectors WHERE (embedder, text) IN (SELECT embedder, text FROM vectors LIMIT ?)",
                (count - self._most // 2,),
            )

    def _opened(self) -> sqlite3.Connection | None:
        if self._connection is None and not self._broken:
            try:
                self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
                self._path.touch(mode=0o600, exist_ok=True)
                self._connection = sqlite3.connect(self._path, check_same_thread=False, timeout=_BUSY_SECONDS)
                self._connection.execute("PRAGMA journal_mode = WAL")
                self._connection.execute("PRAGMA synchronous = NORMAL")
                self._connection.executescript(_SCHEMA)
            except (sqlite3.Error, OSError) as error:
                self._give_up(error)
        return self._connection

    def _give_up(self, error: Exception) -> None:
        log.warning("vectors are not kept: %s: %s; delete the file to begin anew", self._path, error)
        self._broken = True
        if self._connection is not None:
            self._connection.close()
            self._connection = None
