"""The index: documents in, hits out. It holds no text, and is safe to use from several threads."""

import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final

import numpy as np

from polyplex.catalog.search.names import Label
from polyplex.catalog.search.postings import Floats, frequencies
from polyplex.catalog.search.reading import document_fields, full_text, read_query, short_text
from polyplex.catalog.search.shelf import Question, Reading, Shelf
from polyplex.catalog.search.types import KINDS, Document, Found, Kind
from polyplex.embed.embedder import Embedder

Allowed = Collection[str] | Callable[[str], bool]

STEP: Final = 64
MODEL_STEP: Final = 8
HELD: Final = 512  # so many documents are read before they are put in: what is held meanwhile is bounded
FULL: Final = 0.5  # the weight of a document's text with its parameters, beside the text without


class SearchIndex:
    """An index over tools, prompts, resources and templates.

    `update` takes the whole list each time and indexes what is new or changed. Texts are read outside the lock: one
    thread may update while others search. What is new can be found as it comes, what is gone until the update is done.

    `static` gives vectors of words; `model`, where there is one, vectors of sentences. Without either, words alone
    decide. `lexical_weight` fixes the share of the words in the score.
    """

    def __init__(
        self, static: Embedder | None = None, model: Embedder | None = None, *, lexical_weight: float | None = None
    ) -> None:
        self._static = static
        self._model = model if static is not None else None
        self._lexical = lexical_weight
        self._lock = threading.Lock()
        self._updating = threading.Lock()
        dimensions = [each.dimensions for each in (self._static, self._model) if each is not None]
        self._shelves: dict[Kind, Shelf] = {kind: Shelf(dimensions) for kind in KINDS}

    def __len__(self) -> int:
        return sum(len(shelf.slots) for shelf in self._shelves.values())

    def update(self, documents: Iterable[Document]) -> None:
        """Make the index hold exactly these documents; of two with one key the later counts."""
        for _ in self.updating(documents):
            pass

    def updating(self, documents: Iterable[Document]) -> Iterator[int]:
        """`update` in steps of some milliseconds; yields how many documents have been read."""
        with self._updating:
            wanted = {(document.kind, document.key): document for document in documents}
            step = STEP if self._model is None else MODEL_STEP
            read: list[Reading] = []
            done = 0
            for batch in _batches(self._changed(wanted), step):
                read += self._read(batch)
                done += len(batch)
                if len(read) >= HELD:
                    self._put_in(read)
                    read = []
                yield done
            self._put_in(read)
            for kind, shelf in self._shelves.items():
                gone = shelf.slots.keys() - {key for wanted_kind, key in wanted if wanted_kind == kind}
                with self._lock:
                    shelf.change(gone, ())

    def _changed(self, wanted: Mapping[tuple[Kind, str], Document]) -> Iterator[tuple[Document, bytes]]:
        for (kind, key), document in wanted.items():
            digest = document.digest()
            if self._shelves[kind].digests.get(key) != digest:
                yield document, digest

    def _put_in(self, read: Sequence[Reading]) -> None:
        for kind, shelf in self._shelves.items():
            fresh = [reading for reading in read if reading.kind == kind]
            if fresh:
                with self._lock:
                    shelf.change((), fresh)

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
        question = self._question(query)
        with self._lock:
            return self._shelves[kind].search(question, k, server, allowed, self._lexical)

    def _question(self, text: str) -> Question:
        query = read_query(text)
        vectors: list[Floats] = []
        if self._static is not None:
            vectors.append(self._static.embed([query.text, *query.clauses]))
        if self._model is not None:
            vectors.append(self._model.embed([text]))
        return Question(text, query, vectors)

    def _read(self, batch: Sequence[tuple[Document, bytes]]) -> list[Reading]:
        documents = [document for document, _ in batch]
        columns: list[Floats] = []
        if self._static is not None:
            short = self._static.embed([short_text(document) for document in documents])
            full = self._static.embed([full_text(document) for document in documents])
            columns.append((short + np.float32(FULL) * full) / np.float32(1 + FULL))
        if self._model is not None:
            columns.append(self._model.embed([short_text(document) for document in documents]))
        return [
            Reading(
                document.kind,
                Label(document.key, document.server, document.name, document.title),
                digest,
                frequencies(document_fields(document)),
                [column[row] for column in columns],
            )
            for row, (document, digest) in enumerate(batch)
        ]


def _batches(changed: Iterator[tuple[Document, bytes]], size: int) -> Iterator[list[tuple[Document, bytes]]]:
    while batch := list(islice(changed, size)):
        yield batch
