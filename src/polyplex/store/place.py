"""What a payload store asks of the place where bytes are kept: a folder, or a bucket.

Everything here blocks, and is called from threads of the store, one at a time for each source and each sink. Failures
of the place are `PayloadStoreFailed`.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from msgspec import Struct

from polyplex.store.payload import Name


class Record(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is kept beside the bytes; the id says the rest."""

    media_type: str
    size: int
    sha256: str
    origin: str = ""


class Kept(NamedTuple):
    """One stored payload as a listing has it. `size` is what it takes up, in bytes."""

    name: Name
    size: int


class Sink(Protocol):
    """One payload on its way in. It cannot be seen until `finish` has returned."""

    def append(self, chunks: Sequence[bytes]) -> None:
        """Write more; returns when there is room for what comes next."""
        ...

    def finish(self, record: Record) -> None:
        """Make it durable, then visible, at one stroke."""
        ...

    def abort(self) -> None:
        """Leave nothing of it; never raises."""
        ...


class Source(Protocol):
    """One payload to read from; it stays whole while it is open, whatever is deleted meanwhile, where files allow."""

    record: Record

    def read_at(self, offset: int, length: int) -> bytes:
        """The bytes from `offset` on, fewer than `length` only at the end."""
        ...

    def close(self) -> None:
        """Let go of it."""
        ...


class Place(Protocol):
    """A place where payloads are kept by name."""

    title: str
    threads: int
    sweep_seconds: float

    def create(self, name: Name, media_type: str) -> Sink:
        """Begin to write one."""
        ...

    def open(self, name: Name) -> Source | None:
        """Read one; None where there is none that is whole."""
        ...

    def kept(self) -> list[Kept]:
        """All that are whole, in any order."""
        ...

    def delete(self, name: Name) -> None:
        """Remove one; no error where it is gone already."""
        ...

    def clean(self, now: float) -> int:
        """Remove what writers left behind that are no more; how many."""
        ...

    def free(self) -> int | None:
        """How many bytes more there is room for; None where nobody knows."""
        ...

    def sign(self, name: Name, seconds: float) -> str | None:
        """An address at which anyone may fetch the bytes for so long; None where the place has no such thing."""
        ...

    def uri(self, name: Name) -> str | None:
        """The place's own URI of the bytes; None where it has none."""
        ...

    def close(self) -> None:
        """Let go of everything."""
        ...
