"""How good a ranking is. A slot counts as found at the rank of its best tool."""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from eval.datasets import DataSet, Query

DEPTH: Final = 60
NAMES: Final = ("nDCG@10", "R@5", "R@10", "H@1")
Ranker = Callable[[str, int], Sequence[str]]
Scores = dict[str, float]


def judge(ranked: Sequence[str], query: Query) -> Scores:
    """nDCG@10, recall at 5 and 10, and whether the first hit is right."""
    places = {key: place for place, key in reversed(list(enumerate(ranked)))}
    ranks = [min((places[key] for key in slot if key in places), default=DEPTH) for slot in query.slots]
    ideal = sum(1 / math.log2(place + 2) for place in range(min(len(ranks), 10)))
    gained = sum(1 / math.log2(rank + 2) for rank in ranks if rank < 10)
    return {
        "nDCG@10": gained / ideal,
        "R@5": sum(rank < 5 for rank in ranks) / len(ranks),
        "R@10": sum(rank < 10 for rank in ranks) / len(ranks),
        "H@1": float(min(ranks) == 0),
    }


def evaluate(data: DataSet, rank: Ranker) -> Scores:
    """The mean over the queries of a set."""
    return mean(judge(rank(query.text, DEPTH), query) for query in data.queries)


def mean(scores: Iterable[Scores]) -> Scores:
    """The mean of each measure."""
    every = list(scores)
    return {name: sum(each[name] for each in every) / len(every) for name in NAMES} if every else {}
