"""Making a JSON value smaller while it stays valid against its schema."""

from typing import Any

from msgspec import Struct


class Shrunk(Struct, frozen=True):
    """`raw` is the smaller value as JSON; `cut` the JSON pointers of what is not whole in it."""

    raw: bytes
    cut: tuple[str, ...]


def shrink(raw: bytes, schema: dict[str, Any], max_tokens: int) -> Shrunk | None:
    """The value in at most `max_tokens`, valid against `schema`; None where that cannot be done."""
    raise NotImplementedError
