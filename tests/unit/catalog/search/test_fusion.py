import numpy as np
import pytest

from polyplex.catalog.search.fusion import DEPTH, fused, scaled


def scores(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


def test_scores_are_put_between_the_last_of_the_best_and_the_best() -> None:
    many = np.arange(1, 2 * DEPTH + 1, dtype=np.float32)
    assert scaled(many)[-1] == pytest.approx(1)
    assert not scaled(many)[:DEPTH].any()
    assert scaled(scores(2, 1, 0, -1)).tolist() == pytest.approx([1, 0.5, 0, 0])
    assert scaled(scores(0, -1)).tolist() == [0, 0]
    assert scaled(scores()).tolist() == []


def test_the_more_words_the_less_the_vectors_count() -> None:
    words, vectors = scores(1, 0), scores(0, 1)
    short = fused(words, vectors, None, 0.0, None)
    long = fused(words, vectors, None, 3.5, None)
    assert short[1] == pytest.approx(0.6)
    assert short[1] > short[0]
    assert long[0] > long[1] > 0


def test_a_configured_share_is_kept() -> None:
    words, vectors = scores(1, 0), scores(0, 1)
    assert fused(words, vectors, None, 5.0, 0.25).tolist() == pytest.approx([0.25, 0.75])
    assert fused(words, vectors, vectors, 5.0, 0.25).tolist() == pytest.approx([0.25, 0.75])
    assert fused(words, None, None, 5.0, 0.25).tolist() == pytest.approx([1, 0])


def test_three_ways_are_weighed_together() -> None:
    assert fused(scores(1, 0, 0), scores(0, 1, 0), scores(0, 0, 1), 1.0, None).tolist() == pytest.approx(
        [0.45, 0.2, 0.35]
    )
