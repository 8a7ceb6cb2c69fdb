"""Texts that leave polyplex and come back, such as a `requestState` (2026-07-28, "Multi Round-Trip Requests").

They are sealed with AES-256-GCM: nobody else can read, make or change one. The purpose is bound to the text, so that
one made for a thing cannot be used for another. Keys are kept in a ring: the first seals, all open.
"""

import base64
import binascii
import hashlib
import json
import os
import secrets
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

KEY_BYTES: Final = 32
NONCE_BYTES: Final = 12
ROTATE_SECONDS: Final = 7 * 24 * 3600
KEPT_KEYS: Final = 3
MAX_SEALED_CHARACTERS: Final = 2 * 1024 * 1024
_MARK_BYTES: Final = 4


class SealError(ValueError):
    """The text was not sealed by us for this purpose, or was changed."""


class KeyRing:
    """Secrets of 32 bytes. The first one seals; the others open what was sealed before a rotation."""

    def __init__(self, keys: Sequence[bytes]) -> None:
        if not keys:
            raise ValueError("a key ring needs a key")
        self._keys = [(hashlib.blake2b(key, digest_size=_MARK_BYTES).digest(), key) for key in keys]
        self._ciphers: dict[bytes, Any] = {}

    def seal(self, plain: bytes, purpose: str) -> str:
        """The sealed form, in letters that need no quoting in JSON or in a URL."""
        mark, key = self._keys[0]
        nonce = os.urandom(NONCE_BYTES)
        sealed = self._cipher(mark, key).encrypt(nonce, plain, purpose.encode())
        return base64.urlsafe_b64encode(mark + nonce + sealed).decode().rstrip("=")

    def open(self, text: str, purpose: str) -> bytes:
        """What was sealed. Raises `SealError`."""
        from cryptography.exceptions import InvalidTag

        if len(text) > MAX_SEALED_CHARACTERS:
            raise SealError("too long")
        try:
            raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        except (ValueError, binascii.Error):
            raise SealError("not a sealed text") from None
        mark, nonce, sealed = raw[:_MARK_BYTES], raw[_MARK_BYTES : _MARK_BYTES + NONCE_BYTES], raw[16:]
        for known, key in self._keys:
            if known == mark:
                try:
                    return self._cipher(mark, key).decrypt(nonce, sealed, purpose.encode())
                except (InvalidTag, ValueError):
                    raise SealError("changed, or sealed for something else") from None
        raise SealError("sealed with a key that is not known here")

    def _cipher(self, mark: bytes, key: bytes) -> Any:
        cipher = self._ciphers.get(mark)
        if cipher is None:
            from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # 20 ms, and most processes never seal

            cipher = self._ciphers[mark] = AESGCM(key)
        return cipher


def key_of(secret: str) -> bytes:
    """The key behind a configured secret of any length."""
    return hashlib.blake2b(secret.encode(), digest_size=KEY_BYTES, person=b"polyplex seal").digest()


def kept_ring(file: Path | None) -> KeyRing:
    """The ring kept in a file, which processes of one user share; made, and its keys replaced in time, as needed.

    None, and a file that cannot be used, give a ring that lives as long as the process.
    """
    if file is None:
        return KeyRing([secrets.token_bytes(KEY_BYTES)])
    try:
        return KeyRing(_kept_keys(file))
    except OSError:
        return KeyRing([secrets.token_bytes(KEY_BYTES)])


def _kept_keys(file: Path) -> list[bytes]:
    """The keys in the file, newest first, after a new one was added where the newest is too old."""
    import fcntl

    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with os.fdopen(os.open(file, os.O_RDWR | os.O_CREAT, 0o600), "r+b") as opened:
        fcntl.flock(opened, fcntl.LOCK_EX)
        entries = _read_entries(opened.read())
        now = time.time()
        if not entries or now - entries[0][0] > ROTATE_SECONDS:
            entries = [(now, secrets.token_bytes(KEY_BYTES)), *entries][:KEPT_KEYS]
            opened.seek(0)
            opened.truncate()
            opened.write(json.dumps([[made, key.hex()] for made, key in entries]).encode())
            opened.flush()
            os.fsync(opened.fileno())
    return [key for _, key in entries]


def _read_entries(data: bytes) -> list[tuple[float, bytes]]:
    """Keys with the time they were made; a file that was damaged counts as empty."""
    try:
        entries = [(float(made), bytes.fromhex(key)) for made, key in json.loads(data)]
    except (ValueError, TypeError):
        return []
    return [entry for entry in entries if len(entry[1]) == KEY_BYTES]
