"""What turns texts into vectors, and how one is opened by name."""

from collections.abc import Sequence
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

EmbedderName = Literal["static", "minilm"]
Vectors = NDArray[np.float32]


class Embedder(Protocol):
    """Texts to vectors. Safe to use from several threads."""

    @property
    def name(self) -> str:
        """Names the weights: vectors of one name may be compared and kept, those of two may not."""
        ...

    @property
    def dimensions(self) -> int:
        """The length of a vector."""
        ...

    def embed(self, texts: Sequence[str]) -> Vectors:
        """A row of length 1 for each text; a row of zeros for a text without a known word."""
        ...


def open_embedder(name: EmbedderName) -> Embedder:
    """Load an embedder: some milliseconds for `static`, about a second for `minilm`. Both are kept once loaded.

    Raises `MissingExtraError` where `minilm` is not installed.
    """
    if name == "static":
        from polyplex.embed.table import shipped_table

        return shipped_table()
    from polyplex.embed.minilm import installed_minilm

    return installed_minilm()


def normalized(vectors: Vectors) -> Vectors:
    """Rows of length 1; rows of zeros stay."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
