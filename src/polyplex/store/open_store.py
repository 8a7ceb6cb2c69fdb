"""Which store a configuration asks for."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from polyplex.config.model import PayloadOptions
from polyplex.errors import ConfigError
from polyplex.store.local_files import LocalFiles
from polyplex.store.payload_store import PayloadStore

OBJECT_SCHEMES: Final = ("s3", "gs", "az")
_EXPECTED: Final = "expected file:PATH, s3://BUCKET/PREFIX, gs://BUCKET/PREFIX or az://CONTAINER/PREFIX"


def open_store(options: PayloadOptions, state_folder: Path, clock: Callable[[], float] = time.time) -> PayloadStore:
    """The store for `polyplex.payloads`; without an address it is `payloads` in the state folder.

    Nothing is created or connected to yet. Raises `ConfigError` for an address or options that cannot be used, and
    where the extra for object stores is not installed.
    """
    address = options.store
    if address is None:
        return PayloadStore(LocalFiles(state_folder / "payloads"), options, clock)
    scheme, colon, rest = address.partition(":")
    if scheme == "file" and colon:
        return PayloadStore(LocalFiles(_folder(rest)), options, clock)
    if scheme not in OBJECT_SCHEMES or not rest.startswith("//"):
        raise ConfigError(f"{_without_user(address)!r} is no payload store; {_EXPECTED}", key="polyplex.payloads.store")
    from polyplex.store.object_store import ObjectBucket

    return PayloadStore(ObjectBucket.from_address(address, options.store_options), options, clock)


def _folder(rest: str) -> Path:
    path = unquote(rest.removeprefix("//")) if rest.startswith("///") else rest
    if not path or (rest.startswith("//") and not rest.startswith("///")):
        raise ConfigError(f"file:{rest} names no folder; write file:PATH", key="polyplex.payloads.store")
    return Path(path).expanduser().absolute()


def _without_user(address: str) -> str:
    """The address without what may be a secret."""
    parts = urlsplit(address)
    host = f"//{parts.netloc.rpartition('@')[2]}" if parts.netloc else ""
    return f"{parts.scheme}{':' if parts.scheme else ''}{host}{parts.path}"
