"""Which content blocks of a result are cut, and how far: small ones stay whole, the largest give first."""

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct


class Weight(Struct, frozen=True):
    """What one block costs; `cuttable` for texts, all else is whole or moved out."""

    tokens: int
    cuttable: bool


class Share(Struct, frozen=True):
    """What becomes of one block: `keep`, `cut` to `max_tokens` (notice included), or `move` out whole."""

    action: Literal["keep", "cut", "move"]
    max_tokens: int


def weigh(block: bytes) -> Weight:
    """What a content block (raw JSON) costs a model."""
    raise NotImplementedError


def share(weights: Sequence[Weight], max_tokens: int) -> list[Share]:
    """One share for each block, in their order; the sum of what stays is at most `max_tokens`."""
    raise NotImplementedError
