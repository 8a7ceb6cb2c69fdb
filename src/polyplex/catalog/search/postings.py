"""BM25F over an inverted index that grows and shrinks by single documents.

New documents become a segment: arrays sorted by term. Removed ones are marked, and dropped when segments are merged.
What a document weighs depends on nothing but itself and the average lengths of `FIELDS`, which are constants: so an
index that has grown and one that was built at once score alike.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

K1: Final = 1.2
MAX_SEGMENTS: Final = 4

Floats = NDArray[np.float32]
Slots = NDArray[np.int32]
Mask = NDArray[np.bool_]


class Field(Struct, frozen=True):
    """How one field counts: its weight, how much its length matters, its usual length, and the words read of it."""

    weight: float
    b: float
    usual: float
    limit: int
    repeats: int = 2


FIELDS: Final[Mapping[str, Field]] = {
    "name": Field(3.0, 0.3, 2.6, 16),
    "server": Field(1.5, 0.2, 1.8, 8),
    "summary": Field(1.0, 0.6, 8.0, 60),
    "details": Field(0.4, 0.6, 15.0, 100),
    "parameter": Field(0.5, 0.6, 3.3, 80),
    "parameter_text": Field(0.3, 0.6, 11.0, 160),
    "choices": Field(0.2, 0.6, 2.0, 60),
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

    starts: NDArray[np.int32]
    slots: Slots
    weights: Floats

    def find(self, term: int) -> tuple[Slots, Floats]:
        """The slots that have a term, and its saturated weight in each."""
        if term + 1 >= len(self.starts):
            return self.slots[:0], self.weights[:0]
        begin, end = self.starts[term], self.starts[term + 1]
        return self.slots[begin:end], self.weights[begin:end]

    def columns(self) -> NDArray[np.int32]:
        """The term of each posting."""
        return np.repeat(np.arange(len(self.starts) - 1, dtype=np.int32), np.diff(self.starts))


class Matches(NamedTuple):
    """`scores` by slot, the best score that any document could have, and the share of the terms that none has."""

    scores: Floats
    attainable: float
    missing: float


class Postings:
    """The inverted index of one kind of entries. Documents are known by their slot, a small integer."""

    def __init__(self) -> None:
        self.dead: set[int] = set()
        self._columns: dict[str, int] = {}
        self._segments: list[Segment] = []

    def __contains__(self, term: str) -> bool:
        """Whether a document has the term, or one had that is not cleaned up yet."""
        return term in self._columns

    def add(self, documents: Mapping[int, Mapping[str, float]]) -> None:
        """Index documents: the frequencies of their terms by slot. The slots must be free."""
        columns: list[int] = []
        slots: list[int] = []
        values: list[float] = []
        for slot, found in documents.items():
            columns += [self._columns.setdefault(term, len(self._columns)) for term in found]
            slots += [slot] * len(found)
            values += found.values()
        if not columns:
            return
        frequency = np.asarray(values, np.float32)
        saturated = frequency * np.float32(K1 + 1) / (frequency + np.float32(K1))
        self._append(np.asarray(columns, np.int32), np.asarray(slots, np.int32), saturated.astype(np.float32))
        if len(self._segments) > MAX_SEGMENTS:
            self._merge()

    def remove(self, slots: set[int]) -> None:
        """Take documents out. Their slots stay taken until `clean`."""
        self.dead |= slots

    def clean(self) -> set[int]:
        """Drop what removed documents left behind. Returns the slots that are free again."""
        self._merge()
        freed, self.dead = self.dead, set()
        return freed

    def _merge(self) -> None:
        """Make all segments one without the removed documents, and forget terms that only those had."""
        if not self._segments:
            return
        gone = np.fromiter(self.dead, np.int32, len(self.dead))
        slots = np.concatenate([each.slots for each in self._segments])
        columns = np.concatenate([each.columns() for each in self._segments])
        weights = np.concatenate([each.weights for each in self._segments])
        keep = ~np.isin(slots, gone)
        used, columns = np.unique(columns[keep], return_inverse=True)
        terms = list(self._columns)
        self._columns = {terms[column]: number for number, column in enumerate(used.tolist())}
        self._segments = []
        self._append(columns.astype(np.int32), slots[keep], weights[keep])

    def _append(self, columns: NDArray[np.int32], slots: Slots, weights: Floats) -> None:
        order = np.argsort(columns, kind="stable")
        starts = np.zeros(len(self._columns) + 1, np.int32)
        np.cumsum(np.bincount(columns, minlength=len(self._columns)), out=starts[1:])
        self._segments.append(Segment(starts, slots[order], weights[order]))

    def scores(self, query: Mapping[str, float], among: Mask, *, filtered: bool = True) -> Matches:
        """The BM25 score of each slot for query terms with their weights.

        Only slots that are true in `among` count, for the rarity of a term as well: what a caller may not see changes
        nothing for him. Where no caller's filter made `among`, `filtered` may be false. A term that is nowhere is as
        rare as one that a single document has.
        """
        scores = np.zeros(len(among), np.float32)
        documents = int(np.count_nonzero(among))
        best = missing = 0.0
        for term, weight in query.items():
            found = self._find(term, among if filtered or self.dead else None)
            count = sum(len(slots) for slots, _ in found)
            missing += 0 if count else weight
            count = max(1, count)
            factor = weight * math.log(1 + max(0.0, documents - count + 0.5) / (count + 0.5))
            best += factor * (K1 + 1)
            for slots, weights in found:
                scores[slots] += np.float32(factor) * weights
        return Matches(scores, best, missing / (sum(query.values()) or 1))

    def _find(self, term: str, among: Mask | None) -> list[tuple[Slots, Floats]]:
        column = self._columns.get(term)
        if column is None:
            return []
        found: list[tuple[Slots, Floats]] = []
        for segment in self._segments:
            slots, weights = segment.find(column)
            if among is not None:
                keep = among[slots]
                slots, weights = slots[keep], weights[keep]
            found.append((slots, weights))
        return found
