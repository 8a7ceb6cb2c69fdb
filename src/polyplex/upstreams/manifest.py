"""The last known lists of each server, kept on disk and served while the server starts."""

import asyncio
import hashlib
import logging
import os
import tempfile
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Raw

from polyplex.config import ServerConfig
from polyplex.protocol.revisions import Era
from polyplex.upstreams.connection import Peer
from polyplex.upstreams.lists import Listing

log = logging.getLogger("polyplex.upstreams")
ANY: Final = b"*"
MAX_BYTES: Final = 64 * 1024 * 1024


class _Listed(msgspec.Struct):
    entries: list[Raw]
    ttl_ms: int | None = None
    private: bool = False


class _Manifest(msgspec.Struct):
    server: str
    era: Era
    revision: str
    capabilities: dict[str, Raw]
    info: Raw
    lists: dict[str, _Listed]
    instructions: str | None = None


_decode = msgspec.json.Decoder(_Manifest).decode


class Manifests:
    """A folder with one file for each server and set of client capabilities; files are replaced whole."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def _path(self, config: ServerConfig, capabilities: bytes) -> Path:
        """Named by what the server is, so that a changed configuration starts without a memory."""
        identity = (config.name, config.kind, config.command, config.args, config.cwd, config.url)
        digest = hashlib.sha256(msgspec.json.encode((identity, capabilities.decode()))).hexdigest()[:40]
        return self._folder / f"{digest}.json"

    def load(self, config: ServerConfig, capabilities: bytes) -> tuple[dict[str, Listing], Peer] | None:
        """What is remembered, for these capabilities or else for any; None where nothing usable is."""
        exact = self._path(config, capabilities)
        path = exact if exact.exists() else self._path(config, ANY)
        try:
            if path.stat().st_size > MAX_BYTES:
                return None
            manifest = _decode(path.read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, msgspec.DecodeError, RecursionError) as error:
            log.warning("%s: its remembered lists in %s are not usable: %s", config.name, path, error)
            return None
        peer = Peer(manifest.era, manifest.revision, manifest.capabilities, bytes(manifest.info), manifest.instructions)
        lists = {
            member: Listing([bytes(entry) for entry in listed.entries], listed.ttl_ms, listed.private)
            for member, listed in manifest.lists.items()
        }
        return lists, peer

    async def save(self, config: ServerConfig, capabilities: bytes, lists: dict[str, Listing], peer: Peer) -> None:
        """Remember the lists; a failure is logged and changes nothing else."""
        manifest = _Manifest(
            config.name,
            peer.era,
            peer.revision,
            peer.capabilities,
            Raw(peer.info),
            {
                member: _Listed([Raw(entry) for entry in listing.entries], listing.ttl_ms, listing.private)
                for member, listing in lists.items()
            },
            peer.instructions,
        )
        data = msgspec.json.encode(manifest)
        try:
            for path in (self._path(config, capabilities), self._path(config, ANY)):
                await asyncio.to_thread(_replace, path, data)
        except OSError as error:
            log.warning("%s: its lists cannot be remembered: %s", config.name, error)


def _replace(path: Path, data: bytes) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".manifest-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
