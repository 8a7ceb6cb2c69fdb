"""Static word vectors: a text is the sum of its words. The table comes with polyplex (`scripts/distill.py`)."""

from collections.abc import Sequence
from functools import lru_cache
from importlib.resources import as_file, files
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from polyplex.embed.embedder import Vectors, normalized
from polyplex.embed.wordpiece import WordPieces, basic_words, read_vocabulary

NAME: Final = "static-1"
MAX_CHARACTERS: Final = 8_000
MAX_PIECES: Final = 512
BATCH: Final = 128


class StaticTable:
    """An embedder over a table of word pieces, kept as bytes with one scale for each row."""

    def __init__(self, vocabulary: dict[str, int], rows: NDArray[np.int8], scales: NDArray[np.float32]) -> None:
        self._tokens = WordPieces(vocabulary)
        self._rows = rows
        self._scales = scales

    @property
    def name(self) -> str:
        """Changes with the table."""
        return NAME

    @property
    def dimensions(self) -> int:
        """The length of a vector."""
        return int(self._rows.shape[1])

    def embed(self, texts: Sequence[str]) -> Vectors:
        """A row of length 1 for each text; a row of zeros for a text without a known word."""
        vectors = np.zeros((len(texts), self.dimensions), np.float32)
        for begin in range(0, len(texts), BATCH):
            self._embed_into(vectors[begin : begin + BATCH], texts[begin : begin + BATCH])
        return normalized(vectors)

    def _embed_into(self, vectors: Vectors, texts: Sequence[str]) -> None:
        numbers: list[int] = []
        shares: list[float] = []
        starts: list[int] = []
        filled: list[int] = []
        for row, text in enumerate(texts):
            found, weights = text_pieces(self._tokens, text)
            if found:
                starts.append(len(numbers))
                filled.append(row)
                numbers += found
                shares += weights
        if filled:
            pick = np.asarray(numbers, np.int32)
            weighted = self._rows[pick] * (self._scales[pick] * np.asarray(shares, np.float32))[:, None]
            vectors[filled] = np.add.reduceat(weighted, starts, axis=0)


def text_pieces(tokens: WordPieces, text: str) -> tuple[list[int], list[float]]:
    """The pieces of a text and the share of each: a word counts once, in however many pieces it comes.

    Punctuation and words that cannot be put together from pieces are left out.
    """
    numbers: list[int] = []
    shares: list[float] = []
    for word in basic_words(text[:MAX_CHARACTERS]):
        if not word[0].isalnum():
            continue
        pieces = tokens.pieces(word)
        if pieces[0] != tokens.unknown:
            numbers += pieces
            shares += [1 / len(pieces)] * len(pieces)
        if len(numbers) >= MAX_PIECES:
            break
    return numbers[:MAX_PIECES], shares[:MAX_PIECES]


@lru_cache(maxsize=1)
def shipped_table() -> StaticTable:
    """The table in this package. Its rows are mapped, not read: only those in use take memory."""
    folder = files("polyplex.embed") / "data"
    vocabulary = read_vocabulary((folder / "vocabulary.txt").read_text(encoding="utf-8"))
    with as_file(folder / "rows.npy") as rows, as_file(folder / "scales.npy") as scales:
        table: NDArray[Any] = np.load(rows, mmap_mode="r")
        factors: NDArray[Any] = np.load(scales)
    return StaticTable(vocabulary, table, factors)
