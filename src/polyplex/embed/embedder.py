"""What turns texts into vectors."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

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


def normalized(vectors: Vectors) -> Vectors:
    """Rows of length 1; rows of zeros stay."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
