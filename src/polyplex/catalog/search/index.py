"""The index: documents in, hits out. It holds no text, and is safe to use from several threads."""

import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Final

import numpy as np

from polyplex.catalog.search.postings import Floats, Postings, frequencies
from polyplex.catalog.search.types import KINDS, Document, Found, Hit, Kind
from polyplex.catalog.search.words import terms

Allowed = Collection[str] | Callable[[str], bool]

STEP: Final = 64


class SearchIndex:
    """An index over tools, prompts, resources and templates.

    `update` takes the whole list each time and indexes what is new or changed. Reading texts is done outside the lock:
    one thread may update while others search, and they find what was there before until the update is done.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._updating = threading.Lock()
        self._shelves: dict[Kind, Shelf] = {kind: Shelf() for kind in KINDS}

    def __len__(self) -> int:
        return sum(len(shelf.slots) for shelf in self._shelves.values())

    def update(self, documents: Iterable[Document]) -> None:
        """Make the index hold exactly these documents."""
        for _ in self.updating(documents):
            pass

    def updating(self, documents: Iterable[Document]) -> Iterator[int]:
        """`update` in steps of some milliseconds; yields how many documents have been read."""
        with self._updating:
            wanted = {(document.kind, document.key): document for document in documents}
            fresh: dict[Kind, list[tuple[Document, bytes, dict[str, float]]]] = {kind: [] for kind in KINDS}
            read = 0
            for document in wanted.values():
                digest = document.digest()
                if self._shelves[document.kind].digests.get(document.key) != digest:
                    fresh[document.kind].append((document, digest, frequencies(fields(document))))
                    read += 1
                    if read % STEP == 0:
                        yield read
            for kind, shelf in self._shelves.items():
                keys = {key for wanted_kind, key in wanted if wanted_kind == kind}
                with self._lock:
                    shelf.change(shelf.slots.keys() - keys, fresh[kind])

    def search(
        self,
        query: str,
        k: int = 8,
        *,
        kind: Kind = "tool",
        server: str | None = None,
        allowed: Allowed | None = None,
    ) -> Found:
        """The `k` entries that fit a query best. `server` and `allowed` filter before anything is ranked."""
        with self._lock:
            return self._shelves[kind].search(query, k, server, allowed)


class Shelf:
    """The documents of one kind."""

    def __init__(self) -> None:
        self.postings = Postings()
        self.slots: dict[str, int] = {}
        self.digests: dict[str, bytes] = {}
        self.servers: dict[str, str] = {}
        self.size = 0
        self.free: list[int] = []

    def change(self, gone: set[str], fresh: list[tuple[Document, bytes, dict[str, float]]]) -> None:
        """Take out and put in."""
        gone = gone | {document.key for document, _, _ in fresh if document.key in self.slots}
        if gone:
            self.postings.remove({self.slots.pop(key) for key in gone})
            for key in gone:
                del self.digests[key], self.servers[key]
        if len(self.postings.dead) > max(64, len(self.slots) // 2):
            self.free += self.postings.merge()
        added: dict[int, dict[str, float]] = {}
        for document, digest, found in fresh:
            slot = self.free.pop() if self.free else self.size
            self.size = max(self.size, slot + 1)
            self.slots[document.key] = slot
            self.digests[document.key] = digest
            self.servers[document.key] = document.server
            added[slot] = found
        self.postings.add(added)

    def search(self, query: str, k: int, server: str | None, allowed: Allowed | None) -> Found:
        counts = Counter(terms(query))
        scores = self.postings.scores({term: 2 * n / (1 + n) for term, n in counts.items()}, self.size)
        wanted = self._candidates(scores, server, allowed)
        wanted.sort(key=lambda item: (-item[1], item[0]))
        best = wanted[0][1] if wanted else 1.0
        hits = tuple(Hit(key, score / best, {"words": score / best}) for key, score in wanted[: max(0, k)])
        return Found(hits, bool(hits))

    def _candidates(self, scores: Floats, server: str | None, allowed: Allowed | None) -> list[tuple[str, float]]:
        may = (lambda key: key in allowed) if isinstance(allowed, Collection) else allowed
        found = np.flatnonzero(scores > 0)
        positive = set(found.tolist())
        return [
            (key, float(scores[slot]))
            for key, slot in self.slots.items()
            if slot in positive and (server is None or self.servers[key] == server) and (may is None or may(key))
        ]


def fields(document: Document) -> dict[str, list[str]]:
    """The terms of a document by field."""
    return {
        "name": terms(f"{document.name} {document.title}"),
        "server": terms(document.server),
        "description": terms(document.description),
        "parameter": terms(" ".join(parameter.name for parameter in document.parameters)),
        "parameter_text": terms(" ".join(parameter.description for parameter in document.parameters)),
        "choices": terms(" ".join(" ".join(parameter.choices) for parameter in document.parameters)),
        "server_text": terms(document.server_text),
    }
