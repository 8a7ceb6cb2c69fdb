"""The index finds what it found on the data in the repository, with room for chance (`just eval tools`)."""

from collections.abc import Callable

import pytest

from eval.datasets import SETS, load
from eval.metrics import Scores
from eval.tools import ABSTENTION, SLICE, abstention, measure_sets, ranker
from polyplex.catalog.search.index import SearchIndex
from polyplex.embed.choice import open_embedder

SLICES = [data for name in SETS if (data := load(SLICE, name)) is not None]


def measured(make: Callable[[], SearchIndex]) -> dict[str, Scores]:
    def rank(data):
        index = make()
        index.update(data.documents())
        return ranker(index)

    return measure_sets(SLICES, rank)


@pytest.fixture(scope="module")
def static() -> dict[str, Scores]:
    return measured(lambda: SearchIndex(open_embedder("static")))


@pytest.mark.parametrize(
    ("name", "measure", "floor"),
    [
        ("first five", "nDCG@10", 0.64),
        ("first five", "R@5", 0.68),
        ("first five", "R@10", 0.77),
        ("livemcp_agentq", "R@5", 0.87),
        ("livemcp_agentq", "R@10", 0.92),
        ("mcpproxy45", "nDCG@10", 0.74),
    ],
)
def test_tools_are_found(static: dict[str, Scores], name: str, measure: str, floor: float) -> None:
    assert static[name][measure] >= floor


def test_vectors_help(static: dict[str, Scores]) -> None:
    words = measured(SearchIndex)
    assert words["first five"]["nDCG@10"] > 0.58
    assert static["first five"]["nDCG@10"] > words["first five"]["nDCG@10"] + 0.02


def test_what_fits_and_what_does_not_is_told_apart() -> None:
    data = load(SLICE, "livemcpbench")
    assert data is not None
    assert ABSTENTION.read_text(encoding="utf-8").count("true") == 75
    right = abstention(lambda: SearchIndex(open_embedder("static")), data)
    assert min(right.values()) >= 0.9
