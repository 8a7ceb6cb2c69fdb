"""The documents of one kind: their postings, vectors and names, by slot. Not safe for threads by itself."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final

import numpy as np
from msgspec import Struct

from polyplex.catalog.search.confidence import is_confident
from polyplex.catalog.search.fusion import fused
from polyplex.catalog.search.names import EXACT, Label, Names
from polyplex.catalog.search.postings import Floats, Mask, Postings
from polyplex.catalog.search.reading import Query
from polyplex.catalog.search.types import Found, Hit, Kind
from polyplex.catalog.search.vectors import VectorRows

Allowed = Collection[str] | Callable[[str], bool]

CLEAN_AT: Final = 64


class Reading(Struct):
    """A document that has been read: its names, term frequencies, and a vector of each embedder."""

    kind: Kind
    label: Label
    digest: bytes
    frequencies: Mapping[str, float]
    vectors: Sequence[Floats] = ()


class Question(Struct):
    """A query that has been read. Of each embedder there are rows of vectors: the whole first, then its clauses."""

    text: str
    query: Query
    vectors: Sequence[Floats] = ()


class Shelf:
    """Documents by slot. `dimensions` are those of the embedders' vectors."""

    def __init__(self, dimensions: Sequence[int]) -> None:
        self.slots: dict[str, int] = {}
        self.digests: dict[str, bytes] = {}
        self._labels: list[Label | None] = []
        self._postings = Postings()
        self._names = Names()
        self._alive: Mask = np.zeros(0, np.bool_)
        self._vectors = [VectorRows(each) for each in dimensions]
        self._free: list[int] = []

    def change(self, gone: Collection[str], fresh: Sequence[Reading]) -> None:
        """Take documents out by their keys, and put others in."""
        self._take_out([*gone, *(each.label.key for each in fresh if each.label.key in self.slots)])
        self._grow(len(self._labels) + max(0, len(fresh) - len(self._free)))
        added: dict[int, Mapping[str, float]] = {}
        for reading in fresh:
            slot = self._free.pop() if self._free else len(self._labels)
            if slot == len(self._labels):
                self._labels.append(None)
            self._labels[slot] = reading.label
            self.slots[reading.label.key] = slot
            self.digests[reading.label.key] = reading.digest
            self._names.add(slot, reading.label)
            self._alive[slot] = True
            for rows, vector in zip(self._vectors, reading.vectors, strict=True):
                rows.put(slot, vector)
            added[slot] = reading.frequencies
        self._postings.add(added)

    def _take_out(self, keys: Sequence[str]) -> None:
        slots = {self.slots.pop(key) for key in keys}
        for slot in slots:
            label = self._labels[slot]
            if label is not None:
                del self.digests[label.key]
                self._names.remove(slot, label)
            self._labels[slot] = None
            self._alive[slot] = False
        self._postings.remove(slots)
        if len(self._postings.dead) > max(CLEAN_AT, len(self.slots) // 2):
            self._free += self._postings.clean()

    def _grow(self, size: int) -> None:
        """Make room by a quarter at a time."""
        if size <= len(self._alive):
            return
        room = max(size, len(self._alive) * 5 // 4) - len(self._alive)
        self._alive = np.concatenate([self._alive, np.zeros(room, np.bool_)])
        for rows in self._vectors:
            rows.grow(len(self._alive))

    def search(
        self, question: Question, k: int, server: str | None, allowed: Allowed | None, lexical: float | None
    ) -> Found:
        """The best hits among the documents that are allowed."""
        among = self._among(server, allowed)
        slots = np.flatnonzero(among)
        if not len(slots) or k <= 0:
            return Found()
        scores, attainable, missing = self._postings.scores(
            question.query.terms, among, filtered=among is not self._alive
        )
        vectors = [
            rows.closeness(questions, slots, scores[slots])
            for rows, questions in zip(self._vectors, question.vectors, strict=True)
        ]
        static, model = (*vectors, None, None)[:2]
        final = fused(scores[slots], static, model, question.query.breadth, lexical)
        coverage = scores[slots] / np.float32(attainable or 1)
        confident = is_confident(float(coverage[final.argmax()]), missing, *(float(each.max()) for each in vectors))
        named = self._named(question.text, among)
        parts = {"words": coverage, **dict(zip(("vectors", "model"), vectors, strict=False))}
        hits = [
            self._hit(
                int(slots[place]),
                1.0 if tier else float(final[place]),
                tier,
                {key: float(each[place]) for key, each in parts.items()},
            )
            for place in _best(final + 2 * named[slots], k)
            if (tier := float(named[slots[place]])) or final[place] > 0
        ]
        return Found(tuple(hits), bool(hits) and (confident or bool(named.any())))

    def _named(self, text: str, among: Mask) -> Floats:
        """How outright a query names each slot; 0 where it does not, or may not be found."""
        named = np.zeros(len(among), np.float32)
        for slot, tier in self._names.meant(text, self._postings.__contains__).items():
            named[slot] = tier if among[slot] else 0
        return named

    def _hit(self, slot: int, score: float, tier: float, parts: Mapping[str, float]) -> Hit:
        label = self._labels[slot]
        assert label is not None, "a removed document is not among those that are searched"  # noqa: S101
        return Hit(label.key, score, {**parts, "name": tier / EXACT} if tier else parts)

    def _among(self, server: str | None, allowed: Allowed | None) -> Mask:
        """Which slots may be found at all."""
        if server is None and allowed is None:
            return self._alive
        among = np.zeros(len(self._alive), np.bool_)
        if allowed is None or callable(allowed):
            slots = [slot for key, slot in self.slots.items() if allowed is None or allowed(key)]
        else:
            slots = [slot for key in allowed if (slot := self.slots.get(key)) is not None]
        if server is not None:
            slots = [slot for slot in slots if (label := self._labels[slot]) is not None and label.server == server]
        among[slots] = True
        return among


def _best(scores: Floats, k: int) -> list[int]:
    """The places of the `k` highest scores, best first, equal ones in their order."""
    k = min(k, len(scores))
    places = np.argpartition(-scores, k - 1)[:k]
    return places[np.lexsort((places, -scores[places]))].tolist()
