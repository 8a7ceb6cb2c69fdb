"""BM25F over an inverted index that grows and shrinks by single documents.

New documents become a segment: arrays sorted by term. Removed ones are marked, and dropped when segments are merged.
What a document weighs depends on nothing but itself and the average lengths of `FIELDS`, which are constants: so an
index that has grown and one that was built at once score alike.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

K1: Final = 1.2
MAX_SEGMENTS: Final = 8

Floats = NDArray[np.float32]
Slots = NDArray[np.int32]


class Field(Struct, frozen=True):
    """How one field counts: its weight, how much its length matters, its usual length, and the words read of it."""

    weight: float
    b: float
    usual: float
    limit: int
    repeats: int = 2


FIELDS: Final[Mapping[str, Field]] = {
    "name": Field(3.0, 0.3, 3.0, 16),
    "server": Field(1.5, 0.2, 2.0, 8),
    "description": Field(1.0, 0.6, 20.0, 120),
    "parameter": Field(0.5, 0.6, 6.0, 80),
    "parameter_text": Field(0.3, 0.6, 30.0, 160),
    "choices": Field(0.2, 0.6, 5.0, 60),
    "server_text": Field(0.3, 0.6, 20.0, 80),
}


def frequencies(fields: Mapping[str, Sequence[str]]) -> dict[str, float]:
    """The weighted frequency of each term of a document: BM25F's pseudo-frequency."""
    found: dict[str, float] = {}
    for name, terms in fields.items():
        field = FIELDS[name]
        terms = terms[: field.limit]
        share = field.weight / (1 - field.b + field.b * len(terms) / field.usual)
        for term, count in Counter(terms).items():
            found[term] = found.get(term, 0.0) + share * min(count, field.repeats)
    return found


class Segment(Struct):
    """Postings sorted by term: those of term `t` are at `starts[t]:starts[t + 1]`, terms beyond it are not in it."""

    starts: NDArray[np.int64]
    slots: Slots
    weights: Floats

    def find(self, term: int) -> tuple[Slots, Floats]:
        """The slots that have a term, and its saturated weight in each."""
        if term + 1 >= len(self.starts):
            return self.slots[:0], self.weights[:0]
        begin, end = self.starts[term], self.starts[term + 1]
        return self.slots[begin:end], self.weights[begin:end]


class Postings:
    """The inverted index of one kind of entries. Documents are known by their slot, a small integer."""

    def __init__(self) -> None:
        self.terms: dict[str, int] = {}
        self.segments: list[Segment] = []
        self.document_counts: NDArray[np.int32] = np.zeros(1024, np.int32)
        self.documents = 0
        self.dead: set[int] = set()

    def add(self, documents: Mapping[int, Mapping[str, float]]) -> None:
        """Index documents: the frequencies of their terms by slot. The slots must be free."""
        if not documents:
            return
        columns: list[int] = []
        slots: list[int] = []
        values: list[float] = []
        for slot, found in documents.items():
            columns += [self.terms.setdefault(term, len(self.terms)) for term in found]
            slots += [slot] * len(found)
            values += found.values()
        frequency = np.asarray(values, np.float32)
        self._append(
            np.asarray(columns, np.int32), np.asarray(slots, np.int32), frequency * (K1 + 1) / (frequency + K1)
        )
        self.documents += len(documents)
        if len(self.segments) > MAX_SEGMENTS:
            self.merge()

    def remove(self, slots: set[int]) -> None:
        """Take documents out. Their slots stay taken until `merge`."""
        gone = np.fromiter(slots, np.int32, len(slots))
        for segment in self.segments:
            places = np.flatnonzero(np.isin(segment.slots, gone))
            columns = np.searchsorted(segment.starts, places, side="right") - 1
            np.subtract.at(self.document_counts, columns, 1)
        self.documents -= len(slots)
        self.dead |= slots

    def merge(self) -> set[int]:
        """Make all segments one without the removed documents. Returns the slots that are free again."""
        gone = np.fromiter(self.dead, np.int32, len(self.dead))
        columns = [
            np.repeat(np.arange(len(each.starts) - 1, dtype=np.int32), np.diff(each.starts)) for each in self.segments
        ]
        slots = [each.slots for each in self.segments]
        weights = [each.weights for each in self.segments]
        keep = [~np.isin(each, gone) for each in slots]
        self.segments = []
        self.document_counts[:] = 0
        if keep:
            pick = np.concatenate(keep)
            self._append(np.concatenate(columns)[pick], np.concatenate(slots)[pick], np.concatenate(weights)[pick])
        freed, self.dead = self.dead, set()
        return freed

    def _append(self, columns: NDArray[np.int32], slots: Slots, weights: Floats) -> None:
        order = np.argsort(columns, kind="stable")
        counts = np.bincount(columns, minlength=len(self.terms)).astype(np.int32)
        starts = np.zeros(len(counts) + 1, np.int64)
        np.cumsum(counts, out=starts[1:])
        if len(counts) > len(self.document_counts):
            grown = np.zeros(2 * len(counts), np.int32)
            grown[: len(self.document_counts)] = self.document_counts
            self.document_counts = grown
        self.document_counts[: len(counts)] += counts
        self.segments.append(Segment(starts, slots[order], weights[order].astype(np.float32)))

    def rarity(self, term: str) -> float:
        """Inverse document frequency; a term that is nowhere is as rare as one that is in a single document."""
        column = self.terms.get(term)
        count = max(1, int(self.document_counts[column])) if column is not None else 1
        return math.log(1 + (self.documents - count + 0.5) / (count + 0.5))

    def scores(self, query: Mapping[str, float], size: int) -> Floats:
        """The BM25F score of each slot below `size` for query terms with their weights; 0 without a common term."""
        scores = np.zeros(size, np.float32)
        for term, weight in query.items():
            column = self.terms.get(term)
            if column is None or self.document_counts[column] <= 0:
                continue
            factor = np.float32(weight * self.rarity(term))
            for segment in self.segments:
                slots, weights = segment.find(column)
                scores[slots] += factor * weights
        return scores
