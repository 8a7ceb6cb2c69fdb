"""The index: documents in, hits out. It holds no text, and is safe to use from several threads."""

import threading
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Final

import numpy as np

from polyplex.catalog.search.names import Label
from polyplex.catalog.search.postings import Floats, frequencies
from polyplex.catalog.search.reading import MAX_QUERY, document_fields, full_text, read_query, short_text
from polyplex.catalog.search.shelf import Question, Reading, Shelf
from polyplex.catalog.search.types import KINDS, Document, Found, Kind
from polyplex.config.model import SearchOptions
from polyplex.embed.cache import CachedEmbedder
from polyplex.embed.choice import open_embedder
from polyplex.embed.embedder import Embedder

Allowed = Collection[str] | Callable[[str], bool]

STEP: Final = 64
MODEL_STEP: Final = 8
HELD: Final = 512  # so many documents are read before they are put in: what is held meanwhile is bounded
ASKED: Final = 128  # so many queries are remembered with their vectors
FULL: Final = 0.5  # the weight of a document's text with its parameters, beside the text without


class SearchIndex:
    """An index over tools, prompts, resources and templates.

    `update` takes the whole list each time and indexes what is new or changed. Texts are read outside the lock: one
    thread may update while others search. What is new can be found as it comes, what is gone until the update is done.

    `static` gives vectors of words; `model`, which needs `static` beside it, vectors of sentences. Without them words
    alone decide. `documents_model` is the model for documents, such as one that keeps its vectors. `lexical_weight`
    fixes the share of the words in the score.
    """

    def __init__(
        self,
        static: Embedder | None = None,
        model: Embedder | None = None,
        *,
        documents_model: Embedder | None = None,
        lexical_weight: float | None = None,
    ) -> None:
        self._static = static
        self._model = model
        self._documents_model = documents_model or model
        self._lexical = lexical_weight
        self._lock = threading.Lock()
        self._updating = threading.Lock()
        dimensions = [each.dimensions for each in (self._static, self._model) if each is not None]
        self._asked = lru_cache(maxsize=ASKED)(self._question)
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
            wanted: dict[tuple[Kind, str], Document] = {(each.kind, each.key): each for each in documents}
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
        question = self._asked(query[:MAX_QUERY])
        with self._lock:
            return self._shelves[kind].search(question, k, server, allowed, self._lexical)

    def _question(self, text: str) -> Question:
        query = read_query(text)
        vectors: list[Floats] = []
        if self._static is not None:
            vectors.append(self._static.embed([query.text, *query.clauses]))
        if self._model is not None:
            vectors.append(self._model.embed([query.sentence, *query.clauses]))
        return Question(text, query, vectors)

    def _read(self, batch: Sequence[tuple[Document, bytes]]) -> list[Reading]:
        documents = [document for document, _ in batch]
        columns: list[Floats] = []
        if self._static is not None:
            short = self._static.embed([short_text(document) for document in documents])
            full = self._static.embed([full_text(document) for document in documents])
            columns.append(((short + FULL * full) / (1 + FULL)).astype(np.float32))
        if self._documents_model is not None:
            columns.append(self._documents_model.embed([short_text(document) for document in documents]))
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


def open_index(options: SearchOptions, cache_folder: Path | None = None) -> SearchIndex:
    """An empty index with the embedder of the configuration.

    It takes some milliseconds, or about a second with `minilm`, whose vectors of documents are kept in `vectors.db` in
    the cache folder. Raises `MissingExtraError` where `minilm` is not installed.
    """
    if options.embedder == "none":
        return SearchIndex()
    static = open_embedder("static")
    if options.embedder == "static":
        return SearchIndex(static, lexical_weight=options.lexical_weight)
    model = open_embedder("minilm")
    kept = model if cache_folder is None else CachedEmbedder(model, cache_folder / "vectors.db")
    return SearchIndex(static, model, documents_model=kept, lexical_weight=options.lexical_weight)


def _batches(changed: Iterator[tuple[Document, bytes]], size: int) -> Iterator[list[tuple[Document, bytes]]]:
    while batch := list(islice(changed, size)):
        yield batch
