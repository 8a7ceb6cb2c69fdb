"""One order out of several: each way of scoring is put on one scale, then they are weighed."""

from typing import Final

import numpy as np

from polyplex.catalog.search.postings import Floats

DEPTH: Final = 50
# How much of the score is the vectors': less, the more words a query has, since a mean of many words points nowhere.
SHARE: Final = 0.75
SHARE_BY_BREADTH: Final = 0.13
SHARE_BOUNDS: Final = (0.1, 0.6)
# With a model that reads whole sentences: words, static vectors, the model's.
WITH_MODEL: Final = (0.45, 0.20, 0.35)


def scaled(scores: Floats) -> Floats:
    """Between 0 for the last of the best `DEPTH` and 1 for the best. Scores that are not positive come to 0."""
    positive = scores[scores > 0]
    if not len(positive):
        return np.zeros_like(scores)
    high = positive.max()
    low = np.partition(positive, -DEPTH)[-DEPTH] if len(positive) > DEPTH else np.float32(0)
    return np.clip((scores - low) / (high - low + np.float32(1e-9)), 0, 1)


def fused(words: Floats, static: Floats | None, model: Floats | None, breadth: float, lexical: float | None) -> Floats:
    """The weighted sum. `lexical` fixes the share of the words; without it the share is the measured one."""
    if static is None:
        return scaled(words)
    if model is None:
        low, high = SHARE_BOUNDS
        share = min(high, max(low, SHARE - SHARE_BY_BREADTH * breadth)) if lexical is None else 1 - lexical
        return weighed((1 - share, words), (share, static))
    by_words, by_static, by_model = WITH_MODEL
    rest = 1 - by_words if lexical is None else 1 - lexical
    by_vectors = rest / (by_static + by_model)
    return weighed((1 - rest, words), (by_vectors * by_static, static), (by_vectors * by_model, model))


def weighed(*shares: tuple[float, Floats]) -> Floats:
    """The sum of scores on one scale, each with its share."""
    total = np.zeros_like(shares[0][1])
    for share, scores in shares:
        total += np.float32(share) * scaled(scores)
    return total
