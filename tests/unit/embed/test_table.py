import numpy as np
import pytest

from polyplex.embed.choice import open_embedder
from polyplex.embed.table import StaticTable, shipped_table

TINY = StaticTable(
    {"[UNK]": 0, "[CLS]": 1, "[SEP]": 2, "sun": 3, "##day": 4, "moon": 5},
    np.array([[9, 9], [0, 0], [0, 0], [127, 0], [0, 127], [0, 127]], np.int8),
    np.full(6, 1 / 127, np.float32),
)


def test_a_word_counts_once_in_however_many_pieces_it_comes() -> None:
    (vector,) = TINY.embed(["sunday moon"])
    assert vector == pytest.approx(np.array([0.5, 1.5]) / np.hypot(0.5, 1.5), abs=1e-6)


def test_a_text_without_a_known_word_is_a_row_of_zeros() -> None:
    assert not TINY.embed(["", "?!", "\U0001f600", "zzz"]).any()


def test_no_text_is_no_row() -> None:
    assert TINY.embed([]).shape == (0, 2)


def test_rows_do_not_depend_on_what_else_is_embedded() -> None:
    table = shipped_table()
    texts = ["read a file", "", "send an e-mail", "weather in Tokyo"] * 50
    together = table.embed(texts)
    assert together == pytest.approx(np.vstack([table.embed([text]) for text in texts]), abs=1e-6)
    lengths = np.linalg.norm(together, axis=1)
    assert lengths == pytest.approx(np.array([1, 0, 1, 1] * 50), abs=1e-5)


@pytest.mark.parametrize(
    ("text", "near", "far"),
    [
        ("delete a folder", "remove a directory", "play a song"),
        ("rain tomorrow", "weather forecast", "stock price"),
        ("kubernetes", "docker containers", "poems"),
    ],
)
def test_what_means_the_same_is_nearer(text: str, near: str, far: str) -> None:
    vectors = open_embedder("static").embed([text, near, far])
    assert vectors[0] @ vectors[1] > vectors[0] @ vectors[2] + 0.1
