import logging
import sqlite3
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from polyplex.embed.cache import CachedEmbedder
from polyplex.embed.embedder import Vectors


class Counting:
    """Embeds by length, and counts."""

    dimensions = 2

    def __init__(self, name: str = "counting") -> None:
        self.name = name
        self.texts: list[str] = []

    def embed(self, texts: Sequence[str]) -> Vectors:
        self.texts += texts
        return np.array([[len(text), 1] for text in texts], np.float32)


def test_a_text_is_embedded_once_across_restarts(tmp_path: Path) -> None:
    file = tmp_path / "sub" / "vectors.db"
    first, second = Counting(), Counting()
    cached = CachedEmbedder(first, file)
    fresh = cached.embed(["a", "bb", "a"])
    cached.close()
    again = CachedEmbedder(second, file)
    kept = again.embed(["bb", "ccc", "a"])
    again.close()
    assert fresh.tolist() == [[1, 1], [2, 1], [1, 1]]
    assert kept.tolist() == [[2, 1], [3, 1], [1, 1]]
    assert second.texts == ["ccc"]
    assert b"ccc" not in file.read_bytes()
    assert file.stat().st_mode & 0o077 == 0


def test_vectors_of_other_weights_are_not_taken(tmp_path: Path) -> None:
    one, other = CachedEmbedder(Counting(), tmp_path / "v.db"), CachedEmbedder(Counting("other"), tmp_path / "v.db")
    one.embed(["a"])
    inner = Counting("other")
    other = CachedEmbedder(inner, tmp_path / "v.db")
    other.embed(["a"])
    one.close()
    other.close()
    assert inner.texts == ["a"]


def test_the_file_stays_bounded(tmp_path: Path) -> None:
    cached = CachedEmbedder(Counting(), tmp_path / "v.db", most=10)
    for number in range(50):
        cached.embed([f"text {number}"])
    cached.close()
    with sqlite3.connect(tmp_path / "v.db") as connection:
        (count,) = connection.execute("SELECT count(*) FROM vectors").fetchone()
    connection.close()
    assert 0 < count <= 10


def test_a_broken_file_only_costs_the_cache(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "v.db"
    file.write_bytes(b"this is no database, " * 100)
    cached = CachedEmbedder(Counting(), file)
    with caplog.at_level(logging.WARNING):
        assert cached.embed(["abc"]).tolist() == [[3, 1]]
        assert cached.embed(["abc"]).tolist() == [[3, 1]]
    assert [record.getMessage().split(":")[0] for record in caplog.records] == ["vectors are not kept"]


def test_a_folder_that_cannot_be_made_only_costs_the_cache(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert CachedEmbedder(Counting(), tmp_path / "file" / "v.db").embed(["abc"]).tolist() == [[3, 1]]
