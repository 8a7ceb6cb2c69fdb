"""What the first bytes of contents that are no text tell: images, sounds, documents, archives, databases."""

import re
from collections.abc import Callable
from typing import Final

from polyplex.content import kinds
from polyplex.content.images import read_image

_HEX_BYTES: Final = 32
_STRINGS: Final = re.compile(rb"[\x20-\x7e]{6,200}")
_PAGES: Final = re.compile(rb"/Type\s{0,4}/Pages\b[^>]{0,400}?/Count\s{1,4}(\d{1,9})")
_TITLE: Final = re.compile(rb"/Title\s{0,4}\(((?:[^()\\]|\\.){1,200})\)")
_END_OF_ZIP: Final = b"PK\x05\x06"
_MOST_NAMES: Final = 8
_MIB: Final = 1024 * 1024


def describe(head: bytes, kind: str, total_bytes: int, tail: bytes = b"") -> str:
    """One or two lines on a content that is no text. Never fails, whatever the bytes."""
    image = read_image(head)
    if image is not None:
        return f"{image.format} image, {image.width:,}×{image.height:,} pixels"
    reader = _READERS.get(kind)
    said = reader(head, tail or head, total_bytes) if reader is not None else ""
    if said:
        return said
    if kind.startswith(("image/", "audio/", "video/", "font/")):
        return f"{kind.partition('/')[0]} ({kind}), {total_bytes:,} bytes"
    return _hex(head, kind, total_bytes)


def _hex(head: bytes, kind: str, total_bytes: int) -> str:
    name = "Binary" if kind == kinds.BINARY else f"Binary ({kind})"
    said = f"{name}, {total_bytes:,} bytes, begins with {head[:_HEX_BYTES].hex(' ')}"
    found = [text.decode("ascii") for text in _STRINGS.findall(head[:4096])[:4]]
    return said + ("; texts in it: " + ", ".join(repr(text[:60]) for text in found) if found else "")


def _pdf(head: bytes, tail: bytes, total_bytes: int) -> str:
    version = head[5:8].decode("ascii", "replace")
    counts = [int(count) for count in _PAGES.findall(head) + _PAGES.findall(tail)]
    title = _TITLE.search(head) or _TITLE.search(tail)
    named = f", titled {title[1].decode('latin-1')!r}" if title else ""
    return f"PDF {version}" + (f", {max(counts):,} pages" if counts else "") + named


def _zip(head: bytes, tail: bytes, total_bytes: int) -> str:
    names: list[str] = []
    at = 0
    while len(names) < _MOST_NAMES and head[at : at + 4] == b"PK\x03\x04" and at + 30 <= len(head):
        size = int.from_bytes(head[at + 18 : at + 22], "little")
        name, extra = (int.from_bytes(head[at + place : at + place + 2], "little") for place in (26, 28))
        names.append(head[at + 30 : at + 30 + name].decode("utf-8", "replace")[:100])
        at += 30 + name + extra + size
    end = tail.rfind(_END_OF_ZIP)
    count = int.from_bytes(tail[end + 10 : end + 12], "little") if 0 <= end <= len(tail) - 12 else 0
    files = f", {count:,} files" if count else ""
    return f"Zip archive{files}" + (
        f": {', '.join(names)}{', …' if count > len(names) or not count else ''}" if names else ""
    )


def _gzip(head: bytes, tail: bytes, total_bytes: int) -> str:
    name = ""
    if len(head) > 10 and head[3] & 8:
        start = 10 + (2 + int.from_bytes(head[10:12], "little") if head[3] & 4 else 0)
        name = head[start : start + 200].partition(b"\x00")[0].decode("latin-1")
    size = int.from_bytes(tail[-4:], "little")
    return f"Gzip of {name!r}" * bool(name) or f"Gzip, {size:,} bytes when unpacked (modulo 4 GiB)"


def _wave(head: bytes, tail: bytes, total_bytes: int) -> str:
    if head[12:16] != b"fmt " or len(head) < 36:
        return ""
    channels, rate, per_second = (
        int.from_bytes(head[start:end], "little") for start, end in ((22, 24), (24, 28), (28, 32))
    )
    seconds = total_bytes / per_second if per_second else 0
    return f"WAV sound, {seconds:,.1f} s, {rate:,} Hz, {channels} channel{'s' * (channels != 1)}"


def _mpeg(head: bytes, tail: bytes, total_bytes: int) -> str:
    return f"MP3 sound, {total_bytes / _MIB:,.1f} MiB"


def _sqlite(head: bytes, tail: bytes, total_bytes: int) -> str:
    if len(head) < 32:
        return ""
    size = int.from_bytes(head[16:18], "big")
    tables = re.findall(rb"(?i)CREATE TABLE\s{1,4}(?:IF NOT EXISTS\s{1,4})?[\"'`\[]?(\w{1,60})", head)
    named = ": " + ", ".join(dict.fromkeys(name.decode() for name in tables[:12])) if tables else ""
    pages = int.from_bytes(head[28:32], "big")
    return f"SQLite database, {pages:,} pages of {65536 if size == 1 else size:,} bytes{named}"


_READERS: Final[dict[str, Callable[[bytes, bytes, int], str]]] = {
    "application/pdf": _pdf,
    "application/zip": _zip,
    "application/gzip": _gzip,
    "audio/wav": _wave,
    "audio/mpeg": _mpeg,
    "application/vnd.sqlite3": _sqlite,
}
