"""Heads that llhttp has parsed before. On a kept connection a peer sends the same bytes again and again.

Parsing is a function of the bytes, so equal bytes need not be parsed twice. Only whole messages of known length that
arrive in one read are looked up here; everything else goes through llhttp.
"""

from typing import Final, Generic, TypeVar

SMALL_BYTES: Final = 16 * 1024
MAX_HEAD_BYTES: Final = 2048
MAX_HEADS: Final = 8
_END: Final = b"\r\n\r\n"

_T = TypeVar("_T")


class HeadCache(Generic[_T]):
    """The few newest heads of one connection; `_T` is what parsing one gave."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[bytes, tuple[int, _T]] = {}

    def find(self, data: bytes) -> tuple[_T, bytes] | None:
        """What is known of the head of `data`, and its body; None where it is unknown, or not one whole message."""
        end = data.find(_END) + 4
        known = self._known.get(data[:end])
        if known is None or len(data) - end != known[0]:
            return None
        return known[1], data[end:]

    def remember(self, data: bytes, length: int, parsed: _T) -> None:
        """Keep the head of a message whose body has `length` bytes."""
        end = data.find(_END) + 4
        if end <= MAX_HEAD_BYTES and len(data) - end == length:
            if len(self._known) >= MAX_HEADS:
                self._known.clear()
            self._known[data[:end]] = (length, parsed)
