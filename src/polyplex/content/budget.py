"""Which content blocks of a result are cut, and how far: small ones stay whole, the largest give first."""

import binascii
from collections.abc import Sequence
from typing import Any, Final, Literal

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from polyplex.content.images import image_tokens, read_image
from polyplex.content.notices import NOTICE_TOKENS
from polyplex.content.tokens import estimate

FEWEST: Final = 2 * NOTICE_TOKENS
"""A block is never cut to fewer tokens than this: it would be all notice."""
_UNKNOWN_IMAGE: Final = 1600
_SOUND_BYTES_PER_TOKEN: Final = 640
_BLOCK_TOKENS: Final = 4
_HEAD_BYTES: Final = 8192
_Action = Literal["keep", "cut", "move"]


class Weight(Struct, frozen=True):
    """What one block costs a model; only a `cuttable` one can be shown in part."""

    tokens: int
    cuttable: bool


class Share(Struct, frozen=True):
    """What becomes of one block: it is kept, cut to `max_tokens` (notice included), or moved out whole.

    A block that is moved out leaves a notice of `max_tokens`.
    """

    action: _Action
    max_tokens: int


class Plan(Struct, frozen=True):
    """One share for each block up to `rest`; the blocks from there on are moved out together, with one notice."""

    shares: list[Share]
    rest: int | None = None

    @property
    def whole(self) -> bool:
        """Whether all blocks stay as they are."""
        return self.rest is None and all(share.action == "keep" for share in self.shares)

    @property
    def tokens(self) -> int:
        """What is left at most."""
        return sum(share.max_tokens for share in self.shares) + (NOTICE_TOKENS if self.rest is not None else 0)


class _Embedded(Struct, gc=False):
    text: str | UnsetType = UNSET
    blob: str | UnsetType = UNSET


class _Block(Struct, gc=False):
    type: str = ""
    text: str | UnsetType = UNSET
    data: str | UnsetType = UNSET
    resource: _Embedded | UnsetType = UNSET


_decode: Final = msgspec.json.Decoder(_Block).decode


def weigh(block: bytes | Raw) -> Weight:
    """What a content block (raw JSON) costs a model. Never fails: what is no known block costs what its text does."""
    raw = bytes(block)
    try:
        return weigh_block(_decode(raw))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return Weight(estimate(raw) + _BLOCK_TOKENS, False)


def weigh_block(block: Any) -> Weight:
    """As `weigh`, for a block with the members `type`, `text`, `data` and `resource` as attributes."""
    if block.type == "text" and block.text is not UNSET:
        return Weight(estimate(block.text) + _BLOCK_TOKENS, True)
    if block.type == "image" and block.data is not UNSET:
        return Weight(_image(block.data) + _BLOCK_TOKENS, False)
    if block.type == "audio" and block.data is not UNSET:
        return Weight(len(block.data) * 3 // 4 // _SOUND_BYTES_PER_TOKEN + _BLOCK_TOKENS, False)
    if block.type == "resource" and block.resource is not UNSET:
        if block.resource.text is not UNSET:
            return Weight(estimate(block.resource.text) + 8 * _BLOCK_TOKENS, True)
        if block.resource.blob is not UNSET:
            return Weight(estimate(block.resource.blob) + 8 * _BLOCK_TOKENS, False)
    return Weight(16 * _BLOCK_TOKENS, False)


def share(weights: Sequence[Weight], max_tokens: int) -> Plan:
    """What becomes of each block, so that all that stays costs at most `max_tokens` (at least one notice).

    The largest blocks give first, down to one common size; blocks that cannot be cut are moved out where they are
    larger than that. Where even so the blocks are too many, the first ones stay and the rest goes out together.
    """
    if sum(weight.tokens for weight in weights) <= max_tokens:
        return Plan([Share("keep", weight.tokens) for weight in weights])
    costs = [weight.tokens for weight in weights]
    moved: set[int] = set()
    solid = sorted((n for n, weight in enumerate(weights) if not weight.cuttable), key=lambda n: costs[n])
    level = _level(costs, max_tokens)
    while solid and costs[solid[-1]] > max(level, NOTICE_TOKENS):
        for _ in range(max(1, len(solid) // 16)):  # many at once where there are many, or it would take long
            largest = solid.pop()
            if costs[largest] > NOTICE_TOKENS:
                costs[largest] = NOTICE_TOKENS
                moved.add(largest)
        level = _level(costs, max_tokens)
    if level < FEWEST:
        return _first_ones(weights, max_tokens)
    return Plan(
        [
            Share("move", NOTICE_TOKENS)
            if place in moved
            else Share("keep", cost)
            if cost <= level
            else Share("cut", level)
            for place, cost in enumerate(costs)
        ]
    )


def _level(costs: Sequence[int], max_tokens: int) -> int:
    """The largest size that no block may exceed so that all of them fit."""
    left, several = max_tokens, len(costs)
    for cost in sorted(costs):
        if cost * several > left:
            return max(0, left // several)
        left -= cost
        several -= 1
    return max(costs, default=0)


def _first_ones(weights: Sequence[Weight], max_tokens: int) -> Plan:
    """The first blocks that fit, the next cut if that is worth it, and the rest moved out together."""
    shares: list[Share] = []
    left = max_tokens - NOTICE_TOKENS
    for weight in weights:
        if weight.tokens > left:
            break
        shares.append(Share("keep", weight.tokens))
        left -= weight.tokens
    if len(shares) < len(weights) and weights[len(shares)].cuttable and left >= FEWEST:
        shares.append(Share("cut", left))
    return Plan(shares, len(shares) if len(shares) < len(weights) else None)


def _image(data: str) -> int:
    try:
        head = binascii.a2b_base64(data[:_HEAD_BYTES])
    except (binascii.Error, ValueError):
        return _UNKNOWN_IMAGE
    image = read_image(head)
    return _UNKNOWN_IMAGE if image is None else image_tokens(image.width, image.height)
