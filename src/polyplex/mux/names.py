"""Public names: `<server>__<local>`, legal for every model API, stable whatever other servers are there."""

import hashlib
import re
from typing import Final, NewType

PublicName = NewType("PublicName", str)
LocalName = NewType("LocalName", str)

LEGAL: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")
SEPARATOR: Final = "__"
_ILLEGAL: Final = re.compile(r"[^a-zA-Z0-9_-]+")
_LOOKS_HASHED: Final = re.compile(r".*__[0-9a-f]{8}")
_LIMIT: Final = 64
_HASH: Final = 8
_SERVER_LIMIT: Final = 20


def public_name(server: str, local: str) -> PublicName:
    """The name a client sees.

    `server__local` where that is legal and can be split again in one way only; else a shortened form that ends in a
    hash of both parts. A server name that holds the separator or ends in `_` would make two pairs look alike, and so
    would a local name that ends as shortened forms do.
    """
    plain = f"{server}{SEPARATOR}{local}"
    splits = SEPARATOR not in server and not server.endswith("_")
    if splits and server and local and LEGAL.fullmatch(plain) and not _LOOKS_HASHED.fullmatch(local):
        return PublicName(plain)
    return hashed_name(server, local)


def hashed_name(server: str, local: str) -> PublicName:
    """The shortened form: legal characters of both parts, cut to size, and a hash that tells look-alikes apart."""
    digest = _digest(f"{len(server)}:{server}{local}")
    head = server_slug(server)
    room = _LIMIT - len(head) - len(SEPARATOR) - _HASH - len(SEPARATOR)
    tail = _ILLEGAL.sub("_", local)[:room].strip("_") or "x"
    return PublicName(f"{head}{SEPARATOR}{tail}{SEPARATOR}{digest}")


def server_slug(server: str) -> str:
    """The server's part of a shortened name: legal, short, without the separator."""
    slug = re.sub(r"_{2,}", "_", _ILLEGAL.sub("_", server))[:_SERVER_LIMIT].strip("_")
    return slug or "server"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_HASH]
