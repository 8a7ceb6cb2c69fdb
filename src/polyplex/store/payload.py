"""A stored result, its id and its URI. Nothing here reads or writes.

An id is 16 random bytes, then when it was made and when it expires, each as 5 bytes of hundredths of a second since
1970, in base64url: 35 characters. So a listing alone says what has expired, and an id that was changed names nothing.
"""

import base64
import hashlib
import math
import secrets
from typing import Final, NamedTuple

from msgspec import Struct

URI_PREFIX: Final = "polyplex://payload/"
ID_LENGTH: Final = 35
MAX_MEDIA_TYPE: Final = 255
MAX_ORIGIN: Final = 512
_RANDOM_BYTES: Final = 16
_TIME_BYTES: Final = 5
_MAX_TIME: Final = (1 << 8 * _TIME_BYTES) - 1
_ALPHABET: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")


class Name(NamedTuple):
    """Where a payload is kept: the folder of its owner, and its id. Both are safe in paths and in keys."""

    folder: str
    id: str


class Lifetime(NamedTuple):
    """When a payload was made and when it expires, in seconds since 1970; None for never."""

    created: float
    expires: float | None


class Payload(Struct, frozen=True, kw_only=True):
    """A stored result. `size` is in bytes, `sha256` in hexadecimal, times are in seconds since 1970.

    `owner` is the caller it belongs to, `origin` what made it, such as the public name of a tool.
    """

    id: str
    owner: str
    media_type: str
    size: int
    sha256: str
    created: float
    expires: float | None
    origin: str = ""

    @property
    def uri(self) -> str:
        """What clients know it by."""
        return URI_PREFIX + self.id

    @property
    def name(self) -> Name:
        """Where it is kept."""
        return Name(folder_of(self.owner), self.id)


def new_id(now: float, ttl_seconds: float | None) -> str:
    """An id that nobody can guess, for a payload made now; None never expires."""
    expires = 0 if ttl_seconds is None else min(math.ceil((now + ttl_seconds) * 100), _MAX_TIME)
    times = int(now * 100).to_bytes(_TIME_BYTES, "big") + expires.to_bytes(_TIME_BYTES, "big")
    return base64.urlsafe_b64encode(secrets.token_bytes(_RANDOM_BYTES) + times).decode().rstrip("=")


def lifetime_of(identifier: str) -> Lifetime | None:
    """What an id says of itself; None for what is no id."""
    if len(identifier) != ID_LENGTH or not _ALPHABET.issuperset(identifier):
        return None
    raw = base64.urlsafe_b64decode(identifier + "=")
    if base64.urlsafe_b64encode(raw).decode().rstrip("=") != identifier:  # the last letter has bits to spare
        return None
    created, expires = raw[_RANDOM_BYTES:-_TIME_BYTES], int.from_bytes(raw[-_TIME_BYTES:], "big")
    return Lifetime(int.from_bytes(created, "big") / 100, expires / 100 if expires else None)


def id_of(reference: str) -> str | None:
    """The id in a payload URI, or of a bare id; None for what is neither."""
    identifier = reference.removeprefix(URI_PREFIX)
    return identifier if lifetime_of(identifier) is not None else None


def folder_of(owner: str) -> str:
    """The folder of a caller: 40 hexadecimal digits, which say nothing of who it is."""
    return hashlib.blake2b(owner.encode("utf-8", "surrogatepass"), digest_size=20, person=b"payload owner").hexdigest()


def is_folder(text: str) -> bool:
    """Whether a text has the form of a caller's folder."""
    return len(text) == 40 and all(letter in "0123456789abcdef" for letter in text)
