"""The vectors of documents, a byte for each number: reading them is what a search waits for."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from polyplex.catalog.search.postings import Floats

Slots = NDArray[np.intp]

BLOCK: Final = 512
CLAUSES: Final = 0.7  # the share of the clause that fits best, where a query has several; the rest is the whole's
MOST: Final = 800
FEW: Final = 4  # where fewer than one in so many documents may be found, only their rows are read


class VectorRows:
    """Rows by slot, each with its own scale."""

    def __init__(self, dimensions: int) -> None:
        self._rows = np.zeros((0, dimensions), np.int8)
        self._scales = np.zeros(0, np.float32)

    def grow(self, size: int) -> None:
        """Make room for slots below `size`."""
        room = size - len(self._rows)
        if room > 0:
            self._rows = np.concatenate([self._rows, np.zeros((room, self._rows.shape[1]), np.int8)])
            self._scales = np.concatenate([self._scales, np.zeros(room, np.float32)])

    def put(self, slot: int, vector: Floats) -> None:
        """Set one row."""
        scale = float(np.abs(vector).max()) / 127
        self._scales[slot] = scale
        self._rows[slot] = np.round(vector / scale) if scale else 0

    def closeness(self, questions: Floats, slots: Slots, likely: Floats) -> Floats:
        """How close the rows of some slots are to a query: to the whole, and to the clause that fits best.

        The first question is the whole query, the others are its clauses. Those are asked of the `MOST` rows that are
        closest to the whole, and of the `MOST` that are likely for another reason.
        """
        few = FEW * len(slots) < len(self._rows)
        whole = self._products(self._rows[slots] if few else self._rows, questions[:1])[0]
        whole = (whole if few or len(slots) == len(self._rows) else whole[slots]) * self._scales[slots]
        if len(questions) == 1:
            return whole
        places = np.arange(len(slots)) if len(slots) <= 2 * MOST else np.union1d(_highest(whole), _highest(likely))
        rows = slots[places]
        clauses = self._products(self._rows[rows], questions[1:]).max(axis=0) * self._scales[rows]
        whole[places] = (1 - CLAUSES) * whole[places] + CLAUSES * clauses
        return whole

    @staticmethod
    def _products(rows: NDArray[np.int8], questions: Floats) -> Floats:
        """Rows times questions, in blocks that stay in the cache."""
        found = np.empty((len(questions), len(rows)), np.float32)
        room = np.empty((min(BLOCK, len(rows)), rows.shape[1]), np.float32)
        for begin in range(0, len(rows), BLOCK):
            block = room[: len(rows) - begin]
            np.copyto(block, rows[begin : begin + BLOCK])
            for question, line in zip(questions, found, strict=True):
                np.dot(block, question, out=line[begin : begin + BLOCK])
        return found


def _highest(scores: Floats) -> Slots:
    """The places of the `MOST` highest scores."""
    return np.argpartition(scores, -MOST)[-MOST:]
